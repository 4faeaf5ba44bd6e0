package jobs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

func newWhy(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "why NAME[/TASK]",
		Short: "Tell every reason why something of a job does not run yet",
		Long: `Tell every reason why something of a job does not run yet, not only the first: what no machine has, what is too
small by how much, and what is waited for; of its pool what it may hold and holds, who comes first, who gives way to the
job or is protected from that, and what would help. With a TASK, or an instance of one, it is only about that task.`,
		Args:              usage.OneArgument("job's NAME"),
		ValidArgsFunction: target.Complete(r),
		RunE: func(command *cobra.Command, args []string) error {
			readings, err := target.Parse(args[0])
			if err != nil {
				return usage.Error(command, err)
			}
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			t, err := target.Resolve(ctx, r, readings)
			if err != nil {
				return err
			}
			answer, err := why(ctx, r, t)
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			_, err = io.WriteString(r.Out, findings(answer))
			return err
		},
	}
}

// why asks about a job, or one of its tasks.
func why(ctx context.Context, r *remote.Remote, t target.Target) (*starlingv1.WhyResponse, error) {
	peer, err := r.Dial()
	if err != nil {
		return nil, err
	}
	answer, err := peer.Why(ctx, &starlingv1.WhyRequest{Job: t.Job})
	if err != nil || t.Task == "" {
		return answer, err
	}
	status, err := target.Known(ctx, peer, t.Job)
	if err == nil {
		err = t.Check(status)
	}
	answer.Findings = slices.DeleteFunc(answer.GetFindings(),
		func(f *starlingv1.Finding) bool { return f.GetTask() != "" && f.GetTask() != t.Task })
	return answer, err
}

// findings tells an answer to "why" to people.
func findings(answer *starlingv1.WhyResponse) string {
	text := strings.Builder{}
	job := answer.GetJob()
	fmt.Fprintf(&text, "%s is %s: %d wanted, %s\n", job.GetName(), job.GetStatus(), job.GetCounts().GetDesired(),
		tally(job.GetCounts()))
	if len(answer.GetFindings()) == 0 && !job.GetFinal() {
		fmt.Fprintln(&text, "nothing keeps it from running")
	}
	for _, f := range answer.GetFindings() {
		whose := ""
		if f.GetTask() != "" {
			whose = fmt.Sprintf("%s, %s from [%d] on: ", f.GetTask(), console.Counted(f.GetInstances(), "instance"), f.GetSlot())
		}
		fmt.Fprintf(&text, "\n%s%s\n", whose, f.GetReason())
		for _, detail := range f.GetDetails() {
			fmt.Fprintf(&text, "  %s\n", detail)
		}
		if f.GetSince() != nil {
			fmt.Fprintf(&text, "  for %s", age(f.GetSince()))
			if f.GetUntil() != nil {
				fmt.Fprintf(&text, ", until %s", f.GetUntil().AsTime().Local().Format("15:04:05"))
			}
			fmt.Fprintln(&text)
		}
	}
	return text.String()
}
