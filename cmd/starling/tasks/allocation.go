package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

func newAllocation(r *remote.Remote) *cobra.Command {
	allocation := usage.Group("alloc", "Stop or restart one instance, and see its files", r.Writes(newSeal(r)), newFiles(r))
	withoutVolumes, now := false, false
	for _, one := range []struct {
		use, short, long string
		elsewhere        bool
	}{
		{"restart", "End an instance and start it again on its machine",
			"End what runs of an instance, with its grace, and start it again on its machine, if that still has room.", false},
		{"stop", "End an instance and start it elsewhere",
			"End what runs of an instance, with its grace, and start it on another machine, or on the same if there is no other. To end it\nfor good, give the job fewer instances.\n\n" +
				"An instance with volumes stays on the machine that has them, or waits for it. With --give-up-volumes it may start on any\nmachine, with empty ones: what the old ones hold is deleted when it has ended.", true},
	} {
		end := &cobra.Command{
			Use:   one.use + " ALLOCATION",
			Short: one.short,
			Long:  one.long + "\n\nAn ALLOCATION is an instance such as web.server[2], a job that has but one, or one attempt to run it such as web.server[2]#4711.",
			Args:  usage.OneArgument("an ALLOCATION"),
			RunE: func(command *cobra.Command, args []string) error {
				return onAllocation(r, command, args[0],
					func(ctx context.Context, peer *client.Client, which string) (proto.Message, error) {
						return peer.EndAllocation(ctx, &starlingv1.EndAllocationRequest{Allocation: which, Elsewhere: one.elsewhere,
							WithoutVolumes: withoutVolumes, Now: now})
					})
			},
			ValidArgsFunction: target.Complete(r),
		}
		end.Flags().BoolVar(&now, "now", false, "kill it, without its stop_delay and stop_grace, even if it is being stopped already")
		if one.elsewhere {
			end.Flags().BoolVar(&withoutVolumes, "give-up-volumes", false,
				"let it start on any machine, with empty volumes: what the old ones hold is deleted")
		}
		allocation.AddCommand(r.Writes(end))
	}
	return allocation
}

// newSeal is what a program says that has seen the end of its task's input.
func newSeal(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "seal [ALLOCATION]",
		Short: "Let no more instances of a task begin",
		Long: `Say that an instance of a batch job has seen the end of its task's input: no instance of the task begins that has not
begun yet, and the task is complete when those that have begun have succeeded. The first to say so is granted it; for the others the
command fails. It is meant for programs: without an ALLOCATION it is about the one that it runs in, $STARLING_ALLOCATION.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			name := append(args, os.Getenv("STARLING_ALLOCATION"))[0]
			if name == "" {
				return usage.Error(command, errors.New("name an ALLOCATION: $STARLING_ALLOCATION is set only in an instance"))
			}
			return onAllocation(r, command, name,
				func(ctx context.Context, peer *client.Client, which string) (proto.Message, error) {
					return peer.SealTask(ctx, which)
				})
		},
		ValidArgsFunction: target.Complete(r),
	}
}

// onAllocation does something with an allocation, or the present one of an instance.
func onAllocation(r *remote.Remote, command *cobra.Command, name string,
	act func(ctx context.Context, peer *client.Client, which string) (proto.Message, error)) error {
	readings, err := target.Parse(name)
	if err != nil {
		return usage.Error(command, fmt.Errorf("%q names no instance: write NAME.TASK[2] or NAME.TASK[2]#4711", name))
	}
	ctx, cancel := remote.AnswerContext(command)
	defer cancel()
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	which := readings[0]
	if which.Allocation == "" {
		if which, err = instance(ctx, r, readings); err != nil {
			return err
		}
		status, err := target.Status(ctx, r, which, false)
		if err != nil {
			return err
		}
		slot := which.Find(status)
		if slot.GetAllocation() == "" {
			return fmt.Errorf("%s has no allocation: `starling job status %s` shows the instances", which, which.Job)
		}
		which.Allocation = slot.GetAllocation()
	}
	answer, err := act(ctx, peer, which.Allocation)
	if err != nil {
		return err
	}
	return r.ShowNext(answer, func() string { return strings.TrimSpace(which.Allocation) + "\n" })
}
