package command

import (
	"math"

	"starling/terms/constraint"
)

func wholeConstraint(c *coder, k *constraint.Constraint) { constraintOf(constraint.DepthMax)(c, k) }

// constraintOf codes a constraint with at most so many within each other.
func constraintOf(depth int) func(*coder, *constraint.Constraint) {
	return func(c *coder, k *constraint.Constraint) {
		text(c, &k.Attribute, constraint.NameBytesMax)
		text(c, &k.Label, constraint.NameBytesMax)
		text(c, &k.Within, constraint.NameBytesMax)
		integer(c, &k.Operator, uint64(constraint.GreaterOrEqual))
		list(c, &k.Values, constraint.ValuesMax, argument)
		integer(c, &k.Count, math.MaxUint32)
		parts := constraint.PartsMax
		if depth == 1 {
			parts = 0
		}
		list(c, &k.All, parts, constraintOf(depth-1))
		list(c, &k.Any, parts, constraintOf(depth-1))
		flag(c, &k.Soft)
		integer(c, &k.PatienceMillis, math.MaxUint32)
	}
}
