package cluster

import (
	"slices"

	"starling/cluster/membership"
	"starling/cluster/retries"
	"starling/cluster/tree"
	"starling/cluster/want"
	"starling/terms"
	"starling/terms/fingerprint"
)

// Facts are all of a value that does not follow from the rest of it. Equal facts behave alike from then on.
type Facts struct {
	head
	pools *tree.Pools
	nodes []NodeFacts
	jobs  []jobFacts
	// ring is who watches whom and who joins. Who is a member, its node says.
	ring *membership.Facts
	// requests are in the order in which they were remembered.
	requests []fact[string, Request]
	patience []fact[TaskKey, terms.Time]
	claims   []fact[terms.JobID, Claims]
	hungers  []fact[PoolID, Hunger]
	shared   []fact[PoolID, uint64]
}

// jobFacts are the facts about a job with its tasks.
type jobFacts struct {
	JobFacts
	tasks []taskFacts
}

// taskFacts are the facts about a task with its slots. Those from Fresh on are zero, and not listed.
type taskFacts struct {
	TaskFacts
	length   int
	slots    []Slot
	beside   []fact[seatKey, Slot]
	attempts []fact[uint32, retries.Attempts]
}

type fact[K, V any] struct {
	key   K
	value V
}

// table is a map that is scanned in the order of its keys.
type table[K, V any] interface{ Scan(func(K, V) bool) }

func factsOf[K, V any](t table[K, V]) (all []fact[K, V]) {
	t.Scan(func(key K, value V) bool {
		all = append(all, fact[K, V]{key, value})
		return true
	})
	return all
}

// Facts returns the facts of the value; they do not change with it.
func (s *State) Facts() *Facts {
	f := &Facts{
		head: s.head, pools: s.pools, patience: factsOf(&s.patience), claims: factsOf(&s.claims), hungers: factsOf(&s.hungers),
		shared: factsOf(&s.shared), ring: s.Membership.Facts(),
	}
	f.grown = slices.Clone(s.grown)
	for n := range s.nodes.Len() {
		f.nodes = append(f.nodes, s.nodes.At(n).NodeFacts.clone())
	}
	s.EachJob(func(j *Job) bool {
		job := jobFacts{JobFacts: j.JobFacts}
		job.versions = slices.Clone(j.versions)
		for _, t := range j.Tasks {
			job.tasks = append(job.tasks, t.facts())
		}
		f.jobs = append(f.jobs, job)
		return true
	})
	s.requestOrder.Scan(func(_ uint64, id string) bool {
		kept, _ := s.requests.Get(id)
		f.requests = append(f.requests, fact[string, Request]{id, kept})
		return true
	})
	return f
}

func (f NodeFacts) clone() NodeFacts {
	f.Sessions, f.Ports, f.Devices = slices.Clone(f.Sessions), slices.Clone(f.Ports), slices.Clone(f.Devices)
	return f
}

func (t *Task) facts() taskFacts {
	f := taskFacts{TaskFacts: t.TaskFacts, length: t.Slots.Len()}
	for index := range min(int(t.Fresh), f.length) {
		f.slots = append(f.slots, t.Slots.At(index))
	}
	if t.rare != nil {
		f.beside, f.attempts = factsOf(t.rare.beside), factsOf(t.rare.attempts)
	}
	return f
}

// Rebuild returns the value with the given facts: its index is made anew.
func Rebuild(f *Facts) *State {
	s := NewStateWithin(f.Limits)
	s.head, s.pools = f.head, f.pools
	for n := range f.nodes {
		s.rebuildNode(NodeIndex(n), f.nodes[n])
	}
	s.Membership.Restore(f.ring)
	for _, one := range f.patience {
		s.patience.Set(one.key, one.value)
		s.digest += hashWords(tagPatience, uint64(one.key), uint64(one.value))
	}
	for i := range f.jobs {
		s.rebuildJob(&f.jobs[i])
	}
	for i := range f.jobs {
		s.rebuildQueue(s.Job(f.jobs[i].ID))
	}
	for n := range NodeIndex(len(f.nodes)) {
		s.countGiven(n)
	}
	for _, one := range f.claims {
		s.SetClaims(one.key, one.value)
	}
	for _, one := range f.hungers {
		s.hungers.Set(one.key, one.value)
		s.digest += one.value.hash(one.key)
	}
	for _, one := range f.shared {
		s.setShared(one.key, one.value)
	}
	s.requestNext -= uint64(len(f.requests))
	for _, one := range f.requests {
		s.Remember(one.key, one.value)
	}
	slices.SortStableFunc(s.LackRoom, func(a, b terms.JobID) int { return int(s.Job(a).Update.LookedAt) - int(s.Job(b).Update.LookedAt) })
	s.undone, s.regrouped = f.undone, nil
	s.grown = slices.Clone(f.grown)
	return s
}

