package quorum

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/etcd/datadir"
)

// Log is how far a member's log reaches. Of two survivors the one with the greater term knows more, and of two with the
// same term the one with the greater index.
type Log struct {
	Term, Index uint64
	// Committed is up to where the member knew that a majority has it.
	Committed uint64
	// ID is the member's.
	ID uint64
}

// Compare orders logs by what they know.
func (l Log) Compare(other Log) int {
	return cmp.Or(cmp.Compare(l.Term, other.Term), cmp.Compare(l.Index, other.Index))
}

// ReadLog reads how far the log of a member reaches, and changes nothing. The error is datadir.ErrNoMember if there is
// none, and a *datadir.Damage if it is damaged.
func ReadLog(dir string) (Log, error) {
	c, err := datadir.ReadLog(dir)
	return Log{Term: c.Term, Index: c.Index, Committed: c.Committed, ID: c.Member}, err
}

// Recovery is a quorum of one that was made of a copy of a survivor's data, until it is kept or dropped.
type Recovery struct {
	Log Log
	// Members are those that the survivor knew, itself included.
	Members []Member
	// Head is the last record that the journal has then, and Last what that is, unless it was trimmed.
	Head journal.Index
	Last journal.Record

	dir string
}

// The folders beside a member's: a copy that is being recovered, one that is to take the member's place, and what was
// there before.
const (
	copySuffix   = ".recovered"
	chosenSuffix = ".chosen"
	oldSuffix    = ".old"
)

// Recover makes a quorum of one of a copy of a survivor's data, which stays as it is. The member must not run. What
// the survivor has counts as agreed on from now on, also where it had not heard that yet: what was acknowledged to
// others is not lost if it has arrived here.
func Recover(ctx context.Context, node, dir string, engineLog io.Writer) (*Recovery, error) {
	r := &Recovery{dir: dir}
	var err error
	if r.Log, err = ReadLog(dir); err != nil {
		return nil, err
	}
	if _, err := datadir.Check(dir); err != nil {
		return nil, err
	}
	made := dir + copySuffix
	if err := errors.Join(os.RemoveAll(made), os.CopyFS(made, os.DirFS(dir))); err != nil {
		return nil, errors.Join(fmt.Errorf("copy what the survivor has: %w", err), r.Drop())
	}
	if err := r.rehearse(ctx, node, made, engineLog); err != nil {
		return nil, errors.Join(fmt.Errorf("make a quorum of one of a copy of %s: %w", dir, err), r.Drop())
	}
	return r, nil
}

func (r *Recovery) rehearse(ctx context.Context, node, made string, engineLog io.Writer) error {
	if err := commitAll(made, r.Log); err != nil {
		return err
	}
	r.Members = membersIn(made)
	const here = "http://127.0.0.1:0" // nobody is to reach it
	m, err := etcd.Start(ctx, etcd.MemberConfig{
		Name: node, DataDir: made, ClientURL: here, PeerURL: here, Alone: true, Log: engineLog,
	})
	if err != nil {
		return err
	}
	if err := m.Ready(ctx); err != nil {
		return errors.Join(err, m.Close())
	}
	j := m.Journal()
	r.Head, err = j.Head(ctx)
	if err == nil && r.Head > 0 {
		done := errors.New("it is read")
		err = j.Follow(ctx, r.Head, func(records []journal.Record) error {
			r.Last = records[0]
			return done
		})
		if errors.Is(err, done) || errors.Is(err, journal.ErrTrimmed) {
			err = nil
		}
	}
	return errors.Join(err, j.Close(), m.Close())
}

// commitAll lets all that a log holds count as agreed on. A member hears of that only with the next message of its
// leader, so that what was acknowledged last may stand in it without the mark.
func commitAll(dir string, has Log) error {
	folder := filepath.Join(dir, "member", "wal")
	known, err := wal.ValidSnapshotEntries(zap.NewNop(), folder)
	if err != nil {
		return fmt.Errorf("read the log in %s: %w", dir, err)
	}
	at := &walpb.Snapshot{}
	if n := len(known); n > 0 {
		at = &walpb.Snapshot{Index: known[n-1].Index, Term: known[n-1].Term}
	}
	w, err := wal.Open(zap.NewNop(), folder, at)
	if err != nil {
		return fmt.Errorf("open the log in %s: %w", dir, err)
	}
	_, state, _, err := w.ReadAll()
	if errors.Is(err, io.ErrUnexpectedEOF) && wal.Repair(zap.NewNop(), folder) {
		return errors.Join(w.Close(), commitAll(dir, has)) // the end was torn off, and is cut now
	}
	if err == nil && has.Index > has.Committed {
		state.Commit = proto.Uint64(has.Index)
		err = errors.Join(w.Save(state, nil), w.Sync())
	}
	return errors.Join(err, w.Close())
}

// membersIn lists the members that a member's data tells of.
func membersIn(dir string) []Member {
	file := backend.NewDefaultBackend(zap.NewNop(), filepath.Join(dir, "member", "snap", "db"))
	defer file.Close()
	known, _ := schema.NewMembershipBackend(zap.NewNop(), file).MustReadMembersFromBackend()
	var members []Member
	for id, m := range known {
		one := Member{ID: uint64(id), Node: m.Name, Learner: m.IsLearner}
		one.Client, one.Peer = first(m.ClientURLs), first(m.PeerURLs)
		members = append(members, one)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID)) })
	return members
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// Keep puts the quorum of one where the survivor's data is, and sets that aside. What the machine remembers of the
// others, in file, is forgotten: they are members no more. If it is cut off Complete ends what it has begun.
func (r *Recovery) Keep(file string) error {
	err := os.RemoveAll(r.dir + chosenSuffix)
	if err == nil {
		err = os.Rename(r.dir+copySuffix, r.dir+chosenSuffix)
	}
	if err == nil {
		_, err = Complete(r.dir, file)
	}
	return err
}

// Complete ends what a machine that was killed within Keep had begun, and tells whether it had: the quorum of one is
// chosen, and not in its place. Whoever opens a member's data calls it first, lest what is chosen stays for later.
func Complete(dir, file string) (done bool, err error) {
	if !datadir.HasMember(dir + chosenSuffix) {
		return false, nil
	}
	if datadir.HasMember(dir) {
		err = os.RemoveAll(dir + oldSuffix)
		if err == nil {
			err = os.Rename(dir, dir+oldSuffix)
		}
	}
	if err == nil {
		err = os.RemoveAll(file)
	}
	if err == nil {
		err = os.Rename(dir+chosenSuffix, dir)
	}
	if err != nil {
		return false, fmt.Errorf("put what was recovered in its place: %w\nhint: what was there is in %s or %s, what was recovered in %s",
			err, dir, dir+oldSuffix, dir+chosenSuffix)
	}
	return true, nil
}

// Drop removes the copy.
func (r *Recovery) Drop() error { return os.RemoveAll(r.dir + copySuffix) }

// Seen is what a member that runs elsewhere tells.
type Seen struct {
	// HasLeader tells that it has one: a majority runs, and nothing is to be recovered.
	HasLeader bool
	// Index is up to where it knows that a majority has the log.
	Index uint64
}

// See asks a member, which answers without a majority as long as its agent runs.
func See(ctx context.Context, url string, secure *tls.Config) (Seen, error) {
	client, err := outside([]string{url}, secure)
	if err != nil {
		return Seen{}, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	s, err := client.Status(ctx, url)
	if err != nil {
		return Seen{}, err
	}
	return Seen{HasLeader: s.Leader != 0, Index: s.RaftIndex}, nil
}
