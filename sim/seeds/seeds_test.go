package seeds

import (
	"testing"

	"starling/sim"
)

func TestSeeds(t *testing.T) {
	all := Range{1, 3800}
	if testing.Short() {
		all.To = 300
	}
	s := Play(t.Context(), all, sim.Options{}, nil)
	for _, r := range s.Failures {
		t.Error(r.Failure)
	}
	for _, f := range s.Fired {
		if f.Runs == 0 {
			t.Errorf("%s: never happened", f.Fault)
		}
	}
	if s.Mixed == 0 || s.Halted == 0 || s.RefusedRaises == 0 {
		t.Errorf("%d runs with mixed versions, %d raises that came too early, %d old programs stopped: want some of each",
			s.Mixed, s.RefusedRaises, s.Halted)
	}
	s.Print(t.Output())
}
