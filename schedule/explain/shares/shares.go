// Package shares tells why a task of a job has as many virtual peers as it has, and what would get it more.
//
// It makes the counts of the pool again, as they are and as they would be. What it says would help, it has tried.
package shares

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/workload"
	"starling/schedule"
	"starling/schedule/explain/wording"
	"starling/schedule/share"
	"starling/terms"
)

// Explanation is of what one task has, in the division of its pool.
type Explanation struct {
	s     *cluster.State
	d     *schedule.Division
	j     *workload.Job
	path  terms.PoolPath
	order []int
	// job and task are its places in the input and the plan.
	job, task int
	plan      share.Plan
}

// Of looks at a task whose instances virtual peers run; ok is false for others.
func Of(s *cluster.State, j *workload.Job, task int) (a *Explanation, ok bool) {
	d, ok := schedule.DivisionOf(s, j.ID)
	if !ok {
		return nil, false
	}
	a = &Explanation{s: s, d: d, j: j, path: s.Pools()[d.Number].Path, order: j.Order(), plan: share.Counts(d.In)}
	a.job = slices.Index(d.Jobs, j.ID)
	a.task = slices.Index(a.order, task)
	return a, a.task >= 0
}

// mine returns what the input says of the job, own what it says of the task.
func (a *Explanation) mine() *share.Job { return &a.d.In.Jobs[a.job] }

func (a *Explanation) own() *share.Task { return &a.mine().Tasks[a.task] }

// has returns how many peers a plan gives the task.
func (a *Explanation) has(p share.Plan) share.Peers { return p.Peers[a.job][a.task] }

func (a *Explanation) name(task int) terms.TaskName { return a.j.Tasks[a.order[task]].Name }

// open returns the tasks that take peers now, by their places in the order.
func (a *Explanation) open() (open []int) {
	for i := range a.mine().Tasks {
		if a.mine().Tasks[i].State == share.Open {
			open = append(open, i)
		}
	}
	return open
}

// needed returns those tasks that have to be covered for the job to run.
func (a *Explanation) needed() (needed []int) {
	for _, i := range a.open() {
		if t := &a.mine().Tasks[i]; !a.mine().CoverageOptional || t.Min > 0 {
			needed = append(needed, i)
		}
	}
	return needed
}

// Reason says in a sentence why the task has no more.
func (a *Explanation) Reason() string {
	needed := a.needed()
	mine, all := sum(a.plan.Peers[a.job]), a.given()
	switch {
	case mine > 0 && a.has(a.plan) == 0 && a.mine().Scheduler == share.TaskGreedy && sum(a.plan.Peers[a.job][:a.task]) > 0:
		return fmt.Sprintf("waits for a virtual peer: by greedy, the tasks of its job come one after the other, and before it come %s", a.earlier())
	case mine == 0 && a.d.In.Scheduler == share.JobPercentage && a.mine().Part == 0:
		return "waits for a virtual peer: its job states no percent, and gets only what others cannot use"
	case mine == 0 && a.d.In.Scheduler == share.JobPercentage && a.before()+a.mine().Part > whole:
		return fmt.Sprintf("waits for a virtual peer: its job's %d percent and the %d of those before it are more than the whole",
			percent(a.mine().Part), percent(a.before()))
	case mine == 0 && a.mine().Scheduler == share.TaskColocated:
		return "waits for virtual peers: its job gets none: " + a.copies(a.open())
	case mine == 0 && a.rare(needed) != "":
		return "waits for virtual peers: its job gets none: " + a.rare(needed)
	case mine == 0:
		return "waits for virtual peers: its job gets none unless " + a.together(needed)
	}
	return fmt.Sprintf("waits for a virtual peer: the task has %d of %d of its job (by %s), the job %d of %d that pool %s gives to %s (by %s)",
		a.has(a.plan), mine, a.j.Spec.TaskScheduler, mine, all, a.path, counted(len(a.d.Jobs), "job"),
		a.s.Pools()[a.d.Number].JobScheduler)
}

// earlier says what the tasks before it have.
func (a *Explanation) earlier() string {
	var names []string
	for i, n := range a.plan.Peers[a.job][:a.task] {
		if n > 0 {
			names = append(names, fmt.Sprintf("%s (%d)", a.name(i), n))
		}
	}
	return wording.Some(names)
}

// together says what the job needs at least.
func (a *Explanation) together(open []int) string {
	var each []string
	need, ones := share.Peers(0), true
	for _, i := range open {
		least := max(a.mine().Tasks[i].Min, 1)
		each = append(each, fmt.Sprintf("%s %d", a.name(i), least))
		need, ones = need+least, ones && least == 1
	}
	switch {
	case need <= 1:
		return "there is one for it"
	case len(open) == 1:
		return fmt.Sprintf("it has %d together", need)
	case ones:
		return fmt.Sprintf("each of its %d tasks has one: %d together", len(open), need)
	}
	return fmt.Sprintf("its tasks have their least: %d together (%s)", need, wording.Some(each))
}

// rare tells of a task that too few peers can run for the job to run; "" if there is none.
func (a *Explanation) rare(open []int) string {
	for _, i := range open {
		least := max(a.mine().Tasks[i].Min, 1)
		if fit, all := a.fit(&a.mine().Tasks[i]); fit < least {
			return fmt.Sprintf("%d of %s can run %s, which needs %d", fit, counted(int(all), "virtual peer"), a.name(i), least)
		}
	}
	return ""
}

