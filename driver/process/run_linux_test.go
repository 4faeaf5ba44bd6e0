package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"starling/driver"
	"starling/driver/process"
	"starling/driver/uptime"
)

// atOnce is how many tasks BenchmarkRun starts at the same time.
const atOnce = 4

// BenchmarkRun measures a short task with the small supervisor, as an agent runs it, from its start until it is
// forgotten: the time, and the processor time of this process and of all that it started.
func BenchmarkRun(b *testing.B) {
	folder := openFolder(b)
	small := buildSmall(b, folder)
	d, err := process.Open(process.Config{Dir: folder, Hidden: folder, Supervisor: []string{small}})
	if err != nil {
		b.Fatal(err)
	}
	before := processorTime(b)
	b.ResetTimer()
	numbers := make(chan int)
	var starting sync.WaitGroup
	for range atOnce {
		starting.Go(func() {
			for i := range numbers {
				if err := d.Start(b.Context(), driver.Task{ID: fmt.Sprintf("task.main[%d]", i), Command: []string{"true"},
					Env: []string{"PATH=/usr/bin:/bin"}, User: driver.OwnUser("task"),
					Proofs: driver.Proofs{StopAfter: time.Hour, First: uptime.Now()},
					Limits: driver.Limits{MemoryBytes: 1 << 30, CPUMillicores: 1000}}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	go func() {
		for i := range b.N {
			numbers <- i
		}
		close(numbers)
	}()
	for forgotten := 0; forgotten < b.N; <-d.Changed() {
		for _, s := range d.Tasks() {
			if s.State != driver.Exited {
				continue
			}
			if s.ExitCode != 0 {
				b.Errorf("got %+v, want it to succeed", s)
			}
			if err := d.Forget(s.ID); err != nil {
				b.Error(err)
			}
			forgotten++
		}
	}
	starting.Wait()
	b.StopTimer()
	if err := d.Close(); err != nil { // the supervisors that wait for another task end, and are counted
		b.Fatal(err)
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
}

// buildSmall builds the small supervisor, and returns its path in a folder.
func buildSmall(t testing.TB, folder string) string {
	t.Helper()
	small := filepath.Join(folder, "supervise")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", small, "starling/cmd/supervise")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return small
}

// TestTasksArePunctual compares by how much the timers of tasks may be late with what is so for this process; those of
// the supervisor may be later.
func TestTasksArePunctual(t *testing.T) {
	b := newReuse(t)
	want, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Skip(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Driver, err = process.Open(process.Config{Dir: b.folder, Hidden: b.folder,
		Supervisor: []string{buildSmall(t, openFolder(t))}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second"} {
		supervisor := b.runShort(t, id, "cat /proc/self/timerslack_ns; exec cat /proc/self/timerslack_ns")
		if got := b.output(t, id, driver.Stdout); got != string(want)+string(want) {
			t.Errorf("%s: got %q, want twice %q", id, got, want)
		}
		own, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", supervisor))
		if err == nil && string(own) != "1000000\n" { // it may have ended
			t.Errorf("%s: its supervisor has %q", id, own)
		}
	}
}

// processorTime is what this process has used, and all that it started and that has ended.
func processorTime(b *testing.B) (sum time.Duration) {
	for _, whose := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(whose, &used); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return sum
}
