package model

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/schedule/portion"
	"starling/terms"
)

// share divides the virtual peers of each pool among its jobs that are run by such, and lets go what runs beyond that. It
// returns the pools to which it matters where those are.
func (m *Model) share() (grounds []*ground) {
	for _, j := range m.Jobs {
		for _, t := range j.tasks {
			if !j.newest().Shares() {
				t.share = nil
			}
		}
	}
	entitled := m.entitlements()
	for number := range m.pools {
		jobs := slices.DeleteFunc(slices.Clone(m.Jobs), func(j *Job) bool {
			return j.finished != 0 || !j.newest().Shares() || m.poolNumber(j.newest().Name.Pool()) != number
		})
		peers := portion.Peers(entitled[number].NonSlack[terms.VirtualPeers] / 1000)
		in := &portion.Input{Scheduler: portion.JobScheduler(m.pools[number].JobScheduler), Groups: []portion.Group{{Peers: peers}}}
		for _, j := range jobs {
			in.Jobs = append(in.Jobs, j.portion())
		}
		g := m.ground(jobs, in, peers)
		plan := portion.Counts(in)
		for i, j := range jobs {
			for at, t := range j.ordered() {
				count := uint32(plan.Peers[i][at])
				t.share = &count
			}
		}
		if g != nil {
			g.plan = &plan
			grounds = append(grounds, g)
			continue
		}
		for _, j := range jobs {
			for _, t := range j.ordered() {
				all, stays := t.yielding(func(*seat) bool { return true })
				m.evict(all[:min(len(all), max(stays-int(*t.share), 0))])
			}
		}
	}
	return grounds
}

// ordered returns the tasks of the newest version, each behind those that it comes after.
func (j *Job) ordered() (all []*task) {
	order, _ := j.newest().Order()
	for _, number := range order {
		all = append(all, j.tasks[slices.IndexFunc(j.tasks, func(t *task) bool { return t.name == j.newest().Tasks[number].Name })])
	}
	return all
}

// stages counts the seats of a task by how far they are.
func (t *task) stages() (live, pending, done, failed int) {
	t.each(func(s *seat) {
		switch {
		case s.kind == cluster.MainSeat && s.slot.index >= t.desired && s.Phase.Holds():
		case s.Phase.Holds():
			live++
		case s.waits() || s.Phase == cluster.Postponed:
			pending++
		case s.Phase == cluster.Succeeded:
			done++
		case s.Phase == cluster.Failed:
			failed++
		}
	})
	return live, pending, done, failed
}

// portion returns a job as the division sees it.
func (j *Job) portion() portion.Job {
	spec := j.newest()
	schedulers := map[terms.TaskScheduler]portion.TaskScheduler{
		terms.TaskGreedy: portion.TaskGreedy, terms.TaskRoundRobin: portion.TaskRoundRobin, terms.TaskPercentage: portion.TaskPercentage,
		terms.TaskFixed: portion.TaskFixed, terms.TaskColocated: portion.TaskColocated,
	}
	job := portion.Job{Priority: int(spec.Priority), Part: portion.BasisPoints(100 * spec.Percent), Scheduler: schedulers[spec.TaskScheduler]}
	byType := spec.Type == terms.Batch && spec.TaskScheduler != terms.TaskColocated
	job.CoverageOptional = spec.Coverage == terms.CoverageOptional || spec.Coverage == terms.CoverageByType && byType
	for _, t := range j.ordered() {
		task := portion.Task{Part: portion.BasisPoints(100 * t.spec(0).Percent)}
		live, pending, done, failed := t.stages()
		most := live + pending
		if job.Scheduler == portion.TaskColocated && most > 0 {
			most += done + failed
		}
		if t.held() {
			most = live
		}
		if bound := int(t.spec(0).MaxRunning); bound > 0 {
			most = min(most, bound)
		}
		if most == 0 || j.stop || j.suspended || t.restarting || len(j.awaits) > 0 {
			task.State = portion.Closed
		}
		task.Max = portion.Peers(most)
		task.Min = portion.Peers(min(max(int(spec.Gang(t.name))-done, 0), most))
		job.Tasks = append(job.Tasks, task)
	}
	return job
}

// shares tells whether a virtual peer runs a seat.
func (s *seat) shares() bool {
	return s.Phase.Holds() && onPeers(s.spec())
}

// onPeers tells whether a virtual peer runs each instance of a task.
func onPeers(spec *terms.Task) bool {
	return slices.ContainsFunc(spec.Devices, func(q terms.DeviceRequest) bool { return q.Kind == "peers" })
}

// yielding counts what of a task virtual peers run somewhere, and returns who of them could give way: those first that are
// least far, then who started last, then the highest.
func (t *task) yielding(in func(*seat) bool) (all []*seat, stays int) {
	t.each(func(s *seat) {
		if !s.shares() || !in(s) {
			return
		}
		switch s.Phase {
		case cluster.Delayed, cluster.Assigned, cluster.Running:
			all = append(all, s)
			stays++
		case cluster.Away:
			stays++
		}
	})
	stage := map[cluster.Phase]int{cluster.Assigned: 1, cluster.Running: 2}
	slices.SortStableFunc(all, func(a, b *seat) int {
		return cmp.Or(cmp.Compare(stage[a.Phase], stage[b.Phase]), cmp.Compare(b.Since, a.Since),
			b.ref().Compare(a.ref()))
	})
	return all, stays
}

// gets returns how many instances of a task are to be given room: those that ask for it, as far as the task has virtual
// peers for them.
func (t *task) gets() uint32 {
	if t.share == nil {
		return t.asks()
	}
	return min(t.asks(), *t.share-min(*t.share, t.live()))
}

// live counts the seats of a task that hold room.
func (t *task) live() (count uint32) {
	t.each(func(s *seat) {
		if s.Phase.Holds() {
			count++
		}
	})
	return count
}
