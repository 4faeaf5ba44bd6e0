package uptime_test

import (
	"testing"

	"starling/driver/uptime"
)

func TestNowGoesForward(t *testing.T) {
	first := uptime.Now()
	second := uptime.Now()
	if first <= 0 || second < first || first.Since() < 0 {
		t.Errorf("got %d and then %d, want moments that follow each other", first, second)
	}
}
