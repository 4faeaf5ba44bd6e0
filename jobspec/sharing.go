package jobspec

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/terms"
)

// The tables of what a job says about the pool that it lives in, and of what it takes of it.

// nameFields are the two parts of a job's name.
func nameFields() []field[terms.Job] {
	pool := field[terms.Job]{row: row{
		words:  "the path of a pool, as in analytics/etl",
		schema: textSchema(pair{"pattern", poolPattern}, pair{"not", object{{"type", "string"}, {"pattern", "^root(/|$)"}}}),
	}}
	pool.read = func(r *reader, p place, into *terms.Job) {
		path := terms.DefaultPool
		if text[terms.PoolPath](pool.words).read(r, p, &path); r.hasFailed(p.known) {
			return
		}
		if reason := path.Problem(); reason != "" {
			r.fail(p, "%s; write it as in analytics/etl", reason)
			return
		}
		into.Name = terms.NewJobName(path, string(into.Name))
	}
	pool.write = func(from *terms.Job) *yaml.Node { return scalar(string(from.Name.Pool())) }

	own := bind(nameForm[terms.JobName](), func(j *terms.Job) *terms.JobName { return &j.Name })
	own.read = func(r *reader, p place, into *terms.Job) {
		nameForm[terms.JobName]().read(r, p, &into.Name)
		if path, name := into.Name.Split(); strings.Contains(string(into.Name), "/") {
			r.fail(p, "must be the job's own name: write job: %s and pool: %s", name, path)
		}
	}
	own.write = func(from *terms.Job) *yaml.Node {
		_, name := from.Name.Split()
		return scalar(name)
	}
	return []field[terms.Job]{
		own.named("job", "The job's name, unique in its pool.").must(),
		pool.named("pool", "The resource pool that the job lives in. Elsewhere the job is called by both names, as in analytics/etl/nightly; without a pool by its own.").or(string(terms.DefaultPool)).quiet(),
	}
}

const poolPattern = `^[A-Za-z0-9][A-Za-z0-9_-]{0,62}(/[A-Za-z0-9][A-Za-z0-9_-]{0,62}){0,7}$`

// preemptionForm is true or false; an absent key leaves it to the type.
func preemptionForm() form[terms.Preemption] {
	truth := truthForm()
	return form[terms.Preemption]{
		words: truth.words, schema: truth.schema,
		read: func(r *reader, p place, into *terms.Preemption) {
			preemptible := false
			if truth.read(r, p, &preemptible); preemptible {
				*into = terms.Preemptible
			} else {
				*into = terms.NonPreemptible
			}
		},
		write: func(from *terms.Preemption) *yaml.Node {
			preemptible := *from == terms.Preemptible
			if *from == terms.PreemptionByType {
				return nil
			}
			return truth.write(&preemptible)
		},
	}
}

