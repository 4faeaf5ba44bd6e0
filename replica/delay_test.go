package replica

import (
	"slices"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/reaction"
	"starling/terms"
	"starling/terms/rules"
)

// running is a service with a port of which one instance runs.
func running(change func(*terms.Job)) (*cluster.State, *reaction.Observed) {
	c := benchJob("web", 1, terms.Pack, 100)
	c.Spec.Type = terms.Stateless
	c.Spec.Tasks[0].Ports = []terms.PortRequest{{Name: "http"}}
	c.Spec.Tasks[0].StopGraceMillis = 700
	change(&c.Spec)
	s := clusterOf(1)
	apply(s, 2, c)
	o := &reaction.Observed{Now: 1, Starts: 9}
	o.Local = []reaction.LocalTask{{ID: reaction.React("m00000~1", s, o).Start[0].ID}}
	apply(s, 3, reaction.React("m00000~1", s, o).Commands...)
	return s, o
}

// tell folds a command of a time.
func tell(s *cluster.State, seq uint64, now terms.Time, c command.Command) {
	Apply(s, s.Index+1, &command.Entry{Writer: "m00000~1", Seq: seq, Time: now, Commands: []command.Command{c}}, false)
}

// stopped is one of which the instance is told to stop at 1000.
func stopped(t *testing.T, change func(*terms.Job)) (*cluster.State, *reaction.Observed) {
	t.Helper()
	s, o := running(change)
	tell(s, 4, 1000, &command.KillJob{Job: "web"})
	if slot := s.JobOf("web").Tasks[0].Slots.At(0); slot.Phase != facts.Stopping || slot.Phase.Found() {
		t.Fatalf("the instance is %s, want that it is stopping and in no list", slot.Phase)
	}
	return s, o
}

// TestServicesAreSignalledAfterTheirDelay asks at several times what is to be done with an instance that is told to
// stop.
func TestServicesAreSignalledAfterTheirDelay(t *testing.T) {
	service := func(*terms.Job) {}
	for _, c := range []struct {
		name    string
		job     func(*terms.Job)
		now     terms.Time
		signals bool
	}{
		{"at once", service, 1000, false},
		{"a moment before the end of the delay", service, 2999, false},
		{"at its end", service, 3000, true},
		{"long after it", service, 100_000, true},
		{"a stateful one", func(j *terms.Job) { j.Type, j.Tasks[0].Disconnect.StopAfterMillis = terms.Stateful, 5000 }, 2999,
			false},
		{"without ports", func(j *terms.Job) { j.Tasks[0].Ports = nil }, 1000, true},
		{"batch", func(j *terms.Job) { j.Type = terms.Batch }, 1000, true},
	} {
		s, o := stopped(t, c.job)
		for range 2 { // asked again it answers the same
			o.Now = c.now
			got := reaction.React("m00000~1", s, o)
			if signals := len(got.Stop) == 1 && got.Stop[0].GraceMillis == 700; signals != c.signals || len(got.Commands) > 0 {
				t.Errorf("%s: stops %+v and writes %+v, want a signal: %t", c.name, got.Stop, got.Commands, c.signals)
			}
			if wakes := got.AskAgain == 3000; wakes == c.signals {
				t.Errorf("%s: asks again at %d, want 3000 only if there is no signal", c.name, got.AskAgain)
			}
		}
	}
}

// TestWhatEndsInItsDelayIsReported: it is gone, whatever it was to wait for.
func TestWhatEndsInItsDelayIsReported(t *testing.T) {
	s, o := stopped(t, func(*terms.Job) {})
	o.Now, o.Local[0].Ended, o.Local[0].ExitCode = 1001, facts.ByItself, 3
	got := reaction.React("m00000~1", s, o)
	if len(got.Stop) != 0 || len(got.Commands) != 1 {
		t.Fatalf("stops %+v and writes %+v, want only a report", got.Stop, got.Commands)
	}
	apply(s, 5, got.Commands...)
	if j := s.JobOf("web"); j.Tasks[0].Slots.At(0).Phase != facts.Stopped {
		t.Errorf("the instance is %s, want stopped", j.Tasks[0].Slots.At(0).Phase)
	}
}

// TestWhatFailsItsChecksIsNotWaitedFor: it serves nobody.
func TestWhatFailsItsChecksIsNotWaitedFor(t *testing.T) {
	s, o := stopped(t, func(*terms.Job) {})
	o.Now, o.Local[0].CheckFailure = 1000, "no answer"
	if got := reaction.React("m00000~1", s, o); len(got.Stop) != 1 {
		t.Errorf("stops %+v, want the instance", got.Stop)
	}
}

