package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"starling/api/wire"
	"starling/cluster"
	"starling/replica/report"
	"starling/terms"
)

// Feed tells readers what changes. It is safe for concurrent use.
type Feed struct {
	backend Backend
	// replays has a place for every reader that reads the archive.
	replays chan struct{}

	mutex sync.Mutex
	// run is what folds, nil while nobody reads.
	run *run
}

// New returns a feed of what a peer folds.
func New(backend Backend) *Feed {
	return &Feed{backend: backend, replays: make(chan struct{}, replaysMax)}
}

// join returns what folds, which goes on until leave is called. A run that has ended is not joined.
func (f *Feed) join() (r *run, leave func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.run == nil || f.run.ended() {
		ctx, cancel := context.WithCancel(context.Background())
		f.run = &run{cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
		go f.run.follow(ctx, f.backend) // the last reader cancels it and waits
	}
	r = f.run
	r.readers++
	return r, func() { f.leave(r) }
}

func (f *Feed) leave(r *run) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if r.readers--; r.readers == 0 {
		r.cancel()
		<-r.done
		if f.run == r {
			f.run = nil
		}
	}
}

// run folds what the peer folds, and keeps what the latest entries changed.
type run struct {
	readers int // the feed's
	cancel  context.CancelFunc
	done    chan struct{}

	mutex sync.Mutex
	// value is the newest, base the index behind which entries are kept, count how many changes those have.
	value   cluster.Frozen
	begun   bool
	base    terms.Index
	entries []entry
	count   int
	failure error
	// changed is closed and replaced with every change.
	changed chan struct{}
}

func (r *run) ended() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.failure != nil
}

// follow folds until the context ends or that is not possible any more.
func (r *run) follow(ctx context.Context, backend Backend) {
	defer close(r.done)
	err := r.fold(ctx, backend)
	if err == nil {
		err = errors.New("the peer folds nothing more")
	}
	r.publish(func() { r.failure = err })
}

// errOther ends a run that would lead to another value than the peer's.
var errOther = &wire.Failure{Code: wire.Unavailable,
	Reason: "this peer has taken over a value from others: watch again with what the last response says in resume"}

func (r *run) fold(ctx context.Context, backend Backend) (err error) {
	defer func() {
		if cause := recover(); cause != nil { // the peer meets the same bug, and tells it
			err = &wire.Failure{Code: wire.Internal, Reason: fmt.Sprintf("folding an entry met a bug: %v; please report it", cause)}
		}
	}()
	state, err := backend.State(ctx, 0)
	if err != nil {
		return err
	}
	f := newFolding(state)
	r.publish(func() { r.value, r.base, r.begun = f.before, state.Index, true })
	return backend.Follow(ctx, state.Index+1, func(folded *report.Folded) error {
		e, ok := f.fold(folded)
		if !ok {
			return errOther
		}
		r.publish(func() {
			r.value = f.before
			r.keep(e)
		})
		return nil
	})
}

// publish lets readers look again after a change.
func (r *run) publish(change func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

// keep adds an entry, and forgets the oldest half of them when there are too many.
func (r *run) keep(e entry) {
	r.entries = append(r.entries, e)
	r.count += len(e.changes)
	for len(r.entries) > 1 && (len(r.entries) > entriesMax || r.count > changesMax) {
		gone := len(r.entries) / 2
		for i := range gone {
			r.count -= len(r.entries[i].changes)
		}
		r.base = r.entries[gone-1].index
		r.entries = append([]entry(nil), r.entries[gone:]...)
	}
}

// moment is what a run has at one time.
type moment struct {
	value cluster.Frozen
	begun bool
	// entries are those behind the index that was asked for; kept is false if older ones of them are kept no more.
	entries []entry
	kept    bool
	changed <-chan struct{}
	failure error
}

// since returns what there is behind an index. The entries of a moment never change.
func (r *run) since(index terms.Index) moment {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	at := len(r.entries)
	for at > 0 && r.entries[at-1].index > index {
		at--
	}
	return moment{r.value, r.begun, r.entries[at:len(r.entries):len(r.entries)], index >= r.base, r.changed, r.failure}
}

// reach waits until the run has an index.
func (r *run) reach(ctx context.Context, index terms.Index) (moment, error) {
	for {
		m := r.since(index)
		switch {
		case m.begun && m.value.Index() >= index:
			return m, nil
		case m.failure != nil:
			return m, m.failure
		}
		select {
		case <-m.changed:
		case <-ctx.Done():
			return m, ctx.Err()
		}
	}
}
