package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"starling/cluster/facts"
	"starling/schedule/preempt"
	"starling/terms"
)

// gangEvictCase is a full cluster of equal tasks of one core, and how many of each job run once another was submitted.
type gangEvictCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Nodes  string
		Queues []struct {
			Name                string
			Deserved, Guarantee quantity
			Reclaimable         *bool
		}
		Running []gangPicture
	}
	When struct{ Submit gangPicture }
	Then struct {
		Ready   map[string]int
		OneOf   []map[string]int             `yaml:"oneOf"`
		ByGroup map[string]map[string]string `yaml:"readyByGroup"`
		// Upstream is not compared: Desired is what a design without its over-eviction does.
		Upstream   *int `yaml:"upstreamEvicted"`
		Desired    *int `yaml:"desiredEvicted"`
		SameDomain any  `yaml:"sameDomain"`
	}
}

// gangPicture is a job in short.
type gangPicture struct {
	Name, Queue, Priority string
	Replicas              int
	MinAvailable          int `yaml:"minAvailable"`
	Groups                []struct {
		Name         string
		Replicas     int
		MinAvailable int `yaml:"minAvailable"`
	}
	Partition, Topology any
	// CPUPerTask is told by cases about topologies.
	CPUPerTask quantity `yaml:"cpuPerTask"`
}

// rows and single are how a case tells its nodes.
var (
	rows   = regexp.MustCompile(`^(\d+) x (\d+) cpu$`)
	single = regexp.MustCompile(`^(\d+) nodes?, (\d+) cpu usable$`)
)

// priorities are by the words of a case.
var priorities = map[string]uint32{"low": 1, "medium": 2, "high": 3}

// cycle returns the case as one of a cycle: what runs fills the nodes one after the other.
func (c *gangEvictCase) cycle() (*cycleCase, error) {
	told := rows.FindStringSubmatch(c.Given.Nodes)
	if told == nil {
		told = single.FindStringSubmatch(c.Given.Nodes)
	}
	if told == nil {
		return nil, fmt.Errorf("no rule for the nodes %q", c.Given.Nodes)
	}
	count, _ := strconv.Atoi(told[1])
	cores, _ := strconv.Atoi(told[2])
	out := &cycleCase{}
	for i := range count {
		n := fmt.Sprintf("n%d", i)
		out.Given.Nodes = append(out.Given.Nodes, struct {
			Name, Label string
			Cap         quantities
		}{n, "", quantities{"cpu": quantity(cores)}})
	}
	for _, q := range c.Given.Queues {
		out.Given.Queues = append(out.Given.Queues, cycleQueue{Name: q.Name, Deserved: quantities{"cpu": q.Deserved},
			Guarantee: quantities{"cpu": q.Guarantee}, Reclaimable: q.Reclaimable})
	}
	used := 0
	for _, p := range c.Given.Running {
		j := p.job("Running")
		for i := range j.Tasks {
			j.Tasks[i].Node = fmt.Sprintf("n%d", used/cores)
			used++
		}
		out.Given.Jobs = append(out.Given.Jobs, j)
	}
	out.Given.Jobs = append(out.Given.Jobs, c.When.Submit.job("Pending"))
	return out, nil
}

// job returns the job with its tasks, each of one core.
func (p *gangPicture) job(state string) cycleJob {
	j := cycleJob{Name: p.Name, Queue: p.Queue, MinMember: p.MinAvailable, Priority: priorities[p.Priority],
		GroupMin: map[string]int{}}
	add := func(group string, count int) {
		for range count {
			name := fmt.Sprintf("%s/%s/%d", p.Name, group, len(j.Tasks))
			j.Tasks = append(j.Tasks, cycleTask{Name: name, State: state, Group: group, Req: quantities{"cpu": 1}})
		}
	}
	add("", p.Replicas)
	for _, g := range p.Groups {
		add(g.Name, g.Replicas)
		j.GroupMin[g.Name] = g.MinAvailable
	}
	return j
}

// run counts what is left of each job.
func (c *gangEvictCase) run(t *trial) {
	for _, p := range append(c.Given.Running, c.When.Submit) {
		switch {
		case p.Topology != nil:
			t.leaveOut("topology")
		case p.Partition != nil:
			t.leaveOut("groups")
		}
	}
	full, err := c.cycle()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newCycle(full)
	if err != nil {
		t.Fatal(err)
	}
	evicted, pipeline := newEviction(w, full.Given.Jobs, full.Given.Queues).run()
	ready, byGroup := map[string]int{}, map[string]int{}
	for _, j := range full.Given.Jobs {
		for _, task := range j.Tasks {
			if task.State == "Running" && !slices.Contains(evicted, task.Name) {
				ready[j.Name]++
				byGroup[j.Name+"/"+task.Group]++
			}
		}
		ready[j.Name] += len(pipeline[j.Name])
	}
	c.compare(t, ready, byGroup)
	if want := c.Then.Desired; want != nil && len(evicted) != *want {
		t.Errorf("%v give way, want %d", evicted, *want)
	}
}

