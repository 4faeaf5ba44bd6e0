package tasks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/terms"
)

// answerWithin bounds one round of questions.
const answerWithin = 30 * time.Second

func newTop(r *remote.Remote) *cobra.Command {
	byMemory := false
	command := &cobra.Command{
		Use:   "top [NAME]",
		Short: "Show what machines use, or the instances of a job",
		Long: `Show what the machines use, beside what instances hold of them and what they give; or with the NAME of a job what each
of its instances uses, beside its limits. Their peers read it now, for a second; one that does not answer leaves a dash.

What uses the most processor time comes first. On a terminal it is read again and again until Ctrl-C, otherwise once.`,
		Example: "  starling top\n  starling top web --memory",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Error(command, fmt.Errorf("name one job, or none for the machines"))
			}
			return nil
		},
		ValidArgsFunction: target.CompleteJob(r),
		RunE: func(command *cobra.Command, args []string) error {
			ask := func(ctx context.Context, peer *client.Client) (proto.Message, *console.Table, error) {
				if len(args) == 0 {
					answer, err := peer.NodeStats(ctx, &starlingv1.NodeStatsRequest{})
					return answer, nodesTable(answer, byMemory), err
				}
				answer, err := peer.InstanceStats(ctx, &starlingv1.InstanceStatsRequest{Job: target.JobName(args[0])})
				return answer, instancesTable(answer, byMemory), err
			}
			return top(command.Context(), r, ask)
		},
	}
	command.Flags().BoolVar(&byMemory, "memory", false, "show first what uses the most memory")
	return command
}

// top shows what it asks for, once or until a signal comes.
func top(ctx context.Context, r *remote.Remote,
	ask func(context.Context, *client.Client) (proto.Message, *console.Table, error)) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	defer peer.Close()
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	for {
		short, cancel := context.WithTimeout(ctx, answerWithin)
		answer, table, err := ask(short, peer)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !r.ForPeople() || !r.OutLive:
			return r.Show(answer, func() *console.Table { return table })
		}
		if err := redraw(r, table); err != nil {
			return err
		}
	}
}

// redraw writes a table over the last one.
func redraw(r *remote.Remote, table *console.Table) error {
	var text bytes.Buffer
	if columns := r.Columns(); columns > 0 {
		table.Fit(columns)
	}
	if err := table.Write(&text); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.Out, "\x1b[H\x1b[2J%s", text.String())
	return err
}

// nodesTable has a row for each machine.
func nodesTable(answer *starlingv1.NodeStatsResponse, byMemory bool) *console.Table {
	t := console.NewTable("NODE", "CPU", "ALLOC", "OF", "MEMORY", "ALLOC", "OF", "READ/S", "WRITTEN/S", "GPU", "RUNS",
		"PROBLEM")
	t.Spare = []string{"RUNS", "WRITTEN/S", "READ/S", "GPU"}
	slices.SortStableFunc(answer.GetNodes(), func(a, b *starlingv1.NodeUse) int {
		return order(a.GetUse(), b.GetUse(), byMemory)
	})
	for _, n := range answer.GetNodes() {
		u := n.GetUse()
		t.Row(n.GetNode(), target.Used(u, terms.CPU), terms.CPU.Round(n.GetAllocated().GetCpuMillicores()),
			terms.CPU.Round(n.GetCapacity().GetCpuMillicores()), target.Used(u, terms.Memory),
			terms.Memory.Round(n.GetAllocated().GetMemoryBytes()), terms.Memory.Round(n.GetCapacity().GetMemoryBytes()),
			rate(u, u.GetReadBytes()), rate(u, u.GetWrittenBytes()), gpusText(n.GetGpus()), fmt.Sprint(n.GetInstances()),
			console.Dash(n.GetProblem()))
	}
	return t
}

// instancesTable has a row for each instance.
func instancesTable(answer *starlingv1.InstanceStatsResponse, byMemory bool) *console.Table {
	t := console.NewTable("INSTANCE", "NODE", "CPU", "LIMIT", "MEMORY", "LIMIT", "READ/S", "WRITTEN/S", "GPU", "PROBLEM")
	t.Spare = []string{"WRITTEN/S", "READ/S", "GPU"}
	slices.SortStableFunc(answer.GetInstances(), func(a, b *starlingv1.InstanceUse) int {
		return order(a.GetUse(), b.GetUse(), byMemory)
	})
	for _, one := range answer.GetInstances() {
		u, name := one.GetUse(), fmt.Sprintf("%s[%d]", one.GetTask(), one.GetNumber())
		if one.GetSeat() != "main" {
			name += " " + one.GetSeat()
		}
		t.Row(name, one.GetNode(), target.Used(u, terms.CPU), terms.CPU.Round(one.GetLimits().GetCpuMillicores()),
			target.Used(u, terms.Memory), terms.Memory.Round(one.GetLimits().GetMemoryBytes()),
			rate(u, u.GetReadBytes()), rate(u, u.GetWrittenBytes()), gpusText(one.GetGpus()), console.Dash(one.GetProblem()))
	}
	return t
}

// order puts first what uses more; what could not be read comes last.
func order(a, b *starlingv1.Use, byMemory bool) int {
	amount := func(u *starlingv1.Use) int64 {
		switch {
		case u == nil:
			return -1
		case byMemory:
			return u.GetMemoryBytes()
		}
		return u.GetCpuMillicores()
	}
	return int(max(-1, min(1, amount(b)-amount(a))))
}

// rate writes bytes per second.
func rate(u *starlingv1.Use, bytes int64) string {
	if u == nil {
		return "-"
	}
	return terms.Disk.Round(bytes)
}

// gpusText tells of each GPU how busy it is and what is used of its memory: "0: 98% 40Gi/79.6Gi".
func gpusText(gpus []*starlingv1.GPUUse) string {
	var all []string
	for _, g := range gpus {
		all = append(all, fmt.Sprintf("%d: %d%% %s/%s", g.GetNumber(), g.GetBusyPercent(),
			terms.Memory.Round(g.GetMemoryBytes()), terms.Memory.Round(g.GetMemoryTotalBytes())))
	}
	return console.Dash(strings.Join(all, ", "))
}
