// Package wishes draws what users of a simulated cluster ask for: jobs, new versions of them, changes of pools, drains.
// What is drawn is mostly allowed, and so small that each part of it decides something.
package wishes

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/storage"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// A simulated program is told by its command how many milliseconds it takes, 0 for ever, and how it fares.
const (
	// FaresBadly fails soon after each start, FaresUnready never passes a check.
	FaresBadly   = "badly"
	FaresUnready = "unready"
)

// The ports that machines offer, few enough to run out.
const PortFirst, PortLast = 20000, 20009

// Mishap is what is wrong with a wish.
type Mishap uint8

// The mishaps: a change against an old version, a version that always fails, a huge job, and the drain of a machine.
const (
	Stale Mishap = iota
	Bad
	Huge
	Drain
)

// Drawer draws wishes. It draws from a source that the rest of a run draws from, too.
type Drawer struct {
	*rand.Rand
	Seed   uint64
	Limits terms.Limits
	// Names are those of the jobs that were submitted.
	Names []terms.JobName
	// Happens tells whether a mishap does this time, RequestID names the next request.
	Happens   func(Mishap) bool
	RequestID func() string
}

// between draws a number of low to high.
func (d *Drawer) between(low, high int) int { return low + d.IntN(high-low+1) }

// NewJob draws a job that is submitted first, with a pool of the tree in s, which may be nil.
func (d *Drawer) NewJob(s *cluster.State) command.Command {
	name := d.jobName(s, "job"+strconv.Itoa(len(d.Names)+1))
	d.Names = append(d.Names, name)
	return &command.SubmitJob{RequestID: d.RequestID(), Spec: d.Spec(name)}
}

// Wish draws what a user asks for about a job who sees the value as it is in s; nil if nothing comes to his mind.
func (d *Drawer) Wish(s *cluster.State, name terms.JobName) command.Command {
	j := s.JobOf(name)
	if d.IntN(8) == 0 {
		return d.drain(s)
	}
	if j == nil || j.Finished != 0 {
		return d.onVolumes(s, name)
	}
	request, seen := d.RequestID(), j.Version
	if d.Happens(Stale) {
		seen -= uint32(d.between(0, 1))
	}
	switch d.IntN(9) {
	case 0:
		return &command.KillJob{RequestID: request, Job: name, Against: seen * uint32(d.IntN(2)),
			Now: s.Index%3 == 0 && s.Rules >= rules.EndNow} // drawn without the generator: kept histories go on as they did
	case 1, 2:
		return &command.SteerUpdate{RequestID: request, Job: name, Version: j.Update.To,
			Steering: command.Steering(d.between(1, 5))}
	case 3:
		return &command.RevertJob{RequestID: request, Job: name, Against: seen, To: uint32(d.between(0, int(seen)))}
	case 4:
		restart := &command.RestartJob{RequestID: request, Job: name, Against: seen}
		if d.IntN(2) == 0 {
			restart.Task = terms.TaskName("t" + strconv.Itoa(d.IntN(3)))
		}
		return restart
	case 5:
		return d.end(s, j)
	case 6:
		return &command.SuspendJob{RequestID: request, Job: name, Against: seen * uint32(d.IntN(2)),
			Resume: j.Suspended || d.IntN(4) == 0}
	}
	return &command.SubmitJob{RequestID: request, Spec: d.Changed(j.Spec), Against: seen}
}

// onVolumes asks for something about the volumes of a job that has ended: that they are removed, or that a job of the
// name finds them. Which it is, is drawn without the generator.
func (d *Drawer) onVolumes(s *cluster.State, name terms.JobName) command.Command {
	var sets []terms.VolumeSet
	for _, one := range storage.List(s) {
		if one.Set.Slot.Job == name {
			sets = append(sets, one.Set)
		}
	}
	switch at := int(s.Index); {
	case len(sets) == 0 || at%4 == 0:
		return nil
	case at%4 == 1:
		return &command.RemoveVolumes{RequestID: d.RequestID(), Volumes: sets[at/4%len(sets)]}
	}
	spec := d.spec(name, terms.Stateful)
	spec.Tasks[0].Name, spec.Tasks[0].Volumes = sets[0].Slot.Task, []terms.Volume{{Name: "data"}}
	return &command.SubmitJob{RequestID: d.RequestID(), Spec: spec}
}

