package cluster

import (
	"slices"

	"starling/terms"
	"starling/terms/constraint"
)

// The queue of what waits to be admitted: by pool, and within it in the order in which units have their turn.

// Turn is the place of a task's waiting instances in the queue of their pool.
type Turn struct {
	// pool is the account of the pool, 0 for daemons, which come first and are not admitted.
	pool PoolID
	// Rank is lower the earlier: 0 for a gang that runs and lost members, then the highest priority. Key, and with it the age
	// of the job, decides between equals.
	Rank uint32
	Key  TaskKey
	// Need is at most what is admitted together: the whole gang as long as it does not run, else one instance.
	Need  terms.Amounts
	Class terms.Class
	// Blocked tells that all nodes were tried, and that only nodes which grow can help.
	Blocked bool
}

// Before tells whether a turn comes first.
func (t *Turn) Before(other *Turn) bool {
	switch {
	case t.pool != other.pool:
		return t.pool < other.pool
	case t.Rank != other.Rank:
		return t.Rank < other.Rank
	}
	return t.Key < other.Key
}

// BrokenRank is the rank of a gang that runs and lost members.
const BrokenRank = 0

// account returns the number of the account that the job's work is charged to.
func (j *Job) account() PoolID {
	if j.Spec.Type == terms.Daemon {
		return 0
	}
	return j.pool
}

// GangState is how a job's gang stands.
type GangState uint8

// The states of a gang. A job without one has it whole.
const (
	// GangWhole: as many run as must run together, but for members by which it has grown since it was admitted.
	GangWhole GangState = iota
	// GangBroken: it ran, and lost members.
	GangBroken
	// GangAbsent: nothing of it runs. It is admitted whole.
	GangAbsent
)

// living counts the main seats of the task that run or are about to.
func (t *Task) living() uint32 {
	return t.Counts[Assigned] + t.Counts[Running] + t.Counts[Delayed] + t.Counts[Away]
}

// HasGang tells whether some instances of the job must run together.
func (j *Job) HasGang() bool { return j.gang != nil }

// Missing returns how many members of the job's gang a task lacks.
func (j *Job) Missing(task int) uint32 {
	if j.gang == nil {
		return 0
	}
	t := j.Tasks[task]
	return j.gang[task] - min(j.gang[task], t.living()+t.Counts[Succeeded])
}

// Surplus returns how many living instances of a task are not needed for the job's gang.
func (j *Job) Surplus(task int) uint32 {
	t := j.Tasks[task]
	if j.gang == nil {
		return t.living()
	}
	return t.living() - min(t.living(), j.gang[task]-min(j.gang[task], t.Counts[Succeeded]))
}

// GangState returns how the job's gang stands.
func (j *Job) GangState() GangState {
	if j.gang == nil {
		return GangWhole
	}
	missing, lost, living := uint32(0), uint32(0), uint32(0)
	for task, t := range j.Tasks {
		missing += j.Missing(task)
		lost += j.Missing(task) - min(j.Missing(task), t.Desired-min(t.Fresh, t.Desired))
		living += t.living()
	}
	switch {
	case missing == 0 || living > 0 && lost == 0:
		return GangWhole
	case living > 0:
		return GangBroken
	}
	return GangAbsent
}

// SetGangTried notes that no nodes were found for the job's gang.
func (s *State) SetGangTried(id terms.JobID) { s.editJob(id).gangTried = s.holds }

// GangTried tells whether no nodes were found for the job's gang, and trying again would find the same. Who finds room by
// itself finds none where there is less, but whether one task after the other finds room for all depends on what runs there.
func (s *State) GangTried(j *Job) bool { return j.gangTried == s.holds || !j.gangMixed() }

// gangMixed tells whether the gang is of several tasks, or of instances that mind who runs beside them.
func (j *Job) gangMixed() bool {
	tasks, social := 0, false
	for task := range j.gang {
		if spec := j.TaskSpecOf(task, j.Version); j.gang[task] > 0 {
			tasks++
			social = social || slices.ContainsFunc(spec.Constraints, func(c constraint.Constraint) bool { return c.Social() })
		}
	}
	return tasks > 1 || social
}

// setGang notes how many instances of each task belong to the gang of the newest version.
func (j *Job) setGang() {
	j.gang = nil
	for i := range j.Spec.Tasks {
		if j.Spec.MinAvailable > 0 || j.Spec.Tasks[i].MinAvailable > 0 {
			j.gang = make([]uint32, len(j.Tasks))
			break
		}
	}
	for task := range j.gang {
		j.gang[task] = j.Spec.Gang(j.Tasks[task].Name)
	}
}

// unit returns the rank of the job's waiting work, and what is admitted together of a task.
func (j *Job) unit(task int, each terms.Amounts) (rank uint32, need terms.Amounts) {
	rank = 1 + terms.PriorityMax - min(j.Spec.Priority, terms.PriorityMax)
	switch j.GangState() {
	case GangBroken:
		return BrokenRank, each
	case GangAbsent:
		return rank, j.GangNeed()
	}
	return rank, each
}

// GangNeed returns what the missing members of the job's gang take together.
func (j *Job) GangNeed() (sum terms.Amounts) {
	for task := range j.Tasks {
		missing := int64(j.Missing(task))
		if missing == 0 {
			continue
		}
		for k, amount := range j.TaskSpecOf(task, j.Version).Amounts() {
			sum[k] = min(sum[k]+amount*missing, terms.Unlimited)
		}
	}
	return sum
}

