package replica

import (
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/rollout"
	"starling/schedule/place"
	"starling/terms"
)

// drainNode moves what a node runs to others, or takes that back.
func (f *fold) drainNode(c *command.DrainNode) Result {
	return f.once(c.RequestID, func() Result {
		node := f.s.NodeOf(c.Node)
		if node == nil {
			return refused(cluster.NotFound, "there is no node %s", c.Node)
		}
		drain := cluster.Drain{On: c.Drain}
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
		return Result{}
	})
}

// drainDue ends whatever still runs on a drained node when its patience is over.
func (f *fold) drainDue(n cluster.NodeIndex) {
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

// held returns the seats that take room on a node, in order.
func (f *fold) held(n cluster.NodeIndex) []cluster.SlotRef {
	all := slices.Clone(f.s.Node(n).Held)
	slices.SortStableFunc(all, cluster.SlotRef.Compare)
	return all
}

// leaveNode moves an instance from a drained node.
func (f *fold) leaveNode(r cluster.SlotRef) {
	slot, _ := f.s.SlotAt(r)
	if slot.Phase == cluster.Stopping || slot.Phase == cluster.Away {
		return
	}
	f.touch(r.Job)
	f.stop(r, cluster.ByDrain)
}

// drains moves from drained nodes as many service instances as their jobs can spare. Batch instances may end by
// themselves until the deadline, and daemons stay as long as anything else does; what comes back after the deadline leaves at once.
func (f *fold) drains() {
	for _, n := range f.s.Draining() {
		for _, r := range f.held(n) {
			j := f.s.Job(r.Job)
			slot, _ := f.s.SlotAt(r)
			well := slot.Phase == cluster.Running && slot.Health == cluster.Healthy
			batch := max(j.Spec.Update.BatchSize, 1)
			switch {
			case f.s.Node(n).Drain.Deadline == 0:
				f.leaveNode(r) // it returned when patience was over
			case j.Spec.Type == terms.Batch || j.Spec.Type == terms.Daemon:
			case !well || r.Seat != cluster.MainSeat || rollout.Spare(j.Tasks[r.Task], batch, j.Spec.Update.FailuresMax) > 0:
				f.leaveNode(r)
			}
		}
		left := f.held(n)
		if slices.ContainsFunc(left, func(r cluster.SlotRef) bool { return f.s.Job(r.Job).Spec.Type != terms.Daemon }) {
			continue
		}
		for _, r := range left {
			f.leaveNode(r)
		}
	}
}

// daemons gives every task of a job a slot for every node, if it is a daemon job.
func (f *fold) daemons(id terms.JobID) {
	for n := range cluster.NodeIndex(f.s.Nodes()) {
		if f.s.Job(id).Spec.Type == terms.Daemon {
			f.daemonOn(id, n)
		}
	}
}

// daemonsOf gives a node its slot of every daemon job, or takes it away.
func (f *fold) daemonsOf(n cluster.NodeIndex) {
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
func (f *fold) daemonOn(id terms.JobID, n cluster.NodeIndex) {
	for task := range f.s.Job(id).Tasks {
		j := f.s.Job(id)
		spec := j.TaskSpecOf(task, j.Version)
		if spec == nil || j.Stop || j.Finished != 0 {
			continue
		}
		if j.Tasks[task].Desired <= uint32(n) {
			f.s.SetDesired(id, task, uint32(n)+1)
		}
		r := cluster.SlotRef{Job: id, Task: uint16(task), Index: uint32(n)}
		slot, _ := f.s.SlotAt(r)
		able := f.able(j, task, n)
		f.touch(id)
		switch {
		case able && !slot.Phase.Holds() && slot.Phase != cluster.Postponed && slot.Phase != cluster.Failed:
			f.wait(r, slot, cluster.OnlyNode)
		case !able && !slot.Phase.Holds():
			slot.Phase, slot.Version, slot.Deadline, slot.Wish = cluster.Stopped, j.Version, 0, cluster.AnyNode
			f.s.SetSlot(r, slot)
		}
	}
}

// able tells whether a node can have an instance of a daemon's task.
func (f *fold) able(j *cluster.Job, task int, n cluster.NodeIndex) bool {
	spec := j.TaskSpecOf(task, j.Version)
	return spec != nil && f.s.Eligible(n) && place.Allowed(f.s, cluster.KeyOf(j.ID, task), n)
}