// end draws an allocation to end.
func (d *Drawer) end(s *cluster.State, j *workload.Job) command.Command {
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
	r := all[d.IntN(len(all))]
	slot, _ := s.SlotAt(r)
	if j.Spec.Type == terms.Batch && d.IntN(2) == 0 {
		return &command.SealTask{RequestID: d.RequestID(), Slot: s.NameOf(r),
			Order: slot.Order - terms.Index(d.IntN(8)/7)}
	}
	return &command.EndAllocation{
		RequestID: d.RequestID(), Slot: s.NameOf(r), Order: slot.Order, Elsewhere: d.IntN(2) == 0,
		// Drawn without the generator: histories that were kept go on as they did.
		Now: s.Index%3 == 0 && s.Rules >= rules.EndNow, WithoutVolumes: slot.Order%3 == 0,
	}
}

// drain draws a node to empty, at once or with a deadline, or to fill again.
func (d *Drawer) drain(s *cluster.State) command.Command {
	if s.Nodes() == 0 {
		return nil
	}
	n := s.Node(facts.NodeIndex(d.IntN(s.Nodes())))
	return &command.DrainNode{
		RequestID: d.RequestID(), Node: n.Name, Drain: !n.Drain.On && d.Happens(Drain),
		DeadlineMillis: uint32(d.IntN(3) * d.between(1, 8000)),
	}
}

// Changed draws a new version of a job: another size, another program, other rules, a task more or less, or all anew.
func (d *Drawer) Changed(old *terms.Job) terms.Job {
	spec := *old
	spec.Tasks = slices.Clone(spec.Tasks)
	t := &spec.Tasks[d.IntN(len(spec.Tasks))]
	if d.IntN(2) == 0 {
		spec.Update = d.updatePolicy(spec.Type)
	}
	if d.IntN(4) == 0 {
		d.lifecycle(&spec)
	}
	switch d.IntN(10) {
	case 0, 1:
		t.Instances = uint32(d.between(0, 8))
	case 2, 3:
		t.Command = append(slices.Clone(t.Command[:2]), "fine", strconv.Itoa(d.IntN(1000)))
		if d.Happens(Bad) {
			t.Command[2] = []string{FaresBadly, FaresUnready}[d.IntN(2)]
		}
	case 4:
		t.Resources[terms.CPU] = int64(d.between(0, 20)) * 100
	case 5:
		spec.Tasks[0], spec.Tasks[len(spec.Tasks)-1] = spec.Tasks[len(spec.Tasks)-1], spec.Tasks[0]
		spec.Tasks = spec.Tasks[:d.between(1, len(spec.Tasks))]
	case 6:
		[]func(*terms.Task, terms.JobType){d.policies, d.rules}[d.IntN(2)](t, spec.Type)
	case 7:
		d.bounds(&spec)
		d.scheduler(&spec)
	case 8:
		spec.Priority = uint32(d.between(0, 100))
		spec.Plugins = pluginsBy(spec.Priority)
	default:
		kind := spec.Type
		if d.IntN(4) == 0 {
			kind = d.kind()
		}
		spec = d.spec(spec.Name, kind)
		if d.IntN(8) > 0 {
			spec.After = old.After
		}
		if kind == old.Type && d.IntN(4) > 0 {
			spec.Preemption, spec.Revocable, spec.Controller, spec.KillOnPreempt = old.Preemption, old.Revocable,
				old.Controller, old.KillOnPreempt
		}
	}
	fit(&spec)
	onPeers(&spec)
	onSlack(&spec)
	return spec
}

// pluginsBy returns plugins, or none, by a number that was drawn.
func pluginsBy(drawn uint32) []terms.PluginRequest {
	if drawn%2 == 0 {
		return nil
	}
	return []terms.PluginRequest{{Name: "svc"}}
}

func (d *Drawer) kind() terms.JobType {
	return terms.JobType(d.between(int(terms.Batch), int(terms.Daemon)))
}

// Spec draws a job.
func (d *Drawer) Spec(name terms.JobName) terms.Job { return d.spec(name, d.kind()) }

