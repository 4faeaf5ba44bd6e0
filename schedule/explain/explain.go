// Package explain answers "why is this not running?" from the value alone.
//
// It finds every reason that holds, not only the first, and proves it: a task that waits is held against every node,
// and every obstacle on every node is counted. It may look at all nodes, because it is asked by people, not by the
// fold.
package explain

import (
	"cmp"
	"fmt"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/explain/wording"
	"starling/terms"
)

// Finding is one reason why instances of a task do not run. All reasons that hold are found, not only the first.
type Finding struct {
	Task terms.TaskName
	// Instances is how many instances it keeps from running, Slot the lowest of them.
	Instances uint32
	Slot      uint32
	// Reason is one sentence; Details are lines that prove it: counts of nodes per obstacle, the nearest misses.
	Reason  string
	Details []string
	// Since is the time from which on it holds, 0 if not known.
	Since terms.Time
	// Until is the time at which it ends by itself, 0 if it does not.
	Until terms.Time
}

// Obstacle is one thing that keeps a task from nodes, such as "cpu is short".
type Obstacle struct {
	What string
	// Nodes are those from which it keeps it, 0 if it is told of the largest of all.
	Nodes int
}

// Said returns what an allocation on a node that does not run yet waits for, as the peer there says; "" if that is not
// known.
type Said func(id terms.AllocationID, node terms.NodeName) string

// Job returns every reason why something of the job does not run, in the order of its tasks; none if all that is wanted
// runs or has succeeded. Only peers know what a start waits for, and what would make room is said only when it has been
// tried: the reader brings both.
func Job(s *cluster.State, j *workload.Job, reader *Reader) []Finding {
	var found []Finding
	if j.Finished != 0 && j.Stop {
		found = append(found, reader.stopped(s, j))
	}
	for i, t := range j.Tasks {
		e := &explainer{s: s, job: j, task: t, spec: j.TaskSpecOf(i, j.Version), number: i, Reader: reader}
		found = append(found, e.findings()...)
	}
	if len(found) == 0 && j.Suspended && j.Finished == 0 {
		f := (&explainer{job: j, task: j.Tasks[0]}).suspended(0)
		f.Task = ""
		found = append(found, f)
	}
	return found
}

// Obstacles returns what keeps a task of a job from the nodes, whatever its pool says.
func Obstacles(s *cluster.State, j *workload.Job, task int) []Obstacle {
	e := &explainer{s: s, job: j, task: j.Tasks[task], spec: j.TaskSpecOf(task, j.Version), number: task,
		Reader: &Reader{}}
	return e.diagnosis().obstacles()
}

// explainer looks at one task.
type explainer struct {
	s      *cluster.State
	job    *workload.Job
	task   *workload.Task
	number int
	// spec is the newest version, nil if that has no such task any more.
	spec *terms.Task
	*Reader
}

// held is a slot that does not run.
type held struct {
	index uint32
	slot  facts.Slot
}

func (e *explainer) findings() []Finding {
	phases := e.byPhase()
	var found []Finding
	add := func(slots []held, explain func([]held) Finding) {
		if len(slots) > 0 {
			f := explain(slots)
			f.Task, f.Instances, f.Slot = e.task.Name, uint32(len(slots)), slots[0].index
			found = append(found, f)
		}
	}
	first := e.task.Fresh
	if waits := phases[facts.Waiting]; len(waits) > 0 {
		first = waits[0].index
	}
	if f, waits := e.idle(first); waits {
		found = append(found, f)
	} else if count := e.task.Waits(); count > 0 && e.spec == nil {
		found = append(found, Finding{
			Task: e.task.Name, Instances: count, Slot: first,
			Reason: fmt.Sprintf("wait for nothing: version %d has no such task", e.job.Version),
		})
	} else if count > 0 && !e.job.Idle(e.number) {
		f := e.waiting(e.key(), plain(phases[facts.Waiting]))
		f.Task, f.Instances = e.task.Name, count
		found = append(found, f)
	}
	if !e.job.Idle(e.number) {
		found = append(found, e.special()...)
	}
	if f, unreachable := e.unreachable(); unreachable {
		found = append(found, f)
	}
	if f, follows := e.completed(); follows {
		found = append(found, f)
	}
	add(phases[facts.Assigned], e.assigned)
	add(e.unwell(phases[facts.Running]), e.ill)
	add(phases[facts.BackingOff], e.backingOff)
	decided, rescheduling := byPolicy(phases[facts.Rescheduling])
	add(decided, e.decided)
	add(rescheduling, e.rescheduling)
	add(phases[facts.Unknown], e.unknown)
	add(phases[facts.Stopping], e.stopping)
	add(ended(phases[facts.Failed], facts.Preempted), e.displaced)
	add(ended(phases[facts.Failed], facts.OutOfTime), e.overran)
	add(otherwise(phases[facts.Failed], facts.Preempted, facts.OutOfTime), e.failed)
	add(e.outdated(), e.notYetUpdated)
	add(e.closed(), e.takeNone)
	if e.spec != nil && e.spec.Instances == 0 && !e.job.Stop {
		found = append(found, Finding{Task: e.task.Name, Reason: "the job asks for no instance of it",
			Details: []string{"would help: instances above 0 in the job file"}})
	}
	return found
}

