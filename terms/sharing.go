package terms

import (
	"strconv"

	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

// What a job says about sharing its pool, and the rules for it.

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

// sharingProblems adds what is wrong with what the job says as a whole.
func (s *Job) sharingProblems(p *problems) {
	p.bounded("priority", int64(s.Priority), 0, PriorityMax)
	s.preemptionProblems(p)
	minima, most, all := uint64(0), uint64(0), uint64(0)
	for i := range s.Tasks {
		minima += uint64(s.Tasks[i].MinAvailable)
		most += uint64(s.Tasks[i].most())
		all += uint64(s.Tasks[i].Instances)
	}
	s.gangProblems(p, max(minima, uint64(s.MinAvailable)) == all)
	switch gang := max(minima, uint64(s.MinAvailable)); {
	case s.MinAvailable > 0 && uint64(s.MinAvailable) < minima:
		p.add("min_available", "must be at least the sum of those of the tasks, %d, is %d", minima, s.MinAvailable)
	case gang > 0 && s.Type == Daemon:
		p.add("min_available", "must be 0 in a daemon job: its instances belong to their machines")
	case gang > GangMax:
		p.add("min_available", "must be at most %d, is %d", GangMax, gang)
	case gang > most:
		p.add("min_available", "must be at most the number of instances that may run, %d, is %d", most, gang)
	}
}

// preemptionProblems adds what is wrong with what the job says about being preempted.
func (s *Job) preemptionProblems(p *problems) {
	if s.Preemption > Preemptible {
		p.add("preemptible", "must be true or false")
	}
	switch {
	case s.Revocable && s.NonPreemptible() && s.Type == Stateful:
		p.add("revocable", "needs preemptible: true, which a stateful job is only if it says so: what is revocable gives way first, and its data stays behind")
	case s.Revocable && s.NonPreemptible():
		p.add("revocable", "needs a job that is preemptible: what is revocable gives way first")
	}
	if s.KillOnPreempt && (s.NonPreemptible() || s.Type != Batch) {
		p.add("kill_on_preempt", "needs a batch job that is preemptible: services wait for their next turn")
	}
	if s.Type == Daemon && (s.Preemption != PreemptionByType || s.Revocable || s.Controller) {
		p.add("type", "daemon excludes preemptible, revocable and controller: daemons belong to their machines, not to the pool")
	}
}

// gangProblems adds what is wrong with what the job says about its gang; all tells that every instance belongs to it.
func (s *Job) gangProblems(p *problems, all bool) {
	p.bounded("within", int64(len(s.Within)), 0, constraint.NameBytesMax)
	p.text("within", s.Within)
	switch {
	case s.Within == "":
	case !s.HasGang():
		p.add("within", "needs min_available: so many instances look for one %s together", s.Within)
	case s.Shares():
		p.add("within", "needs a job without task_scheduler: virtual peers are divided whatever %s they are in", s.Within)
	}
	switch {
	case s.Grow > GrowWhole:
		p.add("grow", "must be one of %q", Grows())
	case s.Grow == GrowEach:
	case !s.HasGang() || !all:
		p.add("grow", "whole needs a min_available of all instances: otherwise those beyond it come each by itself")
	case s.Shares():
		p.add("grow", "whole needs a job without task_scheduler: virtual peers come and go one by one")
	}
}

// sharingProblems adds what is wrong with what the task says.
func (t *Task) sharingProblems(p *problems, kind JobType) {
	if t.MaxRunning > 0 && kind != Batch {
		p.add("max_running", "needs a batch job: all instances of a service run")
	}
	if t.MaxRunMillis > 0 && kind != Batch {
		p.add("max_run_time", "needs a batch job: services run until they are stopped")
	}
	if t.MinAvailable > t.most() {
		p.add("min_available", "must be at most the number of instances that may run, %d, is %d", t.most(), t.MinAvailable)
	}
}

// lifecycleProblems adds what is wrong with what the job says about its end, and that of its tasks.
func (s *Job) lifecycleProblems(p *problems) {
	lifecycle.Problems(s.Policies, s.Type == Batch, p.add)
	instances := uint64(0)
	for i := range s.Tasks {
		instances += uint64(s.Tasks[i].Instances)
		if len(s.Tasks[i].Policies) > 0 && s.Type == Daemon {
			p.add("tasks["+strconv.Itoa(i)+"].policies",
				"must be absent in a daemon job: each instance belongs to its machine and begins anew there, as restart says")
		}
	}
	if len(s.Policies) > 0 && s.Type == Daemon {
		p.add("policies", "must be absent in a daemon job: each instance belongs to its machine and begins anew there, as restart says")
	}
	switch {
	case s.MinSuccess > 0 && s.Type != Batch:
		p.add("min_success", "needs a batch job: services run until they are stopped")
	case uint64(s.MinSuccess) > instances:
		p.add("min_success", "must be at most the number of instances, %d, is %d", instances, s.MinSuccess)
	}
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
