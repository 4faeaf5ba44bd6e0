package api

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// TestOutput brings an output from one peer to another.
func TestOutput(t *testing.T) {
	a, _ := pair()
	whole := terms.OutputSet{Allocation: terms.AllocationID{Slot: terms.SlotName{Job: "words", Task: "count", Index: 2},
		Order: 7}, Job: 3}
	text := strings.Repeat("word ", 100_000)
	a.outputs = map[terms.OutputSet]string{whole: text}
	address, outputs := a.serve(t), client.NewOutputs(nil)
	stream, err := outputs.Fetch(within(t), address, whole)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if got, err := io.ReadAll(stream); err != nil || string(got) != text {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(text))
	}
	other := whole
	other.Allocation.Order = 8
	missing, err := outputs.Fetch(within(t), address, other)
	if err == nil {
		_, err = io.ReadAll(missing)
	}
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "node a has no output of words.count[2]#8") {
		t.Errorf("an output that is not there: %v", err)
	}
}

// TestOutputByName asks peer a for what instances on b have left.
func TestOutputByName(t *testing.T) {
	a, b := pair()
	address := b.serve(t)
	b.volunteer(address)
	spec := jobOn("words", 2, "b")
	spec.Tasks = append(spec.Tasks, spec.Tasks[0])
	spec.Tasks[1].Name, spec.Tasks[1].After = "top", []terms.TaskName{"main"}
	order := a.add("a~1", &command.SubmitJob{Spec: *spec}).Index
	main := terms.SlotName{Job: "words", Task: "main"}
	b.report(main, facts.ByItself)
	b.outputs = map[terms.OutputSet]string{{Allocation: terms.AllocationID{Slot: main, Order: order}, Job: 1}: "whole"}
	c := ask(t, a.serve(t))
	get := func(request *starlingv1.OutputRequest) (string, error) {
		var got strings.Builder
		err := c.Output(within(t), request, &got)
		return got.String(), err
	}
	if got, err := get(&starlingv1.OutputRequest{Job: "words", Task: "main"}); err != nil || got != "whole" {
		t.Errorf("got %q, %v", got, err)
	}
	refused := func(request *starlingv1.OutputRequest, code wire.Code, want string) {
		t.Helper()
		var failure *wire.Failure
		if _, err := get(request); !errors.As(err, &failure) || failure.Code != code ||
			!strings.Contains(failure.Reason, want) {
			t.Errorf("%v: got %v, want %v with %q", request, err, code, want)
		}
	}
	refused(&starlingv1.OutputRequest{Job: "words"}, wire.Invalid, "which of the tasks of words is meant")
	refused(&starlingv1.OutputRequest{Job: "words", Task: "main", Slot: 1}, wire.NotFound,
		"words.main[1] is assigned, and its output is whole only when")
	refused(&starlingv1.OutputRequest{Job: "words", Task: "main", Slot: 9}, wire.NotFound, "has no instance 9")
	b.outputs = nil
	refused(&starlingv1.OutputRequest{Job: "words", Task: "main"}, wire.NotFound, "node b has no output of words.main[0]")
	b.volunteer("127.0.0.1:1")
	refused(&starlingv1.OutputRequest{Job: "words", Task: "main"}, wire.Unavailable,
		"is on node b, whose peer does not answer")
}
