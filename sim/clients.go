package sim

import (
	"fmt"
	"slices"
	"strconv"

	"starling/cluster"
	"starling/cluster/constraint"
	"starling/command"
	"starling/replica"
)

// clients submit, change and kill jobs through any machine, and repeat what was not answered through another.
type clients struct {
	w         *World
	submitted int
	// specs are the jobs as they were submitted last.
	specs map[cluster.JobName]*cluster.JobSpec
	// accepted are the jobs whose submission was acknowledged, killed those whose end was, with the entry before
	// it was asked for.
	accepted []cluster.JobName
	killed   map[cluster.JobName]cluster.Index
	// succeeded are the allocations whose program ended well, started how often each was run.
	succeeded map[cluster.AllocationID]bool
	started   map[cluster.AllocationID]int
}

func newClients(w *World) *clients {
	return &clients{w: w, specs: map[cluster.JobName]*cluster.JobSpec{}, killed: map[cluster.JobName]cluster.Index{},
		succeeded: map[cluster.AllocationID]bool{}, started: map[cluster.AllocationID]int{}}
}

// ran notes that a driver began the allocation.
func (c *clients) ran(id cluster.AllocationID) {
	if c.started[id]++; c.started[id] > 1 {
		c.w.fail("%s was started twice", id)
	}
}

// work submits a random job, or kills or changes one, and comes again.
func (c *clients) work() {
	if c.w.calm {
		return
	}
	name := cluster.JobName("job" + strconv.Itoa(c.w.rng.IntN(c.submitted+1)))
	switch {
	case c.w.chance(raiseRules):
		c.send(&command.RaiseRules{Version: 2}, func(r replica.Receipt) {
			if r.Refusal.Code == cluster.OK {
				c.w.fail("the rules were raised although no program knows the next")
			}
		})
	case c.submitted > 0 && c.w.rng.IntN(5) == 0:
		c.kill(name)
	case c.specs[name] != nil && c.w.rng.IntN(3) == 0:
		c.submit(c.changed(c.specs[name]))
	default:
		c.submitted++
		c.submit(c.spec(cluster.JobName("job"+strconv.Itoa(c.submitted)), c.kind()))
	}
	c.w.after(c.w.between(10, 3000), c.work)
}

func (c *clients) requestID() string { return fmt.Sprint("request", c.w.posted) }

func (c *clients) kill(name cluster.JobName) {
	sent := cluster.Index(len(c.w.records))
	c.send(&command.KillJob{RequestID: c.requestID(), Job: name}, func(r replica.Receipt) {
		if r.Refusal.Code == cluster.OK {
			c.killed[name] = sent
		}
	})
}

func (c *clients) submit(spec cluster.JobSpec) {
	c.specs[spec.Name] = &spec
	c.send(&command.SubmitJob{RequestID: c.requestID(), Spec: spec}, func(r replica.Receipt) {
		if r.Refusal.Code == cluster.OK {
			c.accepted = append(c.accepted, spec.Name)
		}
	})
}

// changed draws a new version of a job: another size, another program, a task more or less, or all anew.
func (c *clients) changed(old *cluster.JobSpec) cluster.JobSpec {
	w, spec := c.w, *old
	spec.Tasks = slices.Clone(spec.Tasks)
	t := &spec.Tasks[w.rng.IntN(len(spec.Tasks))]
	switch w.rng.IntN(6) {
	case 0, 1:
		t.Instances = uint32(w.between(0, 8))
	case 2:
		t.Command = append(slices.Clone(t.Command), "more")
	case 3:
		t.Resources[cluster.CPU] = int64(w.between(0, 20)) * 100
	case 4:
		spec.Tasks[0], spec.Tasks[len(spec.Tasks)-1] = spec.Tasks[len(spec.Tasks)-1], spec.Tasks[0]
		spec.Tasks = spec.Tasks[:w.between(1, len(spec.Tasks))]
	default:
		kind := spec.Type
		if w.rng.IntN(4) == 0 {
			kind = c.kind()
		}
		spec = c.spec(spec.Name, kind)
	}
	return spec
}

func (c *clients) kind() cluster.JobType {
	return []cluster.JobType{cluster.Batch, cluster.Stateless}[c.w.rng.IntN(2)]
}

// spec draws a job.
func (c *clients) spec(name cluster.JobName, kind cluster.JobType) cluster.JobSpec {
	spec := cluster.JobSpec{Name: name, Type: kind}
	for i := range c.w.between(1, 3) {
		spec.Tasks = append(spec.Tasks, c.task(spec.Type, cluster.TaskName("t"+strconv.Itoa(i))))
	}
	if c.w.chance(hugeJob) {
		c.w.rates[hugeJob] = 0
		spec.Tasks[0].Instances, spec.Tasks[0].Ports, spec.Tasks[0].Devices = uint32(c.w.between(500, 3000)), nil, nil
		spec.Tasks[0].Resources = cluster.Resources{10, 1 << 20, 0}
	}
	return spec
}

