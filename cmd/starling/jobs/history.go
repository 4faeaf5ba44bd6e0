package jobs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/jobspec"
	"starling/terms"
)

func newJobHistory(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:               "history NAME",
		Short:             "List the versions of a job, the newest last",
		Args:              usage.OneArgument("job's NAME"),
		ValidArgsFunction: target.CompleteJob(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			answer, err := peer.JobHistory(ctx, terms.JobName(target.JobName(args[0])))
			if err != nil {
				return err
			}
			return r.Show(answer, func() *console.Table { return historyTable(answer, r.Now(answer.GetTime())) })
		}),
	}
}

func historyTable(answer *starlingv1.JobHistoryResponse, now time.Time) *console.Table {
	t := console.NewTable("VERSION", "AGE", "BY", "UPDATE", "INSTANCES", "CHANGES")
	hasImages := slices.ContainsFunc(answer.GetVersions(),
		func(v *starlingv1.JobVersion) bool { return imagesOf(v.GetSpec()) != "" })
	if hasImages {
		t = console.NewTable("VERSION", "AGE", "BY", "UPDATE", "INSTANCES", "CHANGES", "IMAGES")
	}
	before := (*terms.Job)(nil)
	for _, v := range answer.GetVersions() {
		by := v.GetKind()
		if v.GetOf() != 0 {
			by = fmt.Sprintf("%s, as %d", by, v.GetOf())
		}
		spec, _ := wire.SpecOf(v.GetSpec())
		changes := "-"
		if before != nil {
			changes = changedPaths(jobspec.Diff(before, spec))
		}
		t.Row(strconv.FormatUint(uint64(v.GetNumber()), 10), age(v.GetBroughtAt(), now), by,
			console.Dash(draft.StateText(v.GetOutcome())), fmt.Sprint(v.GetInstances()), changes)
		if last := len(t.Rows) - 1; hasImages {
			t.Rows[last] = append(t.Rows[last], console.Dash(imagesOf(v.GetSpec())))
		}
		before = spec
	}
	if d := answer.GetJob().GetPolicyAction(); d != nil {
		t.Row("-", age(d.GetAt(), now), "decided", "-", "-", d.GetText())
	}
	return t
}

// changedPaths names the first few changes.
func changedPaths(changes []jobspec.Change) string {
	const most = 3
	var paths []string
	for _, c := range changes[:min(len(changes), most)] {
		paths = append(paths, c.Path)
	}
	if more := len(changes) - most; more > 0 {
		paths = append(paths, fmt.Sprintf("%d more", more))
	}
	return console.Dash(strings.Join(paths, ", "))
}

func newJobDiff(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "diff NAME [VERSION [VERSION]]",
		Short: "Show what differs between two versions of a job",
		Long: `Show what differs between two versions of a job: without a VERSION between the newest and the one before, with one
between that and the newest. It tells of each difference what it does: it is made in place, replaces all instances of the task, may
replace those whose machine does not satisfy a new rule, or starts or stops some.`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 3 {
				return usage.Error(command, fmt.Errorf("%s needs a job's NAME, and takes up to two VERSIONs",
					command.CommandPath()))
			}
			return nil
		},
		ValidArgsFunction: target.CompleteJob(r),
		RunE: func(command *cobra.Command, args []string) error {
			var versions [2]uint32
			for i, text := range args[1:] {
				version, err := versionOf(command, text)
				if err != nil {
					return err
				}
				versions[i] = version
			}
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			answer, err := peer.JobDiff(ctx, terms.JobName(target.JobName(args[0])), versions[0], versions[1])
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			return r.Print(fmt.Sprintf("%s: version %d to %d\n%s", answer.GetJob(), answer.GetFrom(), answer.GetTo(),
				draft.ChangesText(answer.GetChanges())))
		},
	}
}

// versionOf reads a version: 3 or v3.
func versionOf(command *cobra.Command, text string) (uint32, error) {
	version, err := strconv.ParseUint(strings.TrimPrefix(text, "v"), 10, 32)
	if err != nil || version == 0 {
		return 0, usage.Error(command, fmt.Errorf("%q is not a VERSION: write its number, from 1", text))
	}
	return uint32(version), nil
}
