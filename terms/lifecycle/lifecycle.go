// Package lifecycle says what becomes of a job and its tasks when something happens to one of their instances: events,
// the actions that may follow them, and the policies that lead from the one to the other.
package lifecycle

import (
	"slices"
	"strconv"
	"strings"

	"starling/terms/codec"
)

// Event is something that happens to an instance or a task.
type Event uint8

// The events.
const (
	// InstanceFailed: an instance ended as a failure.
	InstanceFailed Event = iota + 1
	// InstanceEvicted: an instance ended through no fault of its own: it gave way, or its node was drained or lost.
	InstanceEvicted
	// TaskCompleted: all instances of a task have succeeded.
	TaskCompleted
	// TaskFailed: an instance of a task has failed for good: it is out of restarts and of other nodes, or has run too
	// long.
	TaskFailed
	// Any is each of them.
	Any
)

// Events lists every event's name in job files at its number.
func Events() []string {
	return []string{"", "instance_failed", "instance_evicted", "task_completed", "task_failed", "any"}
}

// String returns the event's name in job files.
func (e Event) String() string { return Events()[e] }

// ofTask tells whether it happens to a task.
func (e Event) ofTask() bool { return e == TaskCompleted || e == TaskFailed }

// Action is what follows an event.
type Action uint8

// The actions.
const (
	// RestartInstance starts the instance anew.
	RestartInstance Action = iota + 1
	// RestartTask starts all instances of the task anew, and of the tasks that come after it.
	RestartTask
	// RestartJob starts all instances of the job anew.
	RestartJob
	// Abort suspends the job until a user resumes it.
	Abort
	// Terminate ends the job as a failure.
	Terminate
	// Complete ends the job as a success.
	Complete
)

// Actions lists every action's name in job files at its number.
func Actions() []string {
	return []string{"", "restart_instance", "restart_task", "restart_job", "abort", "terminate", "complete"}
}

// String returns the action's name in job files.
func (a Action) String() string { return Actions()[a] }

// Policy is one rule of a job or a task. It has exactly one of On and ExitCodes.
type Policy struct {
	// On are the events that it hears, each once; one of them is enough.
	On []Event
	// ExitCodes are those of failed instances that it hears, each once.
	ExitCodes []uint32
	Action    Action
	// DelayMillis is how long after the event the action follows. A restart of the instance uses it instead of the delay
	// of its restarts.
	DelayMillis uint32
}

// Limits of policies.
const (
	// PoliciesMax bounds the policies of a job or a task, and the exit codes of a policy.
	PoliciesMax = 64
	// ExitCodeMax is the highest exit code: 128 and the number of the highest signal are below it.
	ExitCodeMax = 255
	// DelayMillisMax bounds delays: 24 hours.
	DelayMillisMax = 24 * 60 * 60 * 1000
	// RestartsDefault is how often a job, or a task, is restarted unless it says otherwise.
	RestartsDefault = 3
)

// Code writes or reads policies.
func Code(c *codec.Coder, all *[]Policy) { codec.List(c, all, PoliciesMax, code) }

func code(c *codec.Coder, p *Policy) {
	codec.List(c, &p.On, int(Any), func(c *codec.Coder, e *Event) { codec.Integer(c, e, uint64(Any)) })
	codec.List(c, &p.ExitCodes, PoliciesMax, func(c *codec.Coder, code *uint32) { codec.Uint32s(c, code) })
	codec.Integer(c, &p.Action, uint64(Complete))
	codec.Uint32s(c, &p.DelayMillis)
}

// Hears tells whether a policy is about an event; code is the exit code of an instance that failed. What restarts an
// instance needs one.
func (p *Policy) Hears(e Event, code int32) bool {
	switch {
	case e == InstanceFailed && code > 0 && slices.Contains(p.ExitCodes, uint32(code)):
		return true
	case e.ofTask() && p.Action == RestartInstance:
		return false
	}
	return slices.Contains(p.On, e) || slices.Contains(p.On, Any)
}

// First returns the first policy that is about an event; ok is false if none is.
func First(policies []Policy, e Event, code int32) (p Policy, ok bool) {
	i := slices.IndexFunc(policies, func(p Policy) bool { return p.Hears(e, code) })
	if i < 0 {
		return Policy{}, false
	}
	return policies[i], true
}

// Problems reports what is wrong with the policies of a job or a task, with the path below it; batch tells whether the
// job's instances run to their end once.
func Problems(policies []Policy, batch bool, report func(field, format string, args ...any)) {
	if len(policies) > PoliciesMax {
		report("policies", "must have at most %d elements, has %d", PoliciesMax, len(policies))
		return
	}
	for i := range policies {
		p := &policies[i]
		p.problems(batch, func(field, format string, args ...any) {
			report("policies["+strconv.Itoa(i)+"]"+field, format, args...)
		})
		for k := range i {
			if words := p.shared(&policies[k]); words != "" {
				report("policies["+strconv.Itoa(i)+"]", "comes after policies[%d], which hears %s", k, words)
				break
			}
		}
	}
}

func (p *Policy) problems(batch bool, report func(field, format string, args ...any)) {
	if (len(p.On) == 0) == (len(p.ExitCodes) == 0) {
		report("", "must have either on or exit_codes")
	}
	p.eventProblems(batch, report)
	p.codeProblems(report)
	switch {
	case p.Action < RestartInstance || p.Action > Complete:
		report(".action", "must be one of %q", Actions()[1:])
	case p.Action == Complete && !batch:
		report(".action", "complete needs a batch job: services run until they are stopped")
	}
	if p.DelayMillis > DelayMillisMax {
		report(".delay", "must be 0 to %d, is %d", DelayMillisMax, p.DelayMillis)
	}
}

func (p *Policy) eventProblems(batch bool, report func(field, format string, args ...any)) {
	for i, e := range p.On {
		switch {
		case e < InstanceFailed || e > Any:
			report(".on", "must be of %s", strings.Join(Events()[1:], ", "))
		case slices.Contains(p.On[:i], e):
			report(".on", "has %s twice", e)
		case e == Any && len(p.On) > 1:
			report(".on", "has any beside others: any is each of them")
		case e == TaskCompleted && !batch:
			report(".on", "task_completed needs a batch job: services run until they are stopped")
		case e.ofTask() && p.Action == RestartInstance:
			report(".action", "restart_instance needs an event of an instance, %s is one of its task", e)
		}
	}
}

func (p *Policy) codeProblems(report func(field, format string, args ...any)) {
	if len(p.ExitCodes) > PoliciesMax {
		report(".exit_codes", "must have at most %d elements, has %d", PoliciesMax, len(p.ExitCodes))
		return
	}
	for i, code := range p.ExitCodes {
		switch {
		case code < 1 || code > ExitCodeMax:
			report(".exit_codes", "must be of 1 to %d, is %d: only failures have one", ExitCodeMax, code)
		case slices.Contains(p.ExitCodes[:i], code):
			report(".exit_codes", "has %d twice", code)
		}
	}
}

// shared names what a policy hears and one before it in the same list hears already, "" if nothing.
func (p *Policy) shared(before *Policy) string {
	if slices.Contains(before.On, Any) {
		return "any event: it must be the last"
	}
	for _, e := range p.On {
		if slices.Contains(before.On, e) {
			return e.String() + ", too"
		}
	}
	for _, code := range p.ExitCodes {
		if slices.Contains(before.ExitCodes, code) {
			return "exit code " + strconv.Itoa(int(code)) + ", too"
		}
	}
	return ""
}
