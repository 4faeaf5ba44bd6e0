package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"starling/archive/depot"
	"starling/cluster"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/peer"
	"starling/ring"
)

// restoredFile notes in the data directory from which backup its cluster was begun, so that the setting may stay.
const restoredFile = "restored"

// newRestore returns "starling restore FILE", which is the agent with that setting.
func newRestore(r *remote.Remote, version string) *cobra.Command {
	command := newAgent(r, version)
	run := command.RunE
	command.Use, command.Short = "restore FILE", "Run the first peer of a new cluster, which goes on from a backup"
	command.Long = `Run the first peer of a new cluster, which goes on from what "starling backup" has written: the same as "starling agent" with
the setting "restore", where a service manager starts that. FILE is a backup, or a place of backups, of which the newest counts.

It is read and folded before anything is changed, and its digest is proven. The data directory must be empty. Other machines join
as always, and what the backup knows of runs again on what there is. When it is started again later it goes on with what it has.`
	command.Example = `  starling restore flock.backup --config /etc/starling/agent.yaml
  starling restore s3://backups/flock --node a --data a.data`
	command.Args = usage.OneArgument("file")
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := command.Flags().Set("restore", args[0]); err != nil {
			return usage.Error(command, err)
		}
		return run(command, nil)
	}
	return command
}

// readBackup reads the backup with whose value a new cluster is to begin, if one is given, before anything is made of
// it: what cannot be read founds no cluster.
func (a *agent) readBackup(ctx context.Context) (err error) {
	if a.config.Restore != "" && a.known.Cluster == "" {
		a.backup, err = a.backupAt(ctx, a.config.Restore)
	}
	return err
}

// backupAt returns the value of a backup, of which the digest is proven.
func (a *agent) backupAt(ctx context.Context, path string) (*cluster.State, error) {
	if info, err := os.Stat(path); depot.IsStore(path) || err == nil && info.IsDir() {
		return a.newestAt(ctx, path)
	}
	all, err := files.Replay(path, 0, nil)
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: nothing was changed; \"starling replay %s\" tells how far the file is good", err, path)
	}
	return all.State, nil
}

// newestAt returns the value of the newest backup at a place, or of the one in a store that is named.
func (a *agent) newestAt(ctx context.Context, to string) (*cluster.State, error) {
	place := a.config.Backup
	place.To = to
	found, err := depot.Find(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: nothing was changed; \"starling backup ls %s\" tells what is there", err, to)
	}
	defer os.Remove(found.Path)
	a.Hint("restoring %s", found.Name)
	file, err := os.Open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := files.ReplayOpen(file, found.Name, 0, nil)
	switch {
	case err == nil:
		return all.State, nil
	case found.Older == "":
		return nil, fmt.Errorf("%w\nhint: nothing was changed; there is no older backup beside it", err)
	}
	return nil, fmt.Errorf("%w\nhint: nothing was changed; try the one before it: starling restore %s", err, found.Older)
}

// restore lets the journal of a new cluster begin with the value of a backup, if one is given.
func (a *agent) restore(ctx context.Context) error {
	path := a.config.Restore
	if path == "" {
		return nil
	}
	head, err := a.journal.Head(ctx)
	if err != nil {
		return err
	}
	note := filepath.Join(a.folder.Path, restoredFile)
	if head > 0 {
		if known, err := os.ReadFile(note); err == nil && strings.TrimSpace(string(known)) == path {
			a.log.Info("the cluster was begun from the backup already", "restore", path)
			return nil
		}
		return exit.Fail(exit.Usage, "this cluster is not new, its journal has entry %d: nothing was restored\n"+
			"hint: a backup is where a new cluster begins: drop --restore, or choose an empty directory with --data DIR", head)
	}
	s := a.backup
	if s == nil { // an earlier start came no further
		if s, err = a.backupAt(ctx, path); err != nil {
			return err
		}
	}
	if all := s.Registry(); all != nil && a.keys.AreOthers(all.Authorities) {
		s.SetRegistry(all.WithoutAuthorities()) // this cluster has its own, unless the keys were brought along
	}
	ring.EndAbsences(s)
	if err := os.WriteFile(note, []byte(path+"\n"), 0o600); err != nil {
		return fmt.Errorf("note from which backup the cluster begins: %w", err)
	}
	if err := peer.Seed(ctx, a.journal, s); err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	a.Hint("restored from %s: the cluster goes on from entry %d, digest %016x", path, s.Index, s.Digest())
	return nil
}