func (d *Drawer) spec(name terms.JobName, kind terms.JobType) terms.Job {
	spec := terms.Job{Name: name, Type: kind, Update: d.updatePolicy(kind)}
	for i := range d.between(1, 3) {
		spec.Tasks = append(spec.Tasks, d.task(spec.Type, terms.TaskName("t"+strconv.Itoa(i))))
	}
	d.sharing(&spec)
	if d.IntN(4) == 0 {
		d.scheduler(&spec)
	}
	if d.Seed%3 == 0 && kind <= terms.Stateless {
		d.crowd(&spec)
	}
	spec.Plugins = pluginsBy(spec.Priority)
	if kind != terms.Daemon && len(d.Names) > 0 && d.IntN(6) == 0 {
		spec.After = []terms.JobName{d.Names[d.IntN(len(d.Names))]}
	}
	if d.IntN(2) == 0 {
		d.lifecycle(&spec)
	}
	if kind <= terms.Stateless && d.Happens(Huge) {
		spec.Tasks[0].Instances, spec.Tasks[0].Ports, spec.Tasks[0].Devices = uint32(d.between(500, 3000)), nil, nil
		spec.Tasks[0].Resources = terms.Resources{10, 1 << 20, 0}
	}
	onPeers(&spec)
	onSlack(&spec)
	return spec
}

func (d *Drawer) updatePolicy(kind terms.JobType) terms.UpdatePolicy {
	if d.IntN(3) == 0 {
		return terms.UpdatePolicy{}
	}
	u := terms.UpdatePolicy{
		BatchSize: uint32(d.between(0, 3)), AutoPromote: d.IntN(2) == 0, AttemptsMax: uint32(d.between(0, 3)),
		FailuresMax: uint32(d.between(0, 2)), Rollback: d.IntN(2) == 0, StartPaused: d.IntN(8) == 0,
		SameNode:         d.IntN(4) == 0,
		MinHealthyMillis: uint32(d.IntN(2) * d.between(1, 2000)),
	}
	if kind == terms.Stateless && d.IntN(2) == 0 {
		u.Canaries = uint32(d.between(1, 2))
	}
	if d.IntN(2) == 0 {
		u.HealthyDeadlineMillis = u.MinHealthyMillis + uint32(d.between(1, 6000))
	}
	if d.IntN(2) == 0 {
		u.ProgressDeadlineMillis = u.HealthyDeadlineMillis + uint32(d.between(1, 20_000))
	}
	return u
}

// policies draws what comes after a failure or a loss.
func (d *Drawer) policies(t *terms.Task, kind terms.JobType) {
	t.Reschedule, t.Disconnect = terms.Reschedule{}, terms.Disconnect{}
	if kind != terms.Batch {
		t.Restart.AttemptsMax = []uint32{terms.RestartsUnlimited, uint32(d.between(0, 3))}[d.IntN(2)]
	}
	if kind != terms.Daemon && d.IntN(2) == 0 {
		delay := uint32(d.between(0, 3000))
		t.Reschedule = terms.Reschedule{
			AttemptsMax: []uint32{terms.RestartsUnlimited, 1, 2, 3}[d.IntN(4)], IntervalMillis: uint32(d.between(1, 60_000)),
			DelayMillis: delay, DelayMaxMillis: delay + uint32(d.between(0, 5000)), Growth: terms.Growth(d.IntN(3)),
		}
		if r := &t.Reschedule; r.AttemptsMax != terms.RestartsUnlimited && delay%8 != 0 {
			r.AttemptsMax = min(r.AttemptsMax, d.Limits.Attempts) // most jobs ask for what is granted
		}
	}
	away := &t.Disconnect
	switch {
	case kind == terms.Stateful || d.IntN(4) == 0:
		away.StopAfterMillis = uint32(d.between(1, 8000))
	case d.IntN(2) == 0:
		away.LostAfterMillis = uint32(d.between(1, 10_000))
		away.Wait, away.Keep = d.IntN(2) == 0, terms.Survivor(d.IntN(3))
	}
}