func (c *clients) task(kind cluster.JobType, name cluster.TaskName) cluster.TaskSpec {
	w := c.w
	t := cluster.TaskSpec{
		Name: name, Instances: uint32(w.between(0, 8)), Command: []string{"run", "0"}, Placement: cluster.Pack,
		Resources: cluster.Resources{int64(w.between(0, 20)) * 100, int64(w.between(0, 4)) << 28, 0},
		Restart: cluster.Restart{AttemptsMax: cluster.RestartsUnlimited, DelayMillis: 100, DelayMaxMillis: 2000,
			ResetMillis: uint32(w.between(0, 10_000))},
		StopGraceMillis: uint32(w.between(0, 1000)),
	}
	if kind == cluster.Batch {
		t.Command[1] = strconv.Itoa(w.between(1, 3000))
		t.Restart.AttemptsMax = uint32(w.between(0, 4))
	}
	if w.rng.IntN(3) == 0 {
		t.Placement = cluster.Spread
	}
	if w.rng.IntN(6) == 0 {
		t.Placement = cluster.Defragment
	}
	if w.rng.IntN(4) == 0 {
		t.Ports = c.ports()
	}
	if w.rng.IntN(4) == 0 {
		t.Constraints = []cluster.Constraint{c.constraint()}
	}
	c.company(&t)
	if w.rng.IntN(6) == 0 {
		t.Devices = []cluster.DeviceRequest{c.device()}
	}
	return t
}

// company draws how the task stands to what else runs.
func (c *clients) company(t *cluster.TaskSpec) {
	w := c.w
	if w.rng.IntN(3) == 0 {
		t.Labels = []cluster.EnvVar{{Name: "app", Value: []string{"db", "web"}[w.rng.IntN(2)]}}
	}
	if w.rng.IntN(6) == 0 {
		operators := []constraint.Operator{constraint.Equal, constraint.NotEqual, constraint.Less, constraint.LessOrEqual, constraint.Greater, constraint.GreaterOrEqual}
		one := cluster.Constraint{Label: "app", Values: []string{[]string{"db", "web"}[w.rng.IntN(2)]}, Operator: operators[w.rng.IntN(len(operators))],
			Count: uint32(w.rng.IntN(4)), Within: []string{"", "rack", "disk"}[w.rng.IntN(3)]}
		if w.rng.IntN(2) == 0 {
			one = cluster.Constraint{Any: []cluster.Constraint{one, {All: []cluster.Constraint{c.constraint(), c.constraint()}}}}
		}
		if w.rng.IntN(2) == 0 {
			one.Soft, one.PatienceMillis = true, uint32(w.between(0, 5000))
		}
		t.Constraints = append(t.Constraints, one)
	}
	if w.rng.IntN(10) == 0 {
		t.PerNodeMax = uint32(w.between(1, 2))
	}
	if w.rng.IntN(8) == 0 {
		t.SpreadOver = []string{"rack", "disk"}[w.rng.IntN(2)]
	}
}

// device draws a request for whole devices or for a share of one, of some model or of any.
func (c *clients) device() cluster.DeviceRequest {
	amounts := []cluster.Millidevices{250, 400, 500, 700, 1000, 1000, 2000}
	q := cluster.DeviceRequest{Kind: "gpu", Amount: amounts[c.w.rng.IntN(len(amounts))]}
	if c.w.rng.IntN(3) == 0 {
		q.Models = []string{[]string{"A100", "T4"}[c.w.rng.IntN(2)]}
	}
	return q
}

// ports draws requests of which some leave the choice open, and some ask for what such a choice may come upon.
func (c *clients) ports() []cluster.PortRequest {
	all := make([]cluster.PortRequest, c.w.between(1, 3))
	for i := range all {
		all[i].Name = "p" + strconv.Itoa(i)
	}
	switch c.w.rng.IntN(3) {
	case 0:
		all[len(all)-1].Number = uint16(c.w.between(80, 82))
	case 1:
		all[len(all)-1].Number = uint16(portFirst + c.w.rng.IntN(4))
	}
	return all
}

func (c *clients) constraint() cluster.Constraint {
	return []cluster.Constraint{
		{Attribute: "rack", Operator: constraint.In, Values: []string{"r0", "r1"}},
		{Attribute: "rack", Operator: constraint.NotEqual, Values: []string{"r0"}},
		{Attribute: "size", Operator: constraint.GreaterOrEqual, Values: []string{"3"}},
		{Attribute: "size", Operator: constraint.Less, Values: []string{"6"}},
		{Attribute: "disk", Operator: constraint.NotExists},
		{Attribute: "disk", Operator: constraint.Equal, Values: []string{"ssd"}},
		{Attribute: cluster.ExclusiveAttribute, Operator: constraint.Exists},
	}[c.w.rng.IntN(7)]
}

// send gives the command to a machine that runs, and to another after a while if it was not answered.
func (c *clients) send(one command.Command, done func(replica.Receipt)) {
	answered := false
	answer := func(r replica.Receipt) {
		if !answered {
			answered = true
			done(r)
		}
	}
	if m := c.w.machines[c.w.rng.IntN(len(c.w.machines))]; m.up && m.begun {
		m.core.Request(one, func(r replica.Receipt, err error) {
			if err == nil {
				answer(r)
			}
		})
		c.w.workedAt = c.w.now
		m.wake()
	}
	c.w.after(c.w.between(2000, 10_000), func() {
		if !answered {
			c.send(one, answer)
		}
	})
}
