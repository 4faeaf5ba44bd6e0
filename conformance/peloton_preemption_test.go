package conformance

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"starling/cluster/facts"
	"starling/schedule/preempt"
	"starling/terms"
)

// The differences from Peloton in who gives way. Each holds for every file.
var (
	onlyWhatIsLeft = &difference{name: "only what is left",
		reason: "one gives way if that brings down what is still left of the target; " +
			"upstream compares with the whole target, and ends who helps nobody"}
	preemptionDelay = &difference{name: "preemption delay",
		reason: "a pool gives back because others wait that are entitled to it, after its preemption delay; " +
			"upstream counts the cycles in which it holds too much, whether anybody waits or not"}
)

// preemptions runs a file of cases of preemption.
func preemptions(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		var kind struct {
			Kind   string
			Task   quantities
			Expect struct{ Reason string }
		}
		if err := s.node.Load(&kind); err != nil {
			t.Fatal(err)
		}
		switch kind.Kind {
		case "rank":
			c := &rankCase{}
			s.read(t, c)
			c.run(t, differences)
		case "eligibility":
			c := &overCase{}
			s.read(t, c)
			c.run(t, differences)
		case "process":
			switch {
			case kind.Expect.Reason != "":
				t.leaveOut("reason")
			case kind.Task == nil:
				t.leaveOut("queue")
			}
			c := &processCase{}
			s.read(t, c)
			c.run(t)
		case "end_to_end":
			c := &flowCase{}
			s.read(t, c)
			c.run(t, s)
		default:
			t.Fatalf("no rule for kind %s", kind.Kind)
		}
	})
}

// rankedTask is one that may have to go.
type rankedTask struct {
	ID, State              string
	Priority               uint32
	Start                  int64
	Revocable              bool
	Preemptible            *bool
	CPU, Memory, Disk, GPU quantity
}

// rankCase tells who goes, in which order, until so much is free.
type rankCase struct {
	told `yaml:",inline"`
	Kind string
	// Tasks are in any order.
	Tasks []rankedTask
	// Free is by class: slack and non_slack.
	Free   map[string]quantities
	Expect struct{ Evict []string }
	Ideal  yaml.Node `yaml:"ideal_for_a_new_design"`
}

// stages are how far a task is that is in a state; those in other states hold nothing that could be taken.
var stages = map[string]preempt.Stage{
	"READY": preempt.BackingOff, "PLACING": preempt.Ordered, "RUNNING": preempt.Running,
}

func (c *rankCase) run(t *trial, differences tally) {
	victims, ids, err := c.victims()
	if err != nil {
		t.Fatal(err)
	}
	slack, err := c.Free["slack"].amounts()
	if err != nil {
		t.Fatal(err)
	}
	nonSlack, err := c.Free["non_slack"].amounts()
	if err != nil {
		t.Fatal(err)
	}
	want, ideal := c.Expect.Evict, []string(nil)
	if c.Ideal.Load(&ideal) == nil && ideal != nil {
		want = ideal
	}
	got := preempt.Shed(victims, slack, nonSlack)
	if sameRank(victims, ids, got, want) {
		return
	}
	all := preempt.Shed(victims, everything, everything)
	if model := untilMet(victims, all, slack, nonSlack); ideal == nil && sameRank(victims, ids, model, want) {
		differences.state(t, onlyWhatIsLeft)
		return
	}
	t.Errorf("%v go, want %v", named(ids, got), want)
}

// everything is a target that is never met.
var everything = terms.Amounts{terms.Unlimited, terms.Unlimited, terms.Unlimited, terms.Unlimited}

