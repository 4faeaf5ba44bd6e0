package conformance

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/schedule/entitle"
	"starling/schedule/preempt"
	"starling/terms"
)

// The differences from Volcano in who gives way. Each holds for every file.
var (
	everyKindEntitled = &difference{name: "every kind entitled",
		reason: "work takes room from others if its pool is entitled to all of it; " +
			"there one kind is enough"}
	instancesUncounted = &difference{name: "instances uncounted",
		reason: "how many instances a machine runs is not bounded, so nobody has to go for that"}
	nobodyInVain = &difference{name: "nobody in vain",
		reason: "who is not needed stays, and nobody goes for what is not enough; " +
			"there bundles go until there is enough, and stay gone"}
)

// evicts plays one cycle: whoever waits and is entitled to room takes it from those who have to give way.
func (c *cycleCase) evicts(t *trial, differences tally) {
	if c.When.TopologyAware && slices.ContainsFunc(c.Given.Jobs, func(j cycleJob) bool {
		return slices.ContainsFunc(j.Tasks, func(task cycleTask) bool { return task.AntiAffinity != "" })
	}) {
		t.leaveOut("antiAffinity")
	}
	for _, j := range c.Given.Jobs {
		if slices.ContainsFunc(j.Tasks, func(task cycleTask) bool { return task.Policy != "" }) {
			t.leaveOut("preemptionPolicy")
		}
	}
	w, err := newCycle(c)
	if err != nil {
		t.Fatal(err)
	}
	e := newEviction(w, c.Given.Jobs, c.Given.Queues)
	evicted, pipeline := e.run()
	slices.Sort(evicted)
	want := slices.Clone(c.Then.Evict)
	slices.Sort(want)
	var wrong []string
	if c.Then.Evict != nil && !slices.Equal(evicted, want) {
		wrong = append(wrong, fmt.Sprintf("%v give way, want %v", evicted, want))
	}
	for _, job := range sortedKeys(c.Then.Pipeline) {
		if !slices.Equal(pipeline[job], c.Then.Pipeline[job]) {
			wrong = append(wrong, fmt.Sprintf("%s goes to %v, want %v", job, pipeline[job], c.Then.Pipeline[job]))
		}
	}
	c.judge(t, differences, wrong)
}

// judge states the difference that a case with something wrong shows, or fails it.
func (c *cycleCase) judge(t *trial, differences tally, wrong []string) {
	if len(wrong) == 0 {
		return
	}
	d := c.difference()
	if d == nil {
		t.Error(strings.Join(wrong, "\n"))
		return
	}
	t.Log(strings.Join(wrong, "\n"))
	differences.state(t, d)
}

// difference returns the rule by which a case may differ.
func (c *cycleCase) difference() *difference {
	reserved := map[string]quantities{}
	for _, q := range c.Given.Queues {
		switch {
		case q.Priority != 0:
			return noQueuePriority
		case q.State != "" && q.State != "Open":
			return noQueueState
		}
		for kind, amount := range q.Deserved {
			if reserved[q.parent()] == nil {
				reserved[q.parent()] = quantities{}
			}
			reserved[q.parent()][kind] += amount
		}
	}
	capacity := quantities{}
	for _, n := range c.Given.Nodes {
		for kind, amount := range n.Cap {
			capacity[kind] += amount
		}
	}
	for kind, amount := range reserved["root"] {
		if amount > capacity[kind] {
			return grantedTwice
		}
	}
	if capacity["pods"] > 0 {
		return instancesUncounted
	}
	return c.partlyEntitled()
}

// partlyEntitled tells whether somebody who waits is entitled to some kinds of what he needs and not to all.
func (c *cycleCase) partlyEntitled() *difference {
	w, err := newCycle(c)
	if err != nil {
		return nil
	}
	for number, e := range entitle.Entitlements(&w.in) {
		held := w.in.Pools[number].Allocated.NonSlack
		for _, g := range w.waiting[number] {
			some, all := false, true
			for k, need := range g.Need {
				within := held[k]+need <= e.NonSlack[k]
				some, all = some || need > 0 && within, all && (need == 0 || within)
			}
			if some && !all {
				return everyKindEntitled
			}
		}
	}
	return nil
}

// eviction is a cycle with those who may have to give way.
type eviction struct {
	*cycle
	jobs    []cycleJob
	names   []string
	victims []preempt.Victim
	gangs   []preempt.Gang
}

// newEviction lists the running tasks that are preemptible. A queue that is not reclaimable has none.
func newEviction(w *cycle, jobs []cycleJob, queues []cycleQueue) *eviction {
	e := &eviction{cycle: w, jobs: jobs}
	for id := range jobs {
		j := &jobs[id]
		number, known := w.numbers[j.Queue]
		kept := slices.ContainsFunc(queues,
			func(q cycleQueue) bool { return q.Name == j.Queue && q.Reclaimable != nil && !*q.Reclaimable })
		if known && !kept {
			e.job(j, id, number)
		}
	}
	return e
}

