package share

// Peers is a number of virtual peers.
type Peers int

// BasisPoints are hundredths of a percent: 10,000 of them are the whole.
type BasisPoints int

// whole is 100 percent.
const whole BasisPoints = 10_000

// JobScheduler says to which job of a pool the next peers go.
type JobScheduler uint8

// The job schedulers.
const (
	JobPriority JobScheduler = iota
	JobGreedy
	JobRoundRobin
	// JobPercentage gives each job its part of all peers. Jobs count by their parts, largest first, as long as they
	// are within the whole; the others get what these cannot use. What is no job's part stays idle: one that states 30
	// percent of a pool means no more.
	JobPercentage
)

// TaskScheduler says to which task of a job the next peer goes.
type TaskScheduler uint8

// The task schedulers.
const (
	// TaskRoundRobin gives it to the task with the fewest.
	TaskRoundRobin TaskScheduler = iota
	// TaskGreedy gives all to the first open task that can use one.
	TaskGreedy
	// TaskPercentage divides by the parts of the tasks, rounded to the nearest. One peer more never takes one from
	// another task.
	TaskPercentage
	// TaskColocated gives one peer to each task at a time, all on one machine: a copy of the job.
	TaskColocated
	// TaskFixed gives each task its minimum, and never more.
	TaskFixed
)

// TaskState says whether a task takes peers.
type TaskState uint8

// The states of a task.
const (
	Open TaskState = iota
	// Frozen tasks keep as many as they have, no more and no fewer: sealed ones, and those whose instances must not
	// change in number while they run. Whether a task is frozen, its pool's value says; it is not inferred here.
	Frozen
	// Closed tasks take none and need none: they are complete.
	Closed
)

// Input is all that the counts depend on.
type Input struct {
	Scheduler JobScheduler
	Groups    []Group
	// Spare is how many peers no job gets, whichever they are: those of other pools.
	Spare Peers
	// Jobs are in order of submission. One that lost its coverage keeps its place.
	Jobs []Job
}

// Group is a number of virtual peers on one machine with the same tags.
type Group struct {
	// Machine is the number of the machine; numbers are dense, from 0.
	Machine int
	Tags    []string
	Peers   Peers
}

// Job is a job that has not ended.
type Job struct {
	Priority int
	// Part is what the job is to have of all peers, for JobPercentage.
	Part      BasisPoints
	Scheduler TaskScheduler
	// Saturation is the most that the job takes; 0 is no bound.
	Saturation Peers
	// Copies bounds the copies of a colocated job on each machine, by its number; nil is no bound.
	Copies []Peers
	// CoverageOptional lets the job run with a single peer; otherwise it needs one for each open task. Copies of colocated
	// jobs always have one for each.
	CoverageOptional bool
	// Tasks are in topological order.
	Tasks []Task
}

// Task is one task of a job.
type Task struct {
	State TaskState
	// Min is what the task needs for the job to run, and at least 1 if that needs coverage; Max what it takes at most, 0
	// for no bound. A job with a task of which Max is below Min gets nothing.
	Min, Max Peers
	// Part is what the task is to have of the job's peers, for TaskPercentage.
	Part BasisPoints
	// Tags are those that a peer must have to run the task.
	Tags []string
	// Has is how many a frozen task keeps.
	Has Peers
}

// Plan is which task gets how many.
type Plan struct {
	// Peers has a number for each task of each job, in the order of the input.
	Peers [][]Peers
}

// total returns how many peers the plan gives.
func (p *Plan) total() (sum Peers) {
	for job := range p.Peers {
		sum += p.of(job)
	}
	return sum
}

// of returns how many peers the plan gives a job.
func (p *Plan) of(job int) (sum Peers) {
	for _, n := range p.Peers[job] {
		sum += n
	}
	return sum
}

// takes tells whether the task has peers at all.
func (t *Task) takes() bool { return t.State == Open || t.State == Frozen && t.Has > 0 }

// needs returns how many peers a task of the job gets at least and at most.
func (j *Job) needs(t *Task) (least, most Peers) {
	least, most = max(t.Min, 1), t.Max
	switch {
	case t.State == Frozen:
		return t.Has, t.Has
	case j.Scheduler == TaskFixed:
		most = least
	case most <= 0:
		most = boundless
	}
	if j.CoverageOptional && j.Scheduler != TaskColocated {
		least = max(t.Min, 0)
	}
	return least, most
}

// boundless is more peers than there are.
const boundless Peers = 1 << 40
