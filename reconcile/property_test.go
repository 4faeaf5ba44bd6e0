package reconcile_test

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"testing"

	"starling/reconcile"
)

// cases returns how many random cases are run: as many as STARLING_CASES says; a million takes about a minute.
func cases(t *testing.T) uint64 {
	if told := os.Getenv("STARLING_CASES"); told != "" {
		n, err := strconv.ParseUint(told, 10, 64)
		if err != nil {
			t.Fatalf("STARLING_CASES: %v", err)
		}
		return n
	}
	if testing.Short() {
		return 2_000
	}
	return 20_000
}

// TestProperties checks the invariants of the package's comment on random tasks.
func TestProperties(t *testing.T) {
	for seed := range cases(t) {
		g := seeded(seed)
		task := g.task()
		slots := g.slots(&task)
		if wrong := check(g, task, slots); wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, picture(&task, slots))
		}
	}
}

// check returns what is wrong with the result for a task; "" if nothing is.
func check(g *generator, task reconcile.Task, slots []reconcile.Slot) string {
	var out, again reconcile.Result
	reconcile.Reconcile(&task, slots, reconcile.Tally{}, &out)
	if wrong := checkActions(&out); wrong != "" {
		return wrong
	}
	for i := range slots {
		c := slots[i].Candidates
		g.Shuffle(len(c), func(a, b int) { c[a], c[b] = c[b], c[a] })
	}
	reconcile.Reconcile(&task, slots, reconcile.Tally{}, &again)
	if !reflect.DeepEqual(out, again) {
		return fmt.Sprintf("the order of candidates changes the result:\n%s%s", summary(&out), summary(&again))
	}
	after, applied := apply(task, slots, &out)
	if wrong := checkSeats(&after, applied); wrong != "" {
		return fmt.Sprintf("%s after\n%s", wrong, summary(&out))
	}
	reconcile.Reconcile(&after, applied, reconcile.Tally{}, &again)
	if n := len(again.Placements) + len(again.Replacements) + len(again.Stops) +
		len(again.Disconnects) + len(again.Reconnects); n > 0 {
		return fmt.Sprintf("the second result is not empty:\n%safter\n%sapplied to\n%s", summary(&again), summary(&out),
			picture(&after, applied))
	}
	return ""
}

// checkActions checks that a seat has one action and a reason, and an allocation one fate.
func checkActions(out *reconcile.Result) string {
	type seat struct {
		index uint32
		seat  reconcile.Seat
	}
	seats, fates := map[seat]int{}, map[reconcile.Reference]int{}
	for _, p := range out.Placements {
		seats[seat{p.Index, p.Seat}]++
	}
	for _, r := range out.Replacements {
		seats[seat{r.Index, reconcile.MainSeat}]++
		fates[r]++
	}
	for _, s := range out.Stops {
		if fates[s.Reference]++; s.Reason.String() == "" {
			return fmt.Sprintf("%+v has no reason", s)
		}
	}
	return checkCounts(seats, fates) + checkReasons(out)
}

func checkCounts[S comparable](seats map[S]int, fates map[reconcile.Reference]int) string {
	for s, n := range seats {
		if n > 1 {
			return fmt.Sprintf("%d actions for %+v", n, s)
		}
	}
	for r, n := range fates {
		if n > 1 {
			return fmt.Sprintf("%d fates of %+v", n, r)
		}
	}
	return ""
}

// checkReasons checks that each slot is explained, and what waits has a time.
func checkReasons(out *reconcile.Result) string {
	for _, d := range out.Decisions {
		waits := d.Main.Reason == reconcile.WaitsToRetry
		if d.Main.Reason == reconcile.NoReason || waits && (d.Main.Until <= now-1000 || d.Until == 0) {
			return fmt.Sprintf("slot %d is not explained: %+v", d.Index, d)
		}
	}
	return ""
}

// checkSeats checks that each seat has one instance at most that is meant to run and within reach, and an index beyond
// the count none.
func checkSeats(t *reconcile.Task, slots []reconcile.Slot) string {
	for _, s := range slots {
		var live [2]int
		for i := range s.Candidates {
			if c := &s.Candidates[i]; runs(c) {
				live[seatOf(t, c)]++
			}
		}
		wanted := s.Index < t.Count
		if live[0] > 1 || live[1] > 1 || !wanted && live[0]+live[1] > 0 {
			return fmt.Sprintf("slot %d has %d and %d instances", s.Index, live[0], live[1])
		}
	}
	return ""
}

// runs tells whether a candidate is meant to run and within reach.
func runs(c *reconcile.Candidate) bool {
	return !c.Told && (c.Client == reconcile.PendingClient || c.Client == reconcile.RunningClient)
}

func seatOf(t *reconcile.Task, c *reconcile.Candidate) reconcile.Seat {
	if c.CanaryOf != 0 && !(c.CanaryOf == t.Update.ID && t.Update.Promoted) {
		return reconcile.CanarySeat
	}
	return reconcile.MainSeat
}

// summary shows a result.
func summary(out *reconcile.Result) string {
	text := ""
	for _, d := range out.Decisions {
		text += fmt.Sprintf("  %d: main %d %d %q, canary %d %d %q, %+v\n", d.Index, d.Main.Action, d.Main.Holder,
			d.Main.Reason,
			d.Canary.Action, d.Canary.Holder, d.Canary.Reason, d.Weight)
	}
	lists := *out
	lists.Decisions = nil
	return text + fmt.Sprintf("  %+v\n", lists)
}

// picture shows a case.
func picture(t *reconcile.Task, slots []reconcile.Slot) string {
	text := fmt.Sprintf("%+v\n%+v\n%+v\n", *t, *t.Spec, *t.Policy)
	for _, s := range slots {
		text += fmt.Sprintf("slot %d\n", s.Index)
		for _, c := range s.Candidates {
			text += fmt.Sprintf("  %+v\n", c)
		}
	}
	return text
}