// job adds the running tasks of a job, and what its gang can spare of each group.
func (e *eviction) job(j *cycleJob, id, number int) {
	running, all := map[string]uint32{}, 0
	for _, task := range j.Tasks {
		if task.State == "Running" {
			running[task.Group]++
			all++
		}
	}
	groups := sortedKeys(running)
	if len(groups) == 0 {
		return
	}
	gang, surplus := preempt.Gang{}, all-j.MinMember
	for _, group := range groups {
		least := min(uint32(j.GroupMin[group]), running[group])
		gang.Surplus = append(gang.Surplus, min(running[group]-least, uint32(max(surplus, 0))))
	}
	number, first, fixed := number, len(e.victims), false
	for i, task := range j.Tasks {
		if task.State != "Running" {
			continue
		}
		if task.Preemptable != nil && !*task.Preemptable {
			fixed = true
			continue
		}
		need, _ := instanceAmounts(task.Req)
		at := slices.IndexFunc(e.nodes, func(n cycleNode) bool { return n.name == task.Node })
		group := slices.Index(groups, task.Group)
		e.names = append(e.names, task.Name)
		e.victims = append(e.victims, preempt.Victim{
			Slot: facts.SlotRef{Job: terms.JobID(id + 1), Task: uint16(group), Index: uint32(i)}, Node: facts.NodeIndex(at),
			Need: need, Pool: number, Stage: preempt.Running, Priority: j.Priority + task.Priority, Gang: len(e.gangs),
		})
	}
	if fixed && len(e.victims)-first > max(surplus, 0) {
		// Some of them may not go, so the gang cannot break: only what it can spare is left.
		e.victims, e.names = e.victims[:first+max(surplus, 0)], e.names[:first+max(surplus, 0)]
	}
	e.gangs = append(e.gangs, gang)
}

// run lets each gang that waits take room, and returns who gives way and on which nodes each job gets room.
func (e *eviction) run() (evicted []string, pipeline map[string][]string) {
	pipeline = map[string][]string{}
	all := entitle.Entitlements(&e.in)
	gone := map[int]bool{}
	for number := range all {
		for i := range e.waiting[number] {
			plan, numbers, found := e.choose(all, number, &e.waiting[number][i], gone)
			if !found {
				continue
			}
			for _, chosen := range plan.Victims {
				n := numbers[chosen.Victim]
				gone[n] = true
				evicted = append(evicted, e.names[n])
				e.take(&e.victims[n])
			}
			for _, seat := range plan.Seats {
				n, need := &e.nodes[seat.Node], e.needs(&e.waiting[number][i])[seat.Want]
				for range seat.Count {
					n.free = lessOf(n.free, need)
					pipeline[e.waiting[number][i].job] = append(pipeline[e.waiting[number][i].job], n.name)
				}
			}
			hold(&e.in.Pools[number].Allocated, &e.waiting[number][i].Gang, 1)
		}
	}
	return evicted, pipeline
}

// take frees what a victim holds.
func (e *eviction) take(v *preempt.Victim) {
	held := &e.in.Pools[v.Pool].Allocated.NonSlack
	*held = lessOf(*held, v.Need)
	e.nodes[v.Node].free = sumOf(e.nodes[v.Node].free, v.Need)
	if surplus := e.gangs[v.Gang].Surplus; surplus[v.Slot.Task] > 0 {
		surplus[v.Slot.Task]--
	}
}

func (e *eviction) needs(g *cycleGang) (all []terms.Amounts) {
	for i := range g.tasks {
		need, _ := instanceAmounts(g.tasks[i].Req)
		all = append(all, need)
	}
	return all
}

// choose asks who gives way for a gang, among those who have not.
func (e *eviction) choose(entitlements []entitle.Entitlement, number int, g *cycleGang,
	gone map[int]bool) (preempt.Plan, []int, bool) {
	in, numbers := &preempt.Input{Pool: number, Priority: e.priority(g.job), Gangs: e.gangs}, []int{}
	a := &e.in.Pools[number].Allocated
	in.Room = lessOf(entitlements[number].NonSlack, a.NonSlack)
	for i := range entitlements {
		in.Over = append(in.Over, clipped(lessOf(e.in.Pools[i].Allocated.NonSlack, entitlements[i].NonSlack)))
	}
	for i, need := range e.needs(g) {
		task := &g.tasks[i]
		in.Wants = append(in.Wants, preempt.Want{Need: need, Count: 1, Most: func(n facts.NodeIndex) uint32 {
			if task.Selector != "" && task.Selector != e.nodes[n].label {
				return 0
			}
			return 1
		}})
	}
	for i := range e.nodes {
		in.Nodes = append(in.Nodes, preempt.Node{Index: facts.NodeIndex(i), Free: e.nodes[i].free})
	}
	for i := range e.victims {
		if !gone[i] {
			in.Victims, numbers = append(in.Victims, e.victims[i]), append(numbers, i)
		}
	}
	plan, found := preempt.Choose(in)
	return plan, numbers, found
}

func (e *eviction) priority(job string) uint32 {
	at := slices.IndexFunc(e.jobs, func(j cycleJob) bool { return j.Name == job })
	return e.jobs[at].Priority
}
