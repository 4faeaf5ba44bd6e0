package terms

import "testing"

func TestRestartDelay(t *testing.T) {
	doubling := Restart{DelayMillis: 1000, DelayMaxMillis: 60_000}
	cases := []struct {
		restart  Restart
		failures uint32
		want     int64
	}{
		{doubling, 1, 1000},
		{doubling, 2, 2000},
		{doubling, 6, 32_000},
		{doubling, 7, 60_000},
		{doubling, 1 << 31, 60_000},
		{Restart{}, 1, 0},
		{Restart{}, 1000, 0},
		{Restart{DelayMillis: 5, DelayMaxMillis: 5}, 9, 5},
		{Restart{DelayMillis: 7, DelayMaxMillis: 20}, 3, 20},
		{Restart{DelayMillis: DelayMillisMax, DelayMaxMillis: DelayMillisMax}, 1<<32 - 1, DelayMillisMax},
	}
	for _, c := range cases {
		if got := c.restart.Delay(c.failures); got != c.want {
			t.Errorf("%+v after %d failures: %d ms, want %d", c.restart, c.failures, got, c.want)
		}
	}
}

// TestStopDelay: what a job says counts, and without a word services with ports have what their clients need.
func TestStopDelay(t *testing.T) {
	port := []PortRequest{{Name: "http"}}
	for _, c := range []struct {
		kind JobType
		task Task
		want Time
	}{
		{Stateless, Task{Ports: port}, 2000},
		{Stateful, Task{Ports: port}, 2000},
		{Daemon, Task{Ports: port}, 0},
		{Batch, Task{Ports: port}, 0},
		{Stateless, Task{}, 0},
		{Stateless, Task{StopDelayMillis: 700}, 700},
		{Batch, Task{StopDelayMillis: 700}, 700},
		{Stateful, Task{Ports: port, StopDelayMillis: 30_000}, 30_000},
		{Stateless, Task{Ports: port, StopDelayMillis: StopDelayLeast}, StopDelayLeast},
	} {
		if got := c.task.StopDelay(c.kind); got != c.want {
			t.Errorf("%s with %+v and %d ports: %d ms, want %d", c.kind, c.task.StopDelayMillis, len(c.task.Ports), got, c.want)
		}
	}
	task := Task{MaxRunMillis: 10_000, StopDelayMillis: 700, StopGraceMillis: 50}
	if got := task.RunsAtMost(); got != 10_750 {
		t.Errorf("it has ended after %d ms at the latest, want its time, its delay and its grace", got)
	}
}
