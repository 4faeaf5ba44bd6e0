package conformance

import (
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
	"starling/validate"
)

// foldable tells whether the fold can play a case: it has nothing but nodes and jobs of one queue that wait.
func (c *cycleCase) foldable() bool {
	plain := func(task cycleTask) bool {
		return (task.State == "" || task.State == "Pending") && task.Preemptable == nil && task.Policy == "" &&
			task.Label+task.AntiAffinity == "" && task.Priority == 0
	}
	return len(c.Given.Queues) == 0 && !slices.ContainsFunc(c.Given.Jobs, func(j cycleJob) bool {
		tasks := slices.Concat(j.Tasks, j.Pending)
		return j.Queue != c.Given.Jobs[0].Queue || j.MinResources != nil ||
			slices.ContainsFunc(tasks, func(task cycleTask) bool { return !plain(task) })
	})
}

// foldJob is a job of a case with the tasks that ours has for those that are alike.
type foldJob struct {
	spec terms.Job
	// of leads from the names of the case's tasks to the numbers of ours.
	of map[string]int
}

// foldSpec returns the job as ours: tasks of one group that are alike are the instances of one.
func (j *cycleJob) foldSpec() (*foldJob, error) {
	f := &foldJob{of: map[string]int{}}
	f.spec = terms.Job{Name: terms.JobName(j.Name), Type: terms.Batch, Priority: j.Priority,
		MinAvailable: uint32(j.MinMember)}
	var kinds []string
	for _, task := range slices.Concat(j.Tasks, j.Pending) {
		kind := fmt.Sprint(task.Group, task.Req, task.Selector)
		at := slices.Index(kinds, kind)
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, kind)
			own := stageTask(fmt.Sprintf("t%d", at), 0)
			need, err := instanceAmounts(task.Req)
			if err != nil {
				return nil, err
			}
			copy(own.Resources[:], need[:])
			own.MinAvailable = uint32(j.GroupMin[task.Group])
			if task.Selector != "" {
				own.Constraints = []constraint.Constraint{
					{Attribute: "label", Operator: constraint.Equal, Values: []string{task.Selector}},
				}
			}
			f.spec.Tasks = append(f.spec.Tasks, own)
		}
		f.spec.Tasks[at].Instances++
		f.of[task.Name] = at
	}
	if problems := validate.Job(&f.spec, rules.Released); len(problems) > 0 {
		return nil, fmt.Errorf("%s: %s", problems[0].Path, problems[0].Reason)
	}
	return f, nil
}

// onFold submits the jobs to the fold and compares how many instances of each task have a node: instances of one task
// are alike.
func (c *cycleCase) onFold(t *trial) {
	w := newStage(t)
	for _, n := range c.Given.Nodes {
		has, err := instanceAmounts(n.Cap)
		if err != nil {
			t.Fatal(err)
		}
		o := &terms.Offer{Attributes: []terms.EnvVar{{Name: "label", Value: orElse(n.Label, n.Name)}}}
		copy(o.Capacity[:], has[:])
		w.s.SetOffer(w.s.EnsureNode(terms.NodeName(n.Name)).Index, o)
	}
	got, want := map[string]int{}, map[string]int{}
	total := 0
	for i := range c.Given.Jobs {
		j, err := c.Given.Jobs[i].foldSpec()
		if err != nil {
			t.Fatalf("job %s: %v", c.Given.Jobs[i].Name, err)
		}
		w.submit(&j.spec)
		for name := range c.bound() {
			if task, own := j.of[name]; own {
				want[fmt.Sprintf("%s/t%d", j.spec.Name, task)]++
			}
		}
	}
	w.later(0)
	for i := range c.Given.Jobs {
		j := w.s.JobOf(terms.JobName(c.Given.Jobs[i].Name))
		for task := range j.Tasks {
			w.s.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
				if slot.Phase == facts.Assigned {
					got[fmt.Sprintf("%s/t%d", j.Spec.Name, task)]++
					total++
				}
				return true
			})
		}
	}
	if c.Then.Bind != nil && fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v start, want %v", got, want)
	}
	if c.Then.Count != nil && total != *c.Then.Count {
		t.Errorf("%d start, on %v, want %d", total, got, *c.Then.Count)
	}
}

// bound returns the tasks that are to start.
func (c *cycleCase) bound() map[string]string {
	if c.Then.Bind == nil {
		return nil
	}
	return *c.Then.Bind
}
