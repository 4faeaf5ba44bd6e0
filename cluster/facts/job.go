package facts

import (
	"starling/cluster/tree"
	"starling/cluster/want"
	"starling/terms"
)

// Job is the facts about a job, without its tasks.
type Job struct {
	ID terms.JobID
	// Version is the number of the newest version, from 1.
	Version uint32
	// Submitted and Changed are the entries that brought the first and the newest version or stop.
	Submitted, Changed terms.Index
	SubmittedAt        terms.Time
	// Stop tells that its user asked it to end.
	Stop bool
	// Suspended tells that its user, or a policy, wants nothing of it to run for now.
	Suspended bool
	// Awaits are those of the jobs it comes after that have not succeeded yet, ordered by name.
	Awaits []terms.JobName
	// PolicyState is what policies, or other jobs, made of it.
	PolicyState PolicyState
	// Finished is the entry with which the last slot ended; 0 while it is not finished.
	Finished   terms.Index
	FinishedAt terms.Time
	// Roster is that of its members.
	Roster Roster
	// Update is the record of the latest update.
	Update Update
	// Versions are the kept ones, oldest first; the last is the newest.
	Versions []JobVersion
	// UpdateDeadline is the time of the deadline that the update has among the deadlines, 0 for none.
	UpdateDeadline terms.Time
	// Pool is the account of the pool that the job lives in.
	Pool tree.ID
	// GangTried is how often room had been taken anywhere when no nodes were found for the gang.
	GangTried uint64
}

// Good returns the newest version below the given one whose update succeeded, 0 if there is none.
func (j *Job) Good(below uint32) uint32 {
	for i := len(j.Versions) - 1; i >= 0; i-- {
		if v := &j.Versions[i]; v.Number < below && (v.Outcome == UpdateSucceeded || v.Outcome == RolledBack) {
			return v.Number
		}
	}
	return 0
}

// Standing returns how a main seat counts for an update: whether it has the newest version or is on its way to it, and
// its health.
func (j *Job) Standing(s *Slot) (newest bool, health Health) {
	switch {
	case s.Phase == Succeeded || s.Phase == Stopped:
		return true, Healthy
	case s.Phase == Stopping && s.Cause == ByUpdate:
		return true, Starting
	case s.Phase == Running || s.Health == Unhealthy:
		health = s.Health
	}
	return s.Version == 0 || s.Version == j.Version, health
}

// Task is the facts about a task, without its slots.
type Task struct {
	Name terms.TaskName
	// Desired is how many slots there should be now: slots from Desired on are leaving. An update moves it towards the
	// number that the newest version wants.
	Desired uint32
	// Fresh is the first slot that was never placed; all above are like it.
	Fresh uint32
	// Failure is the latest end of an allocation that was no success and not asked for.
	Failure Failure
	// Preemption is the latest end of an allocation that gave way.
	Preemption Preemption
	// Restarts is how often policies restarted it in the newest version. Restarting tells that nothing of it begins before
	// all that lives has ended.
	Restarts   uint32
	Restarting bool
	// Blocked tells that all nodes were tried for what waits of returned and fresh slots, and SpecialBlocked of special
	// ones, and only a node with more room than then can help.
	Blocked, SpecialBlocked bool
	// Unsuited tells that no node could run it even if it were empty: then it asks for no room.
	Unsuited bool
	// ShareBound is one more than how many may run at a time, 0 where virtual peers do not run them or have not been
	// divided.
	ShareBound uint32
	// Completion is what policies make of it that it is complete.
	Completion Completion
	// Seal tells whether no more instances begin.
	Seal Seal
	// Most is the most that any version of it has wanted.
	Most want.Most
}

// Share returns how many instances of a task may run at a time, as its pool divides its virtual peers; ok is false
// where it does not, or did not yet.
func (t *Task) Share() (share uint32, ok bool) {
	return max(t.ShareBound, 1) - 1, t.ShareBound > 0
}

// Preemption tells how an allocation gave way. The zero Preemption is none.
type Preemption struct {
	// Index is the slot, Entry the journal's that ended it.
	Index uint32
	Entry terms.Index
	At    terms.Time
	// By is the job that needed its room, Rule the number of the rule by which it could.
	By   terms.JobName
	Rule uint8
}

// FailureDetailBytesMax bounds a failure's detail.
const FailureDetailBytesMax = 256

// Failure tells how an allocation failed. The zero Failure is none.
type Failure struct {
	Index    uint32
	Order    terms.Index
	At       terms.Time
	Ended    Ending
	ExitCode int32
	// Detail is what the node said, such as "program not found"; it may be empty.
	Detail string
}

// Seal tells who has seen the end of a task's input, and by which entry he was the first to say so. The zero Seal is
// none.
type Seal struct {
	Index        uint32
	Order, Entry terms.Index
	// Count is how many instances had begun: no others do.
	Count uint32
}

// Roster tells since when the list of a job's members is what it is. It is zero for jobs without plugins, which nobody
// tells about their members.
type Roster struct {
	// Version is the entry with which the list became so, Sum a hash of the list.
	Version terms.Index
	Sum     uint64
}
