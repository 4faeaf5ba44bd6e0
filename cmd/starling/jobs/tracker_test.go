package jobs

import (
	"testing"

	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica"
	"starling/replica/reaction"
	"starling/terms"
)

// TestEndInJournal folds the end of a job that is kept for no time, and reads it back from what the journal tells.
func TestEndInJournal(t *testing.T) {
	s := cluster.NewState()
	seq := uint64(0)
	e := &ending{name: "two", slots: map[string]*starlingv1.Slot{}}
	write := func(now terms.Time, c command.Command) {
		seq++
		outcome := replica.Apply(s, s.Index+1,
			&command.Entry{Writer: "a~1", Seq: seq, Time: now, Commands: []command.Command{c}}, true)
		for i := range outcome.Effects {
			if effect := &outcome.Effects[i]; effect.Slot.Job == "two" {
				m := &starlingv1.EffectWords{Kind: effect.Kind.String(), Text: words.Effect(effect), Node: string(effect.Node)}
				if effect.Slot.Task != "" {
					m.Allocation = terms.AllocationID{Slot: effect.Slot, Order: effect.Order}.String()
				}
				e.take(m, uint64(s.Index))
			}
		}
	}
	write(1, &command.PrepareJoin{Joiner: "a~1", Attempt: 1})
	write(2, &command.Volunteer{Peer: "a~1", Offer: terms.Offer{Capacity: terms.Resources{4000, 1 << 30, 0}, Rules: 1}})
	write(3, &command.SubmitJob{Spec: terms.Job{Name: "two", Type: terms.Batch, KeepMillis: terms.KeepLeast,
		Tasks: []terms.Task{{
			Name: "main", Instances: 3, Command: []string{"work"}, Placement: terms.Pack, Resources: terms.Resources{1000, 0, 0},
		}}}})
	reports := &command.ReportTasks{Peer: "a~1"}
	for _, a := range reaction.ViewOf(s, "a~1") {
		news := command.Report{Slot: a.Slot, Order: a.ID.Order, Ended: facts.ByItself}
		switch a.Slot.Index {
		case 1:
			news.ExitCode = 3
		case 2:
			news.Ended, news.ExitCode = facts.BySignal, 128+9
		}
		reports.Reports = append(reports.Reports, news)
	}
	write(4, reports)
	write(5, &command.TellTime{})
	if j := s.JobOf("two"); j != nil {
		t.Fatalf("the job is %s, want it forgotten", j.Status())
	}
	if job := e.status.GetJob(); !job.GetFinal() || job.GetStatus() != "failed" ||
		tally(job.GetCounts()) != "1 succeeded, 2 failed" {
		t.Errorf("got %v", job)
	}
	for i, want := range []struct {
		ended string
		code  int32
	}{{"exited", 0}, {"exited", 3}, {"killed by a signal", 128 + 9}} {
		if slot := e.status.GetSlots()[i]; slot.GetEnded() != want.ended || slot.GetExitCode() != want.code ||
			slot.GetNode() != "a" {
			t.Errorf("slot %d: got %v, want %v", i, slot, want)
		}
	}
}

// TestPromotionIsNotWaitedFor holds an update with a canary against what ends the wait for it.
func TestPromotionIsNotWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*starlingv1.JobStatusResponse)
		waitsFor bool
	}{
		{"all canaries are healthy", func(*starlingv1.JobStatusResponse) {}, false},
		{"one is not healthy", func(s *starlingv1.JobStatusResponse) { s.Job.Counts.NotHealthy = 1 }, true},
		{"one starts", func(s *starlingv1.JobStatusResponse) { s.Job.Counts.Assigned = 1 }, true},
		{"there is none yet", func(s *starlingv1.JobStatusResponse) { s.Tasks[0].Changes.Canaries = 0 }, true},
		{"it was promoted", func(s *starlingv1.JobStatusResponse) { s.Job.Update.Promoted = true }, true},
		{"it is promoted by itself", func(s *starlingv1.JobStatusResponse) { s.Spec.Update.AutoPromote = true }, true},
		{"it goes back", func(s *starlingv1.JobStatusResponse) { s.Job.Update.State = "ROLLING_BACKWARD" }, true},
	} {
		status := &starlingv1.JobStatusResponse{
			Job: &starlingv1.Job{Name: "web", Type: "stateless", Status: "running",
				Counts: &starlingv1.Counts{Desired: 3, Running: 4},
				Update: &starlingv1.Update{State: "ROLLING_FORWARD", From: 1, To: 2}},
			Spec:  &starlingv1.JobSpec{Update: &starlingv1.UpdatePolicy{}},
			Tasks: []*starlingv1.Task{{Changes: &starlingv1.TaskChanges{Canaries: 1}}},
		}
		c.change(status)
		if settled(status) == c.waitsFor || scaled(status) == c.waitsFor {
			t.Errorf("%s: settled %v, scaled %v; is waited for: %v", c.name, settled(status), scaled(status), c.waitsFor)
		}
	}
}
