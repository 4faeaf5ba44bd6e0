package jobs

import (
	"fmt"
	"io"
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
		Use:   "why NAME",
		Short: "Tell every reason why something of a job does not run yet",
		Long: `Tell every reason why something of a job does not run yet, not only the first: what no machine has, what is too
small by how much, and what is waited for; of its pool what it may hold and holds, who comes first, who gives way to the
job or is protected from that, and what would help.`,
		Args:              usage.OneArgument("job's NAME"),
		ValidArgsFunction: target.CompleteJob(r),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			answer, err := peer.Why(ctx, &starlingv1.WhyRequest{Job: target.JobName(args[0])})
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

// findings tells an answer to "why" to people.
func findings(answer *starlingv1.WhyResponse) string {
	text := strings.Builder{}
	job := answer.GetJob()
	fmt.Fprintf(&text, "%s is %s: %d wanted, %s\n", job.GetName(), job.GetStatus(), job.GetCounts().GetDesired(), tally(job.GetCounts()))
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
