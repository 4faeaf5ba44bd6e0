package share

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMoves(t *testing.T) {
	special := []string{"special"}
	two := []Job{{Tasks: tasks(2)}, {Tasks: tasks(2)}}
	cases := []struct {
		name    string
		in      Input
		running []Running
		want    string
	}{
		{"a job comes", Input{Scheduler: JobRoundRobin, Groups: peers(8), Jobs: two},
			[]Running{{0, Place{0, 0}, 4}, {0, Place{0, 1}, 4}},
			"[{0 {0 0} {1 0} 2} {0 {0 1} {1 1} 2}]"},
		{"nothing changes", Input{Scheduler: JobRoundRobin, Groups: peers(4), Jobs: two},
			[]Running{{0, Place{0, 0}, 1}, {0, Place{0, 1}, 1}, {0, Place{1, 0}, 1}, {0, Place{1, 1}, 1}}, "[]"},
		{"the counts decide, not the totals", Input{Scheduler: JobRoundRobin, Groups: peers(3), Jobs: two[:1]},
			[]Running{{0, Place{0, 0}, 1}, {0, Place{0, 1}, 2}}, "[{0 {0 1} {0 0} 1}]"},
		{"coverage lost", Input{Scheduler: JobRoundRobin, Groups: peers(1), Jobs: two[:1]},
			[]Running{{0, Place{0, 1}, 1}}, "[{0 {0 1} {-1 -1} 1}]"},
		{"the idle come first where nobody has to go",
			Input{Scheduler: JobRoundRobin, Groups: []Group{{Peers: 2}, {Machine: 1, Peers: 2}},
				Jobs: []Job{{Tasks: []Task{{Max: 1}, {}}}}},
			[]Running{{0, Place{0, 0}, 1}, {0, Place{0, 1}, 1}}, "[{1 {-1 -1} {0 1} 2}]"},
		{"who has the tag makes room for who needs it",
			Input{Scheduler: JobGreedy, Groups: []Group{{Peers: 1, Tags: special}, {Machine: 1, Peers: 1}},
				Jobs: []Job{{Tasks: []Task{{}, {Tags: special}}}}},
			[]Running{{0, Place{0, 0}, 1}}, "[{0 {0 0} {0 1} 1} {1 {-1 -1} {0 0} 1}]"},
		{"a copy stays where it is", Input{Scheduler: JobGreedy, Groups: []Group{{Peers: 2}, {Machine: 1, Peers: 3}},
			Jobs: []Job{{Scheduler: TaskColocated, Saturation: 2, Tasks: tasks(2)}}},
			[]Running{{1, Place{0, 0}, 1}, {1, Place{0, 1}, 1}}, "[]"},
		{"a copy that lost a part stays", Input{Scheduler: JobGreedy, Groups: []Group{{Peers: 2}, {Machine: 1, Peers: 3}},
			Jobs: []Job{{Scheduler: TaskColocated, Saturation: 2, Tasks: tasks(2)}}},
			[]Running{{1, Place{0, 1}, 1}}, "[{1 {-1 -1} {0 0} 1}]"},
		{"a whole copy stays before a part of one",
			Input{Scheduler: JobGreedy, Groups: []Group{{Peers: 2}, {Machine: 1, Peers: 3}},
				Jobs: []Job{{Scheduler: TaskColocated, Saturation: 2, Tasks: tasks(2)}}},
			[]Running{{0, Place{0, 1}, 1}, {1, Place{0, 0}, 1}, {1, Place{0, 1}, 1}}, "[{0 {0 1} {-1 -1} 1}]"},
		{"a copy comes where nobody has to leave for it",
			Input{Scheduler: JobGreedy, Groups: []Group{{Peers: 2}, {Machine: 1, Peers: 3}},
				Jobs: []Job{{Tasks: []Task{{Max: 1}}}, {Scheduler: TaskColocated, Saturation: 2, Tasks: tasks(2)}}},
			[]Running{{0, Place{0, 0}, 1}}, "[{1 {-1 -1} {1 0} 1} {1 {-1 -1} {1 1} 1}]"},
		{"unless there is no other way", Input{Scheduler: JobGreedy, Groups: []Group{{Peers: 2}, {Machine: 1, Peers: 3}},
			Jobs: []Job{{Tasks: []Task{{Max: 1}}}, {Scheduler: TaskColocated, Tasks: tasks(2)}}},
			[]Running{{0, Place{0, 0}, 1}},
			"[{0 {0 0} {1 0} 1} {0 {-1 -1} {1 1} 1} {1 {-1 -1} {0 0} 1} {1 {-1 -1} {1 0} 1} {1 {-1 -1} {1 1} 1}]"},
		{"a copy goes where the others leave it room",
			Input{Scheduler: JobGreedy, Groups: []Group{{Peers: 3}, {Machine: 1, Peers: 2}},
				Jobs: []Job{{Scheduler: TaskColocated, Saturation: 2, Tasks: tasks(2)},
					{Scheduler: TaskColocated, Tasks: tasks(3)}}},
			[]Running{{0, Place{0, 0}, 1}, {0, Place{0, 1}, 1}},
			"[{0 {0 0} {1 0} 1} {0 {0 1} {1 1} 1} {0 {-1 -1} {1 2} 1} {1 {-1 -1} {0 0} 1} {1 {-1 -1} {0 1} 1}]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			plan := Counts(&c.in)
			if got := fmt.Sprint(Moves(&c.in, &plan, c.running)); got != c.want {
				t.Errorf("Moves to %v = %s, want %s", plan.Peers, got, c.want)
			}
		})
	}
}

