package cluster

import (
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/tree"
	"starling/terms"
)

// The queue of what waits to be admitted: by pool, and within it in the order in which units have their turn.

// Turn is the place of a task's waiting instances in the queue of their pool.
type Turn struct {
	// pool is the account of the pool, 0 for daemons, which come first and are not admitted.
	pool tree.ID
	// Rank is lower the earlier: 0 for a gang that runs and lost members, then the highest priority. Key, and with it the age
	// of the job, decides between equals.
	Rank uint32
	Key  facts.TaskKey
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
func (j *Job) account() tree.ID {
	if j.Spec.Type == terms.Daemon {
		return 0
	}
	return j.Pool
}

// living counts the main seats of the task that run or are about to.
func (t *Task) living() uint32 {
	return t.Counts[facts.Assigned] + t.Counts[facts.Running] + t.Counts[facts.Delayed] + t.Counts[facts.Away]
}

// HasGang tells whether some instances of the job must run together.
func (j *Job) HasGang() bool { return j.gang != nil }

// GangRow returns how a task stands for the job's gang.
func (j *Job) GangRow(task int) gang.Task {
	t := j.Tasks[task]
	row := gang.Task{Living: t.living(), Done: t.Counts[facts.Succeeded], Fresh: t.Desired - min(t.Fresh, t.Desired)}
	if j.gang != nil {
		row.Least = j.gang[task]
	}
	return row
}

// GangCount sums up the rows, and returns how many members of the gang are beyond the least of the tasks.
func (j *Job) GangCount() (c gang.Count, beyond uint32) {
	for task := range j.gang {
		row := j.GangRow(task)
		c.Add(&row)
	}
	return c, j.gangAny
}

// Missing returns how many members of the job's gang a task lacks of its own least.
func (j *Job) Missing(task int) uint32 {
	row := j.GangRow(task)
	return row.Missing()
}

// MissingAny returns how many members of the job's gang are missing that may be of any task.
func (j *Job) MissingAny() uint32 {
	c, beyond := j.GangCount()
	return c.Any(beyond)
}

// GangState returns how the job's gang stands.
func (j *Job) GangState() gang.State {
	c, beyond := j.GangCount()
	return c.State(beyond, j.Spec.Grow == terms.GrowWhole)
}

// SetGangTried notes that no nodes were found for the job's gang.
func (s *State) SetGangTried(id terms.JobID) {
	j := s.editJob(id)
	j.GangTried = s.Holds
	s.countJob(j)
}

// GangTried tells whether no room was taken anywhere since no nodes were found for the job's gang.
func (s *State) GangTried(j *Job) bool { return j.GangTried == s.Holds }

// setGang notes how many instances of each task, and of any, belong to the gang of the newest version.
func (j *Job) setGang() {
	j.gang, j.gangAny = nil, j.Spec.GangBeyond()
	if !j.Spec.HasGang() {
		return
	}
	j.gang = make([]uint32, len(j.Tasks))
	for i := range j.Spec.Tasks {
		j.gang[j.TaskIndex(j.Spec.Tasks[i].Name)] = j.Spec.Tasks[i].MinAvailable
	}
}

// unit is the rank of a job's waiting work, and what its gang takes if that is admitted together.
type unit struct {
	rank     uint32
	together bool
	need     terms.Amounts
}

func (j *Job) unit(state gang.State) unit {
	u := unit{rank: 1 + terms.PriorityMax - min(j.Spec.Priority, terms.PriorityMax), together: state >= gang.Growing}
	switch {
	case state == gang.Broken:
		u.rank = BrokenRank
	case u.together:
		u.need = j.GangNeed()
	}
	return u
}

// GangNeed returns what the missing members of the job's gang take together, or less if they may be of several tasks that
// do not take the same.
func (j *Job) GangNeed() (sum terms.Amounts) {
	var options []gang.Option
	for task, t := range j.Tasks {
		spec, missing := j.TaskSpecOf(task, j.Version), j.Missing(task)
		if spec == nil {
			continue
		}
		each := spec.Amounts()
		for k, amount := range each {
			sum[k] = min(sum[k]+amount*int64(missing), terms.Unlimited)
		}
		if asks := t.asks(spec); asks > missing && j.gangAny > 0 {
			options = append(options, gang.Option{Each: each, Most: asks - missing})
		}
	}
	for k, amount := range gang.Least(j.MissingAny(), options) {
		sum[k] = min(sum[k]+amount, terms.Unlimited)
	}
	return sum
}

// queue puts the task's waiting instances where they belong in the queue, and notes what they ask for. A gang that begins
// or ends to be whole is to be tried in another way than before, on all nodes.
func (s *State) queue(j *Job, task int) {
	state := j.GangState()
	changed := state != j.gangState
	// How many a gang lacks tells how many of a task come first.
	s.Stirred = s.Stirred || state == gang.Broken
	u := j.unit(state)
	for other := range j.Tasks {
		if changed {
			t := s.editTask(j, other)
			t.Blocked, t.SpecialBlocked = false, false
		}
		if other == task || changed || u.together {
			s.queueTask(j, other, &u)
		}
	}
	j.gangState = state
	s.follow(j, task)
}

func (s *State) queueTask(j *Job, task int, u *unit) {
	t, spec := s.editTask(j, task), j.TaskSpecOf(task, j.Version)
	asks, each := t.asks(spec), terms.Amounts{}
	if j.Idle(task) {
		asks = 0
	}
	// Nobody tells what comes to pass around nodes while nothing asks for room.
	t.Blocked, t.SpecialBlocked = t.Blocked && asks > 0 && t.Waits() > 0, t.SpecialBlocked && asks > 0 && t.SpecialWaits() > 0
	if spec != nil {
		each = spec.Amounts()
	}
	s.ask(j, t, asks, each)
	turn := Turn{pool: j.account(), Rank: u.rank, Key: facts.KeyOf(j.ID, task), Need: each, Class: j.Spec.Class(), Blocked: t.Blocked}
	if u.together {
		turn.Need = u.need
	}
	s.enqueue(&t.turn, turn, t.Waits() > 0 && asks > 0)
	turn.Key, turn.Blocked = turn.Key.Special(), t.SpecialBlocked
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
	if old.Blocked != turn.Blocked {
		s.digest += facts.BlockedHash(key, turn.Blocked) - facts.BlockedHash(key, old.Blocked)
	}
	if old.Key != 0 {
		s.turns.Delete(*old)
	}
	if turn.Key != 0 {
		s.turns.Set(turn)
	}
	stays := old.Key != 0 && turn.Key != 0 && old.Blocked == turn.Blocked
	*old = turn
	if !turn.Blocked {
		s.Stirred = true
	}
	if !stays {
		s.attend(key, turn.Key != 0, turn.Blocked)
	}
}

// SetBlocked notes that all nodes were tried for what waits of the task, so that only nodes which grow can help; or
// that all have to be tried.
func (s *State) SetBlocked(key facts.TaskKey, blocked bool) {
	id, task := key.Split()
	j := s.editJob(id)
	t := s.editTask(j, task)
	if key.IsSpecial() {
		t.SpecialBlocked = blocked
	} else {
		t.Blocked = blocked
	}
	s.queue(j, task)
}

// Blocked tells whether all nodes were tried for what waits of the task.
func (s *State) Blocked(key facts.TaskKey) bool { return s.laneOf(key).Blocked }

// Waiting returns how many lanes of tasks wait.
func (s *State) Waiting() int { return s.turns.Len() }

// FirstTurn returns the place before everything that waits in the pool at a number of the tree, -1 for daemons.
func (s *State) FirstTurn(number int) Turn {
	if number < 0 {
		return Turn{}
	}
	return Turn{pool: s.pools.IDs[number]}
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
func (s *State) Queued(key facts.TaskKey) bool { return s.laneOf(key).Key != 0 }

// laneOf returns where a lane of a task stands in the queue.
func (s *State) laneOf(key facts.TaskKey) *Turn {
	id, task := key.Split()
	if key.IsSpecial() {
		return &s.Job(id).Tasks[task].specialTurn
	}
	return &s.Job(id).Tasks[task].turn
}

// QueuedKeys returns all lanes that wait, in the order of the accounts of their pools and then of their turns.
func (s *State) QueuedKeys() []facts.TaskKey {
	keys := make([]facts.TaskKey, 0, s.turns.Len())
	s.turns.Scan(func(t Turn) bool {
		keys = append(keys, t.Key)
		return true
	})
	return keys
}

// TakeMoved tells whether more or less was held, asked for or given since it was called last.
func (s *State) TakeMoved() bool {
	moved := s.Moved
	s.Moved = false
	return moved
}

// Stir lets placement look again with the next entry.
func (s *State) Stir() { s.Stirred = true }

// TakeStirred tells whether more or less was held, asked for or offered since it was called last.
func (s *State) TakeStirred() bool {
	stirred := s.Stirred
	s.Stirred = false
	return stirred
}