// fit returns how many of all peers are on machines that can run a task.
func (a *Explanation) fit(t *share.Task) (fit, all share.Peers) {
	for _, g := range a.d.In.Groups {
		if all += g.Peers; len(t.Tags) == 0 || slices.Contains(g.Tags, t.Tags[0]) {
			fit += g.Peers
		}
	}
	return fit, all
}

// copies says what a copy of the colocated job takes, and what there is.
func (a *Explanation) copies(open []int) string {
	largest, holds := share.Peers(0), share.Peers(0)
	for i, g := range a.d.In.Groups {
		if largest = max(largest, g.Peers); int(g.Peers) >= len(open) && i < len(a.mine().Copies) {
			holds = max(holds, a.mine().Copies[i])
		}
	}
	text := fmt.Sprintf("a copy takes %s on one machine, and ", counted(len(open), "virtual peer"))
	switch {
	case int(largest) < len(open):
		return text + fmt.Sprintf("the largest has %d", largest)
	case holds == 0:
		return text + "no machine with so many has the processor and memory for them together"
	}
	return text + "none is left that has so many, with tags and room for all"
}

// Details say how the pool stands, who comes first in it, and what else bounds the task.
func (a *Explanation) Details() (all []string) {
	open, none := a.open(), sum(a.plan.Peers[a.job]) == 0
	if none {
		all = append(all, fmt.Sprintf("pool %s divides %s among %s (by %s): %d are given", a.path,
			counted(int(a.d.Entitled), "virtual peer"),
			counted(len(a.d.Jobs), "job"), a.s.Pools()[a.d.Number].JobScheduler, a.given()))
	}
	oneByOne := a.d.In.Scheduler == share.JobPriority || a.d.In.Scheduler == share.JobGreedy
	if first := a.first(); len(first) > 0 && (none || oneByOne) {
		all = append(all, "before it come "+wording.Some(first))
	}
	if fit, there := a.fit(a.own()); fit < there {
		all = append(all, fmt.Sprintf("%d of %s can run it: those of nodes that have what it requires", fit,
			counted(int(there), "virtual peer")))
	}
	switch a.mine().Scheduler {
	case share.TaskFixed:
		all = append(all, fmt.Sprintf("by fixed, a task gets as many as it needs at least and never more: %d",
			max(a.own().Min, 1)))
	case share.TaskColocated:
		if len(open) == 0 {
			break
		}
		least := slices.MinFunc(open, func(x, y int) int { return cmp.Compare(a.mine().Tasks[x].Max, a.mine().Tasks[y].Max) })
		if most := a.mine().Tasks[least].Max; least != a.task && a.has(a.plan) == most {
			all = append(all, fmt.Sprintf("a copy needs an instance of each task, and %s has %d", a.name(least), most))
		} else if copies := a.has(a.plan); copies > 0 {
			all = append(all, fmt.Sprintf("it runs in %s, each of which takes %s on one machine", counted(int(copies), "copy"),
				counted(len(open), "virtual peer")))
		}
	}
	return all
}

// first returns the jobs that have peers and come first by the rule of the pool.
func (a *Explanation) first() (names []string) {
	for _, i := range a.ranked() {
		if i == a.job {
			break
		}
		if peers := sum(a.plan.Peers[i]); peers > 0 {
			names = append(names, fmt.Sprintf("%s (%d%s)", a.s.Job(a.d.Jobs[i]).Name(), peers, a.why(i)))
		}
	}
	return names
}

// why says by what another job comes first, if not by its age alone.
func (a *Explanation) why(job int) string {
	other := &a.d.In.Jobs[job]
	switch {
	case a.d.In.Scheduler == share.JobPriority && other.Priority > a.mine().Priority:
		return fmt.Sprintf(", priority %d", other.Priority)
	case a.d.In.Scheduler == share.JobPercentage && other.Part > 0:
		return fmt.Sprintf(", %d percent", percent(other.Part))
	}
	return ""
}

// ranked returns the jobs in the order in which the pool admits them.
func (a *Explanation) ranked() []int {
	order := make([]int, len(a.d.In.Jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		first, second := &a.d.In.Jobs[x], &a.d.In.Jobs[y]
		switch a.d.In.Scheduler {
		case share.JobPriority:
			return cmp.Compare(second.Priority, first.Priority)
		case share.JobPercentage:
			return cmp.Compare(second.Part, first.Part)
		}
		return 0
	})
	return order
}

// before returns the parts of the jobs that are before it and ask for peers.
func (a *Explanation) before() (stated share.BasisPoints) {
	for _, i := range a.ranked() {
		if i == a.job {
			break
		}
		if slices.ContainsFunc(a.d.In.Jobs[i].Tasks, func(t share.Task) bool { return t.State == share.Open }) {
			stated += a.d.In.Jobs[i].Part
		}
	}
	return stated
}

// given returns how many peers the jobs have.
func (a *Explanation) given() (all share.Peers) {
	for _, tasks := range a.plan.Peers {
		all += sum(tasks)
	}
	return all
}

func sum(tasks []share.Peers) (all share.Peers) {
	for _, n := range tasks {
		all += n
	}
	return all
}

// whole is 100 percent.
const whole share.BasisPoints = 10_000

func percent(part share.BasisPoints) int { return int(part) * 100 / int(whole) }

// counted returns "1 job", "2 jobs", "3 copies".
func counted(count int, noun string) string {
	switch {
	case count == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", count, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
