package share

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func sum(counts []Peers) (all Peers) {
	for _, n := range counts {
		all += n
	}
	return all
}

// checkBounds checks what holds of all counts.
func checkBounds(t *testing.T, in *Input, plan *Plan) {
	t.Helper()
	capacity := Peers(0)
	for _, g := range in.Groups {
		capacity += max(g.Peers, 0)
	}
	all := capacity
	for i := range plan.Peers {
		job, counts := &in.Jobs[i], plan.Peers[i]
		total := sum(counts)
		if capacity -= total; job.Saturation > 0 && total > job.Saturation {
			t.Errorf("job %d has %v, beyond its saturation", i, counts)
		}
		covered := 0
		for j, n := range counts {
			covered += min(int(n), 1)
			checkTask(t, job, j, n, total)
		}
		if job.Scheduler == TaskColocated && covered > 0 && total%Peers(covered) > 0 {
			t.Errorf("job %d has %v: not whole copies", i, counts)
		}
	}
	if given := all - capacity; given > 0 && capacity < max(in.Spare, 0) {
		t.Errorf("%d peers are given of %d, of which %d are spare", given, all, in.Spare)
	}
}

// checkTask checks the count of one task of a job that has a total.
func checkTask(t *testing.T, job *Job, number int, count, total Peers) {
	t.Helper()
	task := &job.Tasks[number]
	least, most := job.needs(task)
	if count > 0 && (count < least || count > most || !task.takes()) {
		t.Errorf("task %d of %+v has %d, not within %d and %d", number, *job, count, least, most)
	}
	if count == 0 && total > 0 && task.takes() && least > 0 {
		t.Errorf("task %d of %+v is not covered", number, *job)
	}
}

func TestBounds(t *testing.T) {
	for seed := range uint64(20_000) {
		in := random(rand.New(rand.NewPCG(seed, 3)), true)
		plan := Counts(in)
		if checkBounds(t, in, &plan); t.Failed() {
			t.Fatalf("seed %d: %+v gets %v", seed, *in, plan.Peers)
		}
	}
}

// TestOrderOfGroups checks that it does not matter in which order groups come, nor how peers are split among them.
func TestOrderOfGroups(t *testing.T) {
	for seed := range uint64(5000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		in := random(rng, seed%2 == 0)
		other := *in
		other.Groups = nil
		for _, g := range in.Groups {
			for range g.Peers {
				other.Groups = append(other.Groups, Group{g.Machine, g.Tags, 1})
			}
		}
		rng.Shuffle(len(other.Groups), func(i, j int) {
			other.Groups[i], other.Groups[j] = other.Groups[j], other.Groups[i]
		})
		if got, want := fmt.Sprint(Counts(&other).Peers), fmt.Sprint(Counts(in).Peers); got != want {
			t.Fatalf("seed %d: %+v gets %s, %+v gets %s", seed, *in, want, other.Groups, got)
		}
	}
}

// TestEven checks that with round-robin two jobs differ by one peer at most, unless the one with fewer can take no more
// or the other needs as many.
func TestEven(t *testing.T) {
	for seed := range uint64(5000) {
		in := random(rand.New(rand.NewPCG(seed, 5)), false)
		in.Scheduler = JobRoundRobin
		for i := range in.Groups {
			in.Groups[i].Tags = []string{"a", "b"}
		}
		plan := Counts(in)
		w := &twin{in: in, counts: plan.Peers}
		for i := range plan.Peers {
			for j := range plan.Peers {
				few, many := sum(plan.Peers[i]), sum(plan.Peers[j])
				_, most := w.bounds(i)
				least, _ := w.bounds(j)
				if few > 0 && few < most && many > least && many > few+1 {
					t.Fatalf("seed %d: %+v gets %v", seed, *in, plan.Peers)
				}
			}
		}
	}
}

// TestLooseBounds checks that it does not matter how much more a task that got some may have at most.
func TestLooseBounds(t *testing.T) {
	changed := 0
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		in := random(rng, seed%2 == 0)
		before := Counts(in).Peers
		for i := range in.Jobs {
			for j := range in.Jobs[i].Tasks {
				task := &in.Jobs[i].Tasks[j]
				if got := before[i][j]; got > 0 && (task.Max > got || task.Max <= 0) {
					task.Max = got + 1 + Peers(rng.IntN(5))
					changed++
				}
			}
		}
		if after := Counts(in).Peers; fmt.Sprint(after) != fmt.Sprint(before) {
			t.Fatalf("seed %d: %+v gets %v, and %v with other bounds", seed, *in, after, before)
		}
	}
	if changed < 5000 {
		t.Fatalf("%d bounds were changed: too few", changed)
	}
}

// TestOneMore checks that one peer more takes none from any task, as long as the same jobs run and tags are not scarce.
// It does not hold of percentages of jobs, which are rounded by the largest fraction.
func TestOneMore(t *testing.T) {
	for seed := range uint64(10_000) {
		in := random(rand.New(rand.NewPCG(seed, 6)), false)
		in.Scheduler %= JobPercentage
		for i := range in.Groups {
			in.Groups[i].Tags = []string{"a", "b"}
		}
		before := Counts(in).Peers
		in.Groups = append(in.Groups, Group{Peers: 1, Tags: []string{"a", "b"}})
		after := Counts(in).Peers
		same := slices.EqualFunc(before, after, func(a, b []Peers) bool { return (sum(a) > 0) == (sum(b) > 0) })
		if !same {
			continue
		}
		for i := range before {
			for j := range before[i] {
				if after[i][j] < before[i][j] {
					t.Fatalf("seed %d: %+v gets %v, and %v before", seed, *in, after, before)
				}
			}
		}
	}
}

// FuzzCounts checks that nothing in an input makes the functions fail or break a bound.
func FuzzCounts(f *testing.F) {
	f.Add([]byte("masterless"))
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		tags := func() []string { return []string{"a", "b", "c"}[:next()%4] }
		in := &Input{Scheduler: JobScheduler(next() % 5)}
		for range next() % 6 {
			in.Groups = append(in.Groups, Group{next() % 4, tags(), Peers(next()%40 - 5)})
		}
		for range next() % 6 {
			job := Job{next() % 3, BasisPoints(next()*60 - 100), TaskScheduler(next() % 6), Peers(next()%40 - 5), nil,
				next()%2 == 0, nil}
			for range next() % 5 {
				state, least, most := TaskState(next()%3), Peers(next()%20-3), Peers(next()%30-3)
				job.Tasks = append(job.Tasks, Task{state, least, most, BasisPoints(next()*60 - 100), tags(), Peers(next()%20 - 3)})
			}
			in.Jobs = append(in.Jobs, job)
		}
		for i := range in.Groups {
			in.Groups[i].Peers = max(in.Groups[i].Peers, 0)
		}
		plan := Counts(in)
		checkBounds(t, in, &plan)
		moves := Moves(in, &plan, nil)
		checkRunning(t, in, &plan, apply(t, in, nil, moves))
	})
}
