package shares

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/share"
	"starling/terms"
)

const (
	// endsMax bounds the jobs whose end is tried, moreMax the peers.
	endsMax = 32
	moreMax = 1 << 12
)

// tried tells whether the task has more by another input.
func (a *Explanation) tried(in *share.Input) bool {
	return a.has(share.Counts(in)) > a.has(a.plan)
}

// with returns the input with other jobs.
func (a *Explanation) with(change func(jobs []share.Job)) *share.Input {
	in := *a.d.In
	in.Jobs = slices.Clone(in.Jobs)
	change(in.Jobs)
	return &in
}

// Help is something of the job, or the end of another, that would get the task more by the counts of the pool.
type Help struct {
	Text string
	// Job changes the job file; nil if it is the end of the job Ends.
	Job  func(*terms.Job)
	Ends terms.JobName
}

// Help says what of the job, or of other jobs, would get the task more.
func (a *Explanation) Help() (all []Help) {
	if s := a.mine().Scheduler; s == share.TaskFixed || s == share.TaskGreedy {
		if a.tried(a.with(func(jobs []share.Job) { jobs[a.job].Scheduler = share.TaskRoundRobin })) {
			all = append(all, Help{Text: "another task_scheduler, such as round-robin",
				Job: func(j *terms.Job) { j.TaskScheduler = terms.TaskRoundRobin }})
		}
	}
	switch a.d.In.Scheduler {
	case share.JobPriority:
		if level, ok := a.priority(); ok {
			all = append(all, Help{Text: fmt.Sprintf("a priority above %d", level-1),
				Job: func(j *terms.Job) { j.Priority = uint32(level) }})
		}
	case share.JobPercentage:
		if part, ok := a.part(); ok {
			all = append(all, Help{Text: fmt.Sprintf("a percent of %d in the job file", part),
				Job: func(j *terms.Job) { j.Percent = uint32(part) }})
		}
	}
	if j := a.ender(); j != nil {
		all = append(all, Help{Text: fmt.Sprintf("the end of %s", j.Name()), Ends: j.Name()})
	}
	return all
}

// priority returns the lowest priority with which the task has more.
func (a *Explanation) priority() (level int, ok bool) {
	var levels []int
	for i := range a.d.In.Jobs {
		if p := a.d.In.Jobs[i].Priority; i != a.job && p >= a.mine().Priority && p < terms.PriorityMax {
			levels = append(levels, p+1)
		}
	}
	slices.Sort(levels)
	for _, level := range slices.Compact(levels) {
		if a.tried(a.with(func(jobs []share.Job) { jobs[a.job].Priority = level })) {
			return level, true
		}
	}
	return 0, false
}

// part returns the smallest percent above its own with which the task has more. A job that has none because of its part
// is told the largest below first, which takes nothing from others.
func (a *Explanation) part() (part int, ok bool) {
	try := func(percent int) bool {
		return a.tried(a.with(func(jobs []share.Job) { jobs[a.job].Part = share.BasisPoints(percent) * whole / 100 }))
	}
	now := percent(a.mine().Part)
	for part := now - 1; part > 0 && sum(a.plan.Peers[a.job]) == 0; part-- {
		if try(part) {
			return part, true
		}
	}
	for part := now + 1; part <= 100; part++ {
		if try(part) {
			return part, true
		}
	}
	return 0, false
}

// ender returns a job whose end would get the task more, nil if there is none: of those that have peers the least
// important, and of equal ones the youngest.
func (a *Explanation) ender() *workload.Job {
	var others []int
	for i := range a.d.In.Jobs {
		if i != a.job && sum(a.plan.Peers[i]) > 0 {
			others = append(others, i)
		}
	}
	slices.SortStableFunc(others, func(x, y int) int {
		return cmp.Or(cmp.Compare(a.d.In.Jobs[x].Priority, a.d.In.Jobs[y].Priority), cmp.Compare(y, x))
	})
	for _, i := range others[:min(len(others), endsMax)] {
		if a.tried(a.without(i)) {
			return a.s.Job(a.d.Jobs[i])
		}
	}
	return nil
}

