package view

import (
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/lifecycle"
)

// TestHealthyCanaryCounts counts an instance of the version before, and a canary beside it, that are both healthy.
func TestHealthyCanaryCounts(t *testing.T) {
	task := &workload.Task{}
	task.Desired = 1
	task.Counts[facts.Running], task.Old[facts.Healthy] = 1, 1
	task.Secondary[facts.Running], task.Canaries[facts.Healthy] = 1, 1
	j := &workload.Job{Spec: &terms.Job{Type: terms.Stateless}}
	for _, healthy := range []bool{true, false} {
		want := uint32(0)
		if !healthy {
			want = 1
			task.Canaries = [facts.HealthCount]uint32{}
		}
		if got := counts(j, task); got.GetRunning() != 2 || got.GetNotHealthy() != want {
			t.Errorf("healthy %v: got %v, want 2 that run and %d that are not healthy", healthy, got, want)
		}
	}
}

// TestClosedSlotsAreNotCounted counts a daemon on two of four nodes, of which one takes none and one has left.
func TestClosedSlotsAreNotCounted(t *testing.T) {
	task := &workload.Task{}
	task.Desired = 4
	task.Counts[facts.Running], task.New[facts.Healthy], task.Counts[facts.Stopped] = 2, 2, 2
	j := &workload.Job{Spec: &terms.Job{Type: terms.Daemon}}
	if got := counts(j, task); got.GetDesired() != 2 || got.GetRunning() != 2 || got.GetStopped() != 0 {
		t.Errorf("got %v, want 2 that are wanted and run", got)
	}
	if got := taskChanges(j, task); got.GetIgnore() != 2 {
		t.Errorf("got %v, want 2 that are as asked", got)
	}
	j.Stop = true
	if got := counts(j, task); got.GetStopped() != 2 {
		t.Errorf("got %v, want 2 that were stopped", got)
	}
}

// TestDecidedOfWhatIsStopped leaves out what a policy did last of a job that its user stopped since.
func TestDecidedOfWhatIsStopped(t *testing.T) {
	s := cluster.NewState()
	id := s.AddJob(&terms.Job{Name: "j", Type: terms.Batch, Tasks: []terms.Task{{Name: "main", Instances: 1}}}).ID
	state := facts.PolicyState{Last: facts.PolicyAction{Entry: 1, Event: lifecycle.InstanceFailed, Ended: facts.ByItself,
		Action: lifecycle.Abort}}
	s.SetPolicyState(id, state)
	if got := Job(s.Job(id)).GetPolicyAction().GetText(); !strings.HasPrefix(got, "the job is suspended") {
		t.Errorf("suspended by a policy: got %q", got)
	}
	s.StopJob(id)
	if got := Job(s.Job(id)).GetPolicyAction(); got != nil {
		t.Errorf("stopped by a user: got %v", got)
	}
	state.Outcome, state.Last.Action = facts.Terminated, lifecycle.Terminate
	s.SetPolicyState(id, state)
	if got := Job(s.Job(id)).GetPolicyAction().GetText(); !strings.HasPrefix(got, "the job has failed") {
		t.Errorf("stopped by a policy: got %q", got)
	}
}