// idle explains why nothing of the task asks for room although it lacks instances; waits is false if it does.
func (e *explainer) idle(first uint32) (f Finding, waits bool) {
	switch {
	case e.task.Pending() == 0:
		return f, false
	case e.job.Suspended:
		return e.suspended(first), true
	case e.task.Restarting:
		return e.restarting(first), true
	case len(e.job.Awaits) > 0:
		return e.awaits(first), true
	case e.job.Held(e.number):
		return e.waitsForOthers(first), true
	}
	return f, false
}

// byPhase returns the slots that were placed once and that something is to be said about.
func (e *explainer) byPhase() [facts.PhaseCount][]held {
	var phases [facts.PhaseCount][]held
	for index := range e.task.Slots.Len() {
		slot := e.task.Slots.At(index)
		leaving := uint32(index) >= e.task.Desired && !e.job.Stop
		if slot.Order != 0 && (!leaving || slot.Phase == facts.Failed) {
			phases[slot.Phase] = append(phases[slot.Phase], held{uint32(index), slot})
		}
	}
	return phases
}

// assigned explains instances that have a node and were not reported by it.
func (e *explainer) assigned(slots []held) Finding {
	f := Finding{Reason: "starting: the node has been told to run it and has not reported yet", Since: earliest(slots)}
	if len(slots) > 1 {
		f.Reason = "starting: their nodes have been told to run them and have not reported yet"
	}
	f.Details = wording.Lines(e.perNode(slots), "nodes", func(g group) string {
		line := fmt.Sprintf("%s: %s", g.node.Name, wording.Plural(g.instances, "instance", "instances"))
		if g.node.Peer == "" {
			line += "; no peer lives on it now"
		}
		return line
	})
	f.Details = append(f.Details,
		wording.Lines(e.waitsOnNodes(slots), "instances", func(line string) string { return line })...)
	return f
}

// waitsOnNodes says what instances wait for before their nodes can start them.
func (e *explainer) waitsOnNodes(slots []held) (all []string) {
	for _, h := range slots {
		if reason := e.saidOf(h); reason != "" {
			all = append(all, fmt.Sprintf("%s on %s waits for %s", e.slotName(h.index), e.s.Node(h.slot.Node).Name, reason))
		}
	}
	return all
}

// saidOf is what the node of an instance says that this waits for, "" if it says nothing.
func (e *explainer) saidOf(h held) string {
	if e.Said == nil {
		return ""
	}
	return e.Said(terms.AllocationID{Slot: e.slotName(h.index), Order: h.slot.Order}, e.s.Node(h.slot.Node).Name)
}

// backingOff explains instances that failed and will start again.
func (e *explainer) backingOff(slots []held) Finding {
	slices.SortStableFunc(slots, func(a, b held) int { return cmp.Compare(a.slot.Deadline, b.slot.Deadline) })
	first := slots[0].slot
	f := Finding{Until: first.Deadline, Since: earliest(slots),
		Reason: "waits before its restart on the same node, because it failed: " + ending(first)}
	if len(slots) > 1 {
		f.Reason = "wait before their restart on the same nodes, because they failed"
	}
	f.Details = wording.Lines(slots, "instances", func(h held) string {
		return fmt.Sprintf("%s on %s: %s, failure %d in a row%s; starts again at %s", e.name(h.index),
			e.s.Node(h.slot.Node).Name, e.ending(h), h.slot.Failures, e.attempts(h.slot), wording.Clock(h.slot.Deadline))
	})
	slices.SortStableFunc(slots, func(a, b held) int { return cmp.Compare(a.index, b.index) })
	return f
}

// ending says how an instance ended, with what its node said if it was the task's latest to fail.
func (e *explainer) ending(h held) string {
	if last := &e.task.Failure; last.Detail != "" && last.Index == h.index && last.Order == h.slot.Order {
		return fmt.Sprintf("%s (%s)", ending(h.slot), last.Detail)
	}
	return ending(h.slot)
}

// ending says how the last allocation of a slot ended.
func ending(slot facts.Slot) string {
	switch slot.Ended {
	case facts.ByItself:
		return fmt.Sprintf("exit code %d", slot.ExitCode)
	case facts.BySignal:
		return fmt.Sprintf("killed by signal %d", slot.ExitCode-128)
	}
	return slot.Ended.String()
}

