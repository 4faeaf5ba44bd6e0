package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/schedule/admission"
	"starling/schedule/entitle"
	"starling/terms"
)

// The differences from Volcano in what a scheduling cycle starts. Each holds for every file.
var (
	entitlementBinds = &difference{name: "entitlement binds", reason: "no pool admits beyond its entitlement; " +
		"there the bound can be switched off, and queues take turns by how full they are"}
	noQueueState = &difference{name: "no queue state",
		reason: "a pool is there or not: one that admits nothing has limit 0"}
	noQueuePriority = &difference{name: "no queue priority",
		reason: "pools have reservations and shares, and no priority: " +
			"a whole pool before another would starve it"}
)

// cycleKindsExcluded are the kinds of case that are left out.
var cycleKindsExcluded = []string{"enqueue", "overcommit", "podgroup-phase", "gang-skip-unschedulable",
	"elastic-resource"}

// cycleCase is a cluster with queues and jobs, and what one cycle starts.
type cycleCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Nodes []struct {
			Name, Label string
			Cap         quantities
		}
		Queues []cycleQueue
		Jobs   []cycleJob
	}
	When struct {
		Actions, Enabled, Plugins []string
		SharePlugin               string `yaml:"sharePlugin"`
		Hierarchy                 bool
		// AncestorLevel tells how many levels above a queue must hold too much as well: here what counts is the leaf, whose
		// entitlement comes from all levels.
		AncestorLevel int  `yaml:"ancestorReclaimLevel"`
		TopologyAware bool `yaml:"topologyAware"`
	}
	Then struct {
		// Bind leads from the tasks that start to their nodes; null says nothing.
		Bind  *map[string]string
		Count *int `yaml:"bindCount"`
		// Evict are the tasks that give way.
		Evict []string
		// Pipeline leads from jobs to the nodes where they run when others have gone.
		Pipeline map[string][]string
		// Cycles are what one cycle after the other starts.
		Cycles []struct{ Bind []string }
		// NoCrash is all that a case wants that has nothing to start.
		NoCrash bool `yaml:"noCrash"`
	}
}

// cycleQueue is a queue. What it deserves is its reservation, its capability the limit.
type cycleQueue struct {
	Name, Parent, State             string
	Weight                          *int64
	Priority                        int
	Capability, Deserved, Guarantee quantities
	// Reclaimable matters to what gives way alone.
	Reclaimable *bool
}

// cycleJob is a job; minMember of its tasks are its gang.
type cycleJob struct {
	Name, Queue, Phase string
	MinMember          int            `yaml:"minMember"`
	GroupMin           map[string]int `yaml:"groupMin"`
	MinResources       quantities     `yaml:"minResources"`
	Priority           uint32
	Tasks, Pending     []cycleTask
}

type cycleTask struct {
	Name, State, Node, Group string
	Selector                 string `yaml:"nodeSelector"`
	Req                      quantities
	Preemptable              *bool
	Priority                 uint32
	Policy                   string `yaml:"preemptionPolicy"`
	Label                    string
	AntiAffinity             string `yaml:"antiAffinity"`
}

// cycles runs a file of cases of one scheduling cycle.
func cycles(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		var kind struct {
			Kind string
			Then struct{ Order yaml.Node }
		}
		if err := s.node.Load(&kind); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(cycleKindsExcluded, kind.Kind) {
			t.leaveOut(kind.Kind)
		}
		c := &cycleCase{}
		switch kind.Kind {
		case "allocate", "gang-allocate", "two-cycles":
			s.read(t, c)
			switch {
			case len(c.Then.Evict) > 0:
				c.evicts(t, differences)
				return
			case kind.Kind == "gang-allocate" && c.foldable():
				c.onFold(t)
				return
			}
			c.run(t, differences)
		case "gang-evict":
			c := &gangEvictCase{}
			s.read(t, c)
			c.run(t)
		case "bundles":
			if kind.Then.Order.Kind != 0 {
				t.leaveOut("order")
			}
			c := &bundleCase{}
			s.read(t, c)
			c.run(t, differences)
		case "reclaim", "preempt":
			s.read(t, c)
			c.evicts(t, differences)
		default:
			t.Fatalf("no rule for kind %s", kind.Kind)
		}
	})
}

