package host

import (
	"slices"
	"testing"

	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

// TestNews tells what happens to this node and to the ring, and nothing of other nodes.
func TestNews(t *testing.T) {
	slot := terms.SlotName{Job: "web", Task: "server", Index: 2}
	f := &report.Folded{
		Entry: &command.Entry{Commands: []command.Command{&command.DrainNode{Node: "a", Drain: true},
			&command.DrainNode{Node: "b", Drain: true}}},
		Outcome: report.Outcome{Effects: []report.Effect{
			{Kind: report.Joined, Peer: "c~1", Node: "c"},
			{Kind: report.Placed, Slot: slot, Order: 7, Node: "a"},
			{Kind: report.Ended, Slot: slot, Order: 7, Node: "b", Reason: "exited with 1"},
			{Kind: report.Left, Peer: "b~1", Node: "b"},
		}},
	}
	got := newsOf(f, "a")
	want := []string{got[0], "c~1 joined", "placed web.server[2] on node a", "b~1 left"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want a drain and %q", got, want[1:])
	}
}