func (d *Drawer) task(kind terms.JobType, name terms.TaskName) terms.Task {
	t := terms.Task{
		Name: name, Instances: uint32(d.between(0, 8)), Command: []string{"run", "0"}, Placement: terms.Pack,
		Resources: terms.Resources{int64(d.between(0, 20)) * 100, int64(d.between(0, 4)) << 28, 0},
		Restart: terms.Restart{AttemptsMax: terms.RestartsUnlimited, DelayMillis: 100, DelayMaxMillis: 2000,
			ResetMillis: uint32(d.between(0, 10_000))},
		StopGraceMillis: uint32(d.between(0, 1000)),
	}
	if t.StopGraceMillis%4 == 0 { // no draw of its own: other seeds stay what they were
		t.StopDelayMillis = max(3*t.StopGraceMillis, terms.StopDelayLeast)
	}
	if kind == terms.Batch {
		t.Command[1] = strconv.Itoa(d.between(1, 3000))
		t.Restart.AttemptsMax = uint32(d.between(0, 4))
	}
	d.policies(&t, kind)
	if d.IntN(3) == 0 {
		t.Placement = terms.Spread
	}
	if d.IntN(6) == 0 {
		t.Placement = terms.Defragment
	}
	if d.IntN(4) == 0 {
		t.Ports = d.ports()
	}
	if d.IntN(4) == 0 {
		t.Constraints = []constraint.Constraint{d.constraint()}
	}
	d.company(&t, kind)
	if d.IntN(6) == 0 {
		t.Devices = []terms.DeviceRequest{d.device()}
	}
	if d.IntN(3) == 0 {
		t.Checks = []terms.Check{{Kind: terms.CheckCommand, Command: []string{"check"}, IntervalMillis: 1000,
			TimeoutMillis: 1000}}
		if kind != terms.Batch && t.StopGraceMillis%2 == 0 { // no draw of its own
			t.Checks[0].OnFailure = terms.UnreadyOnFailure
		}
	}
	if kind == terms.Stateful && d.IntN(3) == 0 {
		t.Volumes = []terms.Volume{{Name: "data"}}
		if t.StopGraceMillis%3 > 0 { // no draw of its own
			t.KeepVolumesMillis = 4 * int64(t.StopGraceMillis)
		}
	}
	if t.StopGraceMillis%8 == 1 { // no draw of its own
		t.Container = container(&t)
		t.AskForNodes()
	}
	return t
}

// container is one whose image, so to speak, is what the command says.
func container(t *terms.Task) terms.Container {
	c := terms.Container{Image: "app:" + t.Command[1], Arguments: []string{"calmly"}, Capabilities: []string{"NET_ADMIN"},
		ReadOnly: t.Instances > 3, Mounts: []terms.Mount{{Path: "/tmp"}}}
	for _, v := range t.Volumes {
		c.Mounts = append(c.Mounts, terms.Mount{Path: "/" + v.Name, Volume: v.Name, ReadOnly: t.Instances == 1})
	}
	return c
}

// company draws how the task stands to what else runs.
func (d *Drawer) company(t *terms.Task, kind terms.JobType) {
	if d.IntN(3) == 0 {
		t.Labels = []terms.EnvVar{{Name: "app", Value: []string{"db", "web"}[d.IntN(2)]}}
	}
	if kind == terms.Daemon {
		return
	}
	if d.IntN(6) == 0 {
		operators := []constraint.Operator{constraint.Equal, constraint.NotEqual, constraint.Less, constraint.LessOrEqual,
			constraint.Greater, constraint.GreaterOrEqual}
		one := constraint.Constraint{Label: "app", Values: []string{[]string{"db", "web"}[d.IntN(2)]},
			Operator: operators[d.IntN(len(operators))],
			Count:    uint32(d.IntN(4)), Within: []string{"", "rack", "disk"}[d.IntN(3)]}
		if d.IntN(2) == 0 {
			one = constraint.Constraint{Any: []constraint.Constraint{one,
				{All: []constraint.Constraint{d.constraint(), d.constraint()}}}}
		}
		if d.IntN(2) == 0 {
			one.Soft, one.SoftTimeoutMillis = true, uint32(d.between(0, 5000))
		}
		t.Constraints = append(t.Constraints, one)
	}
	if d.IntN(10) == 0 {
		t.PerNodeMax = uint32(d.between(1, 2))
	}
	if d.IntN(8) == 0 {
		t.SpreadOver = []string{"rack", "disk"}[d.IntN(2)]
	}
}

