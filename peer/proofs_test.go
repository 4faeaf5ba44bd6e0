package peer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/driver"
	"starling/driver/fake"
	"starling/peer/inbox"
	"starling/terms"
)

// database is a job of which no slot may have two instances that live.
func database() terms.Job {
	spec := job("db", terms.Stateful, 1, "serve")
	spec.Tasks[0].Disconnect.StopAfterMillis = 10_000
	spec.Tasks[0].Volumes = []terms.Volume{{Name: "data"}}
	return spec
}

// tasks returns what runs on all machines: the machine's name and the task's id.
func (f *flock) tasks() []string {
	var all []string
	for name, machine := range f.machines {
		for _, status := range fake.Open(machine).Tasks() {
			if status.State == driver.Running {
				all = append(all, name+" "+status.ID)
			}
		}
	}
	return all
}

// oneAtATime lets the time pass, and wants that never two tasks run.
func (f *flock) oneAtATime(long time.Duration) {
	f.t.Helper()
	const step = 50 * time.Millisecond
	for range long / step {
		if all := f.tasks(); len(all) > 1 {
			f.t.Fatalf("these run at the same time: %q", all)
		}
		inbox.Pause(context.Background(), step)
	}
}

// runsOn submits a job with one instance and returns the node that it runs on and what runs.
func (f *flock) runsOn(from string, spec terms.Job) (node string, task string) {
	f.t.Helper()
	f.submit(from, spec)
	f.await(from, "it runs", running(string(spec.Name), 1))
	task = f.tasks()[0]
	node, _, _ = strings.Cut(task, " ")
	return node, task
}

func (f *flock) wantRunning(what string) {
	f.t.Helper()
	if all := f.tasks(); len(all) != 1 || all[0] != what {
		f.t.Errorf("%q run, want %q", all, what)
	}
}

func TestATaskIsStoppedBeforeAnotherMayTakeItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b", "c")
		defer f.stop()
		spec := database()
		spec.Tasks[0].Volumes = nil // so it need not wait for its node
		node, task := f.runsOn("a", spec)
		f.crash(node)
		f.oneAtATime(9 * time.Second)
		f.wantRunning(task)
		f.oneAtATime(time.Minute)
		if all := f.tasks(); len(all) != 1 || all[0][:2] == node+" " {
			t.Errorf("%q run, want one that is not on %s", all, node)
		}
		f.start(node)
		f.ready(node)
		f.oneAtATime(time.Minute)
	})
}

func TestATaskOutlivesAPeerThatIsBackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		node, task := f.runsOn("a", database())
		for range 20 {
			f.crash(node)
			f.oneAtATime(2 * time.Second)
			f.start(node)
			f.ready(node)
			f.oneAtATime(2 * time.Second)
			f.wantRunning(task)
		}
	})
}

// A peer that lost its pulse comes back before its task had to end.
func TestATaskOutlivesAPeerThatIsBackInANewLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		node, task := f.runsOn("a", database())
		f.crash(node)
		f.oneAtATime(5 * time.Second)
		f.start(node)
		f.ready(node)
		f.oneAtATime(time.Minute)
		f.wantRunning(task)
		if got := f.peers[node].Self(); got != terms.PeerID(node+"~2") {
			t.Errorf("the peer is %s, want its second life", got)
		}
	})
}

func TestATaskThatWasStoppedForWantOfProofsRunsAgainAndHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		f.crash("a")
		journal := &cut{Journal: f.shared.Open()}
		f.startOn("a", journal)
		f.ready("a")
		_, task := f.runsOn("a", database())
		journal.mute.Store(true)
		f.oneAtATime(time.Minute)
		if all := f.tasks(); len(all) != 0 {
			t.Errorf("%q run without proof", all)
		}
		journal.mute.Store(false)
		f.oneAtATime(10 * time.Second)
		s := f.await("a", "it runs again", running("db", 1))
		if slot := s.JobOf("db").Tasks[0].Slots.At(0); slot.Failures != 0 {
			t.Errorf("slot %+v, want no failure", slot)
		}
		if all := f.tasks(); len(all) != 1 || all[0] == task {
			t.Errorf("%q run, want a task after %q", all, task)
		}
	})
}

// The pulse of a lone peer ends and is brought back: nobody has written that it left, but somebody might have.
func TestAPulseThatWasBroughtBackProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		_, task := f.runsOn("a", database())
		other, err := f.shared.Open().Pulse(t.Context(), "a~1", 3*time.Second, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.oneAtATime(30 * time.Second)
		f.await("a", "a~2 is a member", func(s *cluster.State) bool { return s.IsMember("a~2") })
		f.wantRunning(task)
	})
}
