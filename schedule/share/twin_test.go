package share

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// twin divides like Counts, slowly: every peer by itself, every step with all jobs and tasks looked at again, and a
// matching from scratch to see whether a step is possible. It knows no colocated jobs.
type twin struct {
	in     *Input
	peers  [][]string
	counts [][]Peers
}

func slowCounts(in *Input) [][]Peers {
	w := &twin{in: in}
	for _, g := range in.Groups {
		for range g.Peers {
			w.peers = append(w.peers, g.Tags)
		}
	}
	order := []int{}
	for i := range in.Jobs {
		w.counts = append(w.counts, make([]Peers, len(in.Jobs[i].Tasks)))
		if least, _ := w.bounds(i); least > 0 {
			order = append(order, i)
		}
	}
	left := max(Peers(len(w.peers))-in.Spare, 0)
	switch in.Scheduler {
	case JobRoundRobin:
		w.share(order, &left, nil)
	case JobPercentage:
		w.percentages(order, left)
	default:
		for len(order) > 0 {
			best := order[0]
			for _, i := range order {
				if in.Scheduler == JobPriority && in.Jobs[i].Priority > in.Jobs[best].Priority {
					best = i
				}
			}
			w.share([]int{best}, &left, nil)
			order = slices.DeleteFunc(order, func(i int) bool { return i == best })
		}
	}
	return w.counts
}

// task returns what a task gets at least and at most now.
func (w *twin) task(i, j int) (least, most Peers) {
	job := &w.in.Jobs[i]
	t := &job.Tasks[j]
	if t.State == Closed {
		return 0, 0
	}
	if t.State == Frozen {
		return t.Has, t.Has
	}
	least, most = max(1, t.Min), t.Max
	if most == 0 {
		most = 1000
	}
	if job.Scheduler == TaskFixed {
		most = least
	}
	if job.CoverageOptional {
		least = t.Min
	}
	return least, most
}

// bounds returns what a job gets at least and at most; the least is more than there ever is for one that never runs.
func (w *twin) bounds(i int) (least, most Peers) {
	for j := range w.in.Jobs[i].Tasks {
		low, high := w.task(i, j)
		if low > high {
			return 1000, 0
		}
		least += low
		most += high
	}
	if least == 0 {
		least = min(most, 1)
	}
	if limit := w.in.Jobs[i].Saturation; limit > 0 {
		most = min(most, limit)
	}
	if least > most {
		return 1000, 0
	}
	return least, most
}

func (w *twin) total(i int) (sum Peers) {
	for _, n := range w.counts[i] {
		sum += n
	}
	return sum
}

// possible tells whether all counts can be matched with peers.
func (w *twin) possible() bool {
	holder := make([]int, len(w.peers))
	for p := range holder {
		holder[p] = none
	}
	var units [][]string
	for i := range w.counts {
		for j, n := range w.counts[i] {
			for range n {
				units = append(units, w.in.Jobs[i].Tasks[j].Tags)
			}
		}
	}
	var find func(u int, seen []bool) bool
	find = func(u int, seen []bool) bool {
		for p, tags := range w.peers {
			if seen[p] || slices.ContainsFunc(units[u], func(tag string) bool { return !slices.Contains(tags, tag) }) {
				continue
			}
			seen[p] = true
			if holder[p] == none || find(holder[p], seen) {
				holder[p] = u
				return true
			}
		}
		return false
	}
	for u := range units {
		if !find(u, make([]bool, len(w.peers))) {
			return false
		}
	}
	return true
}

// share admits jobs and gives one peer after the other. Jobs with quotas come in the order of what they lack.
func (w *twin) share(jobs []int, left *Peers, quota []int) {
	var admitted []int
	for _, i := range jobs {
		least, _ := w.bounds(i)
		for j := range w.counts[i] {
			w.counts[i][j], _ = w.task(i, j)
		}
		if least > *left || !w.possible() {
			clear(w.counts[i])
			continue
		}
		if w.total(i) == 0 {
			first := w.next(i)
			if first == none {
				continue
			}
			w.counts[i][first]++
		}
		admitted = append(admitted, i)
		*left -= least
	}
	for *left > 0 {
		best, task := none, none
		for _, i := range admitted {
			if j := w.next(i); j != none && (best == none || w.before(i, best, quota)) {
				best, task = i, j
			}
		}
		if best == none {
			return
		}
		w.counts[best][task]++
		*left--
	}
}

func (w *twin) before(i, other int, quota []int) bool {
	a, b := int(w.total(i)), int(w.total(other))
	if quota == nil {
		return a < b || a == b && i < other
	}
	if lack, otherLack := max(quota[i]-a, 0), max(quota[other]-b, 0); lack != otherLack {
		return lack > otherLack
	}
	part, otherPart := int(w.in.Jobs[i].Part), int(w.in.Jobs[other].Part)
	if x, y := (2*a+1)*otherPart, (2*b+1)*part; x != y {
		return x < y
	}
	return part > otherPart || part == otherPart && i < other
}

