// Package turns lets few requests at a time do what takes long, and their callers take turns: of those with the fewest
// places the one that has waited longest is next.
package turns

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"starling/api/door"
	"starling/api/wire"
)

const (
	// ofCallerMax bounds the requests of one caller that have a place, have lent it or wait for one.
	ofCallerMax = 64
	// lentMax bounds those that have lent it, for each keeps what it has computed so far: more get no place.
	lentMax = 4
	// waitMax is how long a request waits for a place.
	waitMax = 15 * time.Second
	// lentAfter is how long who reads an answer may take for a piece of it until the place is lent to others.
	lentAfter = 50 * time.Millisecond
)

// Turns are the places for one kind of work.
type Turns struct {
	doing string
	wait  time.Duration

	mu      sync.Mutex
	free    int
	each    int            // how many places a caller has at most
	holds   map[string]int // the places of each caller
	all     map[string]int // their requests
	lent    map[string]int
	waiting []*waiter // who has waited longest is first
}

type waiter struct {
	caller string
	ready  chan struct{} // closed when it has a place
}

// New returns so many places for work that a message calls "this peer DOING". A caller has at most one.
func New(places int, doing string) *Turns { return NewShared(places, 1, doing) }

// NewShared returns so many places, of which each caller has at most so many.
func NewShared(places, each int, doing string) *Turns {
	return &Turns{doing: doing, wait: waitMax, free: places, each: each, holds: map[string]int{}, all: map[string]int{},
		lent: map[string]int{}}
}

// Take waits for a place for the request of the context. The error is a *wire.Failure, or why the context has ended.
func (t *Turns) Take(ctx context.Context) (*Place, error) {
	caller := door.CallerOf(ctx).String()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[caller] >= ofCallerMax {
		return nil, &wire.Failure{Code: wire.Exhausted, Reason: fmt.Sprintf(
			"this peer %s, and %d requests of %s wait already: let them end", t.doing, ofCallerMax, caller)}
	}
	t.all[caller]++
	p := &Place{of: t, caller: caller}
	late := time.NewTimer(t.wait)
	defer late.Stop()
	if err := p.take(ctx, late.C); err != nil {
		t.forget(caller)
		return nil, err
	}
	return p, nil
}

// forget counts a request of the caller no more. It is called with the lock.
func (t *Turns) forget(caller string) {
	if t.all[caller]--; t.all[caller] == 0 {
		delete(t.all, caller)
	}
}

// next gives free places to those whose turn it is. It is called with the lock.
func (t *Turns) next() {
	for t.free > 0 {
		first := -1
		for i, w := range t.waiting {
			may := t.holds[w.caller] < t.each && t.lent[w.caller] < lentMax
			if may && (first < 0 || t.holds[w.caller] < t.holds[t.waiting[first].caller]) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		w := t.waiting[first]
		t.waiting = slices.Delete(t.waiting, first, first+1)
		t.free--
		t.holds[w.caller]++
		close(w.ready)
	}
}

// Place is that of one request.
type Place struct {
	of     *Turns
	caller string
	held   bool // guarded by the lock of Turns
}

// take waits for the place, until it is too late. It is called with the lock, and returns with it.
func (p *Place) take(ctx context.Context, late <-chan time.Time) error {
	t := p.of
	w := &waiter{caller: p.caller, ready: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.next()
	t.mu.Unlock()
	var err error
	select {
	case <-w.ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late:
	}
	t.mu.Lock()
	for i, other := range t.waiting {
		if other != w {
			continue
		}
		t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
		if err == nil {
			err = &wire.Failure{Code: wire.Unavailable, Reason: fmt.Sprintf(
				"this peer %s for others now, and %d more wait: try again, or ask another peer", t.doing, len(t.waiting))}
		}
		return err
	}
	p.held = true // even if the context has ended: it is given back as usual
	return nil
}

// Done gives the place back, for good.
func (p *Place) Done() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.release()
	p.of.forget(p.caller)
}

// release gives the place to others. It is called with the lock.
func (p *Place) release() {
	if p.held {
		p.held = false
		p.of.free++
		if p.of.holds[p.caller]--; p.of.holds[p.caller] == 0 {
			delete(p.of.holds, p.caller)
		}
		p.of.next()
	}
}

// Aside sends a piece of the answer. If that takes longer than a moment, because nobody reads it, the place is lent to
// others meanwhile, and waited for again.
func (p *Place) Aside(ctx context.Context, send func() error) error {
	t := p.of
	sent, lent := false, false
	lending := time.AfterFunc(lentAfter, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if lent = !sent; lent {
			t.lent[p.caller]++
			p.release()
		}
	})
	defer lending.Stop()
	err := send()
	t.mu.Lock()
	defer t.mu.Unlock()
	if sent = true; !lent {
		return err
	}
	if t.lent[p.caller]--; t.lent[p.caller] == 0 {
		delete(t.lent, p.caller)
	}
	if err != nil {
		t.next()
		return err
	}
	return p.take(ctx, nil)
}
