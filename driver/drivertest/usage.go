package drivertest

import (
	"testing"
	"time"

	"starling/driver"
)

// testUsage asks for a task that runs, one that has ended and one that there is not.
func testUsage(t *testing.T, b *bench) {
	b.startReady(t, "runs", "run")
	b.start(t, "ended", "exit", "0")
	b.exited(t, "ended")
	usage := b.usage(t, "runs", "ended", "unknown")
	if use := usage.Tasks["runs"]; len(usage.Tasks) != 1 || use.MemoryBytes <= 0 || usage.At.IsZero() {
		t.Errorf("got %+v, want a use of memory by the one that runs", usage)
	}
	if usage.Machine.CPU <= 0 || usage.Machine.MemoryBytes <= 0 {
		t.Errorf("got %+v for the machine", usage.Machine)
	}
}

func (b *bench) usage(t *testing.T, ids ...string) driver.Usage {
	t.Helper()
	usage, err := b.Usage(ids)
	if err != nil {
		t.Fatalf("Usage: %v", err)
	}
	return usage
}

// testUsageGrows has a task keep a processor busy, and compares what is told before with what is told later.
func testUsageGrows(t *testing.T, b *bench) {
	const bytes, more = 64 << 20, 64 << 20
	b.startReady(t, "burns", "burn", "67108864")
	first := b.usage(t, "burns")
	if got := first.Tasks["burns"].MemoryBytes; got < bytes || got > bytes+more {
		t.Errorf("it uses %d bytes of memory, want %d and at most %d more", got, bytes, more)
	}
	b.reopen(t, func() {})
	const enough = 100 * time.Millisecond
	last := first
	for last.Tasks["burns"].CPU < first.Tasks["burns"].CPU+enough && b.ctx.Err() == nil {
		last = b.usage(t, "burns")
	}
	took, spent := last.At.Sub(first.At), last.Tasks["burns"].CPU-first.Tasks["burns"].CPU
	if spent < enough || spent > took+enough {
		t.Errorf("one thread used %v of a processor in %v, want at least %v", spent, took, enough)
	}
	if machine := last.Machine.CPU - first.Machine.CPU; machine < spent-enough/2 {
		t.Errorf("the machine used %v of its processors while a task used %v", machine, spent)
	}
}