// apply makes the moves, and fails if somebody leaves who is not there.
func apply(t *testing.T, in *Input, running []Running, moves []Move) []Running {
	t.Helper()
	after := slices.Clone(running)
	change := func(group int, place Place, by Peers) {
		if place == Nowhere() {
			return
		}
		at := slices.IndexFunc(after, func(r Running) bool { return r.Group == group && r.Place == place })
		if at < 0 {
			at = len(after)
			after = append(after, Running{Group: group, Place: place})
		}
		after[at].Peers += by
	}
	for _, m := range moves {
		if m.Peers <= 0 || m.From == m.To {
			t.Errorf("the move %v is none", m)
		}
		change(m.Group, m.From, -m.Peers)
		change(m.Group, m.To, m.Peers)
	}
	taken := make([]Peers, len(in.Groups))
	for _, r := range after {
		if taken[r.Group] += r.Peers; r.Peers < 0 {
			t.Errorf("%v left who was not there", r)
		}
	}
	for i := range taken {
		if taken[i] > in.Groups[i].Peers {
			t.Errorf("group %d has %d peers and runs %d", i, in.Groups[i].Peers, taken[i])
		}
	}
	return slices.DeleteFunc(after, func(r Running) bool { return r.Peers == 0 })
}

// checkRunning checks that what runs are the counts, with the tags, and colocated copies whole.
func checkRunning(t *testing.T, in *Input, plan *Plan, running []Running) {
	t.Helper()
	counts, machines := map[Place]Peers{}, map[[2]int]map[int]Peers{}
	for _, r := range running {
		counts[r.Place] += r.Peers
		for _, tag := range in.Jobs[r.Place.Job].Tasks[r.Place.Task].Tags {
			if !slices.Contains(in.Groups[r.Group].Tags, tag) {
				t.Errorf("%v lacks the tag %s", r, tag)
			}
		}
		if in.Jobs[r.Place.Job].Scheduler == TaskColocated {
			at := [2]int{r.Place.Job, in.Groups[r.Group].Machine}
			if machines[at] == nil {
				machines[at] = map[int]Peers{}
			}
			machines[at][r.Place.Task] += r.Peers
		}
	}
	for i := range plan.Peers {
		for j, want := range plan.Peers[i] {
			if got := counts[Place{i, j}]; got != want {
				t.Errorf("job %d task %d runs %d, want %d", i, j, got, want)
			}
			for at, here := range machines {
				if at[0] == i && want > 0 {
					checkCopies(t, &in.Jobs[i], at[1],
						[]Peers{here[j], here[slices.IndexFunc(plan.Peers[i], func(n Peers) bool { return n > 0 })]})
				}
			}
		}
	}
}

// checkCopies checks that a machine runs as many of a task of a job as of its first one, and not too many.
func checkCopies(t *testing.T, job *Job, machine int, both []Peers) {
	t.Helper()
	if both[0] != both[1] || job.Copies != nil && both[0] > job.Copies[machine] {
		t.Errorf("machine %d runs %d of a task of %+v, %d of the first", machine, both[0], *job, both[1])
	}
}