// attempts says how many restarts are left.
func (e *explainer) attempts(slot facts.Slot) string {
	spec := e.job.TaskSpecOf(e.number, slot.Version)
	if spec == nil || spec.Restart.AttemptsMax == terms.RestartsUnlimited {
		return ""
	}
	return fmt.Sprintf(" (restart %d of %d)", slot.Failures, spec.Restart.AttemptsMax)
}

// stopping explains instances that were told to end, because the job stops or has a new version.
func (e *explainer) stopping(slots []held) Finding {
	f := Finding{Reason: "told to end, not ended yet: " + slots[0].slot.Cause.String(), Since: earliest(slots)}
	f.Details = wording.Lines(slots, "instances", func(h held) string {
		line := fmt.Sprintf("%s on %s", e.name(h.index), e.s.Node(h.slot.Node).Name)
		if h.slot.AtOnce() {
			line += ": told to end at once"
		} else if spec := e.job.TaskSpecOf(e.number, h.slot.Version); spec != nil {
			line += ": told to end at " + wording.Clock(h.slot.Since)
			if delay := spec.StopDelay(e.job.Spec.Type); delay > 0 {
				line += fmt.Sprintf(", sent its signal %s later", wording.Duration(delay))
			}
			line += fmt.Sprintf(", killed %s after that", wording.Duration(terms.Time(spec.StopGraceMillis)))
		}
		return line
	})
	if d := &e.job.PolicyState.Last; d.Entry != 0 &&
		slices.ContainsFunc(slots, func(h held) bool { return h.slot.Cause.ByPolicies() }) {
		f.Details = append(f.Details, "by a policy: "+PolicyAction(e.job, d))
	}
	if slices.ContainsFunc(slots, func(h held) bool { return h.slot.Cause == facts.ByPreemption }) {
		f.Details = append(f.Details, e.gaveWay()...)
	}
	return f
}

// failed explains instances that are out of restarts.
func (e *explainer) failed(slots []held) Finding {
	f := Finding{Reason: "failed for good: no attempt is left; last: " + ending(slots[0].slot), Since: earliest(slots)}
	if len(slots) > 1 {
		f.Reason = "failed for good: no attempt is left"
	}
	if !slices.ContainsFunc(slots, func(h held) bool { return !e.usedUp(h) }) {
		f.Reason = "failed for good, and out of attempts on other nodes"
		if len(slots) == 1 {
			f.Reason = fmt.Sprintf("failed for good%s; last: %s", e.spent(slots[0]), ending(slots[0].slot))
		}
	}
	if u := &e.job.Update; u.State == facts.UpdateFailed && slots[0].slot.Version == u.To {
		f.Reason = fmt.Sprintf("the update to version %d failed: its instances are not tried again", u.To)
		if u.From == 0 {
			f.Reason = "the deployment failed: its instances are not tried again"
		}
	}
	spent := e.spent
	if len(slots) == 1 {
		spent = func(held) string { return "" } // the reason says so
	}
	f.Details = wording.Lines(slots, "instances", func(h held) string {
		return fmt.Sprintf("%s on %s: %s, failure %d in a row%s", e.name(h.index), e.s.Node(h.slot.Node).Name, e.ending(h),
			h.slot.Failures, spent(h))
	})
	again := "submit the job again"
	if e.job.Finished == 0 && !e.job.Stop {
		again = "and submit it: what failed gets another try with a new version"
	}
	f.Details = append(f.Details, fmt.Sprintf("would help: read starling logs %s/%s[%d], correct what is wrong, %s",
		e.job.Name(),
		e.task.Name, slots[0].index, again))
	return f
}

// group is how many instances are on a node.
type group struct {
	node      *cluster.Node
	instances int
}

func (e *explainer) perNode(slots []held) []group {
	sorted := slices.Clone(slots)
	slices.SortStableFunc(sorted, func(a, b held) int { return cmp.Compare(a.slot.Node, b.slot.Node) })
	var groups []group
	for _, h := range sorted {
		if n := len(groups); n == 0 || groups[n-1].node.Index != h.slot.Node {
			groups = append(groups, group{node: e.s.Node(h.slot.Node)})
		}
		groups[len(groups)-1].instances++
	}
	return groups
}

func (e *explainer) key() facts.TaskKey { return facts.KeyOf(e.job.ID, e.number) }

func (e *explainer) name(index uint32) string { return e.slotName(index).String() }

func (e *explainer) slotName(index uint32) terms.SlotName {
	return terms.SlotName{Job: e.job.Name(), Task: e.task.Name, Index: index}
}

// earliest returns when the first of the slots got into its phase.
func earliest(slots []held) terms.Time {
	first := slots[0].slot.Since
	for _, h := range slots {
		first = min(first, h.slot.Since)
	}
	return first
}
