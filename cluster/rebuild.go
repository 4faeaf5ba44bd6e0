package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/want"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/fingerprint"
)

// Facts returns the facts of the value; they do not change with it.
func (s *State) Facts() *facts.All {
	f := &facts.All{
		Head: s.Head, Pools: s.pools, Registry: s.registry, SoftSince: facts.RowsOf(&s.softSince),
		Nominations: facts.RowsOf(&s.nominations),
		Starving:    facts.RowsOf(&s.starving),
		Shared:      facts.RowsOf(&s.shared), Ring: s.Membership.Facts(), Volumes: s.volumes.Rows(),
	}
	f.DirtyNodes = slices.Clone(s.DirtyNodes)
	for n := range s.nodes.Len() {
		f.Nodes = append(f.Nodes, s.nodes.At(n).Node.Clone())
	}
	s.EachJob(func(j *workload.Job) bool {
		job := facts.WholeJob{Job: j.Job}
		job.Versions = slices.Clone(j.Versions)
		for _, t := range j.Tasks {
			job.Tasks = append(job.Tasks, t.Facts())
		}
		f.Jobs = append(f.Jobs, job)
		return true
	})
	f.Requests = s.requests.Rows()
	return f
}

// Rebuild returns the value with the given facts: its index is made anew.
func Rebuild(f *facts.All) *State {
	s := NewStateWithin(f.Limits)
	s.Head, s.pools, s.registry = f.Head, f.Pools, f.Registry
	for n := range f.Nodes {
		s.rebuildNode(facts.NodeIndex(n), f.Nodes[n])
	}
	s.Membership.Restore(f.Ring)
	for _, one := range f.SoftSince {
		s.softSince.Set(one.Key, one.Value)
		s.digest += facts.SoftSinceHash(one.Key, one.Value)
	}
	for i := range f.Jobs {
		s.rebuildJob(&f.Jobs[i])
	}
	for i := range f.Jobs {
		s.rebuildQueue(s.Job(f.Jobs[i].ID))
	}
	for n := range facts.NodeIndex(len(f.Nodes)) {
		s.countGiven(n)
	}
	for _, one := range f.Nominations {
		s.SetNomination(one.Key, one.Value)
	}
	for _, one := range f.Starving {
		s.starving.Set(one.Key, one.Value)
		s.digest += one.Value.Hash(one.Key)
	}
	for _, one := range f.Shared {
		s.setShared(one.Key, one.Value)
	}
	for _, one := range f.Volumes {
		s.volumes.Put(one.Key, one.Value)
	}
	s.RequestNext -= uint64(len(f.Requests))
	for _, one := range f.Requests {
		s.Remember(one.Key, one.Value)
	}
	slices.SortStableFunc(s.LackRoom,
		func(a, b terms.JobID) int { return int(s.Job(a).Update.LookedAt) - int(s.Job(b).Update.LookedAt) })
	s.Undone, s.dirtyRosters = f.Undone, nil
	s.DirtyNodes = slices.Clone(f.DirtyNodes)
	s.doubts.Forget()
	return s
}

func (s *State) rebuildNode(n facts.NodeIndex, f facts.Node) {
	facts.Assert(s.EnsureNode(f.Name).Index == n, "nodes are in order")
	s.changeNode(n, func(row *Node) {
		row.Node = f.Clone()
		if f.Peer != "" {
			s.AddMember(f.Peer)
		}
		if f.Offer == nil {
			return
		}
		row.offerHash, row.Class = fingerprint.Offer(f.Offer), s.classOf(f.Offer)
		s.rooms.SetPurpose(s.epoch, n, f.Offer.Purpose(s.Rules))
		s.setFree(n, f.Offer.Capacity, f.Offer.Open() && !f.Drain.On)
		for k, amount := range f.Offer.Amounts() {
			s.volunteered[k] += amount
		}
	})
	if f.Drain.On {
		s.draining.Insert(n)
	}
	s.moveDeadline(facts.RefOfNode(n), 0, f.Drain.Deadline)
}

