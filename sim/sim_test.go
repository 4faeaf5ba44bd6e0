package sim

import (
	"strings"
	"testing"
)

// openSeeds fail for a fault that is known and not repaired: see docs/plan.md. The list only shrinks.
var openSeeds = map[uint64]string{
	305:  "of what is kept there",
	1327: "of what is kept there",
}

func TestSeeds(t *testing.T) {
	seeds := Seeds{1, 3800}
	if testing.Short() {
		seeds.To = 300
	}
	s := RunMany(t.Context(), seeds, Options{}, nil)
	failed := map[uint64]bool{}
	for _, r := range s.Failures {
		failed[r.Seed] = true
		if why, open := openSeeds[r.Seed]; !open || !strings.Contains(r.Failure.Error(), why) {
			t.Error(r.Failure)
		}
	}
	for seed := range openSeeds {
		if seed <= seeds.To && !failed[seed] {
			t.Errorf("seed %d does not fail any more: take it out of the list", seed)
		}
	}
	for _, f := range s.Fired {
		if f.Runs == 0 {
			t.Errorf("%s: never happened", f.Fault)
		}
	}
	if s.Mixed == 0 || s.Halted == 0 || s.RefusedRaises == 0 {
		t.Errorf("%d runs with mixed versions, %d raises that came too early, %d old programs stopped: want some of each", s.Mixed, s.RefusedRaises, s.Halted)
	}
	s.Print(t.Output())
}
