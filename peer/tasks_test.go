package peer

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"starling/driver"
	"starling/driver/fake"
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
