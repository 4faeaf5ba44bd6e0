package peer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster/facts"
	"starling/driver"
	"starling/driver/fake"
	"starling/peer/inbox"
	"starling/replica/reaction"
	"starling/terms"
)

// TestTaskOfTellsWho wants the environment to tell a task its names, whatever pool its job is in.
func TestTaskOfTellsWho(t *testing.T) {
	p := &Peer{config: Config{Node: "a"}}
	for _, c := range []struct {
		job  terms.JobName
		want []string
	}{
		{"web", []string{"STARLING_JOB=web", "STARLING_POOL=default", "STARLING_ALLOCATION=web.main[2]#7"}},
		{"analytics/etl/nightly", []string{
			"STARLING_JOB=analytics/etl/nightly", "STARLING_POOL=analytics/etl",
			"STARLING_ALLOCATION=analytics/etl/nightly.main[2]#7",
		}},
	} {
		slot := terms.SlotName{Job: c.job, Task: "main", Index: 2}
		task := p.taskOf(reaction.Order{ID: terms.AllocationID{Slot: slot, Order: 7},
			Spec: &terms.Task{Command: []string{"work"}}})
		for _, variable := range append(c.want, "STARLING_TASK=main", "STARLING_INDEX=2") {
			if !slices.Contains(task.Env, variable) {
				t.Errorf("%s: got %q, want %s in it", c.job, task.Env, variable)
			}
		}
	}
}

// TestAnInstanceWaitsForWhatIsItsAlone has an instance start when what it asks for can be had, and told why until then.
func TestAnInstanceWaitsForWhatIsItsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t)
		var refuse atomic.Bool
		refuse.Store(true)
		f.private = func(_ context.Context, id terms.AllocationID, task *terms.Task) ([]driver.File, error) {
			if refuse.Load() {
				return nil, errors.New("no machine signs")
			}
			return []driver.File{{Path: "vault.jwt", Content: []byte(id.String() + " for " + task.IDTokens[0].Audience)}}, nil
		}
		f.add("a")
		f.ready("a")
		defer f.stop()
		spec := job("web", terms.Stateless, 1, "serve")
		spec.Tasks[0].IDTokens = []terms.IDToken{{Name: "vault", Audience: "vault", LifeMillis: 60_000}}
		f.submit("a", spec)
		s := f.await("a", "it has a node", slotWith(func(slot facts.Slot) bool { return slot.Phase == facts.Assigned }))
		synctest.Wait()
		id := terms.AllocationID{Slot: terms.SlotName{Job: "web", Task: "main"},
			Order: s.JobOf("web").Tasks[0].Slots.At(0).Order}
		if got := f.peers["a"].Status(t.Context()).Waits[id]; got != "no machine signs" {
			t.Errorf("it waits because %q, want that no machine signs", got)
		}
		refuse.Store(false)
		f.await("a", "it runs", running("web", 1))
		if got := f.machines["a"].PrivateOf(id.String())["vault.jwt"]; got != id.String()+" for vault" {
			t.Errorf("it has the token %q", got)
		}
		if got := f.peers["a"].Status(t.Context()).Waits[id]; got != "" {
			t.Errorf("it runs, and waits because %q", got)
		}
	})
}

// held is a driver whose starts come to their end when they are let go.
type held struct {
	driver.Driver
	begun chan struct{}
	ended chan error
	goOn  chan struct{}
}

func (h *held) Start(ctx context.Context, t driver.Task) error {
	close(h.begun)
	<-h.goOn
	h.ended <- ctx.Err()
	return h.Driver.Start(ctx, t)
}

// TestAStartThatHasBegunIsEnded stops a peer while its driver starts a task, whose program may run already.
func TestAStartThatHasBegunIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := &held{Driver: fake.Open(fake.NewMachine(script)), begun: make(chan struct{}), ended: make(chan error, 1),
		goOn: make(chan struct{})}
	p := &Peer{config: Config{Driver: h}, log: slog.New(slog.DiscardHandler), starts: make(chan struct{}, 1)}
	go func() {
		<-h.begun
		cancel()
		close(h.goOn)
	}()
	refusal, ok := p.handTask(ctx, driver.Task{ID: "web.main[0]#7", Command: []string{"run"}}, nil)
	if err := <-h.ended; err != nil || refusal != "" || !ok {
		t.Errorf("the start was given up: %v; got %q, %v", err, refusal, ok)
	}
	if all := h.Tasks(); len(all) != 1 {
		t.Errorf("whoever comes after finds %v, want the task", all)
	}
}

// A machine restarts, with all that it ran: that is no failure of what ran, which begins again also
// where nothing may fail.
func TestWhatARestartOfTheMachineEndedHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		for _, kind := range []terms.JobType{terms.Batch, terms.Stateless} {
			spec := job("nightly-"+kind.String(), kind, 2, "serve")
			spec.Tasks[0].Restart.AttemptsMax, spec.Tasks[0].Reschedule.AttemptsMax = 0, 0
			f.submit("a", spec)
			f.await("a", "it runs", running(string(spec.Name), 2))
		}
		f.crash("a")
		for _, task := range f.tasks() {
			_, id, _ := strings.Cut(task, " ")
			f.machines["a"].Lose(id, "the machine restarted")
		}
		f.start("a")
		f.ready("a")
		inbox.Pause(t.Context(), time.Minute)
		s, err := f.peers["a"].State(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []terms.JobName{"nightly-batch", "nightly-stateless"} {
			slots := &s.JobOf(name).Tasks[0].Slots
			for i := range slots.Len() {
				if slot := slots.At(i); slot.Phase != facts.Running || slot.Failures != 0 {
					t.Errorf("%s: slot %+v, want one that runs again and has not failed", name, slot)
				}
			}
		}
	})
}
