package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/replica/storage"
	"starling/terms"
)

func newVolume(r *remote.Remote) *cobra.Command {
	return usage.Group("volume", "See what volumes hold data, copy, move and remove them", newVolumeList(r),
		newVolumeShow(r), newVolumeSnapshot(r), r.Writes(newVolumeRelocate(r)), r.Writes(newVolumeRemove(r)))
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
instance again, finds them there. They stay until "starling volume rm", or for as long as keep_volumes of the job says.

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
					if until := v.GetUntil(); until != nil {
						left := max(0, until.AsTime().Sub(r.Now(answer.GetTime())))
						state += ", for " + left.Round(time.Second).String() + " more"
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
				found, err := namedVolumes(ctx, peer, args[0])
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

func newVolumeShow(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "show VOLUMES",
		Short: "Show how much volumes hold",
		Long: `Show what each volume takes on the disk of its machine, as that measures it now: what many files hold takes a while to be added
up.

` + whichVolumes,
		Example:           "  starling volume show db.main[2]",
		Args:              usage.OneArgument("VOLUMES"),
		ValidArgsFunction: completeVolumes(r),
		RunE: dialed(r, func(ctx context.Context, peer *client.Client, args []string) error {
			ctx, _, release := console.Attached(ctx, 0)
			defer release()
			found, err := namedVolumes(ctx, peer, args[0])
			if err != nil {
				return err
			}
			return showVolumes(ctx, r, peer, found)
		}),
	}
}

// showVolumes shows sets one after the other, those that can be measured.
func showVolumes(ctx context.Context, r *remote.Remote, peer *client.Client, all []*starlingv1.Volumes) error {
	table, errs := console.NewTable("VOLUMES", "NAME", "TAKES", "NODE", "STATE", "LAST ALLOCATION"), []error(nil)
	for _, v := range all {
		answer, err := peer.VolumeStats(ctx, v.GetId())
		if err == nil && !r.ForPeople() {
			err = r.ShowNext(answer, nil)
		}
		errs = append(errs, err)
		for _, use := range answer.GetUses() {
			now := answer.GetVolumes()
			table.Row(now.GetId(), use.GetName(), terms.Memory.Round(int64(use.GetBytes())), now.GetNode(), now.GetState(),
				now.GetAllocation())
		}
	}
	if r.ForPeople() {
		errs = append(errs, r.Tables(table))
	}
	return errors.Join(errs...)
}

func newVolumeRelocate(r *remote.Remote) *cobra.Command {
	to := ""
	relocate := &cobra.Command{
		Use:   "relocate VOLUMES --to NODE",
		Short: "Move what volumes hold to another machine",
		Long: `Move what volumes hold to another machine: it is copied there, and when all of it is there, its instance starts there and
the first machine deletes it. Ctrl-C leaves all as it was.

No instance may have them meanwhile: suspend or stop the job, or drain the machine at once ("starling node drain --deadline 0"). If an instance has used them before the copy was whole, the copy does not count, and nothing is lost.

` + whichVolumes,
		Example: "  starling node drain m3 --deadline 0 && starling volume relocate db.main[2] --to m5\n" +
			"  starling job suspend db && starling volume relocate db --to m5 && starling job resume db",
		Args:              usage.OneArgument("VOLUMES"),
		ValidArgsFunction: completeVolumes(r),
		RunE: dialed(r, func(ctx context.Context, peer *client.Client, args []string) error {
			if to == "" {
				return exit.Fail(exit.Usage, "--to NODE says which machine is to have them")
			}
			found, err := namedVolumes(ctx, peer, args[0])
			if err != nil {
				return err
			}
			return relocateVolumes(ctx, r, peer, found, to)
		}),
	}
	relocate.Flags().StringVar(&to, "to", "", "the `NODE` that is to have them")
	_ = relocate.RegisterFlagCompletionFunc("to", target.CompleteNode(r))
	return relocate
}

// namedVolumes asks which volumes there are, and returns those that a text names.
func namedVolumes(ctx context.Context, peer *client.Client, text string) ([]*starlingv1.Volumes, error) {
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerWithin)
	defer cancel()
	answer, err := peer.AllVolumes(ctx, "")
	if err != nil {
		return nil, err
	}
	return findVolumes(answer.GetVolumes(), text)
}

