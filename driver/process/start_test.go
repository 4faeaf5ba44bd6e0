package process_test

import (
	"fmt"
	"testing"

	"starling/driver"
)

// BenchmarkStart measures how long Start takes: until a new supervisor has confirmed a new task.
func BenchmarkStart(b *testing.B) {
	bench := newBench(b)
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprintf("task#%d", i)
		bench.start(b, driver.Task{ID: id, Command: []string{"/bin/sleep", "1000"},
			Limits: driver.Limits{MemoryBytes: 1 << 30}})
		b.StopTimer()
		bench.stop(b, id, 0)
		bench.exited(b, id)
		b.StartTimer()
	}
}
