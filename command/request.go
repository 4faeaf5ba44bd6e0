package command

import (
	"fmt"

	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// RequestKey is what a request with an id is remembered by: since rules.OwnRequests each user has ids of its own, for
// each kind of command about each job.
func RequestKey(in rules.Number, c Command, id string) string {
	if in < rules.OwnRequests || id == "" {
		return id
	}
	var who access.Subject
	if as, ok := c.(*As); ok {
		who = as.Subject
	}
	asked := Plain(c)
	return fmt.Sprintf("%d %s %s %s", asked.Kind(), jobOf(asked), id, who)
}

// jobOf is the job that a command is about, "" for none.
func jobOf(c Command) terms.JobName {
	switch c := c.(type) {
	case *SubmitJob:
		return c.Spec.Name
	case *KillJob:
		return c.Job
	case *SteerUpdate:
		return c.Job
	case *RevertJob:
		return c.Job
	case *RestartJob:
		return c.Job
	case *SuspendJob:
		return c.Job
	case *SealTask:
		return c.Slot.Job
	case *EndAllocation:
		return c.Slot.Job
	case *RemoveVolumes:
		return c.Volumes.Slot.Job
	case *MoveVolumes:
		return c.Volumes.Slot.Job
	}
	return ""
}
