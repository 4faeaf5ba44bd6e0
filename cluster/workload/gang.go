package workload

import (
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/tree"
	"starling/terms"
)

// QueueEntry is the place of a task's waiting instances in the queue of their pool.
type QueueEntry struct {
	// Pool is the account of the pool, 0 for daemons, which come first and are not admitted.
	Pool tree.ID
	// Rank is lower the earlier: 0 for a gang that runs and lost members, then the highest priority. Key, and with it the
	// age of the job, decides between equals.
	Rank uint32
	Key  facts.TaskKey
	// Need is at most what is admitted together: the whole gang as long as it does not run, else one instance.
	Need  terms.Amounts
	Class terms.Class
	// Blocked tells that all nodes were tried, and that only nodes which grow can help.
	Blocked bool
}

// Before tells whether an entry comes first.
func (t *QueueEntry) Before(other *QueueEntry) bool {
	switch {
	case t.Pool != other.Pool:
		return t.Pool < other.Pool
	case t.Rank != other.Rank:
		return t.Rank < other.Rank
	}
	return t.Key < other.Key
}

// BrokenRank is the rank of a gang that runs and lost members.
const BrokenRank = 0

// HasGang tells whether some instances of the job must run together.
func (j *Job) HasGang() bool { return j.gang != nil }

// GangRow returns how a task stands for the job's gang.
func (j *Job) GangRow(task int) gang.Task {
	t := j.Tasks[task]
	row := gang.Task{Living: t.living(), Done: t.Counts[facts.Succeeded], Fresh: t.Desired - min(t.Fresh, t.Desired)}
	if j.gang != nil {
		row.Least = j.gang[task]
	}
	return row
}

// GangCount sums up the rows, and returns how many members of the gang are beyond the least of the tasks.
func (j *Job) GangCount() (c gang.Count, beyond uint32) {
	for task := range j.gang {
		row := j.GangRow(task)
		c.Add(&row)
	}
	return c, j.gangAny
}

// Missing returns how many members of the job's gang a task lacks of its own least.
func (j *Job) Missing(task int) uint32 {
	row := j.GangRow(task)
	return row.Missing()
}

// MissingAny returns how many members of the job's gang are missing that may be of any task.
func (j *Job) MissingAny() uint32 {
	c, beyond := j.GangCount()
	return c.Any(beyond)
}

// GangState returns how the job's gang stands.
func (j *Job) GangState() gang.State {
	c, beyond := j.GangCount()
	return c.State(beyond, j.Spec.Grow == terms.GrowWhole)
}

// SetGang notes how many instances of each task, and of any, belong to the gang of the newest version.
func (j *Job) SetGang() {
	j.gang, j.gangAny = nil, j.Spec.GangBeyond()
	if !j.Spec.HasGang() {
		return
	}
	j.gang = make([]uint32, len(j.Tasks))
	for i := range j.Spec.Tasks {
		j.gang[j.TaskIndex(j.Spec.Tasks[i].Name)] = j.Spec.Tasks[i].MinAvailable
	}
}

// Unit is the rank of a job's waiting work, and what its gang takes if that is admitted together.
type Unit struct {
	Rank     uint32
	Together bool
	Need     terms.Amounts
}

// Unit returns the rank of what waits of the job whose gang stands so.
func (j *Job) Unit(state gang.State) Unit {
	u := Unit{Rank: 1 + terms.PriorityMax - min(j.Spec.Priority, terms.PriorityMax), Together: state >= gang.Growing}
	switch {
	case state == gang.Broken:
		u.Rank = BrokenRank
	case u.Together:
		u.Need = j.GangNeed()
	}
	return u
}

// GangNeed returns what the missing members of the job's gang take together, or less if they may be of several tasks
// that do not take the same.
func (j *Job) GangNeed() (sum terms.Amounts) {
	var options []gang.Option
	for task, t := range j.Tasks {
		spec, missing := j.TaskSpecOf(task, j.Version), j.Missing(task)
		if spec == nil {
			continue
		}
		each := spec.Amounts()
		for k, amount := range each {
			sum[k] = min(sum[k]+amount*int64(missing), terms.Unlimited)
		}
		if asks := t.AskFor(spec); asks > missing && j.gangAny > 0 {
			options = append(options, gang.Option{Each: each, Most: asks - missing})
		}
	}
	for k, amount := range gang.Least(j.MissingAny(), options) {
		sum[k] = min(sum[k]+amount, terms.Unlimited)
	}
	return sum
}

// Account returns the number of the account that the job's work is charged to.
func (j *Job) Account() tree.ID {
	if j.Spec.Type == terms.Daemon {
		return 0
	}
	return j.Pool
}