// run compares the tasks that start. On which node is for placement: the first that fits does here.
func (c *cycleCase) run(t *trial, differences tally) {
	w, err := newCycle(c)
	if err != nil {
		t.Fatal(err)
	}
	c.checkInner(t)
	started := w.admit()
	if c.Then.NoCrash {
		for number, e := range entitle.Entitlements(&w.in) {
			if pool := w.in.Pools[number]; len(started) > 0 || slices.Min(e.Total[:]) < 0 {
				t.Errorf("pool %s is entitled to %v, and %v start", pool.Spec.Path, e.Total, started)
			}
		}
		return
	}
	slices.Sort(started)
	wrong := ""
	if c.Then.Cycles != nil {
		// Here all starts with one entry: whoever starts in one of the cycles there.
		var all []string
		for _, cycle := range c.Then.Cycles {
			all = append(all, cycle.Bind...)
		}
		if slices.Sort(all); !slices.Equal(started, all) {
			wrong = fmt.Sprintf("%v start, want %v", started, all)
		}
	}
	if c.Then.Bind != nil && !slices.Equal(started, sortedKeys(*c.Then.Bind)) {
		wrong = fmt.Sprintf("%v start, want %v", started, sortedKeys(*c.Then.Bind))
	}
	if c.Then.Count != nil && len(started) != *c.Then.Count {
		wrong = fmt.Sprintf("%v start, want %d", started, *c.Then.Count)
	}
	switch {
	case wrong == "":
	case strings.Contains(c.When.SharePlugin, "allocatable off"):
		differences.state(t, entitlementBinds)
	case slices.ContainsFunc(c.Given.Queues, func(q cycleQueue) bool { return q.Priority != 0 }):
		differences.state(t, noQueuePriority)
	case slices.ContainsFunc(c.Given.Queues, func(q cycleQueue) bool { return q.State != "" && q.State != "Open" }):
		differences.state(t, noQueueState)
	default:
		t.Error(wrong)
	}
}

// checkInner wants the fold to refuse each job in a queue that has others below it.
func (c *cycleCase) checkInner(t *trial) {
	for _, j := range c.Given.Jobs {
		for _, q := range c.Given.Queues {
			outer, inner := terms.PoolPath(j.Queue), terms.PoolPath(j.Queue+"/"+q.Name)
			if q.Parent == j.Queue && !refusesInner(t, []terms.Pool{terms.NewPool(outer), terms.NewPool(inner)}, outer) {
				t.Errorf("job %s is accepted in %s, which is no leaf", j.Name, j.Queue)
			}
		}
	}
}

// cycle is the cluster of a case.
type cycle struct {
	in entitle.Input
	// numbers leads from queues to pools.
	numbers map[string]int
	nodes   []cycleNode
	// waiting are the gangs of each pool, with the tasks that they are made of.
	waiting [][]cycleGang
}

// cycleNode is a node with what it has left.
type cycleNode struct {
	name, label string
	free        terms.Amounts
}

// takes tells whether a task can go there.
func (n *cycleNode) takes(task *cycleTask, need terms.Amounts) bool {
	for k := range need {
		if need[k] > n.free[k] {
			return false
		}
	}
	return task.Selector == "" || task.Selector == n.label
}

// cycleGang is a gang with its tasks.
type cycleGang struct {
	admission.Gang
	job    string
	single bool
	tasks  []cycleTask
}

// newCycle makes the nodes, the tree of queues and what the jobs hold and ask for.
func newCycle(c *cycleCase) (*cycle, error) {
	w := &cycle{numbers: map[string]int{"root": -1}}
	for _, n := range c.Given.Nodes {
		has, err := instanceAmounts(n.Cap)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		w.nodes = append(w.nodes, cycleNode{n.Name, orElse(n.Label, n.Name), has})
		w.in.Capacity = sumOf(w.in.Capacity, has)
	}
	queues := c.Given.Queues
	if len(queues) == 0 {
		for _, j := range c.Given.Jobs {
			if !slices.ContainsFunc(queues, func(q cycleQueue) bool { return q.Name == j.Queue }) {
				queues = append(queues, cycleQueue{Name: j.Queue})
			}
		}
	}
	for len(queues) > 0 {
		at := slices.IndexFunc(queues, func(q cycleQueue) bool { _, known := w.numbers[q.parent()]; return known })
		if at < 0 {
			return nil, fmt.Errorf("queue %s has no parent %s", queues[0].Name, queues[0].Parent)
		}
		if err := w.queue(&queues[at]); err != nil {
			return nil, fmt.Errorf("queue %s: %w", queues[at].Name, err)
		}
		queues = slices.Delete(slices.Clone(queues), at, at+1)
	}
	for i := range c.Given.Jobs {
		j := &c.Given.Jobs[i]
		number, known := w.numbers[j.Queue]
		if !known || number < 0 || slices.ContainsFunc(c.Given.Queues,
			func(q cycleQueue) bool { return q.Parent == j.Queue }) {
			continue // its queue does not exist, or is no leaf: run asks the fold about that
		}
		if err := w.job(j, number); err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
	}
	return w, nil
}

