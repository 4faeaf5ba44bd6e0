package reconcile_test

import (
	"fmt"
	"testing"

	"starling/reconcile"
)

// TestRest checks that slots about which nothing is done may be left out if their weight is in the tally.
func TestRest(t *testing.T) {
	for seed := range cases(t) {
		g := seeded(seed)
		task := g.task()
		slots := g.slots(&task)
		var full reconcile.Result
		reconcile.Reconcile(&task, slots, reconcile.Tally{}, &full)
		wrong := checkRest(g, &full, func(listed []int, rest reconcile.Tally) (part reconcile.Result) {
			reconcile.Reconcile(&task, pick(slots, listed), rest, &part)
			return part
		})
		if wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, picture(&task, slots))
		}
	}
}

// checkRest leaves out some slots that rest, asks for the result of the others, and compares it with that of all.
func checkRest(g *generator, full *reconcile.Result,
	part func(listed []int, rest reconcile.Tally) reconcile.Result) string {
	var listed []int
	var rest reconcile.Tally
	for i := range full.Decisions {
		if g.one(3) || !rests(full, uint32(i)) {
			listed = append(listed, i)
		} else {
			rest.Add(full.Decisions[i].Weight)
		}
	}
	want, got := *full, part(listed, rest)
	for n, i := range listed {
		if got.Decisions[n] != want.Decisions[i] {
			return fmt.Sprintf("slot %d: %+v, want %+v", i, got.Decisions[n], want.Decisions[i])
		}
	}
	want.Decisions, got.Decisions = nil, nil
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
		return fmt.Sprintf("the slots %v give\n%s\nall give\n%s", listed, a, b)
	}
	return ""
}

// pick returns the elements at the given places.
func pick[T any](all []T, places []int) []T {
	var picked []T
	for _, i := range places {
		picked = append(picked, all[i])
	}
	return picked
}

// rests tells whether a result does nothing about a slot.
func rests(out *reconcile.Result, index uint32) bool {
	d := &out.Decisions[index]
	acts := d.Main.Action != reconcile.Keep || d.Canary.Action != reconcile.Keep
	for _, list := range [][]reconcile.Reference{out.Disconnects, out.Reconnects} {
		for _, r := range list {
			acts = acts || r.Index == index
		}
	}
	for _, s := range out.Stops {
		acts = acts || s.Index == index
	}
	return !acts
}
