package outbox

import (
	"testing"

	"starling/command"
	"starling/replica/report"
	"starling/terms/rules"
)

// Another machine with this name writes under the number of what this one has under way: that will never count, and the
// request goes on waiting, whatever became of the other's entry.
func TestTheNumberOfAnotherIsNotOurs(t *testing.T) {
	var b Outbox
	answers := 0
	b.Add(Request{&command.KillJob{RequestID: "r", Job: "web"}, func(report.Receipt, error) { answers++ }})
	if b.Next(command.Entry{Writer: "a~1", Time: 5, Rules: rules.First}, []command.Command{&command.TellTime{}},
		true) == nil {
		t.Fatal("nothing is written")
	}
	theirs := command.Entry{Writer: "a~1", Seq: b.Seq, Time: 6, Commands: []command.Command{&command.TellTime{}}}
	b.Folded(&theirs, &report.Outcome{Results: make([]report.Result, 1)}, theirs.Seq)
	if answers > 0 || len(b.waiting) != 1 || b.underway != nil {
		t.Fatalf("%d answers, %d wait, under way is %v", answers, len(b.waiting), b.underway)
	}
	b.Next(command.Entry{Writer: "a~1", Time: 7, Rules: rules.First}, nil, true)
	b.Folded(b.underway, &report.Outcome{Dropped: "it is a repetition"}, 1<<33)
	if b.Next(command.Entry{Writer: "a~1", Time: 8, Rules: rules.First}, nil, true); b.Seq <= 1<<33 {
		t.Fatalf("number %d is below one that counted, and never will", b.Seq)
	}
	b.Folded(b.underway, &report.Outcome{Results: make([]report.Result, 1)}, b.Seq)
	if answers != 1 {
		t.Fatalf("%d answers, want 1", answers)
	}
}
