package replica

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/reconcile"
	"starling/replica/report"
	"starling/rollout"
	"starling/schedule/place"
	"starling/terms"
)

// drainNode moves what a node runs to others, or takes that back.
func (f *fold) drainNode(c *command.DrainNode) report.Result {
	return f.once(c.RequestID, func() report.Result {
		node := f.s.NodeOf(c.Node)
		if node == nil {
			return refused(facts.NotFound, "there is no node %s", c.Node)
		}
		drain := facts.Drain{On: c.Drain}
		if c.Drain {
			drain.Deadline = f.s.Time + terms.Time(c.DeadlineMillis)
		}
		f.s.SetDrain(node.Index, drain)
		if c.Drain {
			f.drainDue(node.Index)
		}
		f.daemonsOf(node.Index)
		for _, r := range f.s.Node(node.Index).Held {
			f.touch(r.Job)
		}
		return report.Result{}
	})
}

// drainDue ends whatever still runs on a drained node when its deadline has passed.
func (f *fold) drainDue(n facts.NodeIndex) {
	drain := f.s.Node(n).Drain
	if !drain.On || drain.Deadline > f.s.Time {
		return
	}
	drain.Deadline = 0
	f.s.SetDrain(n, drain)
	for _, r := range f.held(n) {
		f.leaveNode(r)
	}
}

// held returns the seats that take room on a node, in the order in which something is to be done to them.
func (f *fold) held(n facts.NodeIndex) []facts.SlotRef {
	all := slices.Clone(f.s.Node(n).Held)
	slices.SortStableFunc(all, facts.SlotRef.Compare)
	slices.SortStableFunc(all, facts.BesideFirst)
	return all
}

// leaveNode moves an instance from a drained node.
func (f *fold) leaveNode(r facts.SlotRef) {
	slot, _ := f.s.SlotAt(r)
	if slot.Phase == facts.Stopping || slot.Phase == facts.Unknown {
		return
	}
	f.touch(r.Job)
	f.settle(r, slot, func(c *reconcile.Candidate) { c.Migrate = true })
}

// drains moves from drained nodes as many service instances as their jobs can spare and others have room for. Batch
// instances may end by themselves until the deadline, what its volumes tie to the node stays until then, and daemons
// stay as long as anything else does; what comes back after the deadline leaves at once.
func (f *fold) drains() {
	all := f.s.Draining()
	if len(all) == 0 {
		return
	}
	var leaving []facts.SlotRef
	trial, spared := &succession{f: f, trial: f.s}, map[facts.TaskKey]uint32{}
	for _, n := range all {
		for _, r := range f.held(n) {
			f.s.Visit(1)
			if f.s.Node(n).Drain.Deadline == 0 || f.mayLeave(r, trial, spared) {
				leaving = append(leaving, r)
			}
		}
	}
	slices.SortStableFunc(leaving, facts.BesideFirst)
	for _, r := range leaving {
		f.leaveNode(r)
	}
	for _, n := range all {
		left := f.held(n)
		if slices.ContainsFunc(left, func(r facts.SlotRef) bool { return f.s.Job(r.Job).Spec.Type != terms.Daemon }) {
			continue
		}
		for _, r := range left {
			f.leaveNode(r)
		}
	}
}

// mayLeave tells whether an instance leaves its drained node before the deadline. Spared counts the well ones of each
// task that do.
func (f *fold) mayLeave(r facts.SlotRef, trial *succession, spared map[facts.TaskKey]uint32) bool {
	j := f.s.Job(r.Job)
	slot, _ := f.s.SlotAt(r)
	spec, key := j.TaskSpecOf(int(r.Task), slot.Version), facts.KeyOf(r.Job, int(r.Task))
	if j.Spec.Type == terms.Batch || j.Spec.Type == terms.Daemon || slot.Phase == facts.Stopping ||
		j.Tied(int(r.Task), spec, f.s.Rules) {
		return false
	}
	if well := slot.Phase == facts.Running && slot.Health == facts.Healthy; !well || r.Seat != facts.MainSeat {
		return trial.succeeds(r)
	}
	batch := max(j.Spec.Update.BatchSize, 1)
	if spared[key] >= rollout.Spare(j.Tasks[r.Task], batch, j.Spec.Update.FailuresMax) || !trial.succeeds(r) {
		return false
	}
	spared[key]++
	return true
}

// daemons gives every task of a job a slot for every node, if it is a daemon job.
func (f *fold) daemons(id terms.JobID) {
	for n := range facts.NodeIndex(f.s.Nodes()) {
		if f.s.Job(id).Spec.Type == terms.Daemon {
			f.daemonOn(id, n)
		}
	}
}

// daemonsOf gives a node its slot of every daemon job, or takes it away.
func (f *fold) daemonsOf(n facts.NodeIndex) {
	var all []terms.JobID
	f.s.EachDaemon(func(id terms.JobID) bool {
		all = append(all, id)
		return true
	})
	for _, id := range all {
		f.daemonOn(id, n)
	}
}

// daemonOn makes a node's slots of a daemon job what they should be.
func (f *fold) daemonOn(id terms.JobID, n facts.NodeIndex) {
	for task := range f.s.Job(id).Tasks {
		j := f.s.Job(id)
		spec := j.TaskSpecOf(task, j.Version)
		if spec == nil || j.Stop || j.Finished != 0 {
			continue
		}
		if j.Tasks[task].Desired <= uint32(n) {
			f.s.SetDesired(id, task, uint32(n)+1)
		}
		r := facts.SlotRef{Job: id, Task: uint16(task), Index: uint32(n)}
		slot, _ := f.s.SlotAt(r)
		able := f.able(j, task, n)
		f.touch(id)
		if empty := slot.Phase == facts.Waiting || slot.Phase == facts.Stopped; empty || !able && !slot.Phase.Holds() {
			f.settle(r, slot, func(*reconcile.Candidate) {})
		}
	}
}

// able tells whether a node can have an instance of a daemon's task.
func (f *fold) able(j *workload.Job, task int, n facts.NodeIndex) bool {
	spec := j.TaskSpecOf(task, j.Version)
	return spec != nil && f.s.Eligible(n) && place.Allowed(f.s, facts.KeyOf(j.ID, task), n)
}
