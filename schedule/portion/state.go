package portion

import (
	"starling/cluster"
	"starling/terms"
	"starling/terms/fingerprint"
)

// Of returns what the counts of a pool depend on: what it is entitled to, and those of its jobs that share it, oldest first.
// Which machines the peers are on does not matter: what a task asks of machines it asks when it is placed.
func Of(s *cluster.State, number int, jobs []terms.JobID, peers Peers) *Input {
	in := &Input{Scheduler: JobScheduler(s.Pools()[number].JobScheduler), Groups: []Group{{Peers: peers}}, Jobs: make([]Job, len(jobs))}
	for i, id := range jobs {
		j, job := s.Job(id), &in.Jobs[i]
		job.Priority, job.Part, job.Scheduler = int(j.Spec.Priority), percent(j.Spec.Percent), scheduler(j.Spec.TaskScheduler)
		for _, task := range j.Order() {
			job.Tasks = append(job.Tasks, taskOf(j, task, peers))
		}
	}
	return in
}

func percent(p uint32) BasisPoints { return BasisPoints(p) * whole / 100 }

func scheduler(s terms.TaskScheduler) TaskScheduler {
	return [...]TaskScheduler{terms.TaskGreedy: TaskGreedy, terms.TaskRoundRobin: TaskRoundRobin, terms.TaskPercentage: TaskPercentage,
		terms.TaskFixed: TaskFixed}[s]
}

// taskOf returns a task with as many peers as it can use at most: one for each instance that has not ended, as far as they
// may run at a time, and no more than there are. One that waits for others is closed until those are complete.
func taskOf(j *cluster.Job, number int, peers Peers) Task {
	t, spec := j.Tasks[number], j.TaskSpecOf(number, j.Version)
	most := t.Pending() + t.Live()
	if spec.MaxRunning > 0 {
		most = min(most, spec.MaxRunning)
	}
	if most == 0 || j.Stop || j.Idle(number) {
		return Task{State: Closed}
	}
	least := j.Spec.Gang(spec.Name)
	least = min(max(least-min(least, t.Counts[cluster.Succeeded]), 1), most)
	return Task{Min: Peers(least), Max: max(min(Peers(most), peers), Peers(least)), Part: percent(spec.Percent)}
}

// Fingerprint tells inputs of a pool apart, for the same jobs.
func (in *Input) Fingerprint(jobs []terms.JobID) uint64 {
	h := fingerprint.Words(0, uint64(in.Scheduler), uint64(len(in.Jobs)))
	for _, g := range in.Groups {
		h = fingerprint.Mix(h, uint64(g.Peers))
	}
	for i := range in.Jobs {
		job := &in.Jobs[i]
		h = fingerprint.Mix(h, fingerprint.Words(0, uint64(jobs[i]), uint64(job.Priority), uint64(job.Part), uint64(job.Scheduler)))
		for k := range job.Tasks {
			t := &job.Tasks[k]
			h = fingerprint.Mix(h, fingerprint.Words(0, uint64(t.State), uint64(t.Min), uint64(t.Max), uint64(t.Part)))
		}
	}
	return h
}
