package agent

import (
	"context"
	"fmt"

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
