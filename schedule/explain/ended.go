package explain

import (
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/schedule/preempt"
	"starling/terms"
)

// before tells where those that wait ran before, and to whom the latest of them gave way.
func (e *explainer) before(returned []held) []string {
	ran := otherwise(returned, facts.NotEnded)
	all := lines(ran, "instances that ran before", func(h held) string {
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
	return fmt.Sprintf("%s: a policy is followed at %s unless it has a node by then", e.name(index), clock(slot.Deadline))
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
	return []string{fmt.Sprintf("%s gave way last, at %s by entry %d: %s needed its room, and %s",
		e.name(p.Index), clock(p.At), p.Entry, p.By, preempt.Rule(p.Rule))}
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
		f.Reason += ", " + duration(terms.Time(spec.MaxRunMillis))
	}
	f.Details = append(lines(slots, "instances", func(h held) string {
		return fmt.Sprintf("%s on %s: ended at %s", e.name(h.index), e.s.Node(h.slot.Node).Name, clock(h.slot.Since))
	}), "would help: a longer max_run_time, and submit the job again")
	return f
}
