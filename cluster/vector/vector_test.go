package vector

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestVector holds a Vector and its copies against plain slices under random operations.
func TestVector(t *testing.T) {
	type pair struct {
		vector Of[int]
		plain  []int
		epoch  *Epoch
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		pairs := []*pair{{epoch: new(Epoch)}}
		for step := range 300 {
			p := pairs[rng.IntN(len(pairs))]
			switch draw := rng.IntN(20); {
			case draw == 0 && len(pairs) < 6:
				// A copy: both sides begin a new epoch, as State.Copy does.
				p.epoch = new(Epoch)
				pairs = append(pairs, &pair{vector: p.vector, plain: slices.Clone(p.plain), epoch: new(Epoch)})
			case draw < 5:
				n := rng.IntN(200)
				p.vector.Resize(p.epoch, n)
				for len(p.plain) < n {
					p.plain = append(p.plain, 0)
				}
				p.plain = p.plain[:n]
			case len(p.plain) > 0:
				i := rng.IntN(len(p.plain))
				p.vector.Set(p.epoch, i, step)
				p.plain[i] = step
			}
			old := pairs[rng.IntN(len(pairs))]
			checkSince(t, p.vector, old.vector)
			for k, p := range pairs {
				if got := rows(&p.vector); !slices.Equal(got, p.plain) {
					t.Fatalf("seed %d, step %d, vector %d holds %v, want %v", seed, step, k, got, p.plain)
				}
			}
		}
	}
}

// checkSince fails if a row of one of two tables is not as in the other, and is not visited.
func checkSince(t *testing.T, v, old Of[int]) {
	t.Helper()
	visited := map[int]bool{}
	v.EachSince(&old, func(i int) { visited[i] = true })
	for i := range max(v.Len(), old.Len()) {
		if same := i < v.Len() && i < old.Len() && v.At(i) == old.At(i); !same && !visited[i] {
			t.Fatalf("row %d differs and is not visited", i)
		}
	}
	for i := range visited {
		if i >= max(v.Len(), old.Len()) {
			t.Fatalf("row %d is visited, which neither table has", i)
		}
	}
}

func rows(v *Of[int]) []int {
	all := make([]int, v.Len())
	for i := range all {
		all[i] = v.At(i)
	}
	return all
}
