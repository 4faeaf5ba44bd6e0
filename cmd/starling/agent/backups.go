package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"starling/archive"
	"starling/archive/depot"
	"starling/cluster"
	"starling/terms"
)

// backups makes a backup now and then, if one is wanted. All members may do it that have the same place: who is due
// follows from the members in their order and from what is there, so that nobody needs to be elected. Two at once do no
// harm.
type backups struct {
	agent   *agent
	depot   depot.Depot
	cancel  context.CancelFunc
	running sync.WaitGroup
	trouble atomic.Pointer[string]
	// made is what this peer made last.
	made depot.Backup
}

const (
	// lookMax is how long to wait at most before it is looked again what is there.
	lookMax = time.Minute
	// looksPerBackup is how often it is looked from one backup to the next, unless that is rarer than lookMax.
	looksPerBackup = 20
	// backupMax bounds one look, with the backup that it may lead to.
	backupMax = 30 * time.Minute
	// behindMax is how long to wait at most until this peer has folded what the journal has.
	behindMax = time.Minute
	// aheadMax is how much later than now a backup may be, as clocks differ, before its time counts for nothing.
	aheadMax = time.Minute
)

// begin begins to make backups, until end.
func (b *backups) begin(ctx context.Context, a *agent) (err error) {
	if b.agent = a; a.config.Backup.To == "" {
		return nil
	}
	if b.depot, err = depot.Open(a.config.Backup); err != nil {
		return err
	}
	ctx, b.cancel = context.WithCancel(ctx)
	b.running.Go(func() { b.run(ctx) })
	return nil
}

// archiveStore returns where the archive is kept beyond this machine, nil for nowhere. A store is reached as that of
// backups is.
func (a *agent) archiveStore() (depot.Depot, error) {
	if a.config.ArchiveTo == "" {
		return nil, nil
	}
	place := a.config.Backup
	place.To = a.config.ArchiveTo
	return depot.Open(place)
}

func (b *backups) end() {
	if b.cancel != nil {
		b.cancel()
		b.running.Wait()
		b.cancel = nil
	}
}

// Trouble says why there is no newer backup, or that one is from the future; "" if nothing is wrong.
func (b *backups) Trouble() string {
	if text := b.trouble.Load(); text != nil {
		return *text
	}
	return ""
}

// lookEvery is how long to wait before it is looked again.
func (b *backups) lookEvery() time.Duration {
	return max(min(b.agent.config.BackupEvery/looksPerBackup, lookMax), time.Second/2)
}

func (b *backups) run(ctx context.Context) {
	if b.agent.host.Ready(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, backupMax)
		text, err := b.look(short)
		cancel()
		if text != "" && text != b.Trouble() {
			b.agent.log.Warn(text, "to", b.agent.config.Backup.To)
		}
		if err != nil && ctx.Err() == nil {
			text = fmt.Sprintf("the last backup failed: %v", err)
			b.agent.log.Error("the backup failed; trying again", "to", b.agent.config.Backup.To, "error", err)
		}
		b.trouble.Store(&text)
		select {
		case <-time.After(b.lookEvery()):
		case <-ctx.Done():
		}
	}
}

// look makes a backup if this peer is due, and deletes what is older than is wanted. A warning says what is strange of
// those that are there.
func (b *backups) look(ctx context.Context) (warning string, err error) {
	all, err := depot.Backups(ctx, b.depot)
	if err != nil {
		return "", err
	}
	s, err := b.state(ctx)
	if err != nil {
		return "", err
	}
	id, now := b.agent.keys.Cluster(), time.Now()
	next := depot.Next(all, id, now, s.Index)
	latest, warning := b.judge(all, next)
	rank := -1
	if self := b.agent.host.Self(); s.IsMember(self) {
		rank = s.Rank(self)
	}
	if !isDue(now.Sub(latest), b.agent.config.BackupEvery, b.lookEvery(), rank) {
		return warning, nil
	}
	if err := b.keep(ctx, s, next.Name); err != nil {
		return warning, err
	}
	b.made = next
	b.agent.log.Info("made a backup", "name", next.Name, "to", b.agent.config.Backup.To, "entry", s.Index)
	gone, err := depot.Prune(ctx, b.depot, next, b.agent.config.BackupKeep)
	if len(gone) > 0 {
		b.agent.log.Info("deleted old backups", "names", gone)
	}
	return warning, err
}

// state returns the value of the last entry of the journal: that of a peer that lags behind would look like one from
// before a restore.
func (b *backups) state(ctx context.Context) (*cluster.State, error) {
	ctx, cancel := context.WithTimeout(ctx, behindMax)
	defer cancel()
	head, err := b.agent.journal.Head(ctx)
	if err != nil {
		return nil, err
	}
	return b.agent.host.State(ctx, terms.Index(head))
}

// judge returns when the last backup of the cluster that makes the next one was made, and what is strange of those that
// are there. After a restore the next one is due at once.
func (b *backups) judge(all []depot.Backup, next depot.Backup) (latest time.Time, warning string) {
	latest, ahead := latestOf(all, next.Cluster, next.At)
	newest := depot.Newest(all, next.Cluster)
	switch {
	case newest.Index > next.Index:
		warning = fmt.Sprintf("backup %s is of entry %d, which the journal does not have: it ends at entry %d, as after a "+
			"restore of an older backup; what is made from now on counts as newer", newest.Name, newest.Index, next.Index)
		if due := next.At.Add(-b.agent.config.BackupEvery); due.Before(latest) {
			latest = due
		}
	case b.made.Name != "" && depot.Compare(newest, b.made) < 0:
		warning = fmt.Sprintf("backup %s, which this peer made last, is not there any more, nor a newer one: "+
			"look who deletes what is there", b.made.Name)
	case ahead != "":
		warning = fmt.Sprintf("backup %s is from the future: the clock of the machine that made it was wrong, or this one's is", ahead)
	}
	return latest, warning
}

// latestOf returns when the last backup of a cluster was made, and one that is from the future, which does not count.
func latestOf(all []depot.Backup, cluster string, now time.Time) (latest time.Time, ahead string) {
	for _, one := range all {
		switch {
		case one.Cluster != cluster:
		case one.At.After(now.Add(aheadMax)):
			ahead = one.Name
		case one.At.After(latest):
			latest = one.At
		}
	}
	return latest, ahead
}

// isDue tells whether the member of a rank is to make the next backup: the first as soon as it is time, each further
// one two looks later, in case those before it are gone or keep none. What is not a member never is.
func isDue(age, every, lookEvery time.Duration, rank int) bool {
	return rank >= 0 && age >= every+2*time.Duration(rank)*lookEvery
}

// keep writes the value into a file of its own, and keeps that.
func (b *backups) keep(ctx context.Context, s *cluster.State, name string) (err error) {
	path := filepath.Join(b.agent.folder.Path, "backup.unfinished")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if err := errors.Join(archive.Write(file, s), file.Close()); err != nil {
		return err
	}
	return b.depot.Put(ctx, name, path)
}
