package sim

import (
	"slices"
	"strconv"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
	"starling/terms/constraint"
)

// A simulated program is told by its command how many milliseconds it takes, 0 for ever, and how it fares.
const (
	// faresBadly fails soon after each start, faresUnready never passes a check.
	faresBadly   = "badly"
	faresUnready = "unready"
)

// wish draws what a user asks for about a job who sees the value as it is in s; nil if nothing comes to his mind.
func (c *clients) wish(s *cluster.State, name terms.JobName) command.Command {
	w, j := c.w, s.JobOf(name)
	if w.rng.IntN(8) == 0 {
		return c.drain(s)
	}
	if j == nil || j.Finished != 0 {
		return nil
	}
	request, seen := c.requestID(), j.Version
	if w.chance(staleWrite) {
		seen -= uint32(w.between(0, 1))
	}
	switch w.rng.IntN(9) {
	case 0:
		return &command.KillJob{RequestID: request, Job: name, Against: seen * uint32(w.rng.IntN(2))}
	case 1, 2:
		return &command.SteerUpdate{RequestID: request, Job: name, Version: j.Update.To,
			Steering: command.Steering(w.between(1, 5))}
	case 3:
		return &command.RevertJob{RequestID: request, Job: name, Against: seen, To: uint32(w.between(0, int(seen)))}
	case 4:
		restart := &command.RestartJob{RequestID: request, Job: name, Against: seen}
		if w.rng.IntN(2) == 0 {
			restart.Task = terms.TaskName("t" + strconv.Itoa(w.rng.IntN(3)))
		}
		return restart
	case 5:
		return c.end(s, j)
	case 6:
		return &command.SuspendJob{RequestID: request, Job: name, Against: seen * uint32(w.rng.IntN(2)),
			Resume: j.Suspended || w.rng.IntN(4) == 0}
	}
	return &command.SubmitJob{RequestID: request, Spec: c.changed(j.Spec), Against: seen}
}

// end draws an allocation to end.
func (c *clients) end(s *cluster.State, j *cluster.Job) command.Command {
	var all []facts.SlotRef
	for task := range j.Tasks {
		s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
			all = append(all, r)
			return slot.Order != 0
		})
	}
	if len(all) == 0 {
		return nil
	}
	r := all[c.w.rng.IntN(len(all))]
	slot, _ := s.SlotAt(r)
	if j.Spec.Type == terms.Batch && c.w.rng.IntN(2) == 0 {
		return &command.SealTask{RequestID: c.requestID(), Slot: s.NameOf(r),
			Order: slot.Order - terms.Index(c.w.rng.IntN(8)/7)}
	}
	return &command.EndAllocation{
		RequestID: c.requestID(), Slot: s.NameOf(r), Order: slot.Order, Elsewhere: c.w.rng.IntN(2) == 0,
		WithoutVolumes: slot.Order%3 == 0, // drawn without the generator: histories that were kept go on as they did
	}
}

// drain draws a node to empty, at once or with patience, or to fill again.
func (c *clients) drain(s *cluster.State) command.Command {
	if s.Nodes() == 0 {
		return nil
	}
	n := s.Node(facts.NodeIndex(c.w.rng.IntN(s.Nodes())))
	return &command.DrainNode{
		RequestID: c.requestID(), Node: n.Name, Drain: !n.Drain.On && c.w.chance(drainMachine),
		DeadlineMillis: uint32(c.w.rng.IntN(3) * c.w.between(1, 8000)),
	}
}

// changed draws a new version of a job: another size, another program, other rules, a task more or less, or all anew.
func (c *clients) changed(old *terms.Job) terms.Job {
	w, spec := c.w, *old
	spec.Tasks = slices.Clone(spec.Tasks)
	t := &spec.Tasks[w.rng.IntN(len(spec.Tasks))]
	if w.rng.IntN(2) == 0 {
		spec.Update = c.updatePolicy(spec.Type)
	}
	if w.rng.IntN(4) == 0 {
		c.lifecycle(&spec)
	}
	switch w.rng.IntN(10) {
	case 0, 1:
		t.Instances = uint32(w.between(0, 8))
	case 2, 3:
		t.Command = append(slices.Clone(t.Command[:2]), "fine", strconv.Itoa(w.rng.IntN(1000)))
		if w.chance(badVersion) {
			t.Command[2] = []string{faresBadly, faresUnready}[w.rng.IntN(2)]
		}
	case 4:
		t.Resources[terms.CPU] = int64(w.between(0, 20)) * 100
	case 5:
		spec.Tasks[0], spec.Tasks[len(spec.Tasks)-1] = spec.Tasks[len(spec.Tasks)-1], spec.Tasks[0]
		spec.Tasks = spec.Tasks[:w.between(1, len(spec.Tasks))]
	case 6:
		[]func(*terms.Task, terms.JobType){c.policies, c.rules}[w.rng.IntN(2)](t, spec.Type)
	case 7:
		c.bounds(&spec)
		c.scheduler(&spec)
	case 8:
		spec.Priority = uint32(w.between(0, 100))
		spec.Plugins = pluginsBy(spec.Priority)
	default:
		kind := spec.Type
		if w.rng.IntN(4) == 0 {
			kind = c.kind()
		}
		spec = c.spec(spec.Name, kind)
		if w.rng.IntN(8) > 0 {
			spec.After = old.After
		}
		if kind == old.Type && w.rng.IntN(4) > 0 {
			spec.Preemption, spec.Revocable, spec.Controller, spec.KillOnPreempt = old.Preemption, old.Revocable,
				old.Controller, old.KillOnPreempt
		}
	}
	fit(&spec)
	onPeers(&spec)
	return spec
}

