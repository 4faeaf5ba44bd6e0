package replica

import (
	"fmt"
	"strings"

	"starling/cluster"
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// raiseRules lets the fold go on by the next version of the rules if the programs of all members know it. The entry itself
// is folded by the old one to its end, so that a program that knows no other has the value of all up to here, and stops.
func (f *fold) raiseRules(c *command.RaiseRules) Result {
	if r := f.member(); r.refused() {
		return r
	}
	if c.Version == f.s.Rules {
		return Result{} // a repetition
	}
	if c.Version != f.s.Rules+1 {
		return refused(cluster.Conflict, "the rules have version %d, the next is %d, not %d", f.s.Rules, f.s.Rules+1, c.Version)
	}
	if behind := f.behind(c.Version); behind != "" {
		return refused(cluster.Conflict, "%s: install a newer program there first", behind)
	}
	f.raised = c.Version
	return Result{}
}

// behindMax bounds the members that a refusal names.
const behindMax = 5

// behind tells which members have programs that do not know a version of the rules, "" if all do.
func (f *fold) behind(version rules.Number) string {
	var names []string
	count := 0
	f.s.EachMember(func(p terms.PeerID) bool {
		if offer := f.s.NodeOf(p.Node()).Offer; offer == nil || offer.Rules < version {
			if count++; count <= behindMax {
				names = append(names, string(p))
			}
		}
		return true
	})
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d members do not know version %d of the rules (%s)", count, f.s.Members(), version, list(names, count))
}

// list is the names, and how many there are beyond them.
func list(names []string, count int) string {
	text := strings.Join(names, ", ")
	if more := count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
