// Package seeds plays many seeds of the simulator, and tells what they came to.
package seeds

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"starling/sim"
	"starling/terms"
)

// Range is a range of seeds, both ends included.
type Range struct{ From, To uint64 }

// failuresMax bounds the failed runs that a summary tells; no more are begun after that.
const failuresMax = 5

// Summary is what many runs came to.
type Summary struct {
	Runs int
	// Took is real time, Simulated the time that passed in the runs.
	Took      time.Duration
	Simulated time.Duration
	// Entries, EntriesMax and EventsMax count over all runs, and in the longest one.
	Entries, EntriesMax, EventsMax int
	// Joins counts the machines that became members, JoinEntries the entries that were about joining.
	Joins, JoinEntries int
	// Mixed counts the runs with mixed versions; see sim.Report of the others.
	Mixed, Halted, RefusedRaises int
	// Snapshots and Restores are those of all runs.
	Snapshots, Restores int
	// Fired counts the faults, each one.
	Fired []Firing
	// RingMax and RestMax are the longest that a run took after the faults had ended, until membership changed no more,
	// and until nothing was written any more.
	RingMax, RestMax time.Duration
	// Failures are the failed runs, lowest seed first.
	Failures []sim.Report
}

// Firing counts the runs in which a fault happened, and how often it did in all.
type Firing struct {
	Fault       string
	Runs, Times int
}

// collectPercent lets the collector run less often than usual: runs are short and leave everything behind.
const collectPercent = 400

// Play plays all seeds on all processors, until ctx ends or too many runs have failed. After each run it calls
// progress, which may be nil, one call at a time.
func Play(ctx context.Context, seeds Range, o sim.Options, progress func(done, all uint64)) Summary {
	var (
		summary Summary
		next    atomic.Uint64
		lock    sync.Mutex
		group   sync.WaitGroup
	)
	begun := time.Now()
	defer debug.SetGCPercent(debug.SetGCPercent(collectPercent))
	for _, fault := range sim.Faults() {
		summary.Fired = append(summary.Fired, Firing{Fault: fault})
	}
	next.Store(seeds.From)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := next.Add(1) - 1; seed <= seeds.To && ctx.Err() == nil; seed = next.Add(1) - 1 {
				r := sim.Run(seed, o)
				lock.Lock()
				summary.add(&r)
				stop := len(summary.Failures) >= failuresMax
				if progress != nil {
					progress(uint64(summary.Runs), seeds.To-seeds.From+1)
				}
				lock.Unlock()
				if stop {
					return
				}
			}
		})
	}
	group.Wait()
	summary.Took = time.Since(begun)
	slices.SortFunc(summary.Failures, func(a, b sim.Report) int { return int(a.Seed) - int(b.Seed) })
	return summary
}

func (s *Summary) add(r *sim.Report) {
	s.Runs++
	s.Entries += r.Entries
	s.EntriesMax, s.EventsMax = max(s.EntriesMax, r.Entries), max(s.EventsMax, r.Events)
	s.Simulated += millis(r.Lasted)
	s.RingMax, s.RestMax = max(s.RingMax, millis(r.RingRest)), max(s.RestMax, millis(r.Rest))
	s.Joins += r.Joins
	s.JoinEntries += r.JoinEntries
	if r.Mixed {
		s.Mixed++
		s.Halted, s.RefusedRaises = s.Halted+r.Halted, s.RefusedRaises+r.RefusedRaises
	}
	s.Snapshots, s.Restores = s.Snapshots+r.Snapshots, s.Restores+r.Restores
	for f, times := range r.Fired {
		if s.Fired[f].Times += times; times > 0 {
			s.Fired[f].Runs++
		}
	}
	if r.Failure != nil {
		s.Failures = append(s.Failures, *r)
	}
}

func millis(t terms.Time) time.Duration { return time.Duration(t) * time.Millisecond }

// Print tells people the summary.
func (s *Summary) Print(w io.Writer) {
	fmt.Fprintf(w, "%d runs of %.1f hours in %.1f s: %d entries, %d in a run, at most %d\n",
		s.Runs, s.Simulated.Hours(), s.Took.Seconds(), s.Entries, s.Entries/max(s.Runs, 1), s.EntriesMax)
	fmt.Fprintf(w, "after the faults: the ring was whole within %.1f s, all was done within %.1f s\n",
		s.RingMax.Seconds(), s.RestMax.Seconds())
	if s.Joins > 0 {
		fmt.Fprintf(w, "%d joins with %.1f entries each\n", s.Joins, float64(s.JoinEntries)/float64(s.Joins))
	}
	if s.Mixed > 0 {
		fmt.Fprintf(w, "%d runs with mixed versions: rules raised in each, %d times too early, %d old programs stopped by that\n", s.Mixed, s.RefusedRaises, s.Halted)
	}
	fmt.Fprintf(w, "%d snapshots were confirmed and the journal trimmed, machines went on from one %d times\n", s.Snapshots, s.Restores)
	fmt.Fprintf(w, "%-32s %9s %9s\n", "FAULT", "RUNS", "TIMES")
	for _, f := range s.Fired {
		fmt.Fprintf(w, "%-32s %9d %9d\n", f.Fault, f.Runs, f.Times)
	}
	for i := range s.Failures {
		fmt.Fprintf(w, "\nFAILED: %v\n", s.Failures[i].Failure)
	}
}
