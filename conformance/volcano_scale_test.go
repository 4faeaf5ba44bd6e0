package conformance

import (
	"maps"
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/rules"
	"starling/validate"
)

// The differences from Volcano in a change of numbers. Each holds for every file.
var (
	notHosts = &difference{name: "not hosts",
		reason: "who the members are is compared by the cases about plugins; here the list follows every change, also " +
			"of a job that waits"}
	triedAgain = &difference{name: "tried again", reason: "what has failed for good gets another try with a new version"}
)

// scaleCase is a job with instances, and what a change of its numbers makes of them.
type scaleCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Job           lifeJob
		Status        map[string]any
		PodGroupPhase any `yaml:"podGroupPhase"`
		Tasks         map[string]map[int]string
		Flags         any
		PartitionSize any `yaml:"partitionSize"`
	}
	When struct {
		Update map[string]any
		Action string
		Event  any
		Group  string
		Index  any
	}
	Then struct {
		Create, Delete, Keep map[string][]int
		Counts               map[string]int
		Phase                string
		HostsTold            any `yaml:"hosts"`
		Gang                 any `yaml:"podGroup"`
		Total, Partition     any
		Admitted, Ready      *bool
		// Order is that of creating and deleting in one pass.
		Order []string
		// Events and UpstreamAction are what upstream does, DesiredAction what should follow.
		Events         []any
		UpstreamAction string `yaml:"upstreamAction"`
		DesiredAction  string `yaml:"desiredAction"`
	}
}

// scaling runs a file of cases about the numbers of instances.
func scaling(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		c := &scaleCase{}
		s.read(t, c)
		switch c.Kind {
		case "partition-index":
			t.leaveOut("partition")
		case "depends-ready":
			c.ready(t)
		case "reconcile", "hosts", "pod-event":
			c.scale(t, differences)
		default:
			t.Fatalf("no rule for kind %s", c.Kind)
		}
	})
}

// spec returns the job with its minima and its order.
func (c *scaleCase) spec() *terms.Job {
	spec := c.Given.Job.spec()
	spec.MinAvailable = c.Given.Job.MinAvailable
	for i, g := range c.Given.Job.Groups {
		if minimum, told := g.MinAvailable.(int); told {
			spec.Tasks[i].MinAvailable = uint32(minimum)
		}
		if after, told := g.DependsOn.(map[string]any); told {
			names, _ := after["names"].([]any)
			for _, name := range names {
				spec.Tasks[i].After = append(spec.Tasks[i].After, terms.TaskName(name.(string)))
			}
		}
	}
	return spec
}

// ready asks whether a task may begin.
func (c *scaleCase) ready(t *trial) {
	spec := c.spec()
	spec.MinAvailable = 0
	states := ""
	for i := range spec.Tasks {
		spec.Tasks[i].MinAvailable = 0
		for _, state := range c.Given.Tasks[string(spec.Tasks[i].Name)] {
			states += state
		}
	}
	if strings.Contains(states, "Running") || strings.Contains(states, "!") {
		t.leaveOut("ready")
	}
	w := machines(t, spec)
	w.submit(spec)
	w.play(always(runs))
	for _, task := range slices.Sorted(maps.Keys(c.Given.Tasks)) {
		for _, index := range slices.Sorted(maps.Keys(c.Given.Tasks[task])) {
			if slot, _ := w.s.SlotAt(w.at(task, index)); slot.Phase == facts.Running &&
				c.Given.Tasks[task][index] == "Succeeded" {
				w.exits(w.at(task, index), 0)
			}
		}
	}
	if got := !w.job().Held(w.job().TaskIndex(terms.TaskName(c.When.Group))); got != *c.Then.Ready {
		t.Errorf("task %s may begin: %v, want %v", c.When.Group, got, *c.Then.Ready)
	}
}

// leave leaves out what is no change of numbers, and what cannot be set up.
func (c *scaleCase) leave(t *trial, spec *terms.Job) {
	reason := ""
	for i := range spec.Tasks {
		states := c.Given.Tasks[string(spec.Tasks[i].Name)]
		for index := range int(spec.Tasks[i].Instances) {
			if states[index] == "" {
				reason = "gap"
			}
			if strings.Contains(states[index], "!") || states[index] == "Terminating" || states[index] == "Unknown" {
				reason = "mark"
			}
		}
		if len(spec.Tasks[i].After) > 0 {
			reason = "ready"
		}
		if c.Given.Job.Groups[i].Partition != nil {
			reason = "partition"
		}
	}
	phase, _ := c.Given.Status["phase"].(string)
	switch {
	case c.When.Update == nil:
		reason = "pass"
	case slices.Contains([]string{"Completed", "Failed", "Terminated"}, phase):
		reason = "ended"
	}
	if reason != "" {
		t.leaveOut(reason)
	}
}

