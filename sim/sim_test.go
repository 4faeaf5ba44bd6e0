package sim

import "testing"

func TestSeeds(t *testing.T) {
	for seed := range uint64(300) {
		if r := Run(seed+1, Options{}); r.Failure != nil {
			t.Error(r.Failure)
		}
	}
}
