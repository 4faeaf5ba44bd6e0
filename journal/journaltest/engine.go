package journaltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"starling/journal"
)

// TrimKilled cuts again and again while restart kills the engine at some moment, and starts it again. Whatever has come
// of a cut then, it is whole or was never there, and the next finishes it.
func TrimKilled(t *testing.T, h Harness, restart func()) {
	const n, each = 240, 40
	ctx, cancel := context.WithTimeout(t.Context(), historyPatience)
	defer cancel()
	a := h.open(t)
	var all []journal.Record
	for i := range n {
		all = append(all, record("w", i+1))
		must(t, again(ctx, func() error { return a.Append(ctx, all[i]) }))
	}
	stood := journal.Snapshot{}
	for i := range n/each - 1 {
		next := snapshot(t, a, journal.Index((i+1)*each), 2)
		// The snapshot stands already when a cut is broken off, or not, as the engine and the moment will have it.
		short, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- a.Trim(short, next) }()
		wait := time.NewTimer(time.Duration(i*i) * 2 * time.Millisecond)
		<-wait.C
		restart()
		stop()
		t.Logf("the cut at %d was broken off with: %v", next.Index, <-ended)

		stands, err := h.open(t).Snapshot(ctx)
		must(t, err)
		if stands != next && stands != stood {
			t.Fatalf("the snapshot of %d stands, want that of %d or %d", stands.Index, stood.Index, next.Index)
		}
		read := map[journal.Index]string{}
		must(t, readTo(ctx, h.open(t), n, read))
		for at := stands.Index + 1; at <= n; at++ {
			if want := name(all[at-1]); read[at] != want {
				t.Fatalf("after a cut at %d that was broken off record %d is %q, want %q", next.Index, at, read[at], want)
			}
		}
		must(t, again(ctx, func() error { return a.Trim(ctx, next) }))
		wantSnapshot(t, h.open(t), next)
		stood = next
	}
	next := record("w", n+1)
	must(t, again(ctx, func() error { return a.Append(ctx, next) }))
	wantSame(t, follow(t, h.open(t), n+1).take(1), []journal.Record{next})
}

// Divided is what disturbs three servers of an engine, of which each is on a machine of its own.
type Divided struct {
	// Leader waits until a server leads, other than some, and returns it.
	Leader func(but ...int) int
	// Cut divides the network: these servers reach each other and nobody else. Without any, all reach all.
	Cut func(away ...int)
	// Ready waits until all serve.
	Ready func()
}

// HistoryDivided is History while the leader is cut off, and then a follower: the others go on. With two of three cut
// off nobody here is answered until they are back.
func HistoryDivided(t *testing.T, h Harness, d Divided) {
	j := h.open(t)
	ctx, cancel := context.WithTimeout(t.Context(), historyPatience)
	defer cancel()
	ask := func() error {
		short, cancel := context.WithTimeout(ctx, historyAttempt)
		defer cancel()
		_, err := j.Head(short)
		return err
	}
	History(t, h, func() {
		for _, follows := range []int{0, 1} {
			away := (d.Leader() + follows) % 3
			d.Cut(away)
			d.Leader(away)
			if err := again(ctx, ask); err != nil {
				t.Errorf("with server %d cut off nobody answers: %v", away, err)
			}
			d.Cut()
			d.Ready()
		}
		d.Cut(0, 1)
		if err := ask(); err == nil {
			t.Error("without a majority the head is told")
		}
		d.Cut()
		d.Ready()
	})
}

// Disk is a small one that an engine has for itself.
type Disk struct {
	// Folder is where it is.
	Folder string
	filler string
}

// NewDisk makes a disk of so many bytes at a folder until the test ends. Only root can; elsewhere the test is skipped.
// On the machine that checks everything it fails.
func NewDisk(t *testing.T, folder string, bytes int64) *Disk {
	t.Helper()
	must(t, os.MkdirAll(folder, 0o755))
	switch err := mount(folder, bytes); {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("only root mounts a disk, on Linux: %v", err)
	case err != nil:
		t.Skipf("only root mounts a disk, on Linux: %v", err)
	}
	t.Cleanup(func() { must(t, unmount(folder)) })
	return &Disk{folder, folder + "/filler"}
}

// fill leaves no room.
func (d *Disk) fill(t *testing.T) {
	t.Helper()
	file, err := os.Create(d.filler)
	must(t, err)
	defer file.Close()
	for piece := make([]byte, 4<<10); err == nil; {
		_, err = file.Write(piece)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// FullDisk appends until the engine's disk is full. With room again, and after start has started what has ended of the
// engine, all that was acknowledged is there once, and the journal goes on.
func FullDisk(t *testing.T, h Harness, disk *Disk, start func()) {
	ctx, cancel := context.WithTimeout(t.Context(), historyPatience)
	defer cancel()
	a := h.open(t)
	large := func(n int) journal.Record {
		r := record("w", n)
		r.Payload = append(r.Payload, make([]byte, 512<<10)...)
		return r
	}
	must(t, again(ctx, func() error { return a.Append(ctx, large(1)) }))
	disk.fill(t)
	n, failed := 1, 0
	for failed < fullAfter {
		attempt, stop := context.WithTimeout(ctx, historyAttempt)
		err := a.Append(attempt, large(n+1))
		stop()
		if err != nil {
			failed++
			t.Logf("after %d records: %v", n, err)
			continue
		}
		if n, failed = n+1, 0; n > 1000 {
			t.Fatal("the disk does not become full")
		}
	}
	must(t, os.Remove(disk.filler))
	start()
	// The one in doubt comes again, and stands there once.
	must(t, again(ctx, func() error { return a.Append(ctx, large(n+1)) }))
	must(t, again(ctx, func() error { return a.Append(ctx, record("w", n+2)) }))
	read := map[journal.Index]string{}
	must(t, readTo(ctx, h.open(t), journal.Index(n+2), read))
	for at := 1; at <= n+2; at++ {
		if want := fmt.Sprintf("w/%d", at); read[journal.Index(at)] != want {
			t.Errorf("record %d is %q, want %q", at, read[journal.Index(at)], want)
		}
	}
	if got := head(t, a); got != journal.Index(n+2) {
		t.Errorf("the head is %d, want %d", got, n+2)
	}
}

// fullAfter is how often in a row an append must fail until the disk counts as full, and the engine not as slow.
const fullAfter = 4

// again does something until it succeeds, as whoever uses a journal does.
func again(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause := time.NewTimer(50 * time.Millisecond)
		<-pause.C
	}
}
