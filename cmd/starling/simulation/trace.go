package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/sim/seeds"
	"starling/sim/trace"
	"starling/terms"
)

// traceRun is what is asked of starling sim trace.
type traceRun struct {
	*remote.Remote
	nodes, tasks, plot, seed string
	policies                 []string
	inflate                  int
	seeds                    seeds.Range
}

// Limits of what is asked.
const (
	inflateMax    = 1000
	traceSeedsMax = 1000
)

func newTrace(r *remote.Remote) *cobra.Command {
	t := &traceRun{Remote: r}
	known := terms.Placements()[terms.Pack:]
	command := &cobra.Command{
		Use:   "trace --nodes FILE.csv --tasks FILE.csv",
		Short: "Replay recorded machines and tasks, and tell how much each placement makes of them",
		Long: `Replay recorded machines and tasks through the scheduler itself, at full speed, and tell how much of the machines each
placement policy gives to work, what finds no room and why. Tasks arrive in random order and never end.

Machines are CSV with the columns sn, cpu_milli, memory_mib, gpu and, if known, model. Tasks have name, cpu_milli, memory_mib,
num_gpu and gpu_milli (thousandths of a device where num_gpu is 1), and may have gpu_spec, the models of which one will do, with
"|" between them; qos, pod_phase and the times of a task are passed over.

--inflate 130 draws tasks again at random until all that arrive ask for 130 percent of the GPUs there are, or leaves out at
random what exceeds that. With several seeds the table and the plot show their mean. Fragmented is what is left of the GPUs
and of no use to a task of the trace, in the mean; placements are counted per second of scheduling alone.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := t.check(known); err != nil {
				return usage.Error(command, err)
			}
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt)
			defer stop()
			return t.run(ctx)
		},
	}
	flags := command.Flags()
	flags.StringVar(&t.nodes, "nodes", "", "the machines, a CSV `FILE`")
	flags.StringVar(&t.tasks, "tasks", "", "the tasks, a CSV `FILE`")
	flags.StringSliceVar(&t.policies, "policy", known, "the placement `POLICY`, or several: "+strings.Join(known, ", "))
	flags.IntVar(&t.inflate, "inflate", 0, "let tasks arrive until they ask for so many `PERCENT` of the GPUs")
	flags.StringVar(&t.seed, "seed", "1", "the seed of the random order, or several as `A-B`")
	flags.StringVar(&t.plot, "plot", "", "draw GPUs allocated and fragmented over the demand into an SVG `FILE`")
	if err := command.RegisterFlagCompletionFunc("policy",
		cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was declared above
	}
	return command
}

// check refuses what cannot be meant.
func (t *traceRun) check(known []string) (err error) {
	if t.nodes == "" || t.tasks == "" {
		return errors.New("--nodes and --tasks are needed: the CSV files of the machines and of the tasks")
	}
	if t.inflate < 0 || t.inflate > inflateMax {
		return fmt.Errorf("--inflate: must be 1 to %d percent, or 0 for the tasks as they are", inflateMax)
	}
	for i, name := range t.policies {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--policy: %q is unknown; known are %s", name, strings.Join(known, ", "))
		}
		if slices.Contains(t.policies[:i], name) {
			return fmt.Errorf("--policy: %s is asked for twice", name)
		}
	}
	if t.seeds, err = parseSeeds("--seed", t.seed); err == nil && t.seeds.To-t.seeds.From >= traceSeedsMax {
		err = fmt.Errorf("--seed: must be at most %d seeds", traceSeedsMax)
	}
	return err
}

// run replays the trace under each policy and seed, and shows what came of it.
func (t *traceRun) run(ctx context.Context) error {
	machines, err := readCSV(t.nodes, trace.ReadMachines)
	if err != nil {
		return err
	}
	tasks, err := readCSV(t.tasks, trace.ReadTasks)
	if err != nil {
		return err
	}
	var all, means []*trace.Result
	for _, policy := range t.policies {
		var same []*trace.Result
		for seed := t.seeds.From; seed <= t.seeds.To; seed++ {
			o := trace.Options{Placement: terms.Placement(slices.Index(terms.Placements(), policy)), Inflate: t.inflate,
				Seed: seed}
			result, err := t.replay(ctx, &trace.Trace{Machines: machines, Tasks: tasks}, o)
			switch {
			case ctx.Err() != nil:
				return exit.Silent(exit.Detached)
			case err != nil:
				return fmt.Errorf("replay %s on %s: %w", t.tasks, t.nodes, err)
			}
			same = append(same, result)
		}
		all, means = append(all, same...), append(means, trace.Mean(same))
	}
	if err := t.showResults(all, means); err != nil || t.plot == "" {
		return err
	}
	svg := bytes.Buffer{}
	if err := trace.Plot(&svg, means); err != nil {
		return fmt.Errorf("plot %s: %w", t.plot, err)
	}
	return os.WriteFile(t.plot, svg.Bytes(), 0o644)
}

func readCSV[T any](name string, read func(string, io.Reader) ([]T, error)) ([]T, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "read the trace: %w", err)
	}
	defer file.Close()
	all, err := read(name, file)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "%w", err)
	}
	return all, nil
}

// replay tells on the side how far it is, in place on a terminal that can.
func (t *traceRun) replay(ctx context.Context, recorded *trace.Trace, o trace.Options) (*trace.Result, error) {
	const every = 500
	name := fmt.Sprintf("%s, seed %d", o.Placement, o.Seed)
	if t.ErrLive {
		o.Progress = func(done, all int) {
			if done%every == 0 {
				fmt.Fprintf(t.Err, "\r%s: %d of %d tasks\x1b[K", name, done, all)
			}
		}
		defer fmt.Fprint(t.Err, "\r\x1b[K")
	}
	result, err := trace.Replay(ctx, recorded, o)
	if err == nil && !t.ErrLive {
		t.Hint("%s: %.0f of %.0f tasks placed in %.2f s", name, result.Placed, result.Arrived, result.Seconds)
	}
	return result, err
}

// showResults prints the means for people, and every replay for programs.
func (t *traceRun) showResults(all, means []*trace.Result) error {
	return t.ShowData(all, func() error { return t.showMeans(means) })
}

// reasonsShownMax bounds the groups of unplaced tasks that are shown to people.
const reasonsShownMax = 5

// showMeans tells people what came of each policy.
func (t *traceRun) showMeans(means []*trace.Result) error {
	list := console.NewTable("POLICY", "SEEDS", "ARRIVED", "PLACED", "UNPLACED", "CPU %", "MEMORY %", "GPU %",
		"GPU ASKED %", "GPU FRAGMENTED %", "PLACEMENTS/S")
	for _, m := range means {
		cells := []string{m.Policy, fmt.Sprint(len(m.Seeds)), count(m.Arrived), count(m.Placed), count(m.Unplaced)}
		for _, kind := range m.Kinds {
			cells = append(cells, fmt.Sprintf("%.2f", kind.Allocated))
		}
		asked := m.Kinds[len(m.Kinds)-1].Arrived
		list.Row(append(cells, fmt.Sprintf("%.2f", asked), fmt.Sprintf("%.2f", m.Fragmented),
			fmt.Sprintf("%.0f", m.PlacementsPerSecond))...)
	}
	if err := list.Write(t.Out); err != nil {
		return err
	}
	for _, m := range means {
		if m.Unplaced > 0 {
			fmt.Fprintf(t.Out, "\n%s, tasks without a machine at the end, and on how many machines something stood in their way:\n", m.Policy)
		}
		for i, g := range m.Reasons {
			if i == reasonsShownMax {
				fmt.Fprintf(t.Out, "   and %s more: -o json shows them\n", words.Counted(len(m.Reasons)-i, "group"))
				break
			}
			var words []string
			for _, o := range g.Obstacles {
				word := o.What
				if o.Machines > 0 {
					word += fmt.Sprintf(" on %.0f", o.Machines)
				}
				words = append(words, word)
			}
			fmt.Fprintf(t.Out, "%8s  %s\n", count(g.Tasks), strings.Join(words, ", "))
		}
	}
	return nil
}

// count writes a number that is whole, or the mean of some.
func count(mean float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", mean), ".0")
}