// sharingFields are the keys of a job about who comes first and who gives way.
func sharingFields() []field[terms.Job] {
	type spec = terms.Job
	truth := func(at func(*spec) *bool) field[spec] { return bind(truthForm(), at) }
	return []field[spec]{
		bind(whole[uint32](0, terms.PriorityMax), func(j *spec) *uint32 { return &j.Priority }).
			named("priority", "Who comes first in the pool: the highest, then the oldest. A higher one may take the place of lower ones that are preemptible.").or(strconv.Itoa(terms.PriorityDefault)),
		bind(preemptionForm(), func(j *spec) *terms.Preemption { return &j.Preemption }).
			named("preemptible", "Whether instances may be told to give way to work that is entitled to their room; if absent, true, but false in a stateful job. Those that may not count against what the pool reserves, and of a kind of which that is nothing against what no pool reserves."),
		truth(func(j *spec) *bool { return &j.Revocable }).
			named("revocable", "Whether the job runs in what others reserved and leave idle; it gives way first.").or("false").quiet(),
		truth(func(j *spec) *bool { return &j.Controller }).
			named("controller", "Whether the job leads others, such as a driver: the pool bounds such jobs together.").or("false").quiet(),
		truth(func(j *spec) *bool { return &j.KillOnPreempt }).
			named("kill_on_preempt", "Whether an instance of a batch job that gave way has ended for good; otherwise it waits for its next turn.").or("false").quiet(),
		bind(optional(choice[terms.TaskScheduler](terms.TaskSchedulers())),
			func(j *spec) *terms.TaskScheduler { return &j.TaskScheduler }).
			named("task_scheduler", "Makes virtual peers run the instances, each at most one at a time, which the job shares with the other such jobs of its pool; a machine has one for each processor. It says to which task the next one goes: greedy to the first that can use it, round-robin to the one with the fewest, percentage by their percent, fixed gives each what min_available says, at least 1, and colocated one to each at a time, all on one machine. What the job needs to run at all, its coverage says."),
		bind(optional(choice[terms.Coverage](terms.Coverages())), func(j *spec) *terms.Coverage { return &j.Coverage }).
			named("coverage", "Whether the job gets no virtual peers unless each of its open tasks has what it needs, at least one (required), or runs with a single one, which goes from task to task as they are completed (optional). When peers are lost, a job that requires it gives up all of them and comes back when there are enough. If absent, it is optional for a batch job, and required for a stateless one, whose tasks are never completed, and for a colocated one."),
		bind(optional(whole[uint32](0, 100)), func(j *spec) *uint32 { return &j.Percent }).
			named("percent", "The job's part of the virtual peers of its pool, if that has the job_scheduler percentage. What is no job's part stays idle. Without a percent, or with one that is more than the oldest and largest leave of the whole, a job gets only what others cannot use of theirs."),
		bind(optional(whole[uint32](0, terms.GangMax)), func(j *spec) *uint32 { return &j.MinAvailable }).
			named("min_available", "The gang: how many instances start together or not at all, all tasks counted. Beyond those of the tasks they may be of any task. If absent, the sum of those of the tasks."),
		bind(optional(text[string]("a name", pair{"minLength", 1})), func(j *spec) *string { return &j.Within }).
			named("within", "An attribute of machines, such as rack, of which all instances have the same value. The gang starts in the tightest such rack that has room for it, and what comes later goes there too. Needs min_available."),
		bind(choice[terms.Grow](terms.Grows()), func(j *spec) *terms.Grow { return &j.Grow }).
			named("grow", "How instances come by which a running gang has grown: each by itself as there is room, or whole: all of them together or none, for which min_available must be all instances.").or("each").quiet(),
	}
}

// boundFields are the keys of a task about how many instances run, and how long.
func boundFields() []field[terms.Task] {
	type spec = terms.Task
	return []field[spec]{
		bind(list(nameForm[terms.TaskName](), 0, terms.TasksMax), func(t *spec) *[]terms.TaskName { return &t.After }).
			named("after", "The tasks of a batch job that come first: nothing of this one runs before all their instances have succeeded. What they hand over in STARLING_OUTPUT is found by instances that run as the same user, in links below STARLING_INPUT, only to be read."),
		bind(optional(whole[uint32](0, terms.GangMax)), func(t *spec) *uint32 { return &t.MinAvailable }).
			named("min_available", "How many of the instances belong to the job's gang, which starts together or not at all."),
		bind(optional(whole[uint32](0, terms.InstancesMax)), func(t *spec) *uint32 { return &t.MaxRunning }).
			named("max_running", "The most instances of a batch job that run at a time; without it there is no bound."),
		bind(optional(whole[uint32](0, 100)), func(t *spec) *uint32 { return &t.Percent }).
			named("percent", "The task's part of the virtual peers of its job, with the task_scheduler percentage; all are of the sum of those that are stated."),
		bind(optional(durationForm(math.MaxUint32)), func(t *spec) *uint32 { return &t.MaxRunMillis }).
			named("max_run_time", "After which time an instance of a batch job is stopped, and has failed for good; without it there is no bound. Work that ends in time passes a gang that waits before it."),
	}
}
