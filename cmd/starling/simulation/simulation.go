// Package simulation has the commands that simulate: clusters under faults, and recorded work on recorded machines.
package simulation

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/sim"
	"starling/sim/seeds"
)

// New returns "starling sim".
func New(r *remote.Remote) *cobra.Command {
	c := r.Console
	seeds, trace := "", false
	command := &cobra.Command{
		Use:   "sim --seeds A-B",
		Short: "Simulate clusters under faults, one per seed",
		Long: `Simulate clusters under faults: many peers in one goroutine, with crashes, partitions, late pulses and more, all
drawn from one number. The same seed is the same history, so a failure is replayed by its seed alone.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			chosen, err := parseSeeds("--seeds", seeds)
			if err != nil {
				return usage.Error(command, err)
			}
			if trace {
				if chosen.From != chosen.To {
					return usage.Error(command, fmt.Errorf("--trace tells the story of one seed, not of %s", seeds))
				}
				return sim.Trace(chosen.From, sim.Options{}, c.Out).Failure
			}
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt)
			defer stop()
			return simulate(ctx, c, chosen)
		},
	}
	command.Flags().StringVar(&seeds, "seeds", "1-100", "the seeds, as `A-B` or A")
	command.Flags().BoolVar(&trace, "trace", false, "tell all that happens under one seed")
	command.AddCommand(newTrace(r))
	return command
}

// parseSeeds reads the value of a flag.
func parseSeeds(flag, text string) (seeds.Range, error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 63)
	last, err2 := strconv.ParseUint(high, 10, 63)
	if err1 != nil || err2 != nil || first > last {
		return seeds.Range{}, fmt.Errorf("%s: %q is neither a number nor a range such as 1-100", flag, text)
	}
	return seeds.Range{From: first, To: last}, nil
}

// simulate plays the seeds and tells what they came to.
func simulate(ctx context.Context, c *console.Console, all seeds.Range) error {
	var progress func(done, all uint64)
	if c.ErrLive {
		progress = func(done, all uint64) { fmt.Fprintf(c.Err, "\r%d of %d seeds\x1b[K", done, all) }
		defer fmt.Fprintln(c.Err)
	}
	summary := seeds.Play(ctx, all, sim.Options{}, progress)
	summary.Print(c.Out)
	switch {
	case len(summary.Failures) > 0:
		return fmt.Errorf("%d of %s failed", len(summary.Failures), words.Counted(summary.Runs, "seed"))
	case ctx.Err() != nil:
		return exit.Silent(exit.Detached)
	}
	return nil
}
