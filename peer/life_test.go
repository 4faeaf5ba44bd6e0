package peer

import (
	"errors"
	"testing"
	"time"

	"starling/journal"
	"starling/journal/memory"
)

// Two machines were given one name and start for the first time: the second must not take up the pulse of the first as
// if it were its own, however often it tries.
func TestAPulseThatAnotherCreatedIsNotTakenUp(t *testing.T) {
	shared := memory.New()
	if _, err := shared.Pulse(t.Context(), "a~1", time.Minute, false); err != nil {
		t.Fatal(err)
	}
	p := &Peer{config: Config{Node: "a", Journal: shared, Identity: &MemoryIdentity{}, PulseTTL: time.Minute}}
	if got := p.findLife(t.Context(), 0, 1); !errors.Is(got.err, journal.ErrPulseTaken) {
		t.Fatalf("the first try gives %+v, want %v", got, journal.ErrPulseTaken)
	}
	if got := p.findLife(t.Context(), 0, 1); got.err != nil || got.peer != "a~2" {
		t.Fatalf("the second try gives %s and %v, want a~2", got.peer, got.err)
	}
	if got := p.findLife(t.Context(), 0, 1); got.err != nil || got.peer != "a~2" || got.starts != 2 {
		t.Fatalf("a restart gives %s at start %d and %v, want a~2 at start 2", got.peer, got.starts, got.err)
	}
}
