package facts

import "starling/terms"

// Phase is how far the present allocation of a slot is.
type Phase uint8

// The phases of a slot.
const (
	// Waiting means that no node has been chosen yet.
	Waiting Phase = iota
	// Rescheduling means that its allocation failed, and that another node will be looked for at its Deadline.
	Rescheduling
	// Assigned means that its node was told to run it.
	Assigned
	// Running means that its node reported that it runs.
	Running
	// BackingOff means that it failed and will be started again on its node at its Deadline.
	BackingOff
	// Stopping means that its node was told to end it; it holds its room until the node reports the end.
	Stopping
	// Unknown means that its node left and may return until its Deadline; nobody knows whether it runs.
	Unknown
	// Succeeded, Failed and Stopped are final: it ended well, it is out of attempts, it was stopped on request.
	Succeeded
	Failed
	Stopped
	PhaseCount
)

// String returns the phase as people read it.
func (p Phase) String() string {
	return [...]string{"waiting", "rescheduling", "assigned", "running", "backing off", "stopping", "unknown", "succeeded",
		"failed", "stopped"}[p]
}

// Holds tells whether a slot in this phase takes room on its node.
func (p Phase) Holds() bool { return p >= Assigned && p <= Unknown }

// Stays tells whether a slot in this phase takes room on its node and was not told to stop.
func (p Phase) Stays() bool { return p.Holds() && p != Stopping }

// Final tells whether a slot in this phase has ended for good.
func (p Phase) Final() bool { return p >= Succeeded }

// Health is what is known of how well an allocation is.
type Health uint8

// The healths.
const (
	// Starting means that it has not been ready yet, or is not ready any more.
	Starting Health = iota
	// Ready means that it runs and all its checks have passed.
	Ready
	// Healthy means that it has been ready for as long as the job wants.
	Healthy
	// Unhealthy means that it failed too often, or was not healthy in time.
	Unhealthy
	HealthCount
)

// Ready tells whether what has this health passes all its checks.
func (h Health) Ready() bool { return h == Ready || h == Healthy }

// String returns the health as people read it.
func (h Health) String() string { return [...]string{"starting", "ready", "healthy", "unhealthy"}[h] }

// NodePreference is what a waiting slot prefers about its last node.
type NodePreference uint8

// The preferences.
const (
	// AnyNode prefers none.
	AnyNode NodePreference = iota
	// PreferNode takes the last node if it has room.
	PreferNode
	// AvoidNode takes the last node only if no other has room.
	AvoidNode
	// OnlyNode waits for the last node: the slot's volumes are there.
	OnlyNode
)

// Cause is why an allocation was told to stop, which also tells what comes after it.
type Cause uint8

// The causes.
const (
	// NoCause is that of a slot that was not told to stop.
	NoCause Cause = iota
	// ByUpdate: the newest version takes its place.
	ByUpdate
	// ByDrain, ByMove, ByRestart: the same version takes its place: elsewhere, elsewhere, on its node; ByRelease:
	// anywhere, with empty volumes.
	ByDrain
	ByMove
	ByRestart
	// ByScale, ByJob and ByRivals: nothing takes its place: the slot is not wanted any more, the job was stopped, or
	// another allocation of the slot stays.
	ByScale
	ByJob
	ByRival
	// ByPreemption: others are entitled to its room; it waits for its next turn, unless its job ends what gave way.
	ByPreemption
	// ByRunTime: it ran for as long as it may; nothing takes its place.
	ByRunTime
	// BySuspension: its job is suspended; it waits until that is resumed.
	BySuspension
	// ByTaskRestart and ByJobRestart: it begins anew when all of the task, or of the job, has ended.
	ByTaskRestart
	ByJobRestart
	// ByTermination and ByCompletion: a policy ended the job as a failure, or as a success.
	ByTermination
	ByCompletion
	// ByPolicy and ByTaskPolicy are those of a slot that does not run: it is Rescheduling until what a policy says is
	// done, because its instance failed or was evicted, or has failed for good.
	ByPolicy
	ByTaskPolicy
	ByRelease
)

// String returns the cause in words.
func (c Cause) String() string {
	return [...]string{"", "a new version takes its place", "its node is drained", "it was told to move",
		"it was told to restart",
		"the job needs fewer instances", "the job was stopped", "another allocation of the slot stays",
		"it gave way to work that is entitled to its room", "it ran for as long as it may",
		"the job was suspended", "it is restarted with its task", "it is restarted with its job",
		"the job has failed by a policy",
		"the job has succeeded", "a policy decides what follows", "a policy decides what follows",
		"what its volumes hold was given up"}[c]
}