// without returns the input without a job. The pool is entitled to what the others can use.
func (a *Explanation) without(job int) *share.Input {
	in := a.with(func(jobs []share.Job) { jobs[job].Tasks = nil })
	each := a.demand()
	less := max(a.d.Entitled-sum(each)+each[job], 0)
	if a.d.NodeGroups != nil {
		in.Spare += less
		return in
	}
	in.Groups = []share.Group{{Peers: a.d.Entitled - less}}
	return in
}

// More returns how many peers more the pool would have to have for the task to have more, all on one new machine on
// which all tasks can run; 0 if that would not help. Here tells that those that are there would do, if the pool were
// entitled to them.
func (a *Explanation) More() (more share.Peers, here bool) {
	works := func(more share.Peers) bool { return a.tried(a.larger(more, true)) }
	for more = 1; !works(more); more *= 2 {
		if more >= moreMax {
			return 0, false
		}
	}
	for low := more / 2; more-low > 1; {
		if middle := (low + more) / 2; works(middle) {
			more = middle
		} else {
			low = middle
		}
	}
	return more, a.d.NodeGroups == nil || a.d.In.Spare >= more && a.tried(a.larger(more, false))
}

// Tagged tells whether the pool divides its peers by what their machines can run.
func (a *Explanation) Tagged() bool { return a.d.NodeGroups != nil }

// demand returns how many peers each job of the pool could use: it is entitled to no more than all of them.
func (a *Explanation) demand() []share.Peers {
	pool := a.d.Pool
	pool.Entitled = math.MaxUint32
	each := make([]share.Peers, len(a.d.Jobs))
	for i, job := range share.Of(a.s, &pool).Jobs {
		for _, t := range job.Tasks {
			each[i] += t.Max
		}
	}
	return each
}

// larger returns the input with so many peers more, on a new machine or of those that are there.
func (a *Explanation) larger(more share.Peers, fresh bool) *share.Input {
	pool := a.d.Pool
	pool.Entitled = max(pool.Entitled, min(pool.Entitled+more, sum(a.demand())))
	in := share.Of(a.s, &pool)
	if pool.NodeGroups == nil {
		return in
	}
	pool.NodeGroups.Bound(in)
	if !fresh {
		return in
	}
	asks := 0
	for i := range in.Jobs {
		for _, t := range in.Jobs[i].Tasks {
			for _, tag := range t.Tags {
				number, _ := strconv.Atoi(tag)
				asks = max(asks, number+1)
			}
		}
	}
	var tags []string
	for i := range asks {
		tags = append(tags, strconv.Itoa(i))
	}
	in.Groups = append(slices.Clone(in.Groups), share.Group{Machine: len(in.Groups), Tags: tags, Peers: more})
	in.Spare = a.d.In.Spare + a.d.Entitled + more - pool.Entitled
	return in
}

// Spot is where virtual peers are that the task is to use.
type Spot struct {
	Nodes []facts.NodeIndex
	Count uint32
}

// Spots returns where those instances of the task are to go that wait although it has virtual peers for them; none if
// that does not matter to the pool.
func (a *Explanation) Spots() (spots []Spot) {
	if a.d.NodeGroups == nil {
		return nil
	}
	plan := share.Plan{}
	for _, id := range a.d.Jobs {
		var counts []share.Peers
		for _, task := range a.s.Job(id).Order() {
			most, _ := a.s.Job(id).Tasks[task].Share()
			counts = append(counts, share.Peers(most))
		}
		plan.Peers = append(plan.Peers, counts)
	}
	come, _ := a.d.NodeGroups.Settle(a.d.In, &plan)
	for _, c := range come {
		if c.Place != (share.Place{Job: a.job, Task: a.task}) {
			continue
		}
		spot := Spot{Count: uint32(c.Peers)}
		for n := range facts.NodeIndex(a.s.Nodes()) {
			if a.d.NodeGroups.Of(n) == c.Group {
				spot.Nodes = append(spot.Nodes, n)
			}
		}
		spots = append(spots, spot)
	}
	return spots
}