// queue puts the task's waiting instances where they belong in the queue, and notes what they ask for. A gang that begins
// or ends to be whole is to be tried in another way than before, on all nodes.
func (s *State) queue(j *Job, task int) {
	state := j.GangState()
	changed := state != j.gangState
	// How many a gang lacks tells how many of a task come first.
	s.stirred = s.stirred || state == GangBroken
	for other := range j.Tasks {
		if changed {
			t := s.editTask(j, other)
			t.blocked, t.specialBlocked = false, false
		}
		if other == task || changed || state == GangAbsent {
			s.queueTask(j, other)
		}
	}
	j.gangState = state
	s.follow(j, task)
}

func (s *State) queueTask(j *Job, task int) {
	t, spec := s.editTask(j, task), j.TaskSpecOf(task, j.Version)
	asks, each := t.asks(spec), terms.Amounts{}
	if j.Idle(task) {
		asks = 0
	}
	if asks == 0 {
		// Nobody will tell what comes to pass around nodes meanwhile.
		t.blocked, t.specialBlocked = false, false
	}
	if spec != nil {
		each = spec.Amounts()
	}
	s.ask(j, t, asks, each)
	rank, need := j.unit(task, each)
	turn := Turn{pool: j.account(), Rank: rank, Key: KeyOf(j.ID, task), Need: need, Class: j.Spec.Class(), Blocked: t.blocked}
	s.enqueue(&t.turn, turn, t.Waits() > 0 && asks > 0)
	turn.Key, turn.Blocked = turn.Key.Special(), t.specialBlocked
	// Those that wait for a particular version may need less.
	turn.Need = terms.Amounts{}
	s.enqueue(&t.specialTurn, turn, t.SpecialWaits() > 0 && asks > 0)
}

// enqueue puts one lane of a task where it belongs. What is there already stays: the end of its patience may be due.
func (s *State) enqueue(old *Turn, turn Turn, waits bool) {
	if !waits {
		turn = Turn{}
	}
	if *old == turn {
		return
	}
	key := old.Key | turn.Key
	if old.Key != 0 {
		s.turns.Delete(*old)
	}
	if turn.Key != 0 {
		s.turns.Set(turn)
	}
	stays := old.Key != 0 && turn.Key != 0 && old.Blocked == turn.Blocked
	*old = turn
	if !turn.Blocked {
		s.stirred = true
	}
	if !stays {
		s.attend(key, turn.Key != 0, turn.Blocked)
	}
}

// SetBlocked notes that all nodes were tried for what waits of the task, so that only nodes which grow can help; or
// that all have to be tried.
func (s *State) SetBlocked(key TaskKey, blocked bool) {
	id, task := key.Split()
	j := s.editJob(id)
	t := s.editTask(j, task)
	if key.IsSpecial() {
		t.specialBlocked = blocked
	} else {
		t.blocked = blocked
	}
	s.queue(j, task)
}

// Blocked tells whether all nodes were tried for what waits of the task.
func (s *State) Blocked(key TaskKey) bool { return s.laneOf(key).Blocked }

// Waiting returns how many lanes of tasks wait.
func (s *State) Waiting() int { return s.turns.Len() }

// FirstTurn returns the place before everything that waits in the pool at a number of the tree, -1 for daemons.
func (s *State) FirstTurn(number int) Turn {
	if number < 0 {
		return Turn{}
	}
	return Turn{pool: s.pools.ids[number]}
}

// NextTurn returns the first turn of the same pool behind one that is wanted; ok is false if there is none.
func (s *State) NextTurn(behind Turn, wanted func(Turn) bool) (next Turn, ok bool) {
	s.turns.Ascend(behind, func(t Turn) bool {
		switch {
		case t.pool != behind.pool:
			return false
		case t.pool == behind.pool && t.Rank == behind.Rank && t.Key == behind.Key || !wanted(t):
			return true
		}
		next, ok = t, true
		return false
	})
	return next, ok
}

// Queued tells whether a lane of a task waits.
func (s *State) Queued(key TaskKey) bool { return s.laneOf(key).Key != 0 }

// laneOf returns where a lane of a task stands in the queue.
func (s *State) laneOf(key TaskKey) *Turn {
	id, task := key.Split()
	if key.IsSpecial() {
		return &s.Job(id).Tasks[task].specialTurn
	}
	return &s.Job(id).Tasks[task].turn
}

// QueuedKeys returns all lanes that wait, in the order of the accounts of their pools and then of their turns.
func (s *State) QueuedKeys() []TaskKey {
	keys := make([]TaskKey, 0, s.turns.Len())
	s.turns.Scan(func(t Turn) bool {
		keys = append(keys, t.Key)
		return true
	})
	return keys
}

// TakeMoved tells whether more or less was held, asked for or given since it was called last.
func (s *State) TakeMoved() bool {
	moved := s.moved
	s.moved = false
	return moved
}

// Stir lets placement look again with the next entry.
func (s *State) Stir() { s.stirred = true }

// TakeStirred tells whether more or less was held, asked for or offered since it was called last.
func (s *State) TakeStirred() bool {
	stirred := s.stirred
	s.stirred = false
	return stirred
}