func (q *cycleQueue) parent() string {
	if q.Parent == "" {
		return "root"
	}
	return q.Parent
}

// queue adds a queue to the pools.
func (w *cycle) queue(q *cycleQueue) error {
	if q.Name == "root" {
		return nil
	}
	spec := terms.NewPool(terms.PoolPath(q.Name))
	deserved, err := instanceAmounts(q.Deserved)
	if err != nil {
		return err
	}
	guarantee, err := instanceAmounts(q.Guarantee)
	if err != nil {
		return err
	}
	most, err := instanceAmounts(q.Capability)
	if err != nil {
		return err
	}
	for k := range spec.Quotas {
		quota := &spec.Quotas[k]
		quota.Reservation = max(deserved[k], guarantee[k])
		if q.Weight != nil {
			quota.Share = *q.Weight
		}
		if most[k] > 0 {
			quota.Limit, quota.Reservation = most[k], min(quota.Reservation, most[k])
		}
	}
	w.numbers[q.Name] = len(w.in.Pools)
	w.in.Pools = append(w.in.Pools, entitle.Pool{Parent: w.numbers[q.parent()], Spec: &spec})
	w.waiting = append(w.waiting, nil)
	return nil
}

// job adds what a job holds and asks for. What it lacks of its gang comes first, then each other task by itself.
func (w *cycle) job(j *cycleJob, number int) error {
	pool, gang, singles := &w.in.Pools[number], cycleGang{job: j.Name}, []cycleGang{}
	lacking, inGang := j.MinMember, map[string]int{}
	for _, task := range j.Tasks {
		if task.State == "Running" {
			lacking--
		}
	}
	for _, task := range slices.Concat(j.Tasks, j.Pending) {
		need, err := instanceAmounts(task.Req)
		if err != nil {
			return err
		}
		switch {
		case task.State == "Running":
			pool.Allocated.NonSlack = sumOf(pool.Allocated.NonSlack, need)
			for i := range w.nodes {
				if w.nodes[i].name == task.Node {
					w.nodes[i].free = lessOf(w.nodes[i].free, need)
				}
			}
			continue
		case inGang[task.Group] < j.GroupMin[task.Group] || len(j.GroupMin) == 0 && lacking > 0:
			gang.tasks = append(gang.tasks, task)
			gang.Need, gang.Count = sumOf(gang.Need, need), 1
			inGang[task.Group]++
			lacking--
		default:
			singles = append(singles, cycleGang{admission.Gang{Need: need, Count: 1}, j.Name, true, []cycleTask{task}})
		}
		pool.Demand.NonSlack = sumOf(pool.Demand.NonSlack, need)
	}
	if len(gang.tasks) > 0 {
		w.waiting[number] = append(w.waiting[number], gang)
	}
	if lacking <= 0 {
		w.waiting[number] = append(w.waiting[number], singles...)
	}
	return nil
}

// admit goes through the pools and returns the tasks that start.
func (w *cycle) admit() []string {
	var started []string
	for number, e := range entitle.Entitlements(&w.in) {
		pool := &admission.Pool{Entitlement: e, Allocated: w.in.Pools[number].Allocated}
		a, halted := admission.New(pool), ""
		for i := range w.waiting[number] {
			g := &w.waiting[number][i]
			if g.single && g.job == halted {
				continue // single instances wait until the gang of their job runs
			}
			if a.Room(&g.Gang) == 0 || !w.place(g.tasks) {
				a.Await(&g.Gang, func() []admission.Unit { return nil })
				if !g.single {
					halted = g.job
				}
				continue
			}
			a.Take(&g.Gang, 1)
			for _, task := range g.tasks {
				started = append(started, task.Name)
			}
		}
	}
	return started
}

// place puts the tasks on the first nodes that take them, all or none.
func (w *cycle) place(tasks []cycleTask) bool {
	before := slices.Clone(w.nodes)
	for i := range tasks {
		need, _ := instanceAmounts(tasks[i].Req)
		at := slices.IndexFunc(w.nodes, func(n cycleNode) bool { return n.takes(&tasks[i], need) })
		if at < 0 {
			w.nodes = before
			return false
		}
		w.nodes[at].free = lessOf(w.nodes[at].free, need)
	}
	return true
}

// instanceAmounts translates what instances need and nodes have. Pods are no kind here: instances are not counted.
func instanceAmounts(q quantities) (terms.Amounts, error) {
	q = maps.Clone(q)
	delete(q, "pods")
	return q.amounts()
}

func sumOf(a, b terms.Amounts) terms.Amounts {
	for k := range a {
		a[k] += b[k]
	}
	return a
}

func lessOf(a, b terms.Amounts) terms.Amounts {
	for k := range a {
		a[k] -= b[k]
	}
	return a
}
