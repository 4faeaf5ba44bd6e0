package past

import (
	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

func newBackup(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all that the cluster knows into a file, from which a new cluster can begin",
		Long: `Write the value of the cluster into a file: jobs with their histories, pools, what runs where. It is that of one entry, with
the digest that all peers have there; everything goes on meanwhile, and any peer can do it. Data of volumes is not in it, nor are
the keys of the cluster.

To restore it, start the first machine of a new cluster, whatever its name, with the file and an empty data directory, and let
the others join it:

  starling agent --restore FILE ...

Jobs go on from there: what ran on machines that are gone starts on those that join.`,
		Args: usage.OneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			head, err := files.ExportTo(command.Context(), peer, &starlingv1.ExportRequest{Last: 1}, args[0])
			if err != nil {
				return err
			}
			r.Hint("%s holds the cluster as it was after entry %d: starling agent --restore %[1]s", args[0], head.GetTo())
			return nil
		},
	}
}
