package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

// moment reads one as the API takes it.
func moment(command *cobra.Command, what, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	read, _, err := remote.Moment(text, time.Now())
	if err != nil {
		return "", usage.Error(command, fmt.Errorf("%s %w", what, err))
	}
	return read, nil
}

func newDiff(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "diff FROM [TO]",
		Short: "Tell what changed from one moment to another, and which entries did it",
		Long: `Tell what changed of machines, pools and jobs from one moment to another, or until now, with the latest entries that led to
it. A moment is an index of the journal, a time such as 2006-01-02T15:04:05Z or 14:30, or how long ago, behind "--":`,
		Example: "  starling diff 14:30 15:00\n  starling diff 4711 4800\n  starling diff -- -10m",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usage.Error(command, fmt.Errorf("starling diff takes a moment FROM, and maybe a moment TO, got %d", len(args)))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			from, err := moment(command, "FROM", args[0])
			if err != nil {
				return err
			}
			to, err := moment(command, "TO", append(args, "")[1])
			if err != nil {
				return err
			}
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			answer, err := peer.Diff(command.Context(), from, to)
			if err != nil {
				return err
			}
			return r.ShowNext(answer, func() string { return diffText(answer) })
		},
	}
}

// diffText tells people what changed.
func diffText(answer *starlingv1.DiffResponse) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "from index %d, %s, to %d, %s\n", answer.GetFrom(), clock(answer.GetFromTime()), answer.GetTo(),
		clock(answer.GetToTime()))
	if len(answer.GetChanges()) == 0 {
		fmt.Fprintln(b, "nothing is different")
	}
	for _, c := range answer.GetChanges() {
		fmt.Fprintf(b, "\n%s %s: %s\n", c.GetKind(), c.GetName(), strings.Join(c.GetDifferences(), ", "))
		if c.GetMore() > 0 {
			fmt.Fprintf(b, "  %d before these\n", c.GetMore())
		}
		for _, cause := range c.GetCauses() {
			fmt.Fprintf(b, "  %d  %s  %s\n", cause.GetIndex(), clock(cause.GetTime()), cause.GetText())
		}
	}
	return b.String()
}

func clock(t *timestamppb.Timestamp) string {
	if t == nil {
		return "before the first entry"
	}
	return console.Time(t.AsTime())
}

func newBlame(r *remote.Remote) *cobra.Command {
	since := ""
	command := &cobra.Command{
		Use:   "blame JOB[.TASK[INDEX]]",
		Short: "Tell all that ever happened to a job, a task or an instance, and why",
		Long: `Tell all that ever happened to a job, to one of its tasks or to an instance, and why: each entry with its commands and what
came of them. It is read from the archive of the peer, which also knows jobs that are forgotten by now.`,
		Example: "  starling blame web\n  starling blame web.server[2] --since -1h",
		Args:    usage.OneArgument("JOB"),
		RunE: func(command *cobra.Command, args []string) error {
			readings, err := target.Parse(args[0])
			if err != nil {
				return usage.Error(command, err)
			}
			from, err := moment(command, "--since", since)
			if err != nil {
				return err
			}
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			if t, err := target.Resolve(ctx, r, readings); err == nil {
				readings = []target.Target{t}
			}
			for _, t := range readings { // it may be forgotten by now
				var refused *wire.Failure
				if err = blame(command.Context(), r, t, from); !errors.As(err, &refused) || refused.Code != wire.NotFound {
					return err
				}
			}
			return err
		},
	}
	command.Flags().StringVar(&since, "since", "", "leave out what happened up to a `MOMENT` such as 4711, 14:30 or -1h")
	return command
}

// blame prints what happened to a target.
func blame(ctx context.Context, r *remote.Remote, t target.Target, since string) error {
	question := &starlingv1.BlameRequest{Job: t.Job, Task: t.Task, Since: since}
	if t.Number >= 0 {
		number := uint32(t.Number)
		question.Number = &number
	}
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	return peer.Blame(ctx, question, func(answer *starlingv1.TailJournalResponse) error {
		return r.ShowNext(answer.GetEntry(), func() string { return remote.EntryWords(answer.GetEntry()) })
	})
}

func newReport(r *remote.Remote) *cobra.Command {
	by, since, until := []string{"pool"}, "", ""
	command := &cobra.Command{
		Use:   "report",
		Short: "Tell how many hours of cores, memory and devices were held, by pool, job, task or node",
		Long: `Tell how many hours of cores, memory and devices were held, by pool, job, task or node: from the moment that a node was given
an instance, until it had ended. It is computed from the entries in the archive of the peer.`,
		Example: "  starling report --since -24h\n  starling report --by pool,job --since 2006-01-01T00:00:00Z --until 2006-02-01T00:00:00Z",
		Args:    usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			question := &starlingv1.UsageRequest{By: by}
			if question.Since, err = moment(command, "--since", since); err != nil {
				return err
			}
			if question.Until, err = moment(command, "--until", until); err != nil {
				return err
			}
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			answer, err := peer.Usage(command.Context(), question)
			if err != nil {
				return err
			}
			if r.ForPeople() {
				r.Hint("from %s to %s", clock(answer.GetSince()), clock(answer.GetUntil()))
			}
			return r.Show(answer, func() *console.Table { return usageTable(by, answer) })
		},
	}
	command.Flags().StringSliceVar(&by, "by", by, "pool, job, task and node: a row for each `COMBINATION`")
	command.Flags().StringVar(&since, "since", "", "from this `MOMENT` on (default: as far back as the archive goes)")
	command.Flags().StringVar(&until, "until", "", "up to this `MOMENT` (default: now)")
	return command
}

func usageTable(by []string, answer *starlingv1.UsageResponse) *console.Table {
	var kinds []string
	for _, row := range answer.GetRows() {
		for _, d := range row.GetDevices() {
			kinds = append(kinds, d.GetKind())
		}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	var headings []string
	for _, one := range by {
		headings = append(headings, strings.ToUpper(one))
	}
	headings = append(headings, "ALLOCATIONS", "CPU HOURS", "MEMORY GiB HOURS")
	for _, kind := range kinds {
		headings = append(headings, strings.ToUpper(kind)+" HOURS")
	}
	t := console.NewTable(headings...)
	for _, row := range answer.GetRows() {
		cells := append(slices.Clone(row.GetKeys()), fmt.Sprint(row.GetAllocations()), hours(row.GetCpuHours()),
			hours(row.GetMemoryGibHours()))
		for _, kind := range kinds {
			cell := "-"
			for _, d := range row.GetDevices() {
				if d.GetKind() == kind {
					cell = hours(d.GetHours())
				}
			}
			cells = append(cells, cell)
		}
		t.Row(cells...)
	}
	return t
}

func hours(h float64) string { return fmt.Sprintf("%.3f", h) }
