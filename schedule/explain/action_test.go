package explain_test

import (
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/schedule/explain"
	"starling/terms"
	"starling/terms/lifecycle"
)

// TestWhyOfAnAction says from what an action followed, with how the instance ended.
func TestWhyOfAnAction(t *testing.T) {
	s := cluster.NewState()
	j := s.AddJob(&terms.Job{Name: "j", Type: terms.Batch, Tasks: []terms.Task{{Name: "main", Instances: 1}}})
	for want, d := range map[string]facts.PolicyAction{
		"main[0] has failed for good: exit code 7 (policy of the task)": {
			Event: lifecycle.TaskFailed, Ended: facts.ByItself, ExitCode: 7},
		"main[0] has failed for good: killed by signal 9 (policy of the job)": {
			Event: lifecycle.TaskFailed, Ended: facts.BySignal, ExitCode: 137, OfJob: true},
		"main[0] failed with exit code 7 (policy of the task)": {
			Event: lifecycle.InstanceFailed, Ended: facts.ByItself, ExitCode: 7},
		"main[0] was evicted: its node was drained (policy of the task)": {
			Event: lifecycle.InstanceEvicted, Ended: facts.OnRequest},
	} {
		if got := explain.Why(j, &d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
