package terms

import (
	"slices"
	"strconv"
	"strings"
)

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

// virtualPeers returns which of the task's requests is for virtual peers, below 0 for none.
func (t *Task) virtualPeers() int {
	return slices.IndexFunc(t.Devices, func(q DeviceRequest) bool { return q.Kind == VirtualPeers.String() })
}

// schedulerProblems adds what is wrong with what the job says about sharing virtual peers.
func (s *Job) schedulerProblems(p *problems) {
	p.bounded("percent", int64(s.Percent), 0, 100)
	if s.TaskScheduler > TaskColocated {
		p.add("task_scheduler", "must be one of %s", strings.Join(TaskSchedulers()[1:], ", "))
		return
	}
	s.coverageProblems(p)
	s.peersProblems(p)
	for i := range s.Tasks {
		t, path := &s.Tasks[i], "tasks["+strconv.Itoa(i)+"]"
		at := t.virtualPeers()
		switch {
		case t.Percent > 100:
			p.add(path+".percent", "must be at most 100, is %d", t.Percent)
		case s.Shares() && (at < 0 || t.Devices[at].Amount != WholeDevice):
			p.add(path+".devices", "must ask for 1 of peers: a job with a task_scheduler is run by virtual peers")
		case !s.Shares() && at >= 0:
			p.add(path+".devices", "must not ask for peers: virtual peers run jobs with a task_scheduler")
		}
	}
}

// coverageProblems adds what is wrong with what the job says about its coverage.
func (s *Job) coverageProblems(p *problems) {
	switch {
	case s.Coverage > CoverageOptional:
		p.add("coverage", "must be one of %s", strings.Join(Coverages()[1:], ", "))
	case s.Coverage != CoverageByType && !s.Shares():
		p.add("coverage", "needs a task_scheduler: it is about the virtual peers that a job shares")
	case s.Coverage == CoverageOptional && s.TaskScheduler == TaskColocated:
		p.add("coverage", "must be required for a colocated job: a copy of it has a virtual peer for each task")
	}
}

// peersProblems adds what a job that virtual peers run cannot have.
func (s *Job) peersProblems(p *problems) {
	if s.Shares() {
		for _, wrong := range []struct {
			is   bool
			what string
		}{
			{s.Type != Batch && s.Type != Stateless, "a batch or stateless job: the others belong to their machines"},
			{s.Revocable || s.Type != Stateful && s.NonPreemptible(),
				"a job that is preemptible and not revocable: virtual peers go from job to job"},
			{s.KillOnPreempt, "kill_on_preempt: false: virtual peers go from job to job"},
			{s.TaskScheduler == TaskGreedy && s.HasGang(),
				"a job without min_available if it is greedy: that runs one task after the other, and a gang starts together"},
			{s.Update.Canaries > 0, "an update without canaries: each virtual peer runs one instance"},
		} {
			if wrong.is {
				p.add("task_scheduler", "needs %s", wrong.what)
			}
		}
	}
}
