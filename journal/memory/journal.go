// Package memory keeps a journal in this process: the engine of `starling dev`, of tests and of simulations.
//
// It is as durable as its process. It starts no goroutine; the only timers are those of abandoned pulses, so it
// runs under a simulated clock (testing/synctest) as it is.
package memory

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"starling/journal"
)

// batchRecordsMax bounds one delivery, so that a reader far behind looks at its context now and then.
const batchRecordsMax = 1024

// Journal is one peer's access to records and pulses that it shares with every other made by Open.
type Journal struct {
	store  *store
	closed context.Context
	close  context.CancelFunc

	mu    sync.Mutex
	owned map[*pulse]struct{} // pulses to abandon on Close; nil after it
}

var _ journal.Journal = (*Journal)(nil)

// New returns a journal without records. Many peers may share it; give each its own by Open if one must be
// closed, or crash, without the others.
func New() *Journal {
	return (&store{
		appended: make(chan struct{}),
		seen:     make(map[identity]struct{}),
		chunks:   make(map[chunk][]byte),
		pulses:   make(map[string]*state),
	}).open()
}

// Open returns another journal on the same records and pulses, as a second process would have.
func (j *Journal) Open() *Journal {
	return j.store.open()
}

// Bound sets the quota of the records and chunks, which is only told by Room, for all who share them; 0 is none.
func (j *Journal) Bound(bytes int64) {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.store.quota = bytes
}

// Room implements journal.Journal.
func (j *Journal) Room(ctx context.Context) (room journal.Room, err error) {
	if err := j.usable(ctx); err != nil {
		return room, err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if room.Quota = j.store.quota; room.Quota == 0 {
		return room, nil
	}
	for _, r := range j.store.records {
		room.Used += int64(len(r.Payload))
	}
	for _, c := range j.store.chunks {
		room.Used += int64(len(c))
	}
	return room, nil
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, r journal.Record) error {
	if err := j.usable(ctx); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	return j.store.append(r)
}

// Follow implements journal.Journal.
func (j *Journal) Follow(ctx context.Context, from journal.Index, deliver func([]journal.Record) error) error {
	next := max(from, 1)
	for {
		if err := j.usable(ctx); err != nil {
			return err
		}
		batch, appended, err := j.store.read(next)
		if err != nil {
			return err
		}
		if len(batch) > 0 {
			if err := deliver(batch); err != nil {
				return err
			}
			next += journal.Index(len(batch))
			continue
		}
		select {
		case <-appended:
		case <-ctx.Done():
		case <-j.closed.Done():
		}
	}
}

// Head implements journal.Journal.
func (j *Journal) Head(ctx context.Context) (journal.Index, error) {
	if err := j.usable(ctx); err != nil {
		return 0, err
	}
	return j.store.head(), nil
}

// Cluster implements journal.Journal.
func (j *Journal) Cluster(ctx context.Context, proposed string) (string, error) {
	if err := j.usable(ctx); err != nil {
		return "", err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.store.cluster = cmp.Or(j.store.cluster, proposed)
	return j.store.cluster, nil
}

// Seal implements journal.Journal.
func (j *Journal) Seal(ctx context.Context, to string) (journal.Seal, error) {
	if err := j.usable(ctx); err != nil {
		return journal.Seal{}, err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if to != "" && j.store.seal.To == "" {
		j.store.seal = journal.Seal{Index: j.store.end(), To: to}
		j.store.wake()
	}
	return j.store.seal, nil
}

// Close implements journal.Journal. Other journals of the same records stay open.
func (j *Journal) Close() error {
	j.close()
	j.mu.Lock()
	owned := j.owned
	j.owned = nil
	j.mu.Unlock()
	for p := range owned {
		p.Abandon()
	}
	return nil
}

// usable returns why nothing can be done now: the journal is closed, or ctx is over.
func (j *Journal) usable(ctx context.Context) error {
	if j.closed.Err() != nil {
		return journal.ErrClosed
	}
	return ctx.Err()
}

// identity is what makes two appends the same record.
type identity struct {
	writer string
	seq    uint64
}

// store is what all journals made by Open share.
type store struct {
	mu       sync.Mutex
	cluster  string // its id, "" for none
	snapshot journal.Snapshot
	chunks   map[chunk][]byte
	records  []journal.Record // those after the snapshot; never changed, only appended to and cut
	appended chan struct{}    // closed and replaced at every append, and when something is trimmed
	seen     map[identity]struct{}
	pulses   map[string]*state // every pulse that lives, ever lived, or is watched
	quota    int64             // in bytes, 0 for none
	seal     journal.Seal
}

func (s *store) open() *Journal {
	closed, cancel := context.WithCancel(context.Background())
	return &Journal{store: s, closed: closed, close: cancel, owned: make(map[*pulse]struct{})}
}

func (s *store) append(r journal.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := identity{r.Writer, r.Seq}
	if _, again := s.seen[id]; again {
		return nil
	}
	if s.seal.To != "" {
		return journal.ErrSealed
	}
	s.seen[id] = struct{}{}
	r.Index = s.end() + 1
	s.records = append(s.records, r)
	s.wake()
	return nil
}

// wake lets all readers look again.
func (s *store) wake() {
	close(s.appended)
	s.appended = make(chan struct{})
}

// read returns a batch that begins at index next, or none and the channel that tells of the next change.
func (s *store) read(next journal.Index) ([]journal.Record, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case next <= s.snapshot.Index:
		return nil, nil, journal.ErrTrimmed
	case next > s.end() && s.seal.To != "":
		return nil, nil, journal.ErrSealed
	case next > s.end():
		return nil, s.appended, nil
	}
	rest := s.records[next-s.snapshot.Index-1:]
	n := min(len(rest), batchRecordsMax)
	return rest[:n:n], s.appended, nil
}

func (s *store) head() journal.Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end()
}

// end is the index of the last record.
func (s *store) end() journal.Index { return s.snapshot.Index + journal.Index(len(s.records)) }

// errTimeToLive is returned for a pulse that could not live.
var errTimeToLive = errors.New("time to live must be above zero")