// victims returns the tasks that may be ended, and their names.
func (c *rankCase) victims() (all []preempt.Victim, ids []string, err error) {
	for i, task := range c.Tasks {
		stage, holds := stages[task.State]
		if task.Preemptible != nil && !*task.Preemptible || !holds {
			continue
		}
		need, err := quantities{"cpu": task.CPU, "memory": task.Memory, "disk": task.Disk, "gpu": task.GPU}.amounts()
		if err != nil {
			return nil, nil, err
		}
		all, ids = append(all, preempt.Victim{
			Slot: facts.SlotRef{Index: uint32(i)}, Need: need, Revocable: task.Revocable, Stage: stage,
			Priority: task.Priority,
			Since:    terms.Time(task.Start), Gang: preempt.NoGang,
		}), append(ids, task.ID)
	}
	return all, ids, nil
}

// untilMet is upstream's rule: whoever has something of the target goes, until it is met.
func untilMet(victims []preempt.Victim, order []int, slack, nonSlack terms.Amounts) (gone []int) {
	left := map[bool]*terms.Amounts{true: &slack, false: &nonSlack}
	whole := map[bool]terms.Amounts{true: slack, false: nonSlack}
	for _, i := range order {
		v, helps, met := &victims[i], false, true
		for k, need := range v.Need {
			helps = helps || need > 0 && whole[v.Revocable][k] > 0
			met = met && left[v.Revocable][k] <= 0
		}
		if helps && !met {
			*left[v.Revocable] = lessOf(*left[v.Revocable], v.Need)
			gone = append(gone, i)
		}
	}
	return gone
}

// sameRank compares an order with the names that are wanted. Equal tasks may stand for each other.
func sameRank(victims []preempt.Victim, ids []string, got []int, want []string) bool {
	return slices.EqualFunc(got, want, func(i int, id string) bool {
		at := slices.Index(ids, id)
		if at < 0 {
			return false
		}
		a, b := victims[i], victims[at]
		a.Slot = b.Slot
		return a == b
	})
}

func named(ids []string, numbers []int) (names []string) {
	for _, i := range numbers {
		names = append(names, ids[i])
	}
	return names
}

// overCase tells in which cycles a pool held more than it was entitled to.
type overCase struct {
	told      `yaml:",inline"`
	Kind      string
	Sustained int `yaml:"sustained_over_allocation_count"`
	Cycles    []struct{ Entitlement, Allocation quantities }
	Expect    struct {
		Over     int `yaml:"consecutive_over"`
		Eligible bool
	}
}

// run compares whether the pool gives something back after the last cycle, to a pool that is entitled to all of that.
func (c *overCase) run(t *trial, differences tally) {
	last := c.Cycles[len(c.Cycles)-1]
	entitlement, err := last.Entitlement.amounts()
	if err != nil {
		t.Fatal(err)
	}
	held, err := last.Allocation.amounts()
	if err != nil {
		t.Fatal(err)
	}
	_, gives := preempt.Choose(&preempt.Input{
		Wants: []preempt.Want{{Need: held, Count: 1}}, Room: everything, Nodes: []preempt.Node{{}},
		Over:    []terms.Amounts{{}, lessOf(held, entitlement)},
		Victims: []preempt.Victim{{Pool: 1, Need: held, Gang: preempt.NoGang}},
	})
	if gives != (c.Expect.Over > 0) {
		t.Errorf("the pool gives back: %v, but it held too much for %d cycles", gives, c.Expect.Over)
	}
	if gives != c.Expect.Eligible {
		differences.state(t, preemptionDelay)
	}
}

// processCase tells what becomes of those who were chosen.
type processCase struct {
	told `yaml:",inline"`
	Kind string
	Task quantities
	// Tasks are how many there are by state, or by class and state.
	Tasks                   map[string]yaml.Node
	Entitlement, Allocation quantities
	NonSlack                struct{ Entitlement, Allocation quantities } `yaml:"non_slack"`
	Slack                   struct{ Entitlement, Allocation quantities }
	Expect                  struct {
		Queue    *int `yaml:"preemption_queue"`
		Requeued *int `yaml:"requeued_gangs"`
		// CountAfter is of upstream's counter.
		CountAfter    any        `yaml:"pool_over_count_after"`
		After         *aftermath `yaml:"allocation_after"`
		Within        *bool      `yaml:"within_entitlement"`
		SlackAfter    *aftermath `yaml:"slack_allocation_after"`
		NonSlackAfter *aftermath `yaml:"non_slack_allocation_after"`
	}
}

