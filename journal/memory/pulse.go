package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"starling/journal"
)

// state is one pulse as the store sees it. The store's lock guards it.
type state struct {
	owner   *pulse // who last held it, nil when it does not live
	value   []byte
	ends    uint64        // how often it has ended, so that a watcher misses none
	changed chan struct{} // closed and replaced at every change
}

// change tells the watchers.
func (t *state) change() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// pulse is the owner's end of a state. A pulse whose owner lives needs no renewal here: only abandoning it
// starts the clock.
type pulse struct {
	journal *Journal
	id      string
	ttl     time.Duration
	lost    chan struct{}
	release sync.Once   // giving it up, in whichever way comes first
	timer   *time.Timer // ends it once abandoned; guarded by the store's lock
}

// Pulse implements journal.Journal.
func (j *Journal) Pulse(ctx context.Context, id string, ttl time.Duration, adopt bool) (journal.Pulse, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	if err := journal.CheckName(id); err != nil {
		return nil, fmt.Errorf("pulse: %w", err)
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("pulse %s: %w", id, errTimeToLive)
	}
	// Held until the pulse is listed, so that a concurrent Close either abandons it or prevents it.
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.owned == nil {
		return nil, journal.ErrClosed
	}
	p := &pulse{journal: j, id: id, ttl: ttl, lost: make(chan struct{})}
	if err := p.begin(adopt); err != nil {
		return nil, fmt.Errorf("pulse %s: %w", id, err)
	}
	j.owned[p] = struct{}{}
	return p, nil
}

// WatchPulse implements journal.Journal.
func (j *Journal) WatchPulse(ctx context.Context, id string, changed func(journal.PulseState)) error {
	if err := journal.CheckName(id); err != nil {
		return fmt.Errorf("watch pulse: %w", err)
	}
	var ends uint64
	for first := true; ; first = false {
		if err := j.usable(ctx); err != nil {
			return err
		}
		now, endsNow, next := j.store.pulseState(id)
		if !first && now.Alive && endsNow != ends {
			changed(journal.PulseState{ID: id})
		}
		ends = endsNow
		changed(now)
		select {
		case <-next:
		case <-ctx.Done():
		case <-j.closed.Done():
		}
	}
}

// Pulses implements journal.Journal.
func (j *Journal) Pulses(ctx context.Context) ([]journal.PulseState, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	var alive []journal.PulseState
	for id, t := range j.store.pulses {
		if t.owner != nil {
			alive = append(alive, journal.PulseState{ID: id, Alive: true, Value: t.value})
		}
	}
	slices.SortFunc(alive, func(a, b journal.PulseState) int { return strings.Compare(a.ID, b.ID) })
	return alive, nil
}

func (j *Journal) forget(p *pulse) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.owned, p)
}

// Publish implements journal.Pulse.
func (p *pulse) Publish(ctx context.Context, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(value) > journal.ValueBytesMax {
		return fmt.Errorf("publish %d bytes with pulse %s: %w", len(value), p.id, journal.ErrTooLarge)
	}
	p.journal.store.mu.Lock()
	defer p.journal.store.mu.Unlock()
	t := p.journal.store.pulse(p.id)
	if t.owner != p || p.timer != nil {
		return fmt.Errorf("publish with pulse %s: %w", p.id, journal.ErrNoPulse)
	}
	t.value = slices.Clone(value)
	t.change()
	return nil
}

// Confirm implements journal.Pulse.
func (p *pulse) Confirm(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.journal.store.mu.Lock()
	defer p.journal.store.mu.Unlock()
	switch {
	case p.journal.store.pulse(p.id).owner != p || p.timer != nil:
		return fmt.Errorf("confirm pulse %s: %w", p.id, journal.ErrNoPulse)
	case p.journal.store.seal.To != "":
		return fmt.Errorf("confirm pulse %s: %w", p.id, journal.ErrSealed)
	}
	return nil
}

// Lost implements journal.Pulse.
func (p *pulse) Lost() <-chan struct{} {
	return p.lost
}

// End implements journal.Pulse.
func (p *pulse) End(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.release.Do(func() { p.journal.forget(p) })
	p.journal.store.mu.Lock()
	defer p.journal.store.mu.Unlock()
	p.end()
	return nil
}

// Abandon implements journal.Pulse.
func (p *pulse) Abandon() {
	p.release.Do(func() {
		p.journal.forget(p)
		p.journal.store.mu.Lock()
		defer p.journal.store.mu.Unlock()
		p.timer = time.AfterFunc(p.ttl, p.expire)
	})
}

func (p *pulse) expire() {
	p.journal.store.mu.Lock()
	defer p.journal.store.mu.Unlock()
	p.end()
}

// begin makes p the owner, or says why it cannot be.
func (p *pulse) begin(adopt bool) error {
	p.journal.store.mu.Lock()
	defer p.journal.store.mu.Unlock()
	t := p.journal.store.pulse(p.id)
	former := t.owner
	switch {
	case adopt && former == nil:
		return journal.ErrNoPulse
	case !adopt && former != nil:
		return journal.ErrPulseTaken
	}
	t.owner = p
	if former == nil {
		t.value = nil
		t.change()
		return nil
	}
	if former.timer != nil {
		former.timer.Stop()
	} else {
		close(former.lost)
	}
	return nil
}

// end ends the pulse if it is still p's. The store's lock is held.
func (p *pulse) end() {
	t := p.journal.store.pulse(p.id)
	if t.owner != p {
		return
	}
	t.owner, t.value = nil, nil
	t.ends++
	t.change()
}

// pulse returns the state of id. The store's lock is held.
func (s *store) pulse(id string) *state {
	t := s.pulses[id]
	if t == nil {
		t = &state{changed: make(chan struct{})}
		s.pulses[id] = t
	}
	return t
}

// pulseState returns what id's pulse shows, how often it has ended, and the channel that tells of its next change.
func (s *store) pulseState(id string) (journal.PulseState, uint64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.pulse(id)
	return journal.PulseState{ID: id, Alive: t.owner != nil, Value: t.value}, t.ends, t.changed
}