func (s *State) rebuildJob(f *facts.WholeJob) {
	j := workload.NewJob(s.epoch, f.Job)
	j.Versions, j.Spec = slices.Clone(f.Versions), f.Versions[len(f.Versions)-1].Spec
	for i := range f.Tasks {
		t := workload.NewTask(s.epoch, f.Tasks[i].Name)
		t.Task, t.FailureHash = f.Tasks[i].Task, f.Tasks[i].Failure.Hash()
		if t.Failure == (facts.Failure{}) {
			t.FailureHash = 0
		}
		j.Tasks = append(j.Tasks, t)
	}
	s.jobs.Set(j.ID, j)
	s.jobNames.Set(j.Name(), j.ID)
	s.countJob(j)
	j.SetGang()
	for i := range f.Tasks {
		s.rebuildTask(j, i, &f.Tasks[i])
	}
	s.rebuildStanding(j)
}

// rebuildQueue puts what waits of a job into the queue.
func (s *State) rebuildQueue(j *workload.Job) {
	s.setGraph(j)
	for task, t := range j.Tasks {
		t.WasComplete = j.Ordered() && j.Complete(task)
	}
	j.GangWas = j.GangState()
	u := j.Unit(j.GangWas)
	for task := range j.Tasks {
		s.queueTask(j, task, &u)
	}
	if j.Finished != 0 {
		s.workflows.Delete(j.ID)
	}
}

// rebuildStanding counts a job among those of its kind, and what it wants.
func (s *State) rebuildStanding(j *workload.Job) {
	all := make([]want.Most, len(j.Tasks))
	for task, t := range j.Tasks {
		all[task] = t.Most
	}
	j.Wanted = want.Sum(all, j.Spec.Type)
	s.moveDeadline(facts.RefOfUpdate(j.ID), 0, j.UpdateDeadline)
	for _, name := range j.Awaits {
		s.followers.Set(follower{name, j.ID})
	}
	if j.Update.LookedAt != 0 {
		s.LackRoom = append(s.LackRoom, j.ID)
	}
	if s.countSpecs(j, 1); j.Finished != 0 {
		return
	}
	s.countWants(j, 1)
	s.editAccount(j.Pool).Jobs++
	if j.Spec.Type == terms.Daemon {
		s.daemons.Insert(j.ID)
	}
	if j.Spec.Shares() {
		s.sharers.Insert(j.ID)
	}
	s.doubts.Note(j.ID, j.Unsuited())
}

func (s *State) rebuildTask(j *workload.Job, task int, f *facts.WholeTask) {
	t, r := j.Tasks[task], facts.SlotRef{Job: j.ID, Task: uint16(task)}
	t.Slots.Resize(s.epoch, f.Length)
	t.Counts[facts.Waiting] = uint32(f.Length)
	t.TallyFrom(j, r, facts.SlotRef{Index: t.Desired}, true)
	for index, slot := range f.Slots {
		r.Index = uint32(index)
		s.rebuildSeat(j, r, slot)
		if slot.Phase == facts.Waiting && !slot.Special() && r.Index < t.Desired {
			t.Return(r.Index)
		}
	}
	for _, one := range f.Secondary {
		s.rebuildSeat(j, one.Key.In(j.ID, task), one.Value)
	}
	for _, one := range f.Attempts {
		r.Index = one.Key
		s.count(t, t.SetAttempts(r, one.Value))
	}
	s.moveDeadline(facts.RefOfTask(j.ID, task), 0, t.Completion.Due)
	t.Row = t.RowHash(j.ID, task)
	s.digest += t.Row
}

// rebuildSeat fills a seat, and takes the room that it holds.
func (s *State) rebuildSeat(j *workload.Job, r facts.SlotRef, slot facts.Slot) {
	s.putSlot(j, r, slot)
	if slot.Phase.Holds() {
		spec := j.TaskSpecOf(int(r.Task), slot.Version)
		s.occupy(j, spec, r, slot.Node)
		s.charge(j, spec, 1)
		s.movePreemptible(j, r, &facts.Slot{}, &slot)
	}
}
