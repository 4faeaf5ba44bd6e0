package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/replica/storage"
	"starling/terms"
)

func newVolume(r *remote.Remote) *cobra.Command {
	return usage.Group("volume", "See what volumes hold data, and remove them", newVolumeList(r),
		r.Writes(newVolumeRemove(r)))
}

// whichVolumes says how volumes are named.
const whichVolumes = "VOLUMES are named as \"starling volume ls\" lists them, db.main[2]@17; an instance such as " +
	"db.main[2] or a JOB\nnames all that it has."

func newVolumeList(r *remote.Remote) *cobra.Command {
	return remote.Past(&cobra.Command{
		Use:   "ls [VOLUMES]",
		Short: "List the volumes that hold data, and where they are",
		Long: `List the volumes of instances: what of them is in use, what waits for its instance to start on the machine that has it, and
what is kept for a job that was stopped, or for an instance that its job has not now. A job of the same name, or one that has the
instance again, finds them there. They stay until "starling volume rm".

` + whichVolumes,
		Example:           "  starling volume ls\n  starling volume ls db",
		Args:              usage.AtMostOne("VOLUMES"),
		ValidArgsFunction: completeVolumes(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			answer, err := peer.AllVolumes(ctx, "")
			if err == nil && len(args) > 0 {
				answer.Volumes, err = findVolumes(answer.GetVolumes(), args[0])
			}
			if err != nil {
				return err
			}
			return r.Show(answer, func() *console.Table {
				t := console.NewTable("VOLUMES", "NAMES", "NODE", "STATE", "LAST ALLOCATION")
				for _, v := range answer.GetVolumes() {
					state := v.GetState()
					if since := v.GetSince(); since != nil {
						state += " for " + r.Now(answer.GetTime()).Sub(since.AsTime()).Round(time.Second).String()
					}
					t.Row(v.GetId(), console.Dash(strings.Join(v.GetNames(), ", ")), v.GetNode(), state, v.GetAllocation())
				}
				return t
			})
		}),
	})
}

func newVolumeRemove(r *remote.Remote) *cobra.Command {
	yes := false
	remove := &cobra.Command{
		Use:   "rm VOLUMES",
		Short: "Delete what volumes hold that nobody uses",
		Long: `Delete what volumes hold that are kept for no instance that is to run. What an instance has, or waits for, stays: stop its
job first, or let it begin with empty volumes by "starling alloc stop --give-up-volumes".

` + whichVolumes,
		Example:           "  starling volume rm db.main[2]@17\n  starling volume rm db --yes",
		Args:              usage.OneArgument("VOLUMES"),
		ValidArgsFunction: completeVolumes(r),
		RunE: func(command *cobra.Command, args []string) error {
			return r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
				answer, err := peer.AllVolumes(ctx, "")
				if err != nil {
					return err
				}
				found, err := findVolumes(answer.GetVolumes(), args[0])
				if err != nil {
					return err
				}
				return removeVolumes(command.Context(), r, peer, found, yes)
			})(command, args)
		},
	}
	remove.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before data are deleted")
	return remove
}

// removeVolumes removes those that it may, after it has told what that deletes.
func removeVolumes(ctx context.Context, r *remote.Remote, peer *client.Client, all []*starlingv1.Volumes,
	yes bool) error {
	var what []string
	for _, v := range all {
		if len(all) == 1 || v.GetState() == string(storage.Kept) {
			what = append(what, fmt.Sprintf("%s on %s", v.GetId(), v.GetNode()))
		}
	}
	if len(what) == 0 {
		return errors.New("an instance has all of these, or waits for them: stop the job first")
	}
	if !yes {
		if err := r.Confirm("delete for good what volumes hold: " + strings.Join(what, ", ")); err != nil {
			return err
		}
	}
	var errs []error
	for _, one := range what {
		id, _, _ := strings.Cut(one, " ")
		answer, err := peer.RemoveVolumes(ctx, id)
		if err == nil {
			err = r.ShowNext(answer, func() string { return id + "\n" })
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// findVolumes returns those that a text names: by their id, or as those of an instance or a job.
func findVolumes(all []*starlingv1.Volumes, text string) (found []*starlingv1.Volumes, err error) {
	if _, isID := terms.ParseVolumeSet(text); !isID {
		if _, err = target.Parse(text); err != nil {
			return nil, err
		}
	}
	readings, _ := target.Parse(text)
	for _, v := range all {
		named := slices.ContainsFunc(readings, func(t target.Target) bool {
			return t.Job == v.GetJob() && (t.Task == "" || t.Task == v.GetTask()) &&
				(t.Number < 0 || uint32(t.Number) == v.GetNumber())
		})
		if named || v.GetId() == text {
			found = append(found, v)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there are no volumes %s: `starling volume ls` lists them", text)
	}
	return found, nil
}

func completeVolumes(r *remote.Remote) cobra.CompletionFunc {
	return r.Complete(func(ctx context.Context, peer *client.Client, typed string) (names []cobra.Completion, err error) {
		answer, err := peer.AllVolumes(ctx, "")
		for _, v := range answer.GetVolumes() {
			names = append(names, cobra.CompletionWithDesc(v.GetId(), v.GetState()+" on "+v.GetNode()))
		}
		return names, err
	})
}
