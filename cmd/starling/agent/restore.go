package agent

import (
	"context"
	"fmt"
	"os"

	"starling/archive/depot"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/peer"
)

// restore lets the journal of a new cluster begin with the value of a backup, if one is given. The digest of the value
// is proven before.
func (a *agent) restore(ctx context.Context) error {
	path := a.config.Restore
	if path == "" {
		return nil
	}
	head, err := a.journal.Head(ctx)
	if err != nil {
		return err
	}
	if head > 0 {
		return exit.Fail(exit.Usage, "this cluster is not new, its journal has entry %d: nothing was restored\n"+
			"hint: a backup is where a new cluster begins: drop --restore, or choose an empty directory with --data DIR", head)
	}
	if info, err := os.Stat(path); depot.IsStore(path) || err == nil && info.IsDir() {
		place := a.config.Backup
		place.To = path
		found, name, err := depot.Find(ctx, place)
		if err != nil {
			return fmt.Errorf("%w\nhint: nothing was changed; \"starling backup ls %s\" tells what is there", err, path)
		}
		defer os.Remove(found)
		a.Hint("restoring %s of %s", name, path)
		path = found
	}
	_, s, err := files.Replay(path, 0, nil)
	if err != nil {
		return fmt.Errorf("%w\nhint: nothing was changed; \"starling replay %s\" tells how far the file is good", err, path)
	}
	if err := peer.Seed(ctx, a.journal, s); err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	a.Hint("restored from %s: the cluster goes on from entry %d, digest %016x", path, s.Index, s.Digest())
	return nil
}