// TestASecondOrderDoesNotBeginTheDelayAgain tells an instance that restarts to stop for good, because the job is
// scaled.
func TestASecondOrderDoesNotBeginTheDelayAgain(t *testing.T) {
	for number, want := range map[rules.Number]terms.Time{rules.First: 4000, rules.StopDelays: 3000} {
		s, o := running(func(*terms.Job) {})
		s.Rules = number
		tell(s, 4, 1000, &command.EndAllocation{Slot: o.Local[0].ID.Slot, Order: o.Local[0].ID.Order})
		none := *s.JobOf("web").Spec
		none.Tasks = slices.Clone(none.Tasks)
		none.Tasks[0].Instances = 0
		tell(s, 5, 2000, &command.SubmitJob{Spec: none, Against: 1})
		o.Now = 2000
		if got := reaction.React("m00000~1", s, o); got.AskAgain != want || len(got.Stop) != 0 {
			t.Errorf("under version %d of the rules it asks again at %d and stops %+v, want %d and nothing", number,
				got.AskAgain, got.Stop, want)
		}
	}
}

// TestANewClusterRaisesItsRules asks the first of two members what is to be written, in clusters that differ in one
// thing each.
func TestANewClusterRaisesItsRules(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *cluster.State, o *reaction.Observed)
		raises bool
	}{
		{"new", func(*cluster.State, *reaction.Observed) {}, true},
		{"with a job", func(s *cluster.State, _ *reaction.Observed) { s.LastJob = 1 }, false},
		{"with the rules already", func(s *cluster.State, _ *reaction.Observed) { s.Rules = rules.Released }, false},
		{"with another that knows less",
			func(s *cluster.State, _ *reaction.Observed) { s.SetOffer(1, &terms.Offer{Rules: rules.First}) }, false},
		{"with a first that knows less", func(s *cluster.State, o *reaction.Observed) {
			s.SetOffer(0, &terms.Offer{Rules: rules.First})
			o.Offer = s.Node(0).Offer
		}, false},
		{"with a first that comes to know it",
			func(s *cluster.State, _ *reaction.Observed) { s.SetOffer(0, &terms.Offer{Rules: rules.First}) }, true},
		{"with an offer that is refused", func(s *cluster.State, o *reaction.Observed) {
			s.SetOffer(0, &terms.Offer{Rules: rules.First})
			o.Offer = &terms.Offer{Rules: rules.Released, PortFirst: 9, PortLast: 8}
		}, false},
	} {
		s := clusterOf(2)
		offer := &terms.Offer{Rules: rules.Released}
		s.SetOffer(0, offer)
		s.SetOffer(1, offer)
		o := &reaction.Observed{Offer: offer}
		c.change(s, o)
		raises := 0
		for _, peer := range []terms.PeerID{"m00000~1", "m00001~1"} {
			for _, one := range reaction.React(peer, s, o).Commands {
				if raise, ok := one.(*command.RaiseRules); ok && raise.Version == s.Rules+1 {
					raises++
				}
			}
		}
		if raises > 1 || (raises == 1) != c.raises {
			t.Errorf("%s: raised %d times, want it: %t", c.name, raises, c.raises)
		}
	}
}

// TestOlderRulesKnowFewerEndings: a node tells what the rules in force have.
func TestOlderRulesKnowFewerEndings(t *testing.T) {
	for _, one := range []struct {
		number    rules.Number
		has, want facts.Ending
	}{
		{rules.Volumes, facts.OutOfDisk, facts.BySignal}, {rules.DiskLimits, facts.OutOfDisk, facts.OutOfDisk},
		{rules.DiskLimits, facts.NotThere, facts.NotStarted}, {rules.Lacks, facts.NotThere, facts.NotThere},
	} {
		number, want := one.number, one.want
		s, o := stopped(t, func(*terms.Job) {})
		s.Rules = number
		o.Now, o.Local[0].Ended, o.Local[0].ExitCode, o.Local[0].Detail = 1001, one.has, 137, "full"
		got := reaction.React("m00000~1", s, o)
		if len(got.Commands) != 1 {
			t.Fatalf("writes %+v, want only a report", got.Commands)
		}
		told := got.Commands[0].(*command.ReportTasks).Reports[0]
		if told.Ended != want || told.ExitCode != 137 || told.Detail != "full" {
			t.Errorf("under rules %d it tells %+v, want %s", number, told, want)
		}
		if need := command.Needs(got.Commands); need > number {
			t.Errorf("under rules %d it writes what needs rules %d", number, need)
		}
	}
}
