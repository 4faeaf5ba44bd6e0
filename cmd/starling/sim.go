package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"starling/sim"
)

// failuresShownMax bounds the failures that are told in full.
const failuresShownMax = 10

func newSim(c *console) *cobra.Command {
	seeds := ""
	command := &cobra.Command{
		Use:   "sim --seeds A-B",
		Short: "Simulate clusters under faults, one per seed",
		Long: `Simulate clusters under faults: many peers in one goroutine, with crashes, partitions, late pulses and more, all
drawn from one number. The same seed is the same history, so a failure is replayed by its seed alone.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			first, last, err := parseSeeds(seeds)
			if err != nil {
				return usageError(command, err)
			}
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt)
			defer stop()
			return c.simulate(ctx, first, last)
		},
	}
	command.Flags().StringVar(&seeds, "seeds", "1-100", "the seeds, as `A-B` or A")
	return command
}

func parseSeeds(text string) (first, last uint64, err error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 63)
	last, err2 := strconv.ParseUint(high, 10, 63)
	if err1 != nil || err2 != nil || first > last {
		return 0, 0, fmt.Errorf("--seeds: %q is neither a number nor a range such as 1-100", text)
	}
	return first, last, nil
}

// tallies are what all seeds did together.
type tallies struct {
	seeds, entries, jobs, failures int
	fired                          [len(sim.Report{}.Fired)]int
}

// simulate plays the seeds on all processors and tells what they did.
func (c *console) simulate(ctx context.Context, first, last uint64) error {
	began := time.Now()
	reports := make(chan sim.Report)
	next := make(chan uint64)
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for seed := range next {
				reports <- sim.Run(seed, sim.Options{})
			}
		})
	}
	players.Go(func() {
		defer close(next)
		for seed := first; seed <= last && ctx.Err() == nil; seed++ {
			next <- seed
		}
	})
	go func() { players.Wait(); close(reports) }() // ends with the last report, which the loop below waits for
	all := tallies{}
	for r := range reports {
		all.add(r)
		if r.Failure != nil && all.failures <= failuresShownMax {
			c.hint("%v", r.Failure)
		}
		if c.errLive {
			fmt.Fprintf(c.err, "\r%d of %d seeds, %d failed\x1b[K", all.seeds, last-first+1, all.failures)
		}
	}
	if c.errLive {
		fmt.Fprintln(c.err)
	}
	if err := all.table(time.Since(began)).write(c.out); err != nil {
		return err
	}
	switch {
	case all.failures > 0:
		return fmt.Errorf("%d of %d seeds failed", all.failures, all.seeds)
	case ctx.Err() != nil:
		return silent{exitDetached}
	}
	return nil
}

func (t *tallies) add(r sim.Report) {
	t.seeds++
	t.entries += r.Entries
	t.jobs += r.Jobs
	for i, n := range r.Fired {
		t.fired[i] += n
	}
	if r.Failure != nil {
		t.failures++
	}
}

func (t *tallies) table(took time.Duration) *table {
	rows := newTable("WHAT", "TIMES")
	rows.row("seeds", strconv.Itoa(t.seeds))
	rows.row("failed", strconv.Itoa(t.failures))
	rows.row("entries folded", strconv.Itoa(t.entries))
	rows.row("jobs submitted", strconv.Itoa(t.jobs))
	rows.row("seconds", strconv.FormatFloat(took.Seconds(), 'f', 1, 64))
	for i, n := range t.fired {
		rows.row("fault: "+sim.Fault(i), strconv.Itoa(n))
	}
	return rows
}
