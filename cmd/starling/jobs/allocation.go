package jobs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

func newAllocation(r *remote.Remote) *cobra.Command {
	allocation := &cobra.Command{
		Use:   "alloc",
		Short: "Stop or restart one instance",
		Args:  usage.NoArguments,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	for _, one := range []struct {
		use, short, long string
		elsewhere        bool
	}{
		{"restart", "End an instance and start it again on its machine",
			"End what runs of an instance, with its grace, and start it again on its machine, if that still has room.", false},
		{"stop", "End an instance and start it elsewhere",
			"End what runs of an instance, with its grace, and start it on another machine, or on the same if there is no other. To end it\nfor good, give the job fewer instances.", true},
	} {
		allocation.AddCommand(&cobra.Command{
			Use:   one.use + " ALLOCATION",
			Short: one.short,
			Long:  one.long + "\n\nAn ALLOCATION is an instance such as web.server[2], or one attempt to run it such as web.server[2]#4711.",
			Args:  usage.OneArgument("an ALLOCATION"),
			RunE: func(command *cobra.Command, args []string) error {
				return endAllocation(r, command, args[0], one.elsewhere)
			},
			ValidArgsFunction: target.Complete(r),
		})
	}
	return allocation
}

// endAllocation ends an allocation, or the present one of an instance.
func endAllocation(r *remote.Remote, command *cobra.Command, name string, elsewhere bool) error {
	readings, err := target.Parse(name)
	if readings = slices.DeleteFunc(readings, func(t target.Target) bool { return t.Number < 0 }); err != nil || len(readings) == 0 {
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
		status, err := target.Status(ctx, r, which.Job, false)
		if err != nil {
			return err
		}
		slot := which.Find(status)
		if slot.GetAllocation() == "" {
			return fmt.Errorf("%s has no allocation: `starling job status %s` shows the instances", which, which.Job)
		}
		which.Allocation = slot.GetAllocation()
	}
	answer, err := peer.EndAllocation(ctx, which.Allocation, elsewhere)
	if err != nil {
		return err
	}
	return r.ShowNext(answer, func() string { return strings.TrimSpace(which.Allocation) + "\n" })
}
