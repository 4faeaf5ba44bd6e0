package brief_test

import (
	"testing"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/schedule/explain/brief"
	"starling/terms"
)

// TestSlot tells what an instance of a job with checks waits for, in version 2 of which version 2 is the newest.
func TestSlot(t *testing.T) {
	rolls := facts.Update{State: facts.RollingForward, Promoted: true, To: 2}
	tries := facts.Update{State: facts.RollingForward, To: 2}
	old := facts.Slot{Version: 1, Phase: facts.Running, Health: facts.Healthy}
	canary := facts.Slot{Version: 2, Phase: facts.Running, Health: facts.Healthy}
	at := terms.Time(time.Date(2026, 3, 1, 6, 0, 5, 0, time.UTC).UnixMilli())
	cases := []struct {
		update facts.Update
		auto   bool
		seat   facts.Seat
		slot   facts.Slot
		want   string
	}{
		{rolls, false, 0, facts.Slot{}, "a machine"},
		{rolls, false, 0, facts.Slot{Phase: facts.Rescheduling, Deadline: at}, "another machine, at 2026-03-01T06:00:05Z"},
		{rolls, false, 0, facts.Slot{Phase: facts.Rescheduling, Deadline: at, Cause: facts.ByPolicy},
			"what a policy says, at 2026-03-01T06:00:05Z"},
		{rolls, false, 0, facts.Slot{Deadline: at}, "a machine, or what a policy says at 2026-03-01T06:00:05Z"},
		{rolls, false, 0, facts.Slot{Version: 2, Phase: facts.Assigned}, "its start"},
		{rolls, false, 0, facts.Slot{Version: 2, Phase: facts.BackingOff, Deadline: at},
			"its restart, at 2026-03-01T06:00:05Z"},
		{rolls, false, 0, facts.Slot{Version: 1, Phase: facts.Stopping, Cause: facts.ByUpdate},
			"its end: a new version takes its place"},
		{rolls, false, 0, facts.Slot{Version: 1, Phase: facts.Unknown, Deadline: at}, "its machine, until 2026-03-01T06:00:05Z"},
		{rolls, false, 0, facts.Slot{Version: 2, Phase: facts.Running}, "its checks"},
		{rolls, false, 0, facts.Slot{Version: 2, Phase: facts.Running, Health: facts.Ready, Deadline: at},
			"its health, at 2026-03-01T06:00:05Z"},
		{rolls, false, 0, facts.Slot{Version: 2, Phase: facts.Running, Health: facts.Healthy}, ""},
		{rolls, false, 0, facts.Slot{Version: 2, Phase: facts.Succeeded}, ""},
		{rolls, false, 0, old, "its turn"},
		{facts.Update{State: facts.UpdateFailed, To: 2}, false, 0, old, ""},
		{facts.Update{State: facts.Paused, Promoted: true, To: 2}, false, 0, old, "starling job update resume"},
		{tries, false, 0, old, "the canaries"},
		{tries, false, facts.CanarySeat, canary, "starling job update promote"},
		{tries, true, facts.CanarySeat, canary, "the other canaries"},
	}
	for i, c := range cases {
		s := cluster.NewState()
		spec := &terms.Job{Name: "web", Type: terms.Stateless, Tasks: []terms.Task{{
			Name: "main", Instances: 1, Command: []string{"serve"}, Checks: []terms.Check{{Kind: terms.CheckTCP}},
		}}}
		spec.Update.AutoPromote = c.auto
		id := s.AddJob(spec).ID
		s.AddVersion(id, facts.JobVersion{Kind: facts.Submitted, Spec: spec}, nil)
		s.SetUpdate(id, c.update, 0)
		r := facts.SlotRef{Job: id, Seat: c.seat}
		if got := brief.Slot(s.Job(id), 0, r, c.slot); got != c.want {
			t.Errorf("case %d: got %q, want %q", i, got, c.want)
		}
	}
}

// TestSlotOfIdleJob tells what an instance without a node waits for when its job asks for none.
func TestSlotOfIdleJob(t *testing.T) {
	s := cluster.NewState()
	id := s.AddJob(&terms.Job{Name: "b", Type: terms.Batch, Tasks: []terms.Task{
		{Name: "first", Instances: 1, Command: []string{"true"}},
		{Name: "second", Instances: 1, Command: []string{"true"}, After: []terms.TaskName{"first"}},
	}}).ID
	want := func(task int, want string) {
		t.Helper()
		if got := brief.Slot(s.Job(id), task, facts.SlotRef{Job: id, Task: uint16(task)}, facts.Slot{}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want(0, "a machine")
	want(1, "other tasks")
	s.SetRestarting(id, 0, true)
	want(0, "the end of what is restarted")
	s.SetAwaits(id, []terms.JobName{"a"})
	want(0, "other jobs")
	want(1, "other jobs")
	s.SetSuspended(id, true)
	want(1, "starling job resume")
}
