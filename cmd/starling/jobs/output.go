package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/driver/manifest"
	"starling/terms"
)

func newJobOutput(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "output NAME[.TASK[INDEX]] [DIR]",
		Short: "Copy what instances have left in their output folders",
		Long: `Copy what instances of a job whose tasks come after each other have left in their output folders, from wherever they ran,
and check every file by its digest. NAME.TASK[3] is one instance, NAME.TASK all of a task, and NAME alone all results of
the job: what the tasks have left that no other comes after.

In DIR, by default the present folder, each has a folder as tasks find it in their input: TASK/3. One that is there already
is never written over, and none is there that is not whole.`,
		Example: "  starling job output words\n  starling job output words.top[0] results",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usage.Error(command, fmt.Errorf("%s needs a NAME, NAME.TASK or NAME.TASK[INDEX], and may have a DIR",
					command.CommandPath()))
			}
			return nil
		},
		ValidArgsFunction: target.Complete(r),
		RunE: func(command *cobra.Command, args []string) error {
			readings, err := target.Parse(args[0])
			if err != nil {
				return usage.Error(command, err)
			}
			t, err := target.Resolve(command.Context(), r, readings)
			if err != nil {
				return err
			}
			ctx, _, release := console.Attached(command.Context(), 0)
			defer release()
			return fetchOutputs(ctx, r, t, append(args, ".")[1])
		},
	}
}

// fetchOutputs copies the outputs of all instances that are meant, each as a whole or not at all.
func fetchOutputs(ctx context.Context, r *remote.Remote, t target.Target, dir string) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	instances := []target.Target{t}
	if t.Number < 0 {
		if instances, err = withOutput(ctx, r, t); err != nil {
			return err
		}
	}
	for _, one := range instances {
		path := outputPath(dir, one)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return exit.Fail(exit.Conflict, "%s exists already; nothing was copied\nhint: remove it, or name another DIR", path)
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	p := console.NewProgress(r.Console, nil)
	var errs []error
	for _, one := range instances {
		if err := fetchOutput(ctx, peer, one, dir, p); err != nil {
			errs = append(errs, err)
			continue
		}
		p.Clear()
		fmt.Fprintln(r.Out, outputPath(dir, one))
	}
	p.Clear()
	return errors.Join(errs...)
}

func outputPath(dir string, t target.Target) string {
	return filepath.Join(dir, t.Task, strconv.Itoa(t.Number))
}

// withOutput returns the instances of a task, or of all tasks that no other comes after.
func withOutput(ctx context.Context, r *remote.Remote, t target.Target) ([]target.Target, error) {
	status, err := target.Status(ctx, r, t, false)
	if err != nil {
		return nil, err
	}
	chosen, err := t.Choose(status)
	if err != nil || t.Task != "" {
		return chosen, err
	}
	return slices.DeleteFunc(chosen, func(one target.Target) bool {
		return slices.ContainsFunc(status.GetSpec().GetTasks(), func(task *starlingv1.TaskSpec) bool {
			return slices.Contains(task.GetAfter(), one.Task)
		})
	}), nil
}

// fetchOutput copies the output of one instance into the folder, beside its own path first.
func fetchOutput(ctx context.Context, peer *client.Client, t target.Target, dir string, p *console.Progress) error {
	path := outputPath(dir, t)
	incoming, err := os.MkdirTemp(dir, ".incoming-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(incoming) // of a copy that is not whole
	from, to := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := peer.Output(ctx, &starlingv1.OutputRequest{Job: t.Job, Task: t.Task, Slot: uint32(t.Number)}, to)
		to.CloseWithError(err)
		ended <- err
	}()
	name := fmt.Sprintf("%s[%d]", t.Task, t.Number)
	_, err = manifest.Receive(from, incoming, nil, func(done, total int64) {
		const step = 25 // percent
		part := int64(100)
		if done < total {
			part = done * 100 / total / step * step
		}
		p.Show([]string{name}, []string{fmt.Sprintf("%d %% of %s", part, terms.Memory.Round(total))})
	})
	from.CloseWithError(err)
	if sent := <-ended; sent != nil && !errors.Is(sent, err) {
		return sent
	}
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.Rename(incoming, path))
	}
	if err != nil {
		return fmt.Errorf("the output of %s: %w", t, err)
	}
	return nil
}
