// Package replay folds what stands in a journal again, from its bytes.
package replay

import (
	"starling/cluster"
	"starling/command"
	"starling/replica"
	"starling/replica/report"
)

// Record folds the bytes of an entry at the next index into s, or passes them over if they are none that the rules in
// force know.
func Record(s *cluster.State, payload []byte, explain bool) report.Folded {
	folded := report.Folded{Index: s.Index + 1, Bytes: len(payload)}
	e, err := command.Decode(payload, s.Rules)
	if err != nil {
		folded.Outcome = replica.Skip(s, folded.Index, len(payload), err.Error())
	} else {
		folded.Entry, folded.Outcome = e, replica.Apply(s, folded.Index, e, explain)
	}
	folded.Digest = s.Digest()
	return folded
}
