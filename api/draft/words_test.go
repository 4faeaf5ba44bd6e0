package draft

import (
	"testing"

	starlingv1 "starling/api/v1"
)

func TestPlanText(t *testing.T) {
	plan := &starlingv1.PlanJobResponse{
		Job: "web", Version: 2, Changes: []*starlingv1.Change{
			{Path: "tasks.main.command", Old: "serve\ntrue", New: "serve -v", Effect: "replaces"},
			{Path: "tasks.main.instances", Old: "3", New: "2", Effect: "stops"},
			{Path: "tasks.side", New: "{instances: 1, command: x}", Effect: "starts"},
		},
		Tasks: []*starlingv1.TaskPlan{{Task: "main", Replaced: 2, Stopped: 1}, {Task: "side"}},
		Waves: []*starlingv1.Wave{
			{Steps: []*starlingv1.Step{{Job: "web", Task: "main", Number: 2, Stops: "a"},
				{Job: "web", Task: "main", Stops: "a", Starts: "a"}}},
			{AfterMillis: 5000, Needs: "promote", Steps: []*starlingv1.Step{
				{Job: "web", Task: "main", Number: 1, Stops: "a", Starts: "b"},
				{Job: "other", Task: "x", Starts: "a", Canary: true},
			}},
		},
		Complete: true, Others: 1,
		Update:   &starlingv1.Update{State: "ROLLED_BACK", Final: true, To: 4, Reason: "no instance became healthy for 60 s"},
		Findings: []*starlingv1.Finding{{Task: "main", Instances: 1, Reason: "does not fit"}},
	}
	want := `web: version 2 to 3
  replaces  tasks.main.command:
    - serve
    - true
    + serve -v
  stops  tasks.main.instances: 3 -> 2
  starts  tasks.side: added, {instances: 1, command: x}
task main: 2 replaced, 1 stopped
task side: no instances
wave 1, at once
  main[2] stops on a
  main[0] is replaced on a
wave 2, after 5s, and starling job update promote
  main[1] moves from a to b
  other.x[0] canary starts on a
in the end, 1 instance of main: does not fit
although all else goes well, the update to version 4 rolled back: no instance became healthy for 60 s
1 step of other jobs
`
	if got := planText(plan); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
