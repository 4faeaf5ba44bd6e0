package sim

import (
	"strconv"
	"testing"
)

// entriesPerJoinerMax is what a cold start may cost; three phases need three.
const entriesPerJoinerMax = 6

func TestColdStart(t *testing.T) {
	for _, machines := range []int{1, 2, 10, 100, 200} {
		r, err := ColdStart(machines)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(r.String())
		if r.PerJoiner() > entriesPerJoinerMax {
			t.Errorf("%d machines: got %.2f entries per joiner, want at most %d", machines, r.PerJoiner(), entriesPerJoinerMax)
		}
		if testing.Short() && machines >= 100 {
			break
		}
	}
}

func BenchmarkColdStart(b *testing.B) {
	for _, machines := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(machines), func(b *testing.B) {
			for b.Loop() {
				r, err := ColdStart(machines)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(r.PerJoiner(), "entries/joiner")
				b.ReportMetric(float64(r.Took), "simulated-ms")
			}
		})
	}
}