// relocateVolumes moves those that are elsewhere, one after the other.
func relocateVolumes(ctx context.Context, r *remote.Remote, peer *client.Client, all []*starlingv1.Volumes,
	to string) error {
	ctx, _, release := console.Attached(ctx, 0)
	defer release()
	p := console.NewProgress(r.Console, nil)
	var errs []error
	for _, v := range all {
		last := &starlingv1.RelocateVolumesResponse{}
		err := peer.RelocateVolumes(ctx, &starlingv1.RelocateVolumesRequest{Volumes: v.GetId(), Node: to},
			func(told *starlingv1.RelocateVolumesResponse) error {
				if last = told; told.GetIndex() == 0 {
					p.Show([]string{v.GetId()}, []string{fmt.Sprintf("%s copied from %s to %s",
						terms.Memory.Round(int64(told.GetBytes())), told.GetFrom(), to)})
				}
				return nil
			})
		p.Clear()
		if err == nil {
			err = r.ShowNext(last, func() string {
				if last.GetFrom() == to {
					return fmt.Sprintf("%s is on %s already\n", v.GetId(), to)
				}
				return fmt.Sprintf("%s is on %s now, with %s from %s\n", v.GetId(), to,
					terms.Memory.Round(int64(last.GetBytes())), last.GetFrom())
			})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func newVolumeSnapshot(r *remote.Remote) *cobra.Command {
	file := ""
	snapshot := &cobra.Command{
		Use:   "snapshot VOLUMES --to FILE",
		Short: "Copy what volumes hold into a file here",
		Long: `Copy what the volumes of one instance hold, from whichever machine has them, into a tar archive with a folder for each, with
owners, modes, times and links. No instance may have them meanwhile: suspend or stop its job. FILE is there when all of it is; one that
is there already is not replaced.

` + whichVolumes,
		Example:           "  starling volume snapshot db.main[2] --to db.tar",
		Args:              usage.OneArgument("VOLUMES"),
		ValidArgsFunction: completeVolumes(r),
		RunE: dialed(r, func(ctx context.Context, peer *client.Client, args []string) error {
			if file == "" {
				return exit.Fail(exit.Usage, "--to FILE says where the archive is to be")
			}
			found, err := namedVolumes(ctx, peer, args[0])
			switch {
			case err != nil:
				return err
			case len(found) > 1:
				return exit.Fail(exit.Usage, "%s names %d: `starling volume ls %s` lists them; name one", args[0], len(found),
					args[0])
			}
			return snapshotVolumes(ctx, r, peer, found[0], file)
		}),
	}
	snapshot.Flags().StringVar(&file, "to", "", "the `FILE` that is to be the archive")
	return snapshot
}

// snapshotVolumes writes an archive beside its file first.
func snapshotVolumes(ctx context.Context, r *remote.Remote, peer *client.Client, v *starlingv1.Volumes,
	file string) error {
	ctx, _, release := console.Attached(ctx, 0)
	defer release()
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return exit.Fail(exit.Conflict, "%s exists already; nothing was copied\nhint: remove it, or name another FILE", file)
	}
	part, err := os.OpenFile(file+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	p := &partial{File: part, progress: console.NewProgress(r.Console, nil), of: v, told: time.Now()}
	err = peer.ReadVolumes(ctx, v.GetId(), p)
	p.progress.Clear()
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil {
		err = os.Link(part.Name(), file) // which never replaces one
	}
	if err = errors.Join(err, os.Remove(part.Name())); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Out, "%s has what %s held on %s: %s\n", file, v.GetId(), v.GetNode(),
		terms.Memory.Round(p.bytes))
	return err
}

// partial is a file of which more comes.
type partial struct {
	*os.File
	progress *console.Progress
	of       *starlingv1.Volumes
	bytes    int64
	told     time.Time
}

// Write writes on, and tells how far it is.
func (p *partial) Write(data []byte) (int, error) {
	n, err := p.File.Write(data)
	if p.bytes += int64(n); time.Since(p.told) >= time.Second {
		p.told = time.Now()
		text := fmt.Sprintf("%s copied from %s", terms.Memory.Round(p.bytes), p.of.GetNode())
		p.progress.Show([]string{p.of.GetId()}, []string{text})
	}
	return n, err
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
