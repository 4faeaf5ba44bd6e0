package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/settings"
	"starling/cmd/starling/usage"
	"starling/jobspec"
	"starling/terms/pool"
)

// imagined are the flags of "starling what-if".
type imagined struct {
	kill, drain, run        []string
	deadline                time.Duration
	add                     uint32
	like, cpu, memory, disk string
	devices, attributes     []string
	pools                   string
}

func newWhatIf(r *remote.Remote) *cobra.Command {
	f := &imagined{deadline: time.Hour}
	command := &cobra.Command{
		Use:   "what-if",
		Short: "Tell what would come of machines that die or join, of jobs and of pools, and do nothing",
		Long: `Tell what would come of changes of the cluster, all made at once, and do nothing: which instances would start, move, wait
and stop because of them, which give way to others, and why. It is the scheduler that answers, on a copy of its value: all
goes well there, time passes for ten minutes and the deadline of the drains, and what comes of the cluster without the
changes in that time is left out.`,
		Example: `  starling what-if --kill a,b
  starling what-if --drain c --add 3 --like a
  starling what-if --add 2 --cpu 64 --memory 512Gi --devices gpu=8 --run train.yaml --pools pools.yaml`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if f.deadline < 0 {
				return usage.Error(command, fmt.Errorf("--deadline must not be negative, is %v", f.deadline))
			}
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			question, err := f.question(ctx, command, r, peer)
			if err != nil {
				return err
			}
			answer, err := peer.WhatIf(ctx, question)
			if err != nil {
				return files.Refused(r.Console, err, "nothing was imagined")
			}
			return r.ShowNext(answer, func() string { return whatIfText(answer) })
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&f.kill, "kill", nil, "`NODE`,... die")
	flags.StringSliceVar(&f.drain, "drain", nil, "`NODE`,... are drained")
	flags.DurationVar(&f.deadline, "deadline", f.deadline, "the `DURATION` that drained machines are given")
	flags.Uint32Var(&f.add, "add", 0, "`N` machines join, like another or as the next flags say")
	flags.StringVar(&f.like, "like", "", "the `NODE` that machines that join are like")
	flags.StringVar(&f.cpu, "cpu", "", "the `CORES` of each")
	flags.StringVar(&f.memory, "memory", "", "the `BYTES` of memory of each, such as 64Gi")
	flags.StringVar(&f.disk, "disk", "", "the `BYTES` of disk of each")
	flags.StringSliceVar(&f.devices, "devices", nil, "the devices of each, as `KIND=COUNT`,... or KIND=COUNT:MODEL,...")
	flags.StringSliceVar(&f.attributes, "attributes", nil, "more attributes of each, as `NAME=VALUE`,...")
	flags.StringArrayVar(&f.run, "run", nil, "the jobs of a `FILE` are submitted; several times for several files")
	flags.StringVar(&f.pools, "pools", "", "a pools `FILE` is applied")
	return command
}

// question reads the files and says what is imagined.
func (f *imagined) question(ctx context.Context, command *cobra.Command, r *remote.Remote,
	peer *client.Client) (*starlingv1.WhatIfRequest, error) {
	question := &starlingv1.WhatIfRequest{Kill: once(f.kill), Drain: once(f.drain),
		DrainDeadlineMillis: uint32(min(f.deadline.Milliseconds(), 1<<32-1))}
	for _, file := range f.run {
		documents, err := files.Jobs(r.Console, file, "nothing was imagined")
		if err != nil {
			return nil, err
		}
		for i := range documents {
			question.Run = append(question.Run, wire.Spec(&documents[i].Spec))
		}
	}
	if f.pools != "" {
		tree, err := files.Pools(r.Console, f.pools, "nothing was imagined")
		if err != nil {
			return nil, err
		}
		present, err := draft.Present(ctx, peer)
		if err != nil {
			return nil, err
		}
		put, gone := present.Difference(tree)
		question.Pools = wire.Pools(put)
		for _, path := range gone {
			question.Gone = append(question.Gone, string(path))
		}
	}
	added, err := f.machines()
	if err != nil {
		return nil, usage.Error(command, err)
	}
	if added != nil {
		question.Add = append(question.Add, added)
	}
	if len(question.Kill)+len(question.Drain)+len(question.Add)+len(question.Run) == 0 && f.pools == "" {
		return nil, usage.Error(command, errors.New("nothing is imagined: give --kill, --drain, --add, --run or --pools"))
	}
	return question, nil
}