// Slot is the place of one instance, with its present allocation. The zero Slot waits and was never placed.
type Slot struct {
	// Order is the index of the entry that ordered the allocation; 0 if there never was one.
	Order terms.Index
	// Deadline is when the next thing is due that no node reports: the start of one that is BackingOff, the look for
	// another node of one that is Rescheduling or what a policy says of it, the decision on the health of one that is
	// Assigned or Running, the timeout of one that is Unknown, what a policy says if a Waiting one has no node
	// by then. 0 is never.
	Deadline terms.Time
	// Since is when the phase or health began; for Running slots that is the start as the fold learnt it. It is 0 for
	// Stopping ones that are to end at once, without delay and grace.
	Since terms.Time
	// Node runs the allocation, or ran the last one. It has no meaning while Order is 0.
	Node NodeIndex
	// Version of the job that the allocation was ordered with; of a slot that waits the version it is to get, 0 for the
	// newest.
	Version uint32
	// Failures in a row.
	Failures uint32
	// ExitCode of the last end: the program's own, or 128 and the signal's number.
	ExitCode int32
	Phase    Phase
	// Ended tells how the last allocation ended.
	Ended      Ending
	Health     Health
	Preference NodePreference
	Cause      Cause
}

// AtOnce tells that the allocation is to end without delay and grace.
func (s *Slot) AtOnce() bool { return s.Phase == Stopping && s.Since == 0 }

// Anew tells whether what is stopped begins anew as if nothing had been before.
func (c Cause) Anew() bool { return c == ByTaskRestart || c == ByJobRestart }

// ByPolicies tells whether an instance is stopped by what a policy made of its task or job.
func (c Cause) ByPolicies() bool { return c >= ByTaskRestart && c <= ByCompletion }

// Succeeds tells whether what takes the place of an instance that was told to stop by it has its room, too.
func (c Cause) Succeeds() bool { return c == ByUpdate || c == ByRestart }

// Evicts tells whether an instance is stopped through no fault of its own.
func (c Cause) Evicts() bool { return c == ByPreemption || c == ByDrain }

// ByPolicy tells whether a policy is to decide what becomes of a slot that does not run.
func (s *Slot) ByPolicy() bool {
	return s.Phase == Waiting && s.Deadline != 0 || s.Phase == Rescheduling && s.Cause != NoCause
}

// OwnExitCode is that of the last end if nobody had told the program to end, else 0.
func (s *Slot) OwnExitCode() int32 {
	switch s.Ended {
	case ByItself, BySignal, OutOfMemory, OutOfDisk:
		return s.ExitCode
	}
	return 0
}

// Ending is how an allocation ended.
type Ending uint8

// The endings.
const (
	// NotEnded means that no allocation of the slot has ended yet.
	NotEnded Ending = iota
	// ByItself: the program exited.
	ByItself
	// BySignal: a signal that Starling did not send for a stop ended it.
	BySignal
	// OutOfMemory: it used more memory than it had asked for.
	OutOfMemory
	// NotStarted: the node could not start it.
	NotStarted
	// NodeLost: its node left the cluster.
	NodeLost
	// OnRequest: it was told to stop.
	OnRequest
	// CheckFailed: one of its checks failed too often.
	CheckFailed
	// Preempted: it gave way to others.
	Preempted
	// OutOfTime: it ran for as long as it may.
	OutOfTime
	// OutputLost: it succeeded, and its node has not got any more what it left for others.
	OutputLost
	// OutOfDisk: it took more of the disk than it may, or filled it. Reports tell so since rules.DiskLimits.
	OutOfDisk
	// NotThere: its node lacks the program, the user or the folder with which it would be started. Reports tell so since
	// rules.Lacks.
	NotThere
	EndingCount
)

// String returns the ending in words.
func (e Ending) String() string {
	return [...]string{"not ended", "exited", "killed by a signal", "out of memory", "could not be started",
		"its node was lost", "stopped on request", "a check failed",
		"gave way to others", "ran for too long", "its output was lost", "out of disk", "could not be started there"}[e]
}

// Special tells whether a waiting slot wants a particular node or version.
func (s *Slot) Special() bool { return s.Version != 0 || s.Preference != AnyNode }

// Trial returns how a canary counts.
func (s *Slot) Trial() Health {
	if s.Phase == Running || s.Health == Unhealthy && s.Phase != Stopping {
		return s.Health
	}
	return Starting
}

// Empty tells whether a row is that of a seat which has no allocation: what it says is of the last one.
func (s *Slot) Empty() bool { return s.Phase == Waiting || s.Phase == Stopped }

// Found tells whether a slot in this phase is found on its node, now or in a moment.
func (p Phase) Found() bool { return p == Assigned || p == Running || p == BackingOff }
