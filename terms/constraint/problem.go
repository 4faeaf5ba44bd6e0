package constraint

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of constraints.
const (
	// NameBytesMax bounds the name of an attribute or label, ValueBytesMax a value.
	NameBytesMax  = 252
	ValueBytesMax = 1 << 16
	// ValuesMax bounds the values of one constraint, PartsMax the parts of one.
	ValuesMax = 64
	PartsMax  = 64
	// DepthMax bounds how deep constraints are joined.
	DepthMax = 5
	// SoftTimeoutMillisMax is 24 hours.
	SoftTimeoutMillisMax = 24 * 60 * 60 * 1000
)

// Report is told what is wrong with a field.
type Report func(field, format string, args ...any)

// Problems reports all that is wrong with the constraint, which is named field.
func (c *Constraint) Problems(field string, report Report) {
	if c.SoftTimeoutMillis > SoftTimeoutMillisMax || c.SoftTimeoutMillis > 0 && !c.Soft {
		report(field+".soft", "must be at most 24 hours")
	}
	c.problems(field, report, DepthMax)
}

func (c *Constraint) problems(field string, report Report, depth int) {
	subjects := 0
	for _, has := range [...]bool{c.Attribute != "", c.Label != "", len(c.All) > 0, len(c.Any) > 0} {
		if has {
			subjects++
		}
	}
	if subjects != 1 {
		report(field, "must have exactly one of attribute, label, all and any")
		return
	}
	c.leafProblems(field, report)
	for _, parts := range [...]struct {
		name string
		list []Constraint
	}{{".all", c.All}, {".any", c.Any}} {
		switch {
		case len(parts.list) > PartsMax:
			report(field+parts.name, "must have at most %d elements", PartsMax)
			continue
		case len(parts.list) > 0 && depth == 1:
			report(field+parts.name, "must have at most %d constraints within each other", DepthMax)
			continue
		}
		for i := range parts.list {
			part := &parts.list[i]
			at := fmt.Sprintf("%s%s[%d]", field, parts.name, i)
			if part.Soft {
				report(at+".soft", "must be absent: only a whole constraint is soft")
			}
			part.problems(at, report, depth-1)
		}
	}
}

// leafProblems reports what is wrong with the fields of a constraint that asks about something itself, or with those
// that are there although it does not.
func (c *Constraint) leafProblems(field string, report Report) {
	for _, name := range [...]struct{ field, text string }{{".attribute", c.Attribute}, {".label", c.Label},
		{".within", c.Within}} {
		if len(name.text) > NameBytesMax {
			report(field+name.field, "must have at most %d bytes", NameBytesMax)
		}
		if !sound(name.text) {
			report(field+name.field, "must be UTF-8 without zero bytes")
		}
	}
	for i, v := range c.Values {
		if len(v) > ValueBytesMax || !sound(v) {
			report(field+".values["+strconv.Itoa(i)+"]", "must be UTF-8 without zero bytes, of at most %d bytes", ValueBytesMax)
		}
	}
	if len(c.Values) > ValuesMax {
		report(field+".values", "must have at most %d elements", ValuesMax)
	}
	switch {
	case c.Attribute != "":
		c.attributeProblems(field, report)
	case c.Label != "":
		c.labelProblems(field, report)
	case c.Operator != 0 || len(c.Values) > 0:
		report(field+".operator", "must be absent beside all or any")
	}
	if c.Label == "" && (c.Within != "" || c.Count != 0) {
		report(field+".within", "within and count must be absent without label")
	}
}

func sound(text string) bool { return !strings.ContainsRune(text, 0) && utf8.ValidString(text) }

func (c *Constraint) attributeProblems(field string, report Report) {
	switch c.Operator {
	case In, NotIn:
		if len(c.Values) == 0 {
			report(field+".values", "must have at least one value for %q", c.Operator)
		}
	case Exists, NotExists:
		if len(c.Values) != 0 {
			report(field+".values", "must be absent for %q", c.Operator)
		}
	case Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual:
		if len(c.Values) != 1 {
			report(field+".values", "must have exactly one value for %q", c.Operator)
		} else if _, err := strconv.ParseInt(c.Values[0], 10, 64); err != nil && c.Operator >= Less {
			report(field+".values[0]", "must be an integer for %q, is %q", c.Operator, c.Values[0])
		}
	default:
		report(field+".operator", "must be one of %q", Operators()[1:])
	}
}

func (c *Constraint) labelProblems(field string, report Report) {
	if c.Operator > GreaterOrEqual || !c.Operator.counts() {
		report(field+".operator", `must be "=", "!=", "<", "<=", ">" or ">=" for a label, whose instances it counts`)
	}
	if len(c.Values) != 1 {
		report(field+".values", "must have exactly one value for a label")
	}
}
