package validate

import (
	"slices"
	"strconv"
	"strings"

	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// sharing adds what is wrong with what the job says as a whole.
func (p *problems) sharing(s *terms.Job) {
	p.bounded("priority", int64(s.Priority), 0, terms.PriorityMax)
	p.preemption(s)
	p.slack(s)
	minima, most, all := uint64(0), uint64(0), uint64(0)
	for i := range s.Tasks {
		minima += uint64(s.Tasks[i].MinAvailable)
		most += uint64(s.Tasks[i].RunningMax())
		all += uint64(s.Tasks[i].Instances)
	}
	p.gang(s, max(minima, uint64(s.MinAvailable)) == all)
	switch gang := max(minima, uint64(s.MinAvailable)); {
	case s.MinAvailable > 0 && uint64(s.MinAvailable) < minima:
		p.add("min_available", "must be at least the sum of those of the tasks, %d, is %d", minima, s.MinAvailable)
	case gang > 0 && s.Type == terms.Daemon:
		p.add("min_available", "must be 0 in a daemon job: its instances belong to their machines")
	case gang > terms.GangMax:
		p.add("min_available", "must be at most %d, is %d", terms.GangMax, gang)
	case gang > most:
		p.add("min_available", "must be at most the number of instances that may run, %d, is %d", most, gang)
	}
}

// preemption adds what is wrong with what the job says about being preempted.
func (p *problems) preemption(s *terms.Job) {
	if s.Preemption > terms.Preemptible {
		p.add("preemptible", "must be true or false")
	}
	switch {
	case s.Revocable && s.NonPreemptible() && s.Type == terms.Stateful:
		p.add("revocable", "needs preemptible: true, which a stateful job is only if it says so: what is revocable gives way first, and its data stays behind")
	case s.Revocable && s.NonPreemptible():
		p.add("revocable", "needs a job that is preemptible: what is revocable gives way first")
	}
	if s.KillOnPreempt && (s.NonPreemptible() || s.Type != terms.Batch) {
		p.add("kill_on_preempt", "needs a batch job that is preemptible: services wait for their next turn")
	}
	if s.Type == terms.Daemon && (s.Preemption != terms.PreemptionByType || s.Revocable || s.Controller) {
		p.add("type", "daemon excludes preemptible, revocable and controller: daemons belong to their machines, not to the pool")
	}
}

// slack adds what is wrong with what the job asks of slack.
func (p *problems) slack(s *terms.Job) {
	for i := range s.Tasks {
		if p.in >= rules.Slack && !s.Revocable && s.Tasks[i].Slack() > 0 {
			p.add("tasks["+strconv.Itoa(i)+"].devices."+terms.Slack,
				"needs revocable: true, for it is what others were promised, who may want it back")
		}
	}
}

// gang adds what is wrong with what the job says about its gang; all tells that every instance belongs to it.
func (p *problems) gang(s *terms.Job, all bool) {
	p.bounded("within", int64(len(s.Within)), 0, constraint.NameBytesMax)
	p.text("within", s.Within)
	gang := s.HasGang() || p.in >= rules.IdleGangs &&
		!slices.ContainsFunc(s.Tasks, func(t terms.Task) bool { return t.Instances > 0 })
	switch {
	case s.Within == "":
	case !gang:
		p.add("within", "needs min_available: so many instances look for one %s together", s.Within)
	case s.Shares():
		p.add("within", "needs a job without task_scheduler: virtual peers are divided whatever %s they are in", s.Within)
	}
	switch {
	case s.Grow > terms.GrowWhole:
		p.add("grow", "must be one of %q", terms.Grows())
	case s.Grow == terms.GrowEach:
	case !gang || !all:
		p.add("grow", "whole needs a min_available of all instances: otherwise those beyond it come each by itself")
	case s.Shares():
		p.add("grow", "whole needs a job without task_scheduler: virtual peers come and go one by one")
	}
}

// share adds what is wrong with what a task says of it.
func (p *problems) share(t *terms.Task, kind terms.JobType) {
	if t.MaxRunning > 0 && kind != terms.Batch {
		p.add("max_running", "needs a batch job: all instances of a service run")
	}
	if t.MaxRunMillis > 0 && kind != terms.Batch {
		p.add("max_run_time", "needs a batch job: services run until they are stopped")
	}
	if t.MinAvailable > t.RunningMax() {
		p.add("min_available", "must be at most the number of instances that may run, %d, is %d", t.RunningMax(), t.MinAvailable)
	}
}

// virtualPeers adds what is wrong with what the job says about sharing virtual peers.
func (p *problems) virtualPeers(s *terms.Job) {
	p.bounded("percent", int64(s.Percent), 0, 100)
	if s.TaskScheduler > terms.TaskColocated {
		p.add("task_scheduler", "must be one of %s", strings.Join(terms.TaskSchedulers()[1:], ", "))
		return
	}
	p.coverage(s)
	p.excluded(s)
	for i := range s.Tasks {
		t, path := &s.Tasks[i], "tasks["+strconv.Itoa(i)+"]"
		at := virtualPeersOf(t)
		switch {
		case t.Percent > 100:
			p.add(path+".percent", "must be at most 100, is %d", t.Percent)
		case s.Shares() && (at < 0 || t.Devices[at].Amount != terms.WholeDevice):
			p.add(path+".devices", "must ask for 1 of peers: a job with a task_scheduler is run by virtual peers")
		case !s.Shares() && at >= 0:
			p.add(path+".devices", "must not ask for peers: virtual peers run jobs with a task_scheduler")
		}
	}
}

// virtualPeersOf returns which of the task's requests is for virtual peers, below 0 for none.
func virtualPeersOf(t *terms.Task) int {
	return slices.IndexFunc(t.Devices, func(q terms.DeviceRequest) bool { return q.Kind == terms.VirtualPeers.String() })
}

// coverage adds what is wrong with what the job says about its coverage.
func (p *problems) coverage(s *terms.Job) {
	switch {
	case s.Coverage > terms.CoverageOptional:
		p.add("coverage", "must be one of %s", strings.Join(terms.Coverages()[1:], ", "))
	case s.Coverage != terms.CoverageByType && !s.Shares():
		p.add("coverage", "needs a task_scheduler: it is about the virtual peers that a job shares")
	case s.Coverage == terms.CoverageOptional && s.TaskScheduler == terms.TaskColocated:
		p.add("coverage", "must be required for a colocated job: a copy of it has a virtual peer for each task")
	}
}

// excluded adds what a job that virtual peers run cannot have.
func (p *problems) excluded(s *terms.Job) {
	if s.Shares() {
		for _, wrong := range []struct {
			is   bool
			what string
		}{
			{s.Type != terms.Batch && s.Type != terms.Stateless, "a batch or stateless job: the others belong to their machines"},
			{s.Revocable || s.Type != terms.Stateful && s.NonPreemptible(),
				"a job that is preemptible and not revocable: virtual peers go from job to job"},
			{s.KillOnPreempt, "kill_on_preempt: false: virtual peers go from job to job"},
			{s.TaskScheduler == terms.TaskGreedy && s.HasGang(),
				"a job without min_available if it is greedy: that runs one task after the other, and a gang starts together"},
			{s.Update.Canaries > 0, "an update without canaries: each virtual peer runs one instance"},
		} {
			if wrong.is {
				p.add("task_scheduler", "needs %s", wrong.what)
			}
		}
	}
}
