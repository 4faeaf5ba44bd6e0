package requests

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"starling/cluster/facts"
	"starling/terms/rules"
)

// TestOthersAreNotForgotten has one user who asks for much lose requests of their own, and nobody else's.
func TestOthersAreNotForgotten(t *testing.T) {
	table := New()
	for i, key := range []string{"7 web r1 user ann", "7 web r2 user ann", "7 web r1 user eve", "7 web r2 user eve",
		"7 web r3 user eve", "7 web r4 user eve", "12 web r5 instance web.main[0]#7", "12 web r5 instance web.main[1]#7"} {
		table.Add(uint64(i), key, facts.Request{})
	}
	var forgotten []string
	for range 6 {
		key, _ := table.Forget(rules.PoolShares)
		forgotten = append(forgotten, key)
	}
	want := []string{"7 web r1 user eve", "7 web r2 user eve", "7 web r1 user ann", "7 web r3 user eve",
		"12 web r5 instance web.main[0]#7", "7 web r2 user ann"}
	if !slices.Equal(forgotten, want) {
		t.Errorf("forgotten were\n%s\nwant\n%s", strings.Join(forgotten, "\n"), strings.Join(want, "\n"))
	}
}

// TestForgetsLikeTheTwin compares what is forgotten with a list that is searched.
func TestForgetsLikeTheTwin(t *testing.T) {
	for seed := range uint64(200) {
		rng, table := rand.New(rand.NewPCG(seed, 1)), New()
		in := rules.PoolShares - rules.Number(seed%2)
		var all []string
		for number := range uint64(200) {
			key := fmt.Sprintf("7 web r%d user u%d", number, rng.IntN(1+rng.IntN(6)))
			table.Add(number, key, facts.Request{})
			all = append(all, key)
			if len(all) <= 10 {
				continue
			}
			before := table.Copy()
			at := first(in, all)
			if got, _ := table.Forget(in); got != all[at] {
				t.Fatalf("seed %d: %q is forgotten of %q, want %q", seed, got, all, all[at])
			}
			if again, _ := before.Forget(in); again != all[at] {
				t.Fatalf("seed %d: a copy forgets %q", seed, again)
			}
			all = slices.Delete(all, at, at+1)
		}
		if len(table.Rows()) != len(all) {
			t.Fatalf("seed %d: %d rows, want %d", seed, len(table.Rows()), len(all))
		}
	}
}

func first(in rules.Number, all []string) int {
	if in < rules.PoolShares {
		return 0
	}
	user := func(key string) string { return key[strings.LastIndex(key, " "):] }
	count := map[string]int{}
	for _, key := range all {
		count[user(key)]++
	}
	most := 0
	for _, n := range count {
		most = max(most, n)
	}
	return slices.IndexFunc(all, func(key string) bool { return count[user(key)] == most })
}
