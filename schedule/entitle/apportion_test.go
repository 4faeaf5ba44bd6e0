package entitle

import (
	"cmp"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/terms"
)

// apportionBig divides like apportion, round by round, in numbers without bounds.
func apportionBig(amount int64, parts []part) {
	left, open := big.NewInt(amount), slices.Clone(parts)
	for len(open) > 0 {
		weights := new(big.Int)
		for _, p := range open {
			weights.Add(weights, big.NewInt(p.weight))
		}
		at := slices.IndexFunc(open, func(p part) bool {
			return times(p.most, weights).Cmp(times(p.weight, left)) <= 0
		})
		if at >= 0 {
			parts[open[at].number].got = open[at].most
			left.Sub(left, big.NewInt(open[at].most))
			open = slices.Delete(open, at, at+1)
			continue
		}
		rest := new(big.Int).Set(left)
		for i := range open {
			quotient, fraction := new(big.Int).QuoRem(times(open[i].weight, left), weights, new(big.Int))
			parts[open[i].number].got, open[i].fraction = quotient.Int64(), fraction.Uint64()
			rest.Sub(rest, quotient)
		}
		slices.SortStableFunc(open, func(a, b part) int { return cmp.Compare(b.fraction, a.fraction) })
		for i := range rest.Int64() {
			parts[open[i].number].got++
		}
		return
	}
}

func times(a int64, b *big.Int) *big.Int { return new(big.Int).Mul(big.NewInt(a), b) }

// TestPourLarge divides amounts of any size by weights of any size.
func TestPourLarge(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	size := func() int64 { return 1 + rng.Int64N(1<<(1+rng.IntN(59))) }
	for range 20000 {
		parts := make([]part, 1+rng.IntN(7))
		for i := range parts {
			parts[i] = part{weight: size(), most: size(), number: i}
			if rng.IntN(4) == 0 {
				parts[i].most = terms.Unlimited
			}
		}
		amount, want := size(), slices.Clone(parts)
		apportionBig(amount, want)
		apportion(amount, parts)
		for _, p := range parts {
			if p.got != want[p.number].got {
				t.Fatalf("of %d part %d got %d, want %d: %+v", amount, p.number, p.got, want[p.number].got, want)
			}
		}
	}
}
