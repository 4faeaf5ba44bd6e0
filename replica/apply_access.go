package replica

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/replica/enrol"
	"starling/replica/report"
	"starling/rights"
	"starling/terms"
)

// as obeys a command if who asked for it may.
func (f *fold) as(c *command.As) report.Result {
	if reason := rights.OfCommand(f.s, c.Subject, c.Command); reason != "" {
		return refused(facts.Denied, "%s", reason)
	}
	return f.obey(c.Command)
}

// removeNode takes a node out for good: its lives end, and what comes from it is dropped from now on.
func (f *fold) removeNode(c *command.RemoveNode) report.Result {
	return f.once(c.RequestID, func() report.Result {
		if r := enrol.MayRemove(f.s, c); r.Refused() {
			return r
		}
		if node := f.s.NodeOf(c.Node); node != nil {
			for _, session := range slices.Clone(node.Sessions) {
				life := terms.NewPeerID(c.Node, session.Incarnation)
				f.leave(life, life)
			}
		}
		return enrol.RemoveNode(f.s, c)
	})
}