// pluginsBy returns plugins, or none, by a number that was drawn.
func pluginsBy(drawn uint32) []terms.PluginRequest {
	if drawn%2 == 0 {
		return nil
	}
	return []terms.PluginRequest{{Name: "svc"}}
}

func (c *clients) kind() terms.JobType {
	return terms.JobType(c.w.between(int(terms.Batch), int(terms.Daemon)))
}

// spec draws a job.
func (c *clients) spec(name terms.JobName, kind terms.JobType) terms.Job {
	spec := terms.Job{Name: name, Type: kind, Update: c.updatePolicy(kind)}
	for i := range c.w.between(1, 3) {
		spec.Tasks = append(spec.Tasks, c.task(spec.Type, terms.TaskName("t"+strconv.Itoa(i))))
	}
	c.sharing(&spec)
	if c.w.rng.IntN(4) == 0 {
		c.scheduler(&spec)
	}
	if c.w.seed%3 == 0 && kind <= terms.Stateless {
		c.crowd(&spec)
	}
	spec.Plugins = pluginsBy(spec.Priority)
	if kind != terms.Daemon && len(c.names) > 0 && c.w.rng.IntN(6) == 0 {
		spec.After = []terms.JobName{c.names[c.w.rng.IntN(len(c.names))]}
	}
	if c.w.rng.IntN(2) == 0 {
		c.lifecycle(&spec)
	}
	if kind <= terms.Stateless && c.w.chance(hugeJob) {
		c.w.rates[hugeJob] = 0
		spec.Tasks[0].Instances, spec.Tasks[0].Ports, spec.Tasks[0].Devices = uint32(c.w.between(500, 3000)), nil, nil
		spec.Tasks[0].Resources = terms.Resources{10, 1 << 20, 0}
	}
	onPeers(&spec)
	return spec
}

func (c *clients) updatePolicy(kind terms.JobType) terms.UpdatePolicy {
	w := c.w
	if w.rng.IntN(3) == 0 {
		return terms.UpdatePolicy{}
	}
	u := terms.UpdatePolicy{
		BatchSize: uint32(w.between(0, 3)), AutoPromote: w.rng.IntN(2) == 0, AttemptsMax: uint32(w.between(0, 3)),
		FailuresMax: uint32(w.between(0, 2)), Rollback: w.rng.IntN(2) == 0, StartPaused: w.rng.IntN(8) == 0,
		SameNode:         w.rng.IntN(4) == 0,
		MinHealthyMillis: uint32(w.rng.IntN(2) * w.between(1, 2000)),
	}
	if kind == terms.Stateless && w.rng.IntN(2) == 0 {
		u.Canaries = uint32(w.between(1, 2))
	}
	if w.rng.IntN(2) == 0 {
		u.HealthyDeadlineMillis = u.MinHealthyMillis + uint32(w.between(1, 6000))
	}
	if w.rng.IntN(2) == 0 {
		u.ProgressDeadlineMillis = u.HealthyDeadlineMillis + uint32(w.between(1, 20_000))
	}
	return u
}

// policies draws what comes after a failure or a loss.
func (c *clients) policies(t *terms.Task, kind terms.JobType) {
	w := c.w
	t.Reschedule, t.Disconnect = terms.Reschedule{}, terms.Disconnect{}
	if kind != terms.Batch {
		t.Restart.AttemptsMax = []uint32{terms.RestartsUnlimited, uint32(w.between(0, 3))}[w.rng.IntN(2)]
	}
	if kind != terms.Daemon && w.rng.IntN(2) == 0 {
		delay := uint32(w.between(0, 3000))
		t.Reschedule = terms.Reschedule{
			AttemptsMax: []uint32{terms.RestartsUnlimited, 1, 2, 3}[w.rng.IntN(4)], IntervalMillis: uint32(w.between(1, 60_000)),
			DelayMillis: delay, DelayMaxMillis: delay + uint32(w.between(0, 5000)), Growth: terms.Growth(w.rng.IntN(3)),
		}
		if r := &t.Reschedule; r.AttemptsMax != terms.RestartsUnlimited && delay%8 != 0 {
			r.AttemptsMax = min(r.AttemptsMax, w.limits.Attempts) // most jobs ask for what is granted
		}
	}
	d := &t.Disconnect
	switch {
	case kind == terms.Stateful || w.rng.IntN(4) == 0:
		d.StopAfterMillis = uint32(w.between(1, 8000))
	case w.rng.IntN(2) == 0:
		d.LostAfterMillis = uint32(w.between(1, 10_000))
		d.Wait, d.Keep = w.rng.IntN(2) == 0, terms.Survivor(w.rng.IntN(3))
	}
}

