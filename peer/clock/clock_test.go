package clock

import (
	"testing"

	"starling/terms"
)

func TestClockGoesOnFromWhatItWasTold(t *testing.T) {
	var c Clock
	c.Heard(5000, 1000)
	for _, step := range []struct{ own, want terms.Time }{
		{1000, 5000}, {1300, 5300},
		// A jump back takes nothing away, and what passes after it counts.
		{900, 5000}, {1000, 5100}, {9000, 13100},
	} {
		if got := c.Now(step.own); got != step.want {
			t.Errorf("at own time %d: %d, want %d", step.own, got, step.want)
		}
	}
	c.Heard(4000, 2000)
	if got := c.Now(2000); got != 6100 {
		t.Errorf("after an older time: %d, want 6100", got)
	}
}

// While its pulse is lost another process may lead a peer's life: what the journal orders is started when the pulse is
// back.