// next returns the task of a job that the next peer goes to.
func (w *twin) next(i int) int {
	if _, most := w.bounds(i); w.total(i) >= most {
		return none
	}
	best := none
	for j, n := range w.counts[i] {
		if _, most := w.task(i, j); n >= most {
			continue
		}
		w.counts[i][j]++
		possible := w.possible()
		w.counts[i][j]--
		if possible && (best == none || w.lighter(i, j, best)) {
			best = j
		}
	}
	return best
}

func (w *twin) lighter(i, j, other int) bool {
	a, b := int(w.counts[i][j]), int(w.counts[i][other])
	if w.in.Jobs[i].Scheduler == TaskGreedy {
		return j < other
	}
	if w.in.Jobs[i].Scheduler != TaskPercentage {
		return a < b
	}
	part, otherPart := int(w.in.Jobs[i].Tasks[j].Part), int(w.in.Jobs[i].Tasks[other].Part)
	switch {
	case part == 0 && otherPart == 0:
		return a < b
	case part == 0 || otherPart == 0:
		return part > otherPart
	}
	return (2*a+1)*otherPart < (2*b+1)*part
}

// percentages gives each job its quota: peers go one by one to the job that lacks the largest part of one.
func (w *twin) percentages(jobs []int, all Peers) {
	slices.SortStableFunc(jobs, func(a, b int) int { return int(w.in.Jobs[b].Part - w.in.Jobs[a].Part) })
	stated, within := 0, 0
	for within < len(jobs) && w.in.Jobs[jobs[within]].Part > 0 && stated+int(w.in.Jobs[jobs[within]].Part) <= 10_000 {
		stated += int(w.in.Jobs[jobs[within]].Part)
		within++
	}
	left, quota := all*Peers(stated)/10_000, make([]int, len(w.in.Jobs))
	for range left {
		best, lack := none, 0
		for _, i := range jobs[:within] {
			if l := int(all)*int(w.in.Jobs[i].Part) - 10_000*quota[i]; best == none || l > lack {
				best, lack = i, l
			}
		}
		quota[best]++
	}
	w.share(jobs[:within], &left, quota)
	w.share(jobs[within:], &left, nil)
}

// random returns a small input.
func random(rng *rand.Rand, colocated bool) *Input {
	in := &Input{Scheduler: JobScheduler(rng.IntN(4))}
	some := func() (tags []string) {
		for _, tag := range []string{"a", "b"} {
			if rng.IntN(4) == 0 {
				tags = append(tags, tag)
			}
		}
		return tags
	}
	for range rng.IntN(5) {
		in.Groups = append(in.Groups, Group{Machine: rng.IntN(3), Peers: Peers(rng.IntN(5)), Tags: some()})
	}
	if rng.IntN(3) == 0 {
		in.Spare = Peers(rng.IntN(12))
	}
	for range rng.IntN(5) {
		job := Job{Priority: rng.IntN(2), Part: BasisPoints(rng.IntN(6) * 1_111), Scheduler: TaskScheduler(rng.IntN(3))}
		if rng.IntN(4) == 0 {
			job.Scheduler = TaskFixed
		}
		if colocated && rng.IntN(2) == 0 {
			job.Scheduler = TaskColocated
			if rng.IntN(2) == 0 {
				job.Copies = []Peers{Peers(rng.IntN(3)), Peers(rng.IntN(3)), Peers(rng.IntN(3))}
			}
		}
		job.CoverageOptional = rng.IntN(2) == 0
		if rng.IntN(3) == 0 {
			job.Saturation = Peers(1 + rng.IntN(6))
		}
		for range rng.IntN(4) {
			task := Task{Min: Peers(rng.IntN(3)), Part: BasisPoints(rng.IntN(4) * 1_700)}
			if rng.IntN(3) == 0 {
				task.Max = Peers(1 + rng.IntN(4))
			}
			if rng.IntN(3) == 0 {
				task.Tags = some()
			}
			if rng.IntN(6) == 0 {
				task.State, task.Has = TaskState(1+rng.IntN(2)), Peers(rng.IntN(3))
			}
			job.Tasks = append(job.Tasks, task)
		}
		in.Jobs = append(in.Jobs, job)
	}
	return in
}

func TestTwin(t *testing.T) {
	for seed := range uint64(10_000) {
		in := random(rand.New(rand.NewPCG(seed, 1)), false)
		if got, want := fmt.Sprint(Counts(in).Peers), fmt.Sprint(slowCounts(in)); got != want {
			t.Fatalf("seed %d: Counts(%+v) = %s, want %s", seed, *in, got, want)
		}
	}
}
