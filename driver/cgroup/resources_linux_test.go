package cgroup

import (
	"testing"

	"starling/driver"
)

// TestBackground lets others come before a container, and not if nothing divides the processors.
func TestBackground(t *testing.T) {
	limits := driver.Limits{CPUMillicores: 1500, Background: true}
	got := Place{Version: 1, Paths: map[string]string{processor: "/x"}}.Resources(limits).CPU
	if got == nil || *got.Quota != 150_000 || got.Shares == nil || *got.Shares != backgroundShares {
		t.Errorf("got %+v, want a quota of 150000 and the least shares", got)
	}
	if got := (Place{Version: 1}).Resources(limits).CPU; got != nil {
		t.Errorf("got %+v of a place without processors", got)
	}
}
