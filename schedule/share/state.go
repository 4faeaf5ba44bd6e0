package share

import (
	"strconv"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/fingerprint"
	"starling/terms/rules"
)

// Pool is a pool with jobs that share its virtual peers.
type Pool struct {
	// Number is its place in the tree, Jobs are those that share, oldest first, Entitled is how many peers it has.
	Number   int
	Jobs     []terms.JobID
	Entitled Peers
	// NodeGroups is where the peers are, nil if that does not matter.
	NodeGroups *NodeGroups
}

// Of returns what the counts of a pool depend on.
func Of(s *cluster.State, p *Pool) *Input {
	peers, g := p.Entitled, p.NodeGroups
	in := &Input{Scheduler: JobScheduler(s.Pools()[p.Number].JobScheduler), Groups: []Group{{Peers: peers}},
		Jobs: make([]Job, len(p.Jobs))}
	if g != nil {
		in.Groups, in.Spare = g.groups, max(g.all-peers, 0)
	}
	for i, id := range p.Jobs {
		j, job := s.Job(id), &in.Jobs[i]
		job.Priority, job.Part, job.Scheduler = int(j.Spec.Priority), percent(j.Spec.Percent), scheduler(j.Spec.TaskScheduler)
		job.CoverageOptional = !j.Spec.NeedsCoverage()
		for _, task := range j.Order() {
			job.Tasks = append(job.Tasks, taskOf(j, task, peers))
			if number := g.ask(j.TaskSpecOf(task, j.Version)); number != none {
				job.Tasks[len(job.Tasks)-1].Tags = []string{strconv.Itoa(number)}
			}
		}
	}
	return in
}

func percent(p uint32) BasisPoints { return BasisPoints(p) * whole / 100 }

func scheduler(s terms.TaskScheduler) TaskScheduler {
	return [...]TaskScheduler{terms.TaskGreedy: TaskGreedy, terms.TaskRoundRobin: TaskRoundRobin,
		terms.TaskPercentage: TaskPercentage,
		terms.TaskFixed:      TaskFixed, terms.TaskColocated: TaskColocated}[s]
}

// taskOf returns a task with as many peers as it can use at most: one for each instance that has not ended, as far as
// they may run at a time, and no more than there are. One that waits for others is closed until those are complete;
// what runs of it, because an output of theirs was lost since, has what it needs and goes on. In a copy an instance
// keeps its place until its task is complete: the rest of the copy may still run.
func taskOf(j *workload.Job, number int, peers Peers) Task {
	t, spec := j.Tasks[number], j.TaskSpecOf(number, j.Version)
	live := t.Live() - surplus(t)
	most := t.Pending() + live
	if j.Spec.TaskScheduler == terms.TaskColocated && most > 0 {
		most += t.Counts[facts.Succeeded] + t.Counts[facts.Failed]
	}
	if j.Held(number) {
		most = live
	}
	if spec.MaxRunning > 0 {
		most = min(most, spec.MaxRunning)
	}
	if most == 0 || j.Stop || j.Paused(number) {
		return Task{State: Closed}
	}
	least := j.Spec.Gang(spec.Name)
	least = min(least-min(least, t.Counts[facts.Succeeded]), most)
	return Task{Min: Peers(least), Max: max(min(Peers(most), peers), Peers(least), 1), Part: percent(spec.Percent)}
}

// surplus counts the instances of a task that no job wants any more and that have not ended.
func surplus(t *workload.Task) (count uint32) {
	for index := int(t.Desired); index < t.Slots.Len(); index++ {
		if t.Slots.At(index).Phase.Holds() {
			count++
		}
	}
	return count
}

// Fingerprint tells apart from what the counts of a pool are made: its input, and what that is made of. What a task
// that has a share may have at most is no part of it as long as that is more: it was not why it got no more.
func (p *Pool) Fingerprint(s *cluster.State, in *Input) uint64 {
	h, g, first := fingerprint.Words(0, uint64(in.Scheduler), uint64(len(in.Jobs)), uint64(in.Spare)), p.NodeGroups,
		s.Rules < rules.SharesFollow
	if g == nil || first {
		h = sumOf(h, in.Groups)
	} else {
		h = fingerprint.Mix(h, g.sum)
	}
	for i := range in.Jobs {
		job := &in.Jobs[i]
		h = fingerprint.Mix(h, fingerprint.Words(0, uint64(p.Jobs[i]), uint64(job.Priority), uint64(job.Part),
			uint64(job.Scheduler), fingerprint.Bit(job.CoverageOptional)))
		for k, task := range s.Job(p.Jobs[i]).Order() {
			t := &job.Tasks[k]
			most := t.Max
			got, _ := s.Job(p.Jobs[i]).Tasks[task].Share()
			if !first && got > 0 && most > Peers(got) {
				most = boundless
			}
			h = fingerprint.Mix(h, fingerprint.Words(0, uint64(t.State), uint64(t.Min), uint64(most), uint64(t.Part),
				fingerprint.Text(0, t.Tags...)))
		}
	}
	switch {
	case g != nil && first:
		h = fingerprint.Mix(h, g.fingerprint())
	case g != nil && g.each:
		for _, id := range p.Jobs {
			h = fingerprint.Mix(h, uint64(s.Job(id).Version))
		}
	}
	return h
}
