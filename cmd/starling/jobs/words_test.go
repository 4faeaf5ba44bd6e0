package jobs

import (
	"testing"
	"time"

	starlingv1 "starling/api/v1"
)

func TestJobWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{span(-time.Second), "0s"}, {span(59 * time.Second), "59s"}, {span(61 * time.Second), "1m01s"},
		{span(25 * time.Hour), "1d01h"}, {span(90 * time.Minute), "1h30m"},
		{tally(nil), "no instances"}, {tally(&starlingv1.Counts{Running: 2, Waiting: 1}), "2 running, 1 waiting"},
		{age(nil), "-"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
