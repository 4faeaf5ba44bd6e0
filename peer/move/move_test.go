package move

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"starling/journal/memory"
	"starling/peer/sign"
	"starling/replica/report"
)

// TestTakeUp goes on where the journal is at its new place already and the old one is gone: one peer has come, of
// another only the pulse is held there.
func TestTakeUp(t *testing.T) {
	ctx, to := t.Context(), memory.New()
	m := &Move{To: to, Cluster: "flock", Tell: t.Logf}
	if err := m.TakeUp(ctx); !errors.Is(err, ErrOther) {
		t.Errorf("before the journal is there: got %v, want %v", err, ErrOther)
	}
	if _, err := to.Cluster(ctx, m.Cluster); err != nil {
		t.Fatal(err)
	}
	for id, view := range map[string]*report.PulseView{"a~1": {Index: 7}, "b~1": {}} {
		pulse, err := to.Pulse(ctx, id, time.Minute, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := pulse.Publish(ctx, sign.Of("token", view)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.TakeUp(ctx); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, compareEvery)
	defer cancel()
	if absent := m.Await(short); !slices.Equal(absent, []string{"b~1"}) {
		t.Errorf("got %q that have not come, want b~1", absent)
	}
}