// someRunning puts peers on any tasks, but no two pictures of one task in a group.
func someRunning(rng *rand.Rand, in *Input) (running []Running) {
	for g := range in.Groups {
		free := in.Groups[g].Peers
		for i := range in.Jobs {
			for j := range in.Jobs[i].Tasks {
				if n := min(Peers(rng.IntN(3)), free); n > 0 {
					running = append(running, Running{g, Place{i, j}, n})
					free -= n
				}
			}
		}
	}
	return running
}

// arrivals counts the peers that come to a task.
func arrivals(moves []Move) (sum Peers) {
	for _, m := range moves {
		if m.To != Nowhere() {
			sum += m.Peers
		}
	}
	return sum
}

// fewestArrivals tries all ways to give each peer a task. It knows no colocated jobs.
func fewestArrivals(in *Input, plan *Plan, running []Running) Peers {
	var at []Place
	var groups []int
	for g := range in.Groups {
		first := len(at)
		for _, r := range running {
			if r.Group == g {
				at = append(at, slices.Repeat([]Place{r.Place}, int(r.Peers))...)
			}
		}
		at = append(at, slices.Repeat([]Place{Nowhere()}, first+int(in.Groups[g].Peers)-len(at))...)
		groups = append(groups, slices.Repeat([]int{g}, len(at)-first)...)
	}
	want := make([][]Peers, len(plan.Peers))
	left := Peers(0)
	for i := range want {
		want[i] = slices.Clone(plan.Peers[i])
		for _, n := range want[i] {
			left += n
		}
	}
	best := boundless
	var try func(p int, cost Peers)
	try = func(p int, cost Peers) {
		if left == 0 {
			best = min(best, cost)
		}
		if left == 0 || left > Peers(len(at)-p) || cost >= best {
			return
		}
		try(p+1, cost)
		for i := range want {
			for j := range want[i] {
				lacks := func(tag string) bool { return !slices.Contains(in.Groups[groups[p]].Tags, tag) }
				if want[i][j] == 0 || slices.ContainsFunc(in.Jobs[i].Tasks[j].Tags, lacks) {
					continue
				}
				more := Peers(1)
				if at[p] == (Place{i, j}) {
					more = 0
				}
				want[i][j]--
				left--
				try(p+1, cost+more)
				want[i][j]++
				left++
			}
		}
	}
	try(0, 0)
	return best
}

// TestMovesTwin checks that what runs after the moves are the counts, that nobody moves as long as all may stay, and
// that all moves together are within a hundredth of the fewest.
func TestMovesTwin(t *testing.T) {
	compared, made, fewest := 0, Peers(0), Peers(0)
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		in := random(rng, seed%2 == 0)
		running := someRunning(rng, in)
		plan := Counts(in)
		moves := Moves(in, &plan, running)
		after := apply(t, in, running, moves)
		settled := map[string]bool{}
		for _, r := range Settle(in, &plan, running) {
			settled[fmt.Sprint(r)] = true
		}
		if len(settled) != len(after) || slices.ContainsFunc(after, func(r Running) bool { return !settled[fmt.Sprint(r)] }) {
			t.Errorf("Settle gives %v, the moves %v", settled, after)
		}
		checkRunning(t, in, &plan, after)
		if again := Moves(in, &plan, after); len(again) > 0 {
			t.Errorf("after the moves there are others: %v", again)
		}
		size := Peers(0)
		for _, g := range in.Groups {
			size += g.Peers
		}
		if size <= 7 && !slices.ContainsFunc(in.Jobs, func(j Job) bool { return j.Scheduler == TaskColocated }) {
			compared++
			got, want := arrivals(moves), fewestArrivals(in, &plan, running)
			if made, fewest = made+got, fewest+want; got < want || got > 2*want {
				t.Errorf("%d peers come to other tasks, %d would do: %v", got, want, moves)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v, runs %v, counts %v, moves %v", seed, *in, running, plan.Peers, moves)
		}
	}
	if compared < 2000 {
		t.Errorf("only %d cases were compared", compared)
	}
	if made > fewest+fewest/100 {
		t.Errorf("%d peers come to other tasks, %d would do", made, fewest)
	}
}
