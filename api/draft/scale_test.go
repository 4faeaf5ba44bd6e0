package draft

import (
	"strings"
	"testing"

	starlingv1 "starling/api/v1"
	"starling/jobspec/sizing"
)

// TestScaleGoesOnWithNothing scales no job whose newest version was given up while others run.
func TestScaleGoesOnWithNothing(t *testing.T) {
	for state, replace := range map[string]uint32{"ABORTED": 2, "FAILED": 1} {
		_, err := rescaled(&starlingv1.JobStatusResponse{
			Job:   &starlingv1.Job{Name: "web", Update: &starlingv1.Update{State: state, To: 2}},
			Tasks: []*starlingv1.Task{{Name: "main", Changes: &starlingv1.TaskChanges{Replace: replace}}},
		}, nil, []sizing.Size{})
		want := "the update of job web to version 2 is " + strings.ToLower(state)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s with %d of other versions: got %v, want %q", state, replace, err, want)
		}
	}
}