// compare holds what runs against the case.
func (c *gangEvictCase) compare(t *trial, ready, byGroup map[string]int) {
	for _, job := range sortedKeys(c.Then.Ready) {
		if got, want := ready[job], c.Then.Ready[job]; got != want {
			t.Errorf("%d of %s run, want %d", got, job, want)
		}
	}
	if c.Then.OneOf != nil && !slices.ContainsFunc(c.Then.OneOf, func(want map[string]int) bool {
		return !slices.ContainsFunc(sortedKeys(want), func(job string) bool { return ready[job] != want[job] })
	}) {
		t.Errorf("%v run, want one of %v", ready, c.Then.OneOf)
	}
	for _, job := range sortedKeys(c.Then.ByGroup) {
		for _, group := range sortedKeys(c.Then.ByGroup[job]) {
			want := c.Then.ByGroup[job][group]
			least, _ := strconv.Atoi(strings.TrimPrefix(want, ">="))
			if got := byGroup[job+"/"+group]; got < least || got > least && !strings.HasPrefix(want, ">=") {
				t.Errorf("%d of %s of %s run, want %s", got, group, job, want)
			}
		}
	}
}

// bundleCase tells which instances of a gang go by themselves, and which only with the gang.
type bundleCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		MinAvailable int `yaml:"minAvailable"`
		Ready        []struct {
			ID, Group string
			Priority  uint32
		}
		GroupMin     map[string]int `yaml:"groupMin"`
		Subgroups    any
		SubgroupsMin any `yaml:"subgroupsMin"`
		Sets         any
		Local        []string
		Bundles      []struct {
			Type  string
			CPU   quantity
			Tasks []string
		}
		Need quantities
		// Allowed are the tasks that no plugin protects.
		Allowed []string
	}
	When struct {
		Action     string
		AllowWhole bool `yaml:"allowWhole"`
	}
	Then struct {
		Safe, Whole, Selected []string
		Bundles               any
	}
}

func (c *bundleCase) run(t *trial, differences tally) {
	switch {
	case c.Given.Subgroups != nil || c.Given.Sets != nil:
		t.leaveOut("groups")
	case c.When.Action == "applyAllowed":
		t.leaveOut("veto")
	case c.When.Action == "createBundles":
		c.divide(t)
	case c.When.Action == "select":
		c.choose(t, differences)
	default:
		t.Fatalf("no rule for the action %s", c.When.Action)
	}
}

// divide asks for more and more room on the node: who goes before the gang breaks is what it can spare.
func (c *bundleCase) divide(t *trial) {
	j := cycleJob{Name: "job", MinMember: c.Given.MinAvailable, GroupMin: c.Given.GroupMin}
	for _, r := range c.Given.Ready {
		node := "other"
		if slices.Contains(c.Given.Local, r.ID) {
			node = "local"
		}
		j.Tasks = append(j.Tasks, cycleTask{Name: r.ID, State: "Running", Group: r.Group, Node: node, Priority: r.Priority,
			Req: quantities{"cpu": 1}})
	}
	w := &cycle{numbers: map[string]int{"": 1}, nodes: []cycleNode{{name: "local"}, {name: "other"}}}
	e := newEviction(w, []cycleJob{j}, nil)
	var safe []string
	for count := range c.Given.Local {
		plan, found := preempt.Choose(&preempt.Input{
			Wants: []preempt.Want{{Need: terms.Amounts{int64(count+1) * perUnit}, Count: 1}}, Room: everything,
			Nodes: []preempt.Node{{}},
			Over:  []terms.Amounts{{}, everything}, Victims: e.victims, Gangs: e.gangs,
		})
		if !found {
			t.Fatalf("%d cannot go", count+1)
		}
		if len(plan.Victims) > count+1 || len(plan.Victims) == len(e.victims) && c.Given.MinAvailable > 0 {
			break
		}
		safe = safe[:0]
		for _, chosen := range plan.Victims {
			safe = append(safe, e.names[chosen.Victim])
		}
	}
	whole := slices.DeleteFunc(slices.Clone(c.Given.Local), func(id string) bool { return slices.Contains(safe, id) })
	for _, part := range []struct {
		name      string
		got, want []string
	}{{"safe", safe, c.Then.Safe}, {"whole", whole, c.Then.Whole}} {
		slices.Sort(part.got)
		slices.Sort(part.want)
		if !slices.Equal(part.got, part.want) {
			t.Errorf("%s are %v, want %v", part.name, part.got, part.want)
		}
	}
}

// choose asks for room among bundles: what a gang can spare, and gangs that break.
func (c *bundleCase) choose(t *trial, differences tally) {
	need, err := c.Given.Need.amounts()
	if err != nil {
		t.Fatal(err)
	}
	in := &preempt.Input{Wants: []preempt.Want{{Need: need, Count: 1}}, Room: everything, Nodes: []preempt.Node{{}},
		Over: []terms.Amounts{{}, everything}}
	var types []string
	for i, b := range c.Given.Bundles {
		v := preempt.Victim{Slot: facts.SlotRef{Job: terms.JobID(i + 1)}, Need: terms.Amounts{b.CPU.units()}, Pool: 1,
			Gang: preempt.NoGang}
		if b.Type == "whole" {
			if !c.When.AllowWhole {
				continue
			}
			v.Gang = len(in.Gangs)
			in.Gangs = append(in.Gangs, preempt.Gang{Surplus: []uint32{0}})
		}
		in.Victims, types = append(in.Victims, v), append(types, b.Type)
	}
	plan, _ := preempt.Choose(in)
	var got []string
	for _, chosen := range plan.Victims {
		got = append(got, types[chosen.Victim])
	}
	switch {
	case slices.Equal(got, c.Then.Selected):
	case !slices.ContainsFunc(got, func(bundle string) bool { return !slices.Contains(c.Then.Selected, bundle) }):
		t.Logf("%v go, want %v", got, c.Then.Selected)
		differences.state(t, nobodyInVain)
	default:
		t.Errorf("%v go, want %v", got, c.Then.Selected)
	}
}
