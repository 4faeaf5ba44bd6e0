package explain

import (
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/schedule/explain/wording"
	"starling/schedule/preempt"
	"starling/terms"
)

// before tells where those that wait ran before, and to whom the latest of them gave way.
func (e *explainer) before(returned []held) []string {
	ran := otherwise(returned, facts.NotEnded)
	all := wording.Lines(ran, "instances that ran before", func(h held) string {
		return fmt.Sprintf("%s ran on %s before: %s", e.name(h.index), e.s.Node(h.slot.Node).Name, ending(h.slot))
	})
	for _, h := range returned {
		if h.slot.ByPolicy() {
			all = append(all, e.unless(h.index, h.slot))
			break
		}
	}
	if len(ended(returned, facts.Preempted)) > 0 {
		all = append(all, e.gaveWay()...)
	}
	return all
}

// unless says when a policy is followed that is about an instance which was evicted.
func (e *explainer) unless(index uint32, slot facts.Slot) string {
	return fmt.Sprintf("%s: a policy is followed at %s unless it has a node by then", e.name(index), wording.Clock(slot.Deadline))
}

// ended returns those whose last allocation ended in one way, otherwise those where it ended in none of some.
func ended(slots []held, how facts.Ending) []held {
	return slices.DeleteFunc(slices.Clone(slots), func(h held) bool { return h.slot.Ended != how })
}

func otherwise(slots []held, than ...facts.Ending) []held {
	return slices.DeleteFunc(slices.Clone(slots), func(h held) bool { return slices.Contains(than, h.slot.Ended) })
}

// gaveWay tells of the latest instance of the task that gave way.
func (e *explainer) gaveWay() []string {
	p := &e.task.Preemption
	if p.Entry == 0 {
		return nil
	}
	by := p.By
	if !e.seen(by) {
		by = ""
	}
	return []string{fmt.Sprintf("%s gave way last, at %s by entry %d: %s", e.name(p.Index), wording.Clock(p.At), p.Entry,
		wording.GaveWay(e.job.Name(), by, preempt.Rule(p.Rule).String()))}
}

// displaced explains instances that gave way, and have no other try.
func (e *explainer) displaced(slots []held) Finding {
	f := Finding{Reason: "ended for good: gave way, and the job wants no other try", Since: earliest(slots)}
	f.Details = append(e.gaveWay(), "would help: submit the job again, without kill_on_preempt to wait for the next turn")
	return f
}

// overran explains instances that ran for as long as they may.
func (e *explainer) overran(slots []held) Finding {
	f := Finding{Reason: "ended for good: ran for as long as it may", Since: earliest(slots)}
	if spec := e.job.TaskSpecOf(e.number, slots[0].slot.Version); spec != nil {
		f.Reason += ", " + wording.Duration(terms.Time(spec.MaxRunMillis))
	}
	f.Details = append(wording.Lines(slots, "instances", func(h held) string {
		return fmt.Sprintf("%s on %s: ended at %s", e.name(h.index), e.s.Node(h.slot.Node).Name, wording.Clock(h.slot.Since))
	}), "would help: a longer max_run_time, and submit the job again")
	return f
}

// tried says how often an instance has been tried on other nodes, and how often it may be.
func (e *explainer) tried(h held) string {
	policy, all := e.rescheduled(h), e.task.Attempts(h.index)
	if policy.AttemptsMax == 0 || policy.AttemptsMax == terms.RestartsUnlimited {
		return wording.Plural(int(all.Made), "attempt", "attempts") + " so far"
	}
	text := fmt.Sprintf("attempts: %d of %d within %s", e.within(h), policy.AttemptsMax,
		wording.Duration(terms.Time(policy.IntervalMillis)))
	if all.Made > e.within(h) {
		text += fmt.Sprintf(", %d in all", all.Made)
	}
	return text
}

// spent says so of an instance that has used up its attempts, "" of any other.
func (e *explainer) spent(h held) string {
	if !e.usedUp(h) {
		return ""
	}
	return ", out of " + e.tried(h)
}

// usedUp tells whether an instance had as many attempts on other nodes as it may have within the time that counts.
func (e *explainer) usedUp(h held) bool {
	most := e.rescheduled(h).AttemptsMax
	return most != 0 && most != terms.RestartsUnlimited && e.within(h) >= most
}

// within counts the attempts within the time that counted when an instance ended.
func (e *explainer) within(h held) uint32 {
	return retries.Within(e.task.Attempts(h.index).Latest, e.rescheduled(h).IntervalMillis, h.slot.Since)
}

// rescheduled returns how an instance is tried on other nodes.
func (e *explainer) rescheduled(h held) terms.Reschedule {
	if spec := e.job.TaskSpecOf(e.number, h.slot.Version); spec != nil {
		return spec.Reschedule
	}
	return terms.Reschedule{}
}
