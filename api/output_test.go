package api

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"starling/api/client"
	"starling/terms"
)

// TestOutput brings an output from one peer to another.
func TestOutput(t *testing.T) {
	a, _ := pair()
	whole := terms.OutputSet{Allocation: terms.AllocationID{Slot: terms.SlotName{Job: "words", Task: "count", Index: 2}, Order: 7}, Job: 3}
	text := strings.Repeat("word ", 100_000)
	a.outputs = map[terms.OutputSet]string{whole: text}
	address, outputs := a.serve(t), client.NewOutputs()
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
