package explain

import (
	"fmt"

	"starling/cluster"
	"starling/terms/lifecycle"
)

// Why says what a deed followed from, as in "worker[3] failed with exit code 7 (policy of the task)".
func Why(j *cluster.Job, d *cluster.Deed) string {
	if d.Event == 0 {
		return fmt.Sprintf("%d instances have succeeded, as many as min_success wants", j.Spec.MinSuccess)
	}
	task := j.Tasks[d.Task].Name
	slot := fmt.Sprintf("%s[%d]", task, d.Index)
	what := map[lifecycle.Event]string{
		lifecycle.InstanceFailed:  slot + " failed: " + d.Ended.String(),
		lifecycle.InstanceEvicted: slot + " was evicted: " + d.Ended.String(),
		lifecycle.TaskCompleted:   fmt.Sprintf("all instances of %s have succeeded", task),
		lifecycle.TaskFailed:      slot + " has failed for good: " + d.Ended.String(),
	}[d.Event]
	if d.Event == lifecycle.InstanceFailed && d.Ended == cluster.ByItself {
		what = fmt.Sprintf("%s failed with exit code %d", slot, d.ExitCode)
	}
	if d.OfJob {
		return what + " (policy of the job)"
	}
	return what + " (policy of the task)"
}

// Deed says what followed by a policy and why, as in "task worker is restarted: worker[3] failed with exit code 7 (policy of the
// task)".
func Deed(j *cluster.Job, d *cluster.Deed) string {
	task := j.Tasks[d.Task].Name
	done := map[lifecycle.Action]string{
		lifecycle.RestartInstance: "the job has failed, for the instance is out of restarts",
		lifecycle.RestartTask:     fmt.Sprintf("task %s is restarted", task),
		lifecycle.RestartJob:      "all of the job is restarted",
		lifecycle.Abort:           "the job is suspended",
		lifecycle.Terminate:       "the job has failed",
		lifecycle.Complete:        "the job has succeeded",
	}[d.Action]
	switch {
	case d.Spent && d.Action == lifecycle.RestartTask:
		done = fmt.Sprintf("the job has failed, for task %s was restarted %s already", task, times(j.Tasks[d.Task].Restarts))
	case d.Spent && d.Action == lifecycle.RestartJob:
		done = fmt.Sprintf("the job has failed, for it was restarted %s already", times(j.Fate.Restarts))
	}
	return done + ": " + Why(j, d)
}

func times(n uint32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