// rules draws other rules about the nodes of a task.
func (d *Drawer) rules(t *terms.Task, kind terms.JobType) {
	labels := t.Labels
	t.Constraints, t.PerNodeMax, t.SpreadOver = nil, 0, ""
	for range 3 {
		if d.IntN(2) == 0 {
			t.Constraints = append(t.Constraints, d.constraint())
		}
		d.company(t, kind)
	}
	t.Labels = labels
}

// device draws a request for whole devices or for a share of one, of some model or of any.
func (d *Drawer) device() terms.DeviceRequest {
	amounts := []terms.Millidevices{250, 400, 500, 700, 1000, 1000, 2000}
	q := terms.DeviceRequest{Kind: "gpu", Amount: amounts[d.IntN(len(amounts))]}
	if d.IntN(3) == 0 {
		q.Models = []string{[]string{"A100", "T4"}[d.IntN(2)]}
	}
	return q
}

// ports draws requests of which some leave the choice open, and some ask for what such a choice may come upon.
func (d *Drawer) ports() []terms.PortRequest {
	all := make([]terms.PortRequest, d.between(1, 3))
	for i := range all {
		all[i].Name = "p" + strconv.Itoa(i)
	}
	switch d.IntN(3) {
	case 0:
		all[len(all)-1].Number = uint16(d.between(80, 82))
	case 1:
		all[len(all)-1].Number = uint16(PortFirst + d.IntN(4))
	}
	return all
}

func (d *Drawer) constraint() constraint.Constraint {
	return []constraint.Constraint{
		{Attribute: "rack", Operator: constraint.In, Values: []string{"r0", "r1"}},
		{Attribute: "rack", Operator: constraint.NotEqual, Values: []string{"r0"}},
		{Attribute: "size", Operator: constraint.GreaterOrEqual, Values: []string{"3"}},
		{Attribute: "size", Operator: constraint.Less, Values: []string{"6"}},
		{Attribute: "disk", Operator: constraint.NotExists},
		{Attribute: "disk", Operator: constraint.Equal, Values: []string{"ssd"}},
		{Attribute: terms.ExclusiveAttribute, Operator: constraint.Exists},
	}[d.IntN(7)]
}

// lifecycle draws what becomes of a job when something happens to its instances and tasks.
func (d *Drawer) lifecycle(spec *terms.Job) {
	spec.MaxRestarts, spec.MinSuccess, spec.KeepMillis, spec.Policies = uint32(d.between(0, 4)), 0, 0, nil
	if d.IntN(4) == 0 {
		if spec.KeepMillis = uint32(d.between(1, 20_000)); spec.KeepMillis < 4000 {
			spec.KeepMillis = terms.KeepLeast
		}
	}
	instances := 0
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		instances += int(t.Instances)
		t.MaxRestarts, t.Policies = uint32(d.between(0, 3)), nil
		if spec.Type != terms.Daemon && d.IntN(2) == 0 {
			t.Policies = d.lifecyclePolicies(spec.Type == terms.Batch)
		}
	}
	if spec.Type != terms.Daemon && d.IntN(2) == 0 {
		spec.Policies = d.lifecyclePolicies(spec.Type == terms.Batch)
	}
	if spec.Type == terms.Batch && d.IntN(4) == 0 {
		spec.MinSuccess = uint32(d.IntN(instances + 1))
	}
}

// lifecyclePolicies draws one to three policies of which none hides another.
func (d *Drawer) lifecyclePolicies(batch bool) (all []lifecycle.Policy) {
	for range d.between(1, 3) {
		p := lifecycle.Policy{Action: lifecycle.Action(d.between(int(lifecycle.RestartInstance), int(lifecycle.Complete)))}
		switch {
		case d.IntN(3) == 0:
			p.ExitCodes = []uint32{[]uint32{1, 3, 143}[d.IntN(3)]}
		case batch && d.IntN(3) == 0:
			p.On = []lifecycle.Event{lifecycle.TaskCompleted}
		default:
			p.On = []lifecycle.Event{lifecycle.Event(d.between(int(lifecycle.InstanceFailed), int(lifecycle.Any)))}
		}
		if d.IntN(2) == 0 {
			p.DelayMillis = uint32(d.between(1, 6000))
		}
		problem := false
		lifecycle.Problems(append(slices.Clone(all), p), batch, func(string, string, ...any) { problem = true })
		if !problem {
			all = append(all, p)
		}
	}
	return all
}
