package past

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/archive"
	"starling/archive/depot"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

func newBackup(r *remote.Remote) *cobra.Command {
	command := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all that the cluster knows into a file, from which a new cluster can begin",
		Long: `Write the value of the cluster into a file: jobs with their histories, pools, what runs where. It is that of one entry, with
the digest that all peers have there; everything goes on meanwhile. Any peer can do it that keeps an archive, as all do but those
with "archive.bytes: 0". Data of volumes is not in it, nor are the keys of the cluster.

Agents make backups by themselves, in a folder or in an S3-compatible store, if their settings say where: "backup.to". All machines
may have the same settings; the first member makes the next backup, and another one if it does not. "starling backup ls" lists them.

To restore one, start the first machine of a new cluster, whatever its name, with the file, or the place, and an empty data
directory, and let the others join it:

  starling restore FILE ...

Jobs go on from there: what ran on machines that are gone starts on those that join.`,
		Example: `  starling backup cluster.backup
  starling backup ls s3://safe/flock --endpoint https://minio.example.com:9000`,
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
			r.Hint("%s holds the cluster as it was after entry %d: starling restore %[1]s", args[0], head.GetTo())
			return r.ShowData(files.Exported{File: args[0], From: head.GetFrom(), To: head.GetTo()}, func() error { return nil })
		},
	}
	command.AddCommand(newBackupList(r))
	return command
}

func newBackupList(r *remote.Remote) *cobra.Command {
	place := &depot.Place{}
	command := &cobra.Command{
		Use:   "ls PLACE",
		Short: "List the backups in a folder or a store, of each cluster the newest first",
		Args:  usage.OneArgument("PLACE"),
		RunE: func(command *cobra.Command, args []string) error {
			place.To = args[0]
			info, err := os.Stat(place.To)
			switch {
			case depot.IsStore(place.To):
			case errors.Is(err, os.ErrNotExist):
				return exit.Fail(exit.Usage, "there is no folder %s: name one, or s3://BUCKET/PREFIX", place.To)
			case err != nil:
				return exit.Fail(exit.Usage, "%w", err)
			case !info.IsDir():
				return exit.Fail(exit.Usage, "%s is not a folder: name one, or s3://BUCKET/PREFIX", place.To)
			}
			d, err := depot.Open(*place)
			if err != nil {
				return exit.Fail(exit.Usage, "%w", err)
			}
			all, err := depot.Backups(command.Context(), d)
			if err != nil {
				return err
			}
			return showBackups(r, place.To, all)
		},
	}
	flags := command.Flags()
	flags.StringVar(&place.Endpoint, "endpoint", "", "`URL` of the store, if it is not Amazon's")
	flags.StringVar(&place.Region, "region", "", "`NAME` of the store's region, if it does not tell it")
	flags.StringVar(&place.CredentialsFile, "credentials-file", "", "`FILE` with credentials, as the AWS tools have it")
	return command
}

// listed is a backup, for programs.
type listed struct {
	Name    string    `json:"name"`
	Cluster string    `json:"cluster"`
	Made    time.Time `json:"made"`
	Entry   uint64    `json:"entry,string"`
	Bytes   int64     `json:"bytes,string"`
	Problem string    `json:"problem"`
}

// showBackups prints what is kept at a place. Of those in a folder it tells which are cut off.
func showBackups(r *remote.Remote, place string, all []depot.Backup) error {
	rows := []listed{}
	t := console.NewTable("NAME", "CLUSTER", "MADE", "ENTRY", "BYTES")
	for _, b := range all {
		row := listed{b.Name, b.Cluster, b.At, uint64(b.Index), b.Bytes, ""}
		if !depot.IsStore(place) {
			if err := archive.Whole(filepath.Join(place, b.Name)); err != nil {
				row.Problem = err.Error()
				defer r.Hint("%s cannot be restored: %v", b.Name, err)
			}
		}
		rows = append(rows, row)
		t.Row(b.Name, b.Cluster, console.Time(b.At), strconv.FormatUint(row.Entry, 10),
			strconv.FormatInt(b.Bytes, 10))
	}
	return r.ShowData(map[string]any{"backups": rows}, func() error { return t.Write(r.Out) })
}
