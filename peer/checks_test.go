package peer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/driver"
	"starling/driver/fake"
	"starling/peer/identity"
	"starling/plugin/roster"
	"starling/terms"
)

// asked starts a lone peer with a service that is asked every second, and bears one failure in a row. How long an
// instance has run decides what it answers.
func asked(t *testing.T, then terms.OnFailure, answer func(age time.Duration) error) *flock {
	f := newFlock(t)
	f.machines["a"] = fake.NewMachine(func(driver.Task) fake.Behaviour {
		began := time.Now()
		return fake.Behaviour{Beside: func(command []string) error {
			if command[0] != "ask" {
				t.Errorf("the instance was asked by %q", command)
			}
			return answer(time.Since(began))
		}}
	})
	f.ids["a"] = &identity.Memory{}
	f.start("a")
	f.ready("a")
	spec := job("web", terms.Stateless, 1, "serve")
	spec.Tasks[0].Checks = []terms.Check{{
		Kind: terms.CheckCommand, Command: []string{"ask"}, IntervalMillis: 1000, TimeoutMillis: 500, FailuresMax: 1,
		OnFailure: then,
	}}
	f.submit("a", spec)
	return f
}

func slotWith(wanted func(facts.Slot) bool) func(*cluster.State) bool {
	return func(s *cluster.State) bool { return wanted(s.JobOf("web").Tasks[0].Slots.At(0)) }
}

func TestAnInstanceIsReadyWhenItsChecksHavePassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := asked(t, terms.RestartOnFailure, func(age time.Duration) error {
			if age < time.Second {
				return errors.New("not yet")
			}
			return nil
		})
		defer f.stop()
		s := f.await("a", "it runs", running("web", 1))
		if got := s.JobOf("web").Tasks[0].Slots.At(0).Health; got != facts.Starting {
			t.Errorf("an instance that was not asked yet is %s", got)
		}
		f.await("a", "it is well", slotWith(func(slot facts.Slot) bool { return slot.Health == facts.Healthy }))
		if took := time.Since(began); took < time.Second || took > 3*time.Second {
			t.Errorf("that took %v, want until the second question", took)
		}
		task := f.tasks()
		f.crash("a")
		f.start("a")
		f.ready("a")
		f.oneAtATime(10 * time.Second)
		f.wantRunning(task[0])
	})
}

func TestAnInstanceThatFailsItsChecksIsStoppedAndHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := asked(t, terms.RestartOnFailure, func(age time.Duration) error {
			if age > 5*time.Second {
				return errors.New("out of order")
			}
			return nil
		})
		defer f.stop()
		s := f.await("a", "it has failed", slotWith(func(slot facts.Slot) bool { return slot.Failures > 0 }))
		failure := s.JobOf("web").Tasks[0].Failure
		if failure.Ended != facts.CheckFailed || !strings.Contains(failure.Detail, "out of order") {
			t.Errorf("got %+v, want that a check failed", failure)
		}
		f.await("a", "it runs again", running("web", 1))
	})
}

// TestAnInstanceThatIsNotReadyGoesOn has a check fail for a while that asks no more than whether the instance is ready.
func TestAnInstanceThatIsNotReadyGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := asked(t, terms.UnreadyOnFailure, func(age time.Duration) error {
			if age > 5*time.Second && age < 20*time.Second {
				return errors.New("no database")
			}
			return nil
		})
		defer f.stop()
		healthy := slotWith(func(slot facts.Slot) bool { return slot.Health == facts.Healthy })
		f.await("a", "it is well", healthy)
		task := f.tasks()
		id := terms.AllocationID{Slot: terms.SlotName{Job: "web", Task: "main"}, Order: 0}
		s := f.await("a", "it is not ready", slotWith(func(slot facts.Slot) bool {
			id.Order = slot.Order
			return slot.Health == facts.Starting
		}))
		member, _ := roster.MemberAt(s, s.JobOf("web"), facts.SlotRef{Job: s.JobOf("web").ID})
		if member.Order != 0 {
			t.Errorf("others find it: %+v", member)
		}
		synctest.Wait()
		const why = "not ready: check command ask fails: exit status 1: no database"
		if got := f.peers["a"].Status(t.Context()).Waits[id]; got != why {
			t.Errorf("it waits because %q, want %q", got, why)
		}
		s = f.await("a", "it is well again", healthy)
		if slot := s.JobOf("web").Tasks[0].Slots.At(0); slot.Order != id.Order || slot.Failures > 0 {
			t.Errorf("it is %+v, want the one that was not ready", slot)
		}
		f.wantRunning(task[0])
	})
}

// TestChecksBeginWhenTheTaskRuns has the start of an instance wait for longer than its checks may fail.
func TestChecksBeginWhenTheTaskRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t)
		began := time.Now()
		f.private = func(ctx context.Context, _ terms.AllocationID, _ *terms.Task) ([]driver.File, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return nil, ctx.Err()
		}
		f.machines["a"] = fake.NewMachine(func(task driver.Task) fake.Behaviour {
			return fake.Behaviour{Beside: func([]string) error {
				if time.Since(began) < time.Minute {
					t.Errorf("%s is asked before it runs", task.ID)
				}
				return nil
			}}
		})
		f.ids["a"] = &identity.Memory{}
		f.start("a")
		f.ready("a")
		defer f.stop()
		spec := job("web", terms.Stateless, 1, "serve")
		spec.Tasks[0].IDTokens = []terms.IDToken{{Name: "vault", Audience: "vault", LifeMillis: 60_000}}
		spec.Tasks[0].Checks = []terms.Check{{Kind: terms.CheckCommand, Command: []string{"ask"}, IntervalMillis: 1000,
			TimeoutMillis: 500, FailuresMax: 1}}
		f.submit("a", spec)
		s := f.await("a", "it is well", slotWith(func(slot facts.Slot) bool { return slot.Health == facts.Healthy }))
		if failures := s.JobOf("web").Tasks[0].Slots.At(0).Failures; failures > 0 {
			t.Errorf("it has failed %d times, want that its checks begin when it runs", failures)
		}
	})
}
