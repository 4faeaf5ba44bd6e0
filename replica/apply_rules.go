package replica

import (
	"fmt"
	"strings"

	"starling/cluster/facts"
	"starling/command"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// raiseRules lets the fold go on by the next version of the rules if the programs of all members know it. The entry
// itself is folded by the old one to its end, so that a program that knows no other has the value of all up to here,
// and stops.
func (f *fold) raiseRules(c *command.RaiseRules) report.Result {
	if r := f.member(); r.Refused() {
		return r
	}
	if c.Version == f.s.Rules {
		return report.Result{} // a repetition
	}
	if c.Version != f.s.Rules+1 {
		return refused(facts.Conflict, "the rules have version %d, the next is %d, not %d", f.s.Rules, f.s.Rules+1,
			c.Version)
	}
	if all := reaction.Behind(f.s, c.Version); len(all) > 0 {
		return refused(facts.Conflict,
			"%d of %d members do not know version %d of the rules (%s): install a newer program there first",
			len(all), f.s.Members(), c.Version, list(all))
	}
	f.raised = c.Version
	return report.Result{}
}

// namedMax bounds the members that a refusal names.
const namedMax = 5

// list is the first names, and how many there are beyond them.
func list(all []terms.PeerID) string {
	var names []string
	for _, p := range all[:min(len(all), namedMax)] {
		names = append(names, string(p))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// timeNow is the value's time at the entry: the highest that any told. Under rules.Next each entry lets it pass, so
// that the digests of programs that fold by other rules differ at once.
func (f *fold) timeNow() terms.Time {
	least := f.s.Time
	if f.s.Rules >= rules.Next {
		least++
	}
	return max(least, f.entry.Time)
}

// passTime lets the value's time pass.
func (f *fold) passTime(c *command.PassTime) report.Result {
	return f.once(c.RequestID, func() report.Result {
		f.s.Time += terms.Time(c.Millis)
		return report.Result{}
	})
}