func (s *State) rebuildNode(n NodeIndex, f NodeFacts) {
	assert(s.EnsureNode(f.Name).Index == n, "nodes are in order")
	s.changeNode(n, func(row *Node) {
		row.NodeFacts = f.clone()
		if f.Peer != "" {
			s.AddMember(f.Peer)
		}
		if f.Offer == nil {
			return
		}
		row.offerHash, row.Class = fingerprint.Offer(f.Offer), s.classOf(f.Offer)
		s.setPurpose(n, f.Offer.Purpose())
		s.setFree(n, f.Offer.Capacity, !f.Drain.On)
		for k, amount := range f.Offer.Amounts() {
			s.volunteered[k] += amount
		}
	})
	if f.Drain.On {
		s.draining.Insert(n)
	}
	s.moveDeadline(SlotRef{Index: uint32(n)}, 0, f.Drain.Deadline)
}

func (s *State) rebuildJob(f *jobFacts) {
	j := &Job{edition: s.edition, JobFacts: f.JobFacts, Spec: f.versions[len(f.versions)-1].Spec}
	j.versions = slices.Clone(f.versions)
	for i := range f.tasks {
		t := newTask(s.edition, f.tasks[i].Name)
		t.TaskFacts, t.failureHash = f.tasks[i].TaskFacts, f.tasks[i].Failure.hash()
		if t.Failure == (Failure{}) {
			t.failureHash = 0
		}
		j.Tasks = append(j.Tasks, t)
	}
	s.jobs.Set(j.ID, j)
	s.jobNames.Set(j.Name(), j.ID)
	s.countJob(j)
	j.setGang()
	for i := range f.tasks {
		s.rebuildTask(j, i, &f.tasks[i])
	}
	s.rebuildStanding(j)
}

// rebuildQueue puts what waits of a job into the queue.
func (s *State) rebuildQueue(j *Job) {
	j.setGraph(s)
	for task, t := range j.Tasks {
		t.complete = j.graph != nil && j.Complete(task)
	}
	j.gangState = j.GangState()
	u := j.unit(j.gangState)
	for task := range j.Tasks {
		s.queueTask(j, task, &u)
	}
	if j.Finished != 0 {
		s.workflows.Delete(j.ID)
	}
}

// rebuildStanding counts a job among those of its kind, and what it wants.
func (s *State) rebuildStanding(j *Job) {
	all := make([]want.Most, len(j.Tasks))
	for task, t := range j.Tasks {
		all[task] = t.most
	}
	j.wants = want.Sum(all, j.Spec.Type)
	s.moveDeadline(SlotRef{Job: j.ID, Task: jobDeadline}, 0, j.updateDeadline)
	for _, name := range j.Awaits {
		s.followers.Set(follower{name, j.ID})
	}
	if j.Update.LookedAt != 0 {
		s.LackRoom = append(s.LackRoom, j.ID)
	}
	if j.Finished != 0 {
		s.finished.Set(finished{j.Finished, j.ID})
		s.finishedSlots += j.slots()
		return
	}
	s.countWants(j, 1)
	s.editAccount(j.pool).Jobs++
	if j.Spec.Type == terms.Daemon {
		s.daemons.Insert(j.ID)
	}
	if j.Spec.Shares() {
		s.sharers.Insert(j.ID)
	}
}

func (s *State) rebuildTask(j *Job, task int, f *taskFacts) {
	t, r := j.Tasks[task], SlotRef{Job: j.ID, Task: uint16(task)}
	t.Slots.Resize(s.edition, f.length)
	t.Counts[Waiting] = uint32(f.length)
	t.tallyFrom(j, r, SlotRef{Index: t.Desired}, true)
	for index, slot := range f.slots {
		r.Index = uint32(index)
		s.rebuildSeat(j, r, slot)
		if slot.Phase == Waiting && !slot.special() && r.Index < t.Desired {
			t.returned.Insert(r.Index)
		}
	}
	for _, one := range f.beside {
		s.rebuildSeat(j, one.key.in(j.ID, task), one.value)
	}
	for _, one := range f.attempts {
		t.seldom().attempts.Set(one.key, one.value)
		r.Index = one.key
		s.count(t, hashAttempts(r, one.value))
	}
	s.moveDeadline(SlotRef{Job: j.ID, Task: uint16(task), Index: taskDeadline}, 0, t.Completion.Due)
	t.row = t.hash(j.ID, task)
	s.digest += t.row
}

// rebuildSeat fills a seat, and takes the room that it holds.
func (s *State) rebuildSeat(j *Job, r SlotRef, slot Slot) {
	s.putSlot(j, r, slot)
	if slot.Phase.Holds() {
		spec := j.TaskSpecOf(int(r.Task), slot.Version)
		s.occupy(j, spec, r, slot.Node)
		s.charge(j, spec, 1)
	}
}
