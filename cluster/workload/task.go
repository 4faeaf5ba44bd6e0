package workload

import (
	"slices"

	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/cluster/vector"
	"starling/terms"
)

// Task is a task as it stands in the value: its facts, its slots, and what follows from them.
type Task struct {
	epoch *vector.Epoch
	facts.Task
	// Slots are the main seats.
	Slots vector.Of[facts.Slot]
	// Counts are the main seats below Slots.Len per phase, Secondary the other seats.
	Counts, Secondary [facts.PhaseCount]uint32
	// New and Old are the main seats below Desired by health: those of the newest version, or on their way to it, and
	// those of another. What does not run counts as starting, what succeeded as healthy and new.
	New, Old [facts.HealthCount]uint32
	// Canaries are the canary seats by health, counted in the same way.
	Canaries [facts.HealthCount]uint32
	// returned are the slots below Fresh that wait for any node and the newest version; nil where there never was one.
	returned *btree.Set[uint32]
	// Asked is how many instances ask for room, AskedEach what one takes: as the account of the pool has it.
	Asked uint32
	// WasComplete tells, in a job whose tasks have an order, whether it was so when the tasks after it were looked at
	// last.
	WasComplete bool
	AskedEach   terms.Amounts
	// QueueEntry and SpecialEntry are where it stands in the queue, zero where nothing waits.
	QueueEntry, SpecialEntry QueueEntry
	// extras are what few tasks have; nil for the others.
	extras *extras
	// Digest is the sum over the slots, Row what the task's own row adds to that of the value.
	Digest, Row uint64
	// FailureHash is the hash of the failure.
	nameHash, FailureHash uint64
}

// NewTask returns a task of a name, of an epoch.
func NewTask(e *vector.Epoch, name terms.TaskName) *Task {
	return &Task{epoch: e, Task: facts.Task{Name: name}, nameHash: facts.NameHash(name)}
}

// Own returns the task for changing in an epoch: itself if it was made there, else a copy.
func (t *Task) Own(e *vector.Epoch) *Task {
	if t.epoch == e {
		return t
	}
	clone := *t
	clone.epoch = e
	if clone.extras = t.extras.copy(); t.returned != nil {
		shared := *t.returned // its Copy marks what it copies, and that others may be reading
		clone.returned = shared.Copy()
	}
	return &clone
}

// RowHash covers the task's row; its slots are counted in its digest.
func (t *Task) RowHash(id terms.JobID, task int) uint64 {
	return t.Task.Hash(facts.KeyOf(id, task), t.Slots.Len(), t.nameHash, t.FailureHash)
}

// Facts returns the facts about the task; they do not change with it.
func (t *Task) Facts() facts.WholeTask {
	f := facts.WholeTask{Task: t.Task, Length: t.Slots.Len()}
	for index := range min(int(t.Fresh), f.Length) {
		f.Slots = append(f.Slots, t.Slots.At(index))
	}
	if t.extras != nil {
		f.Secondary, f.Attempts = facts.RowsOf(t.extras.secondary), facts.RowsOf(t.extras.attempts)
	}
	return f
}

// Waits returns how many slots of the task wait for any node and the newest version.
func (t *Task) Waits() uint32 {
	waits := t.Desired - min(t.Fresh, t.Desired)
	if t.returned != nil {
		waits += uint32(t.returned.Len())
	}
	return waits
}

// Return notes that a slot below Fresh waits for any node and the newest version.
func (t *Task) Return(index uint32) {
	if t.returned == nil {
		t.returned = new(btree.Set[uint32])
	}
	t.returned.Insert(index)
}

// FirstReturned returns the first slot below Fresh that waits for any node and the newest version; ok is false if none
// does.
func (t *Task) FirstReturned() (index uint32, ok bool) {
	if t.returned == nil {
		return 0, false
	}
	return t.returned.Min()
}

// SpecialWaits returns how many seats of the task wait for a particular node or version.
func (t *Task) SpecialWaits() int {
	if t.extras == nil {
		return 0
	}
	return t.extras.special.Len()
}

// Live returns how many seats of the task hold room.
func (t *Task) Live() uint32 {
	count := uint32(0)
	for phase := facts.Assigned; phase <= facts.Unknown; phase++ {
		count += t.Counts[phase] + t.Secondary[phase]
	}
	return count
}

// living counts the main seats of the task that run or are about to.
func (t *Task) living() uint32 {
	return t.Counts[facts.Assigned] + t.Counts[facts.Running] + t.Counts[facts.BackingOff] + t.Counts[facts.Unknown]
}

// Pending returns how many seats of the task want an allocation that they do not have.
func (t *Task) Pending() uint32 {
	return t.Waits() + uint32(t.SpecialWaits()) + t.Counts[facts.Rescheduling] + t.Secondary[facts.Rescheduling]
}

// AskFor returns how many instances of the task ask for room: those that wait and may run beside those that do.
func (t *Task) AskFor(spec *terms.Task) uint32 {
	if spec == nil {
		return 0
	}
	waits := t.Waits() + uint32(t.SpecialWaits())
	if spec.MaxRunning > 0 {
		waits = min(waits, spec.MaxRunning-min(spec.MaxRunning, t.Live()))
	}
	return waits
}

// Asks returns how many instances of the task are to be given room: those that wait and may run beside those that do,
// as far as the task has virtual peers for them if such run it.
func (t *Task) Asks() uint32 {
	if share, ok := t.Share(); ok {
		return min(t.Asked, share-min(share, t.Live()))
	}
	return t.Asked
}

// Counted is what a task counts of its slots, and how it stands in the queue.
type Counted struct {
	counts, secondary     [facts.PhaseCount]uint32
	newest, old, canaries [facts.HealthCount]uint32
	asked                 uint32
	askedEach             terms.Amounts
	entry, special        QueueEntry
	complete              bool
	digest                uint64
}

// Counted returns what the task counts of its slots, and how it stands in the queue.
func (t *Task) Counted() Counted {
	return Counted{t.Counts, t.Secondary, t.New, t.Old, t.Canaries, t.Asked, t.AskedEach, t.QueueEntry, t.SpecialEntry,
		t.WasComplete, t.Digest}
}

// Lists returns which slots wait for any node and were placed before, which seats wait for a particular one, which
// slots an update has to move, and which of these are ill.
func (t *Task) Lists() [4][]uint64 {
	r, returned := t.extras.orNone(), new(btree.Set[uint32])
	if t.returned != nil {
		returned = t.returned
	}
	return [...][]uint64{widened(returned.Keys()), widened(r.special.Keys()), widened(r.outdated.Keys()),
		widened(r.ill.Keys())}
}

func widened[K ~uint32 | ~uint64](keys []K) []uint64 {
	all := make([]uint64, len(keys))
	for i, key := range keys {
		all[i] = uint64(key)
	}
	return all
}

// CutReturned takes the slots from one on out of those that wait for any node and were placed before.
func (t *Task) CutReturned(from uint32) {
	for t.returned != nil && t.returned.Len() > 0 {
		last, _ := t.returned.GetAt(t.returned.Len() - 1)
		if last < from {
			return
		}
		t.returned.Delete(last)
	}
}

// Unsuited tells whether the job has not ended, and no node could run a task of it.
func (j *Job) Unsuited() bool {
	return j.Finished == 0 && slices.ContainsFunc(j.Tasks, func(t *Task) bool { return t.Unsuited })
}
