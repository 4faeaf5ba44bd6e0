package jobspec

import (
	"math"
	"strconv"

	"go.yaml.in/yaml/v4"

	"starling/terms"
	"starling/terms/lifecycle"
)

// The tables of what becomes of a job and its tasks when something happens to them.

// lifecycleFields are the keys of a job about its end.
func lifecycleFields() []field[terms.Job] {
	type spec = terms.Job
	return []field[spec]{
		bind(optional(whole[uint32](0, terms.InstancesMax)), func(j *spec) *uint32 { return &j.MinSuccess }).
			named("min_success", "How many instances of a batch job have to succeed, all tasks counted; the others are ended then, and the job "+
				"has succeeded. Without it all have to."),
		bind(list(policyForm(), 0, lifecycle.PoliciesMax), func(j *spec) *[]lifecycle.Policy { return &j.Policies }).
			named("policies", "What becomes of the job when something happens to its instances and tasks. The first that is about it wins, after "+
				"those of the task; without one the instance is restarted as its task says."),
		bind(unlimited(), func(j *spec) *uint32 { return &j.MaxRestarts }).
			named("max_restarts", "How often policies restart the job in one version; the next time it has failed.").
			or(strconv.Itoa(lifecycle.RestartsDefault)).quiet(),
		bind(optional(zeroIs(terms.KeepLeast, durationForm(math.MaxUint32))), func(j *spec) *uint32 { return &j.KeepMillis }).
			named("keep", "How long the job can be asked about when it has ended, and its logs and results stay: with 0 it is forgotten at once, "+
				"without a time as long as there is room for finished jobs."),
	}
}

// zeroIs is a duration of which 0 means the least that there is, for 0 as a value means that nothing was said.
func zeroIs(least uint32, f form[uint32]) form[uint32] {
	read, write := f.read, f.write
	f.read = func(r *reader, p place, into *uint32) {
		read(r, p, into)
		*into = max(*into, least)
	}
	f.write = func(from *uint32) *yaml.Node {
		if *from == least {
			return write(new(uint32))
		}
		return write(from)
	}
	return f
}

// taskLifecycleFields are those of a task.
func taskLifecycleFields() []field[terms.Task] {
	type spec = terms.Task
	policies := list(policyForm(), 0, lifecycle.PoliciesMax)
	policies.rows = nil // they are the same as those of the job
	return []field[spec]{
		bind(policies, func(t *spec) *[]lifecycle.Policy { return &t.Policies }).
			named("policies", "What becomes of the task or the job when something happens to an instance, or to the task. They come before those "+
				"of the job."),
		bind(unlimited(), func(t *spec) *uint32 { return &t.MaxRestarts }).
			named("max_restarts", "How often policies restart the task in one version of the job; the next time the job has failed.").
			or(strconv.Itoa(lifecycle.RestartsDefault)).quiet(),
	}
}

func policyForm() form[lifecycle.Policy] {
	type spec = lifecycle.Policy
	events := choice[lifecycle.Event](lifecycle.Events())
	f := mapping([]field[spec]{
		bind(oneOrMore(events, int(lifecycle.Any)), func(p *spec) *[]lifecycle.Event { return &p.On }).
			named("on", "One event, or a list: instance_failed; instance_evicted, which gave way or whose machine was drained or lost (with "+
				"lost_after: for good, and no other has taken its place); "+
				"task_completed, all of whose instances have succeeded; task_failed, of which an instance has failed for good; or any."),
		bind(oneOrMore(whole[uint32](1, lifecycle.ExitCodeMax), lifecycle.PoliciesMax),
			func(p *spec) *[]uint32 { return &p.ExitCodes }).
			named("exit_codes", "Instead: one exit code with which an instance failed by itself, or a list: 128 and the number of the signal if "+
				"one ended it, as 137 for more memory than it has. What was stopped, as its checks failed or its time was over, has none."),
		bind(choice[lifecycle.Action](lifecycle.Actions()), func(p *spec) *lifecycle.Action { return &p.Action }).
			named("action", "What follows: restart_instance, restart_task or restart_job, all of whose instances end and begin anew; abort "+
				"suspends the job; terminate ends it as a failure, complete as a success.").must(),
		bind(optional(durationForm(lifecycle.DelayMillisMax)), func(p *spec) *uint32 { return &p.DelayMillis }).
			named("delay", "How long after. Nothing follows if it is not so any more: an instance that was evicted has a machine again, a task that "+
				"was complete is not, or all begins anew."),
	}, func(r *reader, p place, given map[string]place, _ *spec) {
		_, on := given["on"]
		if _, codes := given["exit_codes"]; on == codes && !r.hasFailed(p.known) {
			r.fail(p, "must have exactly one of on and exit_codes")
		}
	})
	f.schema = append(f.schema, pair{"oneOf",
		[]object{{{"required", []string{"on"}}}, {{"required", []string{"exit_codes"}}}}})
	return f
}

// oneOrMore is one value, or a list of at most most.
func oneOrMore[V any](each form[V], most int) form[[]V] {
	many := list(each, 1, most)
	return form[[]V]{
		words: each.words + ", or a list of them", schema: object{{"anyOf", []object{each.schema, many.schema}}},
		read: func(r *reader, p place, into *[]V) {
			if p.node.Kind != yaml.ScalarNode {
				many.read(r, p, into)
				return
			}
			var one V
			each.read(r, p, &one)
			*into = []V{one}
		},
		write: func(from *[]V) *yaml.Node {
			if len(*from) == 1 {
				return each.write(&(*from)[0])
			}
			return many.write(from)
		},
	}
}
