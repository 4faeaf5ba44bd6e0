package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"starling/api/wire"
	"starling/cmd/starling/settings"
	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/etcd/quorum"
	"starling/journal/zookeeper"
)

// movedPause is how long to wait before it is looked again whether the journal has begun where it goes on.
const movedPause = 100 * time.Millisecond

// sealWithin bounds how long an agent tries to read whether the journal has ended, while its engine chooses a leader or
// is otherwise away for a moment; sealPause is between two tries.
const (
	sealWithin = time.Minute
	sealPause  = 500 * time.Millisecond
)

// refuseSealed returns journal.ErrSealed, with where it goes on, for a journal that has ended.
func (a *agent) refuseSealed(ctx context.Context) error {
	seal, err := a.journal.Seal(ctx, "")
	for end := time.Now().Add(sealWithin); err != nil && ctx.Err() == nil && time.Now().Before(end); {
		a.log.Warn("the journal does not answer; trying again", "error", err)
		select {
		case <-time.After(sealPause):
		case <-ctx.Done():
		}
		seal, err = a.journal.Seal(ctx, "")
	}
	if err == nil && seal.To != "" {
		err = fmt.Errorf("%w, at %s, after entry %d", journal.ErrSealed, seal.To, seal.Index)
	}
	return err
}

// follow goes where the journal goes on, as soon as that is whole and the settings say that it is there. The tasks go
// on meanwhile, and so does the member of the old quorum, which others may still need to read.
func (a *agent) follow(ctx context.Context) error {
	to := "another place"
	if a.journal != nil {
		if seal, err := a.journal.Seal(ctx, ""); err == nil {
			to = fmt.Sprintf("%s, after entry %d", seal.To, seal.Index)
		}
	}
	if err := a.endHost(); err != nil {
		a.log.Warn("not all has ended well", "error", err)
	}
	var told time.Time
	for {
		next, err := a.whereNow(ctx)
		if err == nil {
			a.log.Info("the journal goes on at " + next.Place())
			a.config = next
			return a.leaveJournal()
		}
		if time.Since(told) > 10*quorumDelay {
			told = time.Now()
			a.log.Warn("the journal goes on at "+to, "waiting", err)
			a.Hint("the journal goes on at %s; tasks go on; waiting: %v", to, err)
		}
		select {
		case <-time.After(movedPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// whereNow returns the settings that say where the journal goes on, or what is still missing.
func (a *agent) whereNow(ctx context.Context) (*settings.Agent, error) {
	next, err := a.read()
	switch {
	case err != nil:
		return nil, err
	case next.Place() == a.config.Place():
		return nil, errors.New("this agent's settings still name the old place: change them in its file, or start it with others")
	case next.Data != a.config.Data || next.Node != a.config.Node:
		return nil, errors.New("the settings name another node or data directory: start the agent again with them")
	}
	if next.OwnQuorum() {
		return next, a.quorumBegun(ctx)
	}
	switch id, err := clusterAt(ctx, next); {
	case err != nil:
		return nil, err
	case id != a.keys.Cluster():
		return nil, fmt.Errorf("%s does not hold the journal of this cluster yet", next.Place())
	}
	return next, nil
}

// clusterAt returns the id of the cluster whose journal the place of the settings holds, "" for none.
func clusterAt(ctx context.Context, config *settings.Agent) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, quorumDelay)
	defer cancel()
	opened, err := openPlace(ctx, config)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	return opened.Cluster(ctx, "")
}

// stayYet goes on with the quorum of the cluster's own machines, of which this one has a member, if the settings name a
// place to which the journal was not moved yet. When it has moved, the agent reads its settings again.
func (a *agent) stayYet(ctx context.Context) error {
	dir, file := filepath.Join(a.folder.Path, memberFolder), filepath.Join(a.folder.Path, quorumFile)
	if a.config.OwnQuorum() || !(&quorum.Config{Dir: dir}).HasMember() {
		return nil
	}
	if id, err := clusterAt(ctx, a.config); err == nil && id != "" {
		return nil
	}
	stays := *a.config
	stays.ZooKeeper.Servers, stays.Etcd.Endpoints = nil, nil
	if stays.Etcd.Listen == "" {
		var err error
		if stays.Etcd.Listen, stays.Etcd.Peer, err = quorum.MemberURLs(file); err != nil {
			return fmt.Errorf("%s does not hold the journal of this cluster yet: %w\nhint: start this agent with its old settings until "+
				"`starling journal copy` has moved the journal there", a.config.Place(), err)
		}
	}
	a.log.Warn(a.config.Place() + " does not hold the journal of this cluster yet: the agent goes on with " + stays.Place())
	a.Hint("%s does not hold the journal of this cluster yet: this agent goes on with %s until `starling journal copy` has "+
		"moved it", a.config.Place(), stays.Place())
	a.config = &stays
	return nil
}

// unlessMoved gives up the wait for a quorum when the journal is by now where the settings say: others have gone on, so
// that the quorum may never answer again. The returned function tells that then.
func (a *agent) unlessMoved(ctx context.Context, config *quorum.Config) (waiting context.Context, left func() error) {
	waiting, cancel := context.WithCancelCause(ctx)
	tell, asked, said := config.Waiting, time.Time{}, error(nil)
	config.Waiting = func(urls []string, err error) {
		if a.config.OwnQuorum() && time.Since(asked) > 10*quorumDelay { // who is not reachable takes its time
			_, said = a.findQuorum(waiting)
			asked = time.Now()
		}
		if isElsewhere(said) {
			err = said
		}
		tell(urls, err)
		if next, err := a.whereNow(waiting); err == nil && !next.OwnQuorum() {
			cancel(journal.ErrSealed)
		}
	}
	return waiting, func() error {
		if errors.Is(context.Cause(waiting), journal.ErrSealed) {
			return journal.ErrSealed
		}
		return nil
	}
}

// isElsewhere tells whether a machine of the cluster has answered that others than those keep the journal by now.
func isElsewhere(err error) bool {
	var failure *wire.Failure
	return errors.As(err, &failure) && failure.Code == wire.Conflict
}

// quorumBegun tells whether machines of the cluster keep the journal by now: this one, or one that is asked.
func (a *agent) quorumBegun(ctx context.Context) error {
	if config := (quorum.Config{Dir: filepath.Join(a.folder.Path, memberFolder)}); config.HasMember() {
		return nil
	}
	if _, err := a.findQuorum(ctx); err != nil {
		return fmt.Errorf("no machine keeps the journal yet: %w", err)
	}
	return nil
}

// openPlace opens the journal that the settings name, where others than Starling's machines keep it.
func openPlace(ctx context.Context, config *settings.Agent) (journal.Journal, error) {
	if len(config.ZooKeeper.Servers) > 0 {
		z := config.ZooKeeper
		z.PulseTTL = config.Pulse
		return zookeeper.Open(ctx, z)
	}
	how, err := external(config)
	if err != nil {
		return nil, err
	}
	return etcd.Open(ctx, *how)
}

// leaveJournal lets the old journal go, with all of the member that may run here: its data is put aside next.
func (a *agent) leaveJournal() error {
	if a.node == nil {
		return a.endJournal()
	}
	err := a.node.Leave()
	a.node, a.journal = nil, nil
	return err
}

// leaveQuorum puts aside what this machine had as a member, once others keep the journal.
func (a *agent) leaveQuorum() error {
	if a.config.OwnQuorum() {
		return nil
	}
	dir := filepath.Join(a.folder.Path, memberFolder)
	_, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(dir+asideSuffix), os.Rename(dir, dir+asideSuffix))
	}
	if failed := os.Remove(filepath.Join(a.folder.Path, quorumFile)); !errors.Is(failed, os.ErrNotExist) {
		err = errors.Join(err, failed)
	}
	if err != nil {
		return fmt.Errorf("put aside what this node kept of the journal: %w", err)
	}
	a.log.Warn("others keep the journal now: what this node kept is put aside", "folder", dir+asideSuffix)
	return nil
}
