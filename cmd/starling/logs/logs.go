// Package logs has the command that shows what jobs have written.
package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

// streamsMax bounds the instances whose output is shown at once.
const streamsMax = 64

// reader says what part of the output is wanted.
type reader struct {
	remote    *remote.Remote
	peer      *client.Client
	follow    bool
	stderr    bool
	tailBytes int64
}

// New returns "starling logs".
func New(r *remote.Remote) *cobra.Command {
	logs := &reader{remote: r}
	command := &cobra.Command{
		Use:   "logs NAME[.TASK[INDEX]]",
		Short: "Show what a job has written",
		Long: `Show what a job has written to its standard output, or with --stderr to its standard error, wherever it runs or
ran. NAME.TASK[3] is one instance, NAME.TASK all of a task; lines of several instances begin with their names. An
allocation as tables show it, NAME.TASK[3]#17, is one attempt, the others are the present or last.

The NAME of a job in a pool begins with the pool's path, as in analytics/etl/nightly. If NAME/TASK is a job too, that is
meant; NAME.TASK is always a task.`,
		Example:           "  starling logs web\n  starling logs -f web.server[2]\n  starling logs --stderr --tail 1000 web.server",
		Args:              usage.OneArgument("NAME, NAME.TASK or NAME.TASK[INDEX]"),
		ValidArgsFunction: target.Complete(r),
		RunE: func(command *cobra.Command, args []string) error {
			readings, err := target.Parse(args[0])
			if err != nil {
				return usage.Error(command, err)
			}
			if logs.tailBytes < 0 && command.Flags().Changed("tail") {
				return usage.Error(command, fmt.Errorf("--tail must be a number of bytes, 0 or more"))
			}
			t, err := target.Resolve(command.Context(), r, readings)
			if err != nil {
				return err
			}
			return logs.run(command.Context(), t)
		},
	}
	command.Flags().BoolVarP(&logs.follow, "follow", "f", false, "wait for the start, and go on until all has ended")
	command.Flags().BoolVar(&logs.stderr, "stderr", false, "show standard error")
	command.Flags().Int64Var(&logs.tailBytes, "tail", -1,
		"begin that many `BYTES` before the end (default: all that is kept)")
	return command
}

func (l *reader) run(ctx context.Context, t target.Target) error {
	var err error
	if l.peer, err = l.remote.Dial(); err != nil {
		return err
	}
	if t.Number >= 0 {
		return l.readAll(ctx, []target.Target{t})
	}
	answer, err := target.Status(ctx, l.remote, t, true)
	if err != nil {
		return err
	}
	chosen, err := t.Choose(answer)
	if err != nil {
		return err
	}
	chosen = l.withOutput(chosen, answer)
	if len(chosen) > streamsMax || answer.GetNextPageToken() != "" {
		return exit.Fail(exit.Usage, "%s has more than %d instances: name one, such as %s", t, streamsMax, chosen[0])
	}
	return l.readAll(ctx, chosen)
}

// withOutput leaves out the instances that were never placed, if there are others and it does not wait for them to
// start.
func (l *reader) withOutput(chosen []target.Target, answer *starlingv1.JobStatusResponse) []target.Target {
	placed := slices.DeleteFunc(slices.Clone(chosen),
		func(t target.Target) bool { return t.Find(answer).GetAllocation() == "" })
	missing := len(chosen) - len(placed)
	if l.follow || len(placed) == 0 || missing == 0 {
		return chosen
	}
	l.remote.Hint("without %s never placed; the reasons: starling why %s", words.Counted(missing, "instance"),
		answer.GetJob().GetName())
	return placed
}

// readAll shows the output of instances, all at the same time if it follows; with more than one, each line begins with
// its instance.
func (l *reader) readAll(ctx context.Context, instances []target.Target) error {
	var (
		mu      sync.Mutex
		all     sync.WaitGroup
		written int
		errs    = make([]error, len(instances))
	)
	for i, instance := range instances {
		out := &lineWriter{mu: &mu, out: l.remote.Out, written: &written}
		if len(instances) > 1 {
			out.prefix = fmt.Sprintf("%s[%d] | ", instance.Task, instance.Number)
		}
		all.Go(func() {
			errs[i] = l.readInstance(ctx, instance, out)
			out.end()
		})
		if !l.follow {
			all.Wait() // one after another: people read them in order
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if written == 0 && !l.stderr && !l.follow {
		l.remote.Hint("nothing on stdout; what is on stderr: starling logs --stderr %s", instances[0])
	}
	return nil
}

// readInstance shows the output of one instance.
func (l *reader) readInstance(ctx context.Context, t target.Target, out io.Writer) error {
	question := &starlingv1.LogsRequest{Allocation: t.Allocation, Job: t.Job, Task: t.Task, Slot: uint32(t.Number),
		Follow: l.follow}
	if l.stderr {
		question.Stream = "stderr"
	}
	if l.tailBytes >= 0 {
		tail := uint64(l.tailBytes)
		question.TailBytes = &tail
	}
	return l.peer.Logs(ctx, question, func(piece *starlingv1.LogsResponse) error {
		_, err := out.Write(piece.GetData())
		return err
	})
}

// lineWriter passes on whole lines with a prefix; without one it passes on everything as it comes.
type lineWriter struct {
	mu      *sync.Mutex // orders the writers that share out
	out     io.Writer
	prefix  string
	rest    []byte
	written *int
}

// lineBytesMax is how much of a line without end is held back.
const lineBytesMax = 64 << 10

// Write implements io.Writer.
func (w *lineWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*w.written += len(data)
	if w.prefix == "" {
		return w.out.Write(data)
	}
	w.rest = append(w.rest, data...)
	for {
		end := bytes.IndexByte(w.rest, '\n') + 1
		if end == 0 && len(w.rest) < lineBytesMax {
			return len(data), nil
		}
		if end == 0 {
			end = len(w.rest)
		}
		if err := w.line(w.rest[:end]); err != nil {
			return 0, err
		}
		w.rest = w.rest[end:]
	}
}

func (w *lineWriter) line(text []byte) error {
	_, err := fmt.Fprintf(w.out, "%s%s\n", w.prefix, bytes.TrimSuffix(text, []byte("\n")))
	return err
}

// end writes what is left of a line without end.
func (w *lineWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		_ = w.line(w.rest) // the terminal is gone: nobody is left to tell
		w.rest = nil
	}
}
