package terms

import (
	"slices"
	"strings"
)

// What a job says about sharing its pool and its virtual peers.

// Preemption is what a job says about giving way to work that is entitled to its room.
type Preemption uint8

const (
	// PreemptionByType lets batch and stateless work be preempted, and no other.
	PreemptionByType Preemption = iota
	// NonPreemptible lets no instance of the job be preempted.
	NonPreemptible
	// Preemptible lets all be, also those of a stateful job.
	Preemptible
)

// NonPreemptible tells whether instances are never told to give way: if the job says so, or has state on its machines
// and does not say that they may be. Such work counts against what its pool reserves, and of a kind of which that is
// nothing against what no pool reserves.
func (s *Job) NonPreemptible() bool {
	return s.Preemption == NonPreemptible || s.Preemption == PreemptionByType && s.Type == Stateful
}

// RunsAtMost returns after how many milliseconds an instance that has started has ended at the latest, with the time
// that it is given to stop; 0 is never.
func (t *Task) RunsAtMost() Time {
	if t.MaxRunMillis == 0 {
		return 0
	}
	return Time(t.MaxRunMillis) + t.StopDelay(Batch) + Time(t.StopGraceMillis)
}

// RunsAtMost returns the same of the instances of all tasks of a job.
func (s *Job) RunsAtMost() (most Time) {
	for i := range s.Tasks {
		one := s.Tasks[i].RunsAtMost()
		if one == 0 {
			return 0
		}
		most = max(most, one)
	}
	return most
}

// TaskScheduler says to which of its tasks the next virtual peer of a job goes.
type TaskScheduler uint8

// The task schedulers.
const (
	// NoScheduler is that of jobs that share no virtual peers.
	NoScheduler TaskScheduler = iota
	// TaskGreedy gives all to the first task that can use one, after what the coverage of the job needs.
	TaskGreedy
	// TaskRoundRobin gives the next to the task with the fewest.
	TaskRoundRobin
	// TaskPercentage divides by what the tasks state.
	TaskPercentage
	// TaskFixed gives each task what belongs to the gang, at least one, and never more.
	TaskFixed
	// TaskColocated gives one to each task at a time, all on one machine: a copy of the job.
	TaskColocated
)

// TaskSchedulers lists every scheduler's name in job files at its number.
func TaskSchedulers() []string {
	return []string{"", "greedy", "round-robin", "percentage", "fixed", "colocated"}
}

// String returns the scheduler's name in job files, "" for none.
func (s TaskScheduler) String() string { return TaskSchedulers()[s] }

// Coverage says whether a job runs at all with virtual peers for some of its tasks only.
type Coverage uint8

// The coverages.
const (
	// CoverageByType is that of jobs that say nothing: what suits their type.
	CoverageByType Coverage = iota
	// CoverageRequired gives a job no virtual peer unless each of its open tasks has what it needs, at least one.
	CoverageRequired
	// CoverageOptional lets a job run with a single virtual peer, which goes from one task to the next as they are
	// completed.
	CoverageOptional
)

// Coverages lists every coverage's name in job files at its number.
func Coverages() []string { return []string{"", "required", "optional"} }

// String returns the coverage's name in job files, "" for that of the type.
func (c Coverage) String() string { return Coverages()[c] }

// NeedsCoverage tells whether the job gets no virtual peer unless all its open tasks are covered. The instances of
// batch jobs end, so that a single virtual peer makes progress; those of others do not. A copy of a colocated job has
// all its tasks.
func (s *Job) NeedsCoverage() bool {
	if s.Coverage == CoverageByType {
		return s.Type != Batch || s.TaskScheduler == TaskColocated
	}
	return s.Coverage == CoverageRequired
}

// JobScheduler says to which job of a pool its next virtual peer goes.
type JobScheduler uint8

// The job schedulers.
const (
	// JobPriority gives all to the highest priority, then the oldest.
	JobPriority JobScheduler = iota
	// JobGreedy gives all to the oldest that can use one.
	JobGreedy
	// JobRoundRobin gives the next to the job with the fewest.
	JobRoundRobin
	// JobPercentage divides by what the jobs state.
	JobPercentage
)

// JobSchedulers lists every scheduler's name in pool files at its number.
func JobSchedulers() []string { return []string{"priority", "greedy", "round-robin", "percentage"} }

// String returns the scheduler's name in pool files.
func (s JobScheduler) String() string { return JobSchedulers()[s] }

// Shares tells whether the instances of the job are run by virtual peers, which it shares with the other such jobs of
// its pool.
func (s *Job) Shares() bool { return s.TaskScheduler != NoScheduler }

// OnVirtualPeers makes each instance of the job take one virtual peer.
func (s *Job) OnVirtualPeers() {
	for i := range s.Tasks {
		t, name := &s.Tasks[i], VirtualPeers.String()
		at, asked := slices.BinarySearchFunc(t.Devices, name,
			func(q DeviceRequest, name string) int { return strings.Compare(q.Kind, name) })
		if !asked {
			t.Devices = slices.Insert(slices.Clip(t.Devices), at, DeviceRequest{Kind: name, Amount: WholeDevice})
		}
	}
}