// once returns names without repetitions, in their order.
func once(names []string) (all []string) {
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// machines returns those that join, nil for none.
func (f *imagined) machines() (*starlingv1.ImaginedNodes, error) {
	sized := f.cpu + f.memory + f.disk
	switch {
	case f.add == 0 && f.like+sized+strings.Join(f.devices, "")+strings.Join(f.attributes, "") != "":
		return nil, errors.New("--like, --cpu, --memory, --disk, --devices and --attributes are of machines that join: say with --add how many")
	case f.add == 0:
		return nil, nil
	case f.like == "" && (f.cpu == "" || f.memory == ""):
		return nil, errors.New("machines that join are --like another, or have --cpu and --memory")
	}
	m := &starlingv1.ImaginedNodes{Count: f.add, Like: f.like, Capacity: &starlingv1.Resources{}}
	for _, one := range []struct {
		flag, text string
		parse      func(string) (int64, error)
		into       *int64
	}{
		{"cpu", f.cpu, jobspec.ParseCPU, &m.Capacity.CpuMillicores},
		{"memory", f.memory, jobspec.ParseBytes, &m.Capacity.MemoryBytes},
		{"disk", f.disk, jobspec.ParseBytes, &m.Capacity.DiskBytes},
	} {
		if one.text == "" {
			continue
		}
		amount, err := one.parse(one.text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", one.flag, err)
		}
		*one.into = amount
	}
	devices, err := settings.Devices(f.devices)
	if err != nil {
		return nil, fmt.Errorf("--devices: %w", err)
	}
	m.Devices = wire.Devices(devices)
	for _, text := range f.attributes {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("--attributes: %q must be NAME=VALUE, such as zone=cellar", text)
		}
		m.Attributes = append(m.Attributes, &starlingv1.Variable{Name: name, Value: value})
	}
	return m, nil
}

// differencesShownMax bounds the instances that are shown to people.
const differencesShownMax = 60

// whatIfText tells people what would come of it: a summary, and then a table.
func whatIfText(answer *starlingv1.WhatIfResponse) string {
	b := &strings.Builder{}
	var parts []string
	for _, c := range answer.GetCounts() {
		parts = append(parts, becomes(c.GetInstances(), c.GetWhat()))
	}
	if len(parts) == 0 {
		parts = []string{"nothing would be placed, moved or stopped"}
	}
	fmt.Fprintf(b, "%s\n", strings.Join(parts, ", "))
	if preempted := countPreempted(answer); preempted > 0 {
		fmt.Fprintf(b, "%s way to work that is entitled to the room\n", becomes(preempted, "gives"))
	}
	fmt.Fprintf(b, "%s run, %d without that\n", words.Counted(answer.GetRunningAfter(), "instance"),
		answer.GetRunningBefore())
	for i, before := range answer.GetCapacityBefore() {
		after := answer.GetCapacityAfter()[i]
		if k, ok := pool.Kind(before.GetKind()); ok && before.GetAmount() != after.GetAmount() {
			fmt.Fprintf(b, "%s of the cluster: %s instead of %s\n", before.GetKind(), k.Round(after.GetAmount()),
				k.Round(before.GetAmount()))
		}
	}
	if all := answer.GetDifferences(); len(all) > 0 {
		fmt.Fprintln(b)
		t := console.NewTable("INSTANCE", "WHAT", "NOW", "THEN", "WHY")
		for _, d := range all[:min(len(all), differencesShownMax)] {
			t.Row(fmt.Sprintf("%s.%s[%d]", d.GetJob(), d.GetTask(), d.GetNumber()), d.GetWhat(), console.Dash(d.GetBefore()),
				console.Dash(d.GetAfter()), console.Dash(d.GetReason()))
		}
		_ = t.Write(b) // builders take everything
		if len(all) > differencesShownMax {
			fmt.Fprintf(b, "and %d more: -o json shows up to 1000\n", len(all)-differencesShownMax)
		}
	}
	for _, f := range answer.GetFindings() {
		fmt.Fprintf(b, "\n%s.%s, %s: %s\n", f.GetJob(), f.GetFinding().GetTask(),
			becomes(f.GetFinding().GetInstances(), "waits"), console.Times(f.GetFinding().GetReason(), time.Now()))
		for _, line := range f.GetFinding().GetDetails() {
			fmt.Fprintf(b, "  %s\n", console.Times(line, time.Now()))
		}
	}
	if !answer.GetComplete() {
		fmt.Fprintln(b, "\nand so on: the end is further away than can be imagined")
	}
	return b.String()
}

func countPreempted(answer *starlingv1.WhatIfResponse) (count uint32) {
	for _, d := range answer.GetDifferences() {
		if d.GetPreempted() {
			count++
		}
	}
	return count
}

// becomes says "1 instance moves", "2 instances move".
func becomes(n uint32, verb string) string {
	switch {
	case verb == "unknown" && n == 1:
		verb = "is unknown"
	case verb == "unknown":
		verb = "are unknown"
	case n != 1:
		verb = strings.TrimSuffix(verb, "s")
	}
	return words.Counted(n, "instance") + " " + verb
}
