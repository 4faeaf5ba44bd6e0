package conformance

import (
	"fmt"
	"slices"

	"starling/schedule/share"
)

// crowd is a pool of named virtual peers and what they do. After each event it is settled by the core.
type crowd struct {
	scheduler share.JobScheduler
	peers     []*crowdPeer
	sites     []string
	// jobs are those that have not ended, in order of submission.
	jobs   []*crowdJob
	killed []string
	// habit is upstream's own rule, if it is played by one that differs from ours.
	habit habit
	// moved counts the peers that went from one task to another, all of them.
	moved int
	// used are the peers that ever had a task.
	used map[string]bool
}

// habit is how upstream divides where it differs.
type habit uint8

const (
	ours habit = iota
	// firstOnly offers peers to the first job and to nobody else: greedy before 0.14.0.
	firstOnly
	// restful leaves everything as it is after a loss, if the totals could be those of other jobs.
	restful
)

type crowdPeer struct {
	name, site string
	tags       []string
	// job is nil for an idle peer.
	job  *crowdJob
	task int
}

type crowdJob struct {
	name  string
	spec  share.Job
	tasks []string
	flux  []string
	// holders are the peers of each task, in the order in which they came to it.
	holders [][]*crowdPeer
}

// counts returns how many peers each task has.
func (j *crowdJob) counts() []int {
	all := make([]int, len(j.tasks))
	for i := range all {
		all[i] = len(j.holders[i])
	}
	return all
}

func (j *crowdJob) total() (sum int) {
	for _, n := range j.counts() {
		sum += n
	}
	return sum
}

// give puts a peer on a task, or on none.
func (c *crowd) give(p *crowdPeer, j *crowdJob, task int) {
	if p.job != nil {
		old := &p.job.holders[p.task]
		*old = slices.DeleteFunc(*old, func(q *crowdPeer) bool { return q == p })
	}
	p.job, p.task = j, task
	if j == nil {
		return
	}
	j.holders[task] = append(j.holders[task], p)
	c.used[p.name] = true
}

func (c *crowd) job(name string) *crowdJob {
	at := slices.IndexFunc(c.jobs, func(j *crowdJob) bool { return j.name == name })
	if at < 0 {
		return nil
	}
	return c.jobs[at]
}

func (c *crowd) join(name, site string, tags []string) {
	if !slices.Contains(c.sites, site) {
		c.sites = append(c.sites, site)
	}
	c.peers = append(c.peers, &crowdPeer{name: name, site: site, tags: tags})
}

// leave takes a peer out. A job of which it held a task that may not lose any is killed, as the task's policy says.
func (c *crowd) leave(name string) error {
	at := slices.IndexFunc(c.peers, func(p *crowdPeer) bool { return p.name == name })
	if at < 0 {
		return fmt.Errorf("%s leaves and never joined", name)
	}
	p := c.peers[at]
	c.peers = slices.Delete(c.peers, at, at+1)
	job, task := p.job, p.task
	c.give(p, nil, 0)
	if job != nil && job.flux[task] == "kill" {
		c.kill(job.name)
	}
	return nil
}

func (c *crowd) kill(name string) {
	if c.job(name) != nil {
		c.end(name)
		c.killed = append(c.killed, name)
	}
}

// end takes a job out.
func (c *crowd) end(name string) {
	j := c.job(name)
	for _, p := range c.peers {
		if j != nil && p.job == j {
			c.give(p, nil, 0)
		}
	}
	c.jobs = slices.DeleteFunc(c.jobs, func(k *crowdJob) bool { return k == j })
}

// input is the crowd as the core sees it: each peer is a group of its own.
func (c *crowd) input() *share.Input {
	in := &share.Input{Scheduler: c.scheduler}
	for _, p := range c.peers {
		in.Groups = append(in.Groups, share.Group{Machine: slices.Index(c.sites, p.site), Tags: p.tags, Peers: 1})
	}
	for _, j := range c.jobs {
		job := j.spec
		job.Tasks = slices.Clone(j.spec.Tasks)
		for i := range job.Tasks {
			// A task with the policy kill keeps its number while it runs.
			if task, has := &job.Tasks[i], len(j.holders[i]); task.State == share.Open && j.flux[i] == "kill" && has > 0 {
				task.State, task.Has = share.Frozen, share.Peers(has)
			}
		}
		in.Jobs = append(in.Jobs, job)
	}
	if c.habit == firstOnly {
		in.Jobs = in.Jobs[:min(len(in.Jobs), 1)]
	}
	return in
}

// settle makes the crowd do what the core says, and returns how many peers changed what they do.
func (c *crowd) settle() (changed int) {
	in := c.input()
	plan := share.Counts(in)
	var running []share.Running
	for g, p := range c.peers {
		if p.job != nil && slices.Index(c.jobs, p.job) < len(in.Jobs) {
			place := share.Place{Job: slices.Index(c.jobs, p.job), Task: p.task}
			running = append(running, share.Running{Group: g, Place: place, Peers: 1})
		}
	}
	moves := share.Moves(in, &plan, running)
	for _, m := range moves {
		if m.From != share.Nowhere() && m.To != share.Nowhere() {
			c.moved++
		}
		c.give(c.peers[m.Group], nil, 0)
	}
	for _, m := range moves {
		if m.To != share.Nowhere() {
			c.give(c.peers[m.Group], c.jobs[m.To.Job], m.To.Task)
		}
	}
	return len(moves)
}

// balanced tells whether a plan would change nothing but which job has a remainder.
func (c *crowd) balanced() bool {
	plan := share.Counts(c.input())
	var have, planned []int
	for i, j := range c.jobs {
		counts, total := j.counts(), 0
		for _, n := range plan.Peers[i] {
			total += int(n)
		}
		have, planned = append(have, j.total()), append(planned, total)
		if slices.Max(counts)-slices.Min(counts) > 1 || slices.Min(counts) == 0 {
			return false
		}
	}
	slices.Sort(have)
	slices.Sort(planned)
	return slices.Equal(have, planned)
}

// checkChurn is property G9: what changed between two pictures of who does what is at most what the counts force. A
// change of the set of jobs, and required tags, are exempt there.
func checkChurn(before, after map[string]string) error {
	was, is, stayed := map[string]int{}, map[string]int{}, map[string]int{}
	pairs := 0
	for peer, task := range before {
		was[task]++
		if _, present := after[peer]; present {
			stayed[task]++
		}
		if after[peer] != task {
			pairs++
		}
	}
	for peer, task := range after {
		is[task]++
		if before[peer] != task {
			pairs++
		}
	}
	bound := 0
	for task := range mergeKeys(was, is) {
		change := stayed[task] - is[task]
		bound += was[task] - stayed[task] + max(change, -change)
	}
	if pairs > bound {
		return fmt.Errorf("%d pairs of peer and task changed, the counts force %d", pairs, bound)
	}
	return nil
}

func mergeKeys(tables ...map[string]int) map[string]bool {
	all := map[string]bool{}
	for _, table := range tables {
		for key := range table {
			all[key] = true
		}
	}
	return all
}

// picture tells which task each peer has; idle ones have the task "".
func (c *crowd) picture() map[string]string {
	all := map[string]string{}
	for _, p := range c.peers {
		all[p.name] = ""
		if p.job != nil {
			all[p.name] = p.job.name + "/" + p.job.tasks[p.task]
		}
	}
	return all
}
