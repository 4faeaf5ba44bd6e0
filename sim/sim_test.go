package sim

import "testing"

func TestSeeds(t *testing.T) {
	seeds := Seeds{1, 5000}
	if testing.Short() {
		seeds.To = 300
	}
	s := RunMany(t.Context(), seeds, Options{}, nil)
	for _, failed := range s.Failures {
		t.Error(failed.Failure)
	}
	for _, f := range s.Fired {
		if f.Runs == 0 {
			t.Errorf("%s: never happened", f.Fault)
		}
	}
	s.Print(t.Output())
}
