package replica

import (
	"testing"

	"starling/cluster"
	"starling/command"
	"starling/terms"
)

// stopped is a service with a port of which one instance runs, was ready, and is told to stop at 1000.
func stopped(t *testing.T, change func(*terms.Job)) (*cluster.State, *Observed) {
	t.Helper()
	c := benchJob("web", 1, terms.Pack, 100)
	c.Spec.Type = terms.Stateless
	c.Spec.Tasks[0].Ports = []terms.PortRequest{{Name: "http"}}
	c.Spec.Tasks[0].StopGraceMillis = 700
	change(&c.Spec)
	s := clusterOf(1)
	apply(s, 2, c)
	o := &Observed{Now: 1}
	o.Local = []LocalTask{{ID: React("m00000~1", s, o).Start[0].ID}}
	apply(s, 3, React("m00000~1", s, o).Commands...)
	at := &command.Entry{Writer: "m00000~1", Seq: 4, Time: 1000, Commands: []command.Command{&command.KillJob{Job: "web"}}}
	Apply(s, s.Index+1, at, false)
	if slot := s.JobOf("web").Tasks[0].Slots.At(0); slot.Phase != cluster.Stopping || slot.Phase.Found() {
		t.Fatalf("the instance is %s, want that it is stopping and in no list", slot.Phase)
	}
	return s, o
}

// TestServicesAreSignalledAfterTheirDelay asks at several times what is to be done with an instance that is told to stop.
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
		{"a stateful one", func(j *terms.Job) { j.Type, j.Tasks[0].Disconnect.StopAfterMillis = terms.Stateful, 5000 }, 2999, false},
		{"without ports", func(j *terms.Job) { j.Tasks[0].Ports = nil }, 1000, true},
		{"batch", func(j *terms.Job) { j.Type = terms.Batch }, 1000, true},
	} {
		s, o := stopped(t, c.job)
		for range 2 { // asked again it answers the same
			o.Now = c.now
			got := React("m00000~1", s, o)
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
	o.Now, o.Local[0].Ended, o.Local[0].ExitCode = 1001, cluster.ByItself, 3
	got := React("m00000~1", s, o)
	if len(got.Stop) != 0 || len(got.Commands) != 1 {
		t.Fatalf("stops %+v and writes %+v, want only a report", got.Stop, got.Commands)
	}
	apply(s, 5, got.Commands...)
	if j := s.JobOf("web"); j.Tasks[0].Slots.At(0).Phase != cluster.Stopped {
		t.Errorf("the instance is %s, want stopped", j.Tasks[0].Slots.At(0).Phase)
	}
}

// TestWhatFailsItsChecksIsNotWaitedFor: it serves nobody.
func TestWhatFailsItsChecksIsNotWaitedFor(t *testing.T) {
	s, o := stopped(t, func(*terms.Job) {})
	o.Now, o.Local[0].CheckFailure = 1000, "no answer"
	if got := React("m00000~1", s, o); len(got.Stop) != 1 {
		t.Errorf("stops %+v, want the instance", got.Stop)
	}
}