// run chooses who goes. Those who run are told to stop and hold what they have until they do; the others are back at
// once.
func (c *processCase) run(t *trial) {
	if c.Allocation != nil {
		c.NonSlack.Entitlement, c.NonSlack.Allocation = c.Entitlement, c.Allocation
	}
	victims, err := c.victims()
	if err != nil {
		t.Fatal(err)
	}
	var over, entitled, held [2]terms.Amounts
	for i, class := range []struct{ Entitlement, Allocation quantities }{c.NonSlack, c.Slack} {
		if entitled[i], err = class.Entitlement.amounts(); err != nil {
			t.Fatal(err)
		}
		if held[i], err = class.Allocation.amounts(); err != nil {
			t.Fatal(err)
		}
		over[i] = lessOf(held[i], entitled[i])
	}
	before, running, waiting := held, 0, 0
	for _, i := range preempt.Shed(victims, over[1], over[0]) {
		v, class := &victims[i], 0
		if v.Revocable {
			class = 1
		}
		if v.Stage == preempt.Running {
			running++
			continue
		}
		waiting++
		for k := range held[class] {
			held[class][k] = max(held[class][k]-v.Need[k], 0)
		}
	}
	c.check(t, running, waiting)
	for _, part := range []struct {
		want        *aftermath
		before, now terms.Amounts
	}{{c.Expect.After, before[0], held[0]}, {c.Expect.SlackAfter, before[1], held[1]},
		{c.Expect.NonSlackAfter, before[0], held[0]}} {
		if part.want != nil {
			part.want.check(t, part.before, part.now)
		}
	}
	if within := c.Expect.Within; within != nil && *within != (clipped(lessOf(held[0], entitled[0])) == terms.Amounts{}) {
		t.Errorf("%v are held and %v entitled to, within is %v", held[0], entitled[0], *within)
	}
}

// clipped has nothing below 0.
func clipped(a terms.Amounts) terms.Amounts {
	for k := range a {
		a[k] = max(a[k], 0)
	}
	return a
}

func (c *processCase) check(t *trial, running, waiting int) {
	if want := c.Expect.Queue; want != nil && running != *want {
		t.Errorf("%d are told to stop, want %d", running, *want)
	}
	if want := c.Expect.Requeued; want != nil && waiting != *want {
		t.Errorf("%d wait again, want %d", waiting, *want)
	}
}

// victims returns the tasks, those that are revocable after the others.
func (c *processCase) victims() (all []preempt.Victim, err error) {
	need, err := c.Task.amounts()
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(c.Tasks) {
		node, counts := c.Tasks[name], map[string]int{}
		if err := node.Load(&counts); err != nil {
			counts[name] = 0
			count := 0
			if err := node.Load(&count); err != nil {
				return nil, fmt.Errorf("tasks %s: %w", name, err)
			}
			counts[name] = count
		}
		for _, state := range sortedKeys(counts) {
			stage, holds := stages[state]
			if !holds {
				return nil, fmt.Errorf("no rule for tasks that are %s", state)
			}
			for range counts[state] {
				all = append(all, preempt.Victim{Slot: facts.SlotRef{Index: uint32(len(all))}, Need: need, Stage: stage,
					Revocable: name == "revocable", Gang: preempt.NoGang})
			}
		}
	}
	return all, nil
}

// aftermath is what is held afterwards: amounts, or the word "unchanged".
type aftermath struct{ amounts quantities }

// UnmarshalYAML reads one of the two.
func (a *aftermath) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "unchanged" {
		return nil
	}
	return node.Load(&a.amounts)
}

func (a *aftermath) check(t *trial, before, now terms.Amounts) {
	want := before
	if a.amounts != nil {
		var err error
		if want, err = a.amounts.amounts(); err != nil {
			t.Fatal(err)
		}
	}
	if now != want {
		t.Errorf("%v are held afterwards, want %v", now, want)
	}
}
