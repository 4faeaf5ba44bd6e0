package fake_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"starling/driver"
	"starling/driver/drivertest"
	"starling/driver/fake"
)

// play is the script that makes a task go as drivertest.Program would.
func play(t driver.Task) fake.Behaviour {
	number := func(i int) int {
		n, err := strconv.Atoi(t.Command[i])
		if err != nil {
			panic(err)
		}
		return n
	}
	switch verb := t.Command[0]; verb {
	case "exit":
		return fake.Behaviour{Ends: true, ExitCode: number(1), Stdout: "exit\n"}
	case "signal":
		return fake.Behaviour{Ends: true, Signal: number(1)}
	case "run":
		return fake.Behaviour{Stdout: "ready\n"}
	case "terminate":
		return fake.Behaviour{Stdout: "ready\n", Terminated: fake.Exits, ExitCode: number(1), LastWords: "terminated\n"}
	case "ignore":
		return fake.Behaviour{Stdout: "ready\n", Terminated: fake.Ignores}
	case "print":
		return fake.Behaviour{Ends: true, Stdout: t.Command[1], Stderr: t.Command[2]}
	default:
		return fake.Behaviour{Fail: "program " + verb + " not found"}
	}
}

func TestContract(t *testing.T) {
	var mu sync.Mutex
	machines := map[string]*fake.Machine{}
	drivertest.Test(t, drivertest.Machine{
		Scripted: true,
		Open: func(_ *testing.T, folder string) driver.Driver {
			mu.Lock()
			defer mu.Unlock()
			if machines[folder] == nil {
				machines[folder] = fake.NewMachine(play)
			}
			return fake.Open(machines[folder])
		},
	})
}

// TestTold drives tasks from outside, in the time of a bubble.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := errors.New("the disk is full")
		machine := fake.NewMachine(func(t driver.Task) fake.Behaviour {
			switch t.ID {
			case "refused":
				return fake.Behaviour{Refuse: refusal}
			case "late":
				return fake.Behaviour{Ends: true, After: time.Hour, ExitCode: 4}
			default:
				return fake.Behaviour{}
			}
		})
		d := fake.Open(machine)
		start := func(id string) error {
			return d.Start(context.Background(), driver.Task{ID: id, Command: []string{"program"}})
		}
		if err := start("refused"); !errors.Is(err, refusal) || len(d.Tasks()) != 0 {
			t.Errorf("a refused start: got %v and %+v, want %v and nothing", err, d.Tasks(), refusal)
		}
		for _, id := range []string{"exits", "late", "lost", "killed"} {
			if err := start(id); err != nil {
				t.Fatal(err)
			}
		}
		<-d.Changed()
		machine.Exit("exits", 3)
		machine.Kill("killed", syscall.SIGSEGV)
		machine.Lose("lost", "the machine restarted")
		<-d.Changed()
		begin := time.Now()
		<-d.Changed()
		if took := time.Since(begin); took != time.Hour {
			t.Errorf("the late one ended after %v, want an hour", took)
		}
		want := []driver.Status{
			{ID: "exits", ExitCode: 3},
			{ID: "killed", ExitCode: 139, Signal: 11},
			{ID: "late", ExitCode: 4},
			{ID: "lost", ExitCode: driver.NoExitCode, Error: "the machine restarted", Lost: true},
		}
		for i, got := range d.Tasks() {
			want[i].State, want[i].StartedAt, want[i].EndedAt = driver.Exited, got.StartedAt, got.EndedAt
			if got != want[i] {
				t.Errorf("got %+v, want %+v", got, want[i])
			}
		}
	})
}
