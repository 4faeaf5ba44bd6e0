package explain

import (
	"fmt"

	"starling/cluster/retries"
	"starling/terms"
)

// tried says how often an instance has been tried on other nodes, and how often it may be.
func (e *explainer) tried(h held) string {
	policy, all := e.rescheduled(h), e.task.Attempts(h.index)
	if policy.AttemptsMax == 0 || policy.AttemptsMax == terms.RestartsUnlimited {
		return plural(int(all.Made), "attempt", "attempts") + " so far"
	}
	text := fmt.Sprintf("attempts: %d of %d within %s", e.within(h), policy.AttemptsMax,
		duration(terms.Time(policy.IntervalMillis)))
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
