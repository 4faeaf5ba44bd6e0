package entitle

import (
	"cmp"
	"math/bits"
	"slices"

	"starling/terms"
)

// part is one of those that share an amount.
type part struct {
	weight, most int64
	// got is the result, fraction what was rounded off it, in parts of the sum of weights.
	got      int64
	fraction uint64
	// number is the place in the tree, which decides between equals.
	number int
}

// apportion divides an amount among the parts by weight, so that none gets more than its most: water in connected
// vessels. It returns what is left when all have their most. Weights and mosts are above 0. The parts may be reordered.
func apportion(amount int64, parts []part) int64 {
	wanted, weights := int64(0), uint64(0)
	for i := range parts {
		wanted = plus(wanted, parts[i].most)
		weights += uint64(parts[i].weight)
	}
	if wanted <= amount {
		for i := range parts {
			parts[i].got = parts[i].most
		}
		return amount - wanted
	}
	// Those that are full at some level stand before those that are not.
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(compareProducts(a.most, b.weight, b.most, a.weight), cmp.Compare(a.number, b.number))
	})
	for ; compareProducts(parts[0].most, int64(weights), amount, parts[0].weight) <= 0; parts = parts[1:] {
		parts[0].got = parts[0].most
		amount -= parts[0].most
		weights -= uint64(parts[0].weight)
	}
	proportion(amount, weights, parts)
	return 0
}

// proportion divides an amount by weight alone. What it rounds off goes out in single units.
func proportion(amount int64, weights uint64, parts []part) {
	left := amount
	for i := range parts {
		p := &parts[i]
		high, low := bits.Mul64(uint64(amount), uint64(p.weight))
		quotient, rest := bits.Div64(high, low, weights)
		p.got, p.fraction = int64(quotient), rest
		left -= p.got
	}
	if left == 0 {
		return
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.fraction, a.fraction), cmp.Compare(a.number, b.number))
	})
	for i := range left {
		parts[i].got++
	}
}

// compareProducts compares a times b with c times d; none is negative.
func compareProducts(a, b, c, d int64) int {
	high, low := bits.Mul64(uint64(a), uint64(b))
	otherHigh, otherLow := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// plus adds amounts that may be without limit.
func plus(a, b int64) int64 { return min(a+b, terms.Unlimited) }