func (c *clients) task(kind terms.JobType, name terms.TaskName) terms.Task {
	w := c.w
	t := terms.Task{
		Name: name, Instances: uint32(w.between(0, 8)), Command: []string{"run", "0"}, Placement: terms.Pack,
		Resources: terms.Resources{int64(w.between(0, 20)) * 100, int64(w.between(0, 4)) << 28, 0},
		Restart: terms.Restart{AttemptsMax: terms.RestartsUnlimited, DelayMillis: 100, DelayMaxMillis: 2000,
			ResetMillis: uint32(w.between(0, 10_000))},
		StopGraceMillis: uint32(w.between(0, 1000)),
	}
	if t.StopGraceMillis%4 == 0 { // no draw of its own: other seeds stay what they were
		t.StopDelayMillis = max(3*t.StopGraceMillis, terms.StopDelayLeast)
	}
	if kind == terms.Batch {
		t.Command[1] = strconv.Itoa(w.between(1, 3000))
		t.Restart.AttemptsMax = uint32(w.between(0, 4))
	}
	c.policies(&t, kind)
	if w.rng.IntN(3) == 0 {
		t.Placement = terms.Spread
	}
	if w.rng.IntN(6) == 0 {
		t.Placement = terms.Defragment
	}
	if w.rng.IntN(4) == 0 {
		t.Ports = c.ports()
	}
	if w.rng.IntN(4) == 0 {
		t.Constraints = []constraint.Constraint{c.constraint()}
	}
	c.company(&t, kind)
	if w.rng.IntN(6) == 0 {
		t.Devices = []terms.DeviceRequest{c.device()}
	}
	if w.rng.IntN(3) == 0 {
		t.Checks = []terms.Check{{Kind: terms.CheckCommand, Command: []string{"check"}, IntervalMillis: 1000,
			TimeoutMillis: 1000}}
	}
	if kind == terms.Stateful && w.rng.IntN(3) == 0 {
		t.Volumes = []terms.Volume{{Name: "data"}}
	}
	return t
}

// company draws how the task stands to what else runs.
func (c *clients) company(t *terms.Task, kind terms.JobType) {
	w := c.w
	if w.rng.IntN(3) == 0 {
		t.Labels = []terms.EnvVar{{Name: "app", Value: []string{"db", "web"}[w.rng.IntN(2)]}}
	}
	if kind == terms.Daemon {
		return
	}
	if w.rng.IntN(6) == 0 {
		operators := []constraint.Operator{constraint.Equal, constraint.NotEqual, constraint.Less, constraint.LessOrEqual,
			constraint.Greater, constraint.GreaterOrEqual}
		one := constraint.Constraint{Label: "app", Values: []string{[]string{"db", "web"}[w.rng.IntN(2)]},
			Operator: operators[w.rng.IntN(len(operators))],
			Count:    uint32(w.rng.IntN(4)), Within: []string{"", "rack", "disk"}[w.rng.IntN(3)]}
		if w.rng.IntN(2) == 0 {
			one = constraint.Constraint{Any: []constraint.Constraint{one,
				{All: []constraint.Constraint{c.constraint(), c.constraint()}}}}
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

// rules draws other rules about the nodes of a task.
func (c *clients) rules(t *terms.Task, kind terms.JobType) {
	labels := t.Labels
	t.Constraints, t.PerNodeMax, t.SpreadOver = nil, 0, ""
	for range 3 {
		if c.w.rng.IntN(2) == 0 {
			t.Constraints = append(t.Constraints, c.constraint())
		}
		c.company(t, kind)
	}
	t.Labels = labels
}

// device draws a request for whole devices or for a share of one, of some model or of any.
func (c *clients) device() terms.DeviceRequest {
	amounts := []terms.Millidevices{250, 400, 500, 700, 1000, 1000, 2000}
	q := terms.DeviceRequest{Kind: "gpu", Amount: amounts[c.w.rng.IntN(len(amounts))]}
	if c.w.rng.IntN(3) == 0 {
		q.Models = []string{[]string{"A100", "T4"}[c.w.rng.IntN(2)]}
	}
	return q
}

// ports draws requests of which some leave the choice open, and some ask for what such a choice may come upon.
func (c *clients) ports() []terms.PortRequest {
	all := make([]terms.PortRequest, c.w.between(1, 3))
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

func (c *clients) constraint() constraint.Constraint {
	return []constraint.Constraint{
		{Attribute: "rack", Operator: constraint.In, Values: []string{"r0", "r1"}},
		{Attribute: "rack", Operator: constraint.NotEqual, Values: []string{"r0"}},
		{Attribute: "size", Operator: constraint.GreaterOrEqual, Values: []string{"3"}},
		{Attribute: "size", Operator: constraint.Less, Values: []string{"6"}},
		{Attribute: "disk", Operator: constraint.NotExists},
		{Attribute: "disk", Operator: constraint.Equal, Values: []string{"ssd"}},
		{Attribute: terms.ExclusiveAttribute, Operator: constraint.Exists},
	}[c.w.rng.IntN(7)]
}