func (c *scaleCase) scale(t *trial, differences tally) {
	spec := c.spec()
	c.leave(t, spec)
	next := *spec
	next.Tasks = slices.Clone(spec.Tasks)
	c.change(t, &next)
	if problems := validate.Job(&next, rules.Released); len(problems) > 0 {
		if c.Then.Admitted != nil && !*c.Then.Admitted {
			return
		}
		t.leaveOut("unfit minima")
	}
	w := newStage(t, slices.Repeat([]terms.Resources{{1000, 0, 0}}, 64)...)
	w.submit(spec)
	w.play(func(r facts.SlotRef, _ facts.Slot) saying {
		if c.Given.Tasks[string(spec.Tasks[r.Task].Name)][int(r.Index)] == "Pending" {
			return silent
		}
		return runs
	})
	for task, states := range c.Given.Tasks {
		for index, state := range states {
			if code, ends := map[string]int32{"Succeeded": 0, "Failed": 1}[state]; ends {
				w.exits(w.at(task, index), code)
			}
		}
	}
	before := w.s.Index
	w.submit(&next)
	if c.Then.HostsTold != nil {
		differences.state(t, notHosts)
	}
	c.compare(t, w, before, differences)
	if c.Then.DesiredAction == "SyncJob" {
		c.quiet(t, w)
	}
}

// quiet lets what was told to end do so, and wants no policy to act on that.
func (c *scaleCase) quiet(t *trial, w *stage) {
	w.play(always(runs))
	if action := w.job().PolicyState.Last; action.Action != 0 || w.job().Finished != 0 || w.job().Stop {
		t.Errorf("a policy did %s: the job is %s", action.Action, w.phase())
	}
}

// change does with the job what the case says.
func (c *scaleCase) change(t *trial, next *terms.Job) {
	for key, value := range c.When.Update {
		switch key {
		case "minAvailable":
			next.MinAvailable = uint32(value.(int))
		case "groups":
			for i := range next.Tasks {
				change, _ := value.(map[string]any)[string(next.Tasks[i].Name)].(map[string]any)
				if replicas, told := change["replicas"].(int); told {
					next.Tasks[i].Instances = uint32(replicas)
				}
				if minimum, told := change["minAvailable"].(int); told {
					next.Tasks[i].MinAvailable = uint32(minimum)
				}
				next.Tasks[i].MinAvailable = min(next.Tasks[i].MinAvailable, next.Tasks[i].Instances)
			}
		default:
			t.Logf("not compared: %s: a job has a priority and no class of it", key)
		}
	}
}

// compare compares who came, who goes and who stays.
func (c *scaleCase) compare(t *trial, w *stage, before terms.Index, differences tally) {
	created, deleted, kept := map[string][]int{}, map[string][]int{}, map[string][]int{}
	counts := map[string]int{}
	for number, task := range w.job().Tasks {
		name := string(task.Name)
		for index := range max(task.Slots.Len(), len(c.Given.Tasks[name])) {
			slot, there := w.s.SlotAt(facts.SlotRef{Job: w.job().ID, Task: uint16(number), Index: uint32(index)})
			_, had := c.Given.Tasks[name][index]
			switch {
			case !there || slot.Phase == facts.Stopping:
				deleted[name] = append(deleted[name], index)
				counts["terminating"]++
			case had && slot.Order > before && c.Given.Tasks[name][index] == "Failed":
				differences.state(t, triedAgain)
				kept[name] = append(kept[name], index)
				counts["failed"]++
			case !had || slot.Order > before:
				created[name] = append(created[name], index)
				counts["pending"]++
			default:
				kept[name] = append(kept[name], index)
				counts[map[facts.Phase]string{facts.Running: "running", facts.Failed: "failed",
					facts.Succeeded: "succeeded", facts.Assigned: "pending"}[slot.Phase]]++
			}
		}
	}
	c.agree(t, "created", created, c.Then.Create)
	c.agree(t, "deleted", deleted, c.Then.Delete)
	c.agree(t, "kept", kept, c.Then.Keep)
	for what, want := range c.Then.Counts {
		if counts[what] != want {
			t.Errorf("%s: %d, want %d", what, counts[what], want)
		}
	}
}

// agree compares indices of each task, if the case tells any.
func (c *scaleCase) agree(t *trial, words string, got, want map[string][]int) {
	for task := range c.Given.Tasks {
		if want != nil && numbered(got[task]) != numbered(want[task]) {
			t.Errorf("%s of %s: %s, want %s", words, task, numbered(got[task]), numbered(want[task]))
		}
	}
}
