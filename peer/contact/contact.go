// Package contact knows whether the journal's engine answers, and when it did last: what a peer tells while most of the
// nodes that keep the journal are away is as old as that.
package contact

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"starling/journal"
	"starling/terms"
)

const (
	// ageMax is how old an answer may be: whoever may ask for it may ask often.
	ageMax = time.Second
	// timeout is after how long the engine counts as not answering.
	timeout = 3 * time.Second
	// askEvery is the pause between two questions, so that silence is known before somebody asks.
	askEvery = 2 * time.Second
)

// Contact is that of one peer.
type Contact struct {
	// Engine tells how far the journal goes. It fails if most of the nodes that keep it are away, also while nothing is
	// written, when nothing else would show it.
	Engine interface {
		Head(context.Context) (journal.Index, error)
	}
	Log *slog.Logger
	// Pulse is how long pulses last without a sign of life.
	Pulse time.Duration

	// asking is held while the engine is asked.
	asking sync.Mutex

	mutex sync.Mutex
	// head and err are what it said at a time, good is when it last answered.
	head     terms.Index
	err      error
	at, good time.Time
	// doubt is until when the end of a pulse says nothing about who had it.
	doubt time.Time
}

// Head asks the engine how far the journal goes, unless it has just said so.
func (c *Contact) Head(ctx context.Context) (terms.Index, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if head, err, known := c.known(); known {
		return head, err
	}
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	head, err := c.Engine.Head(short)
	if ctx.Err() != nil {
		return 0, ctx.Err() // that says nothing of the engine
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.tell(err)
	now := time.Now()
	if err == nil {
		if c.missed(now) {
			c.doubt = now.Add(c.Pulse)
		}
		c.good = now
	}
	c.head, c.err, c.at = terms.Index(head), err, now
	return c.head, err
}

// missed tells whether the engine has given no answer for as long as pulses last, or this process has stood still and
// heard none. Pulses may have ended then for no other reason than that nobody could keep them.
func (c *Contact) missed(now time.Time) bool {
	return !c.good.IsZero() && now.Sub(c.good) > max(c.Pulse, 2*askEvery)
}

// Doubt returns until when the end of a pulse says nothing about the peer that had it: after a silence each has the
// time of a pulse to make its own anew. It is zero, or over, otherwise.
func (c *Contact) Doubt() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if now := time.Now(); c.missed(now) {
		return now.Add(c.Pulse)
	}
	return c.doubt
}

func (c *Contact) known() (head terms.Index, err error, known bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.head, c.err, !c.at.IsZero() && time.Since(c.at) < ageMax
}

// tell logs that the engine has fallen silent, or answers again.
func (c *Contact) tell(err error) {
	switch {
	case err != nil && c.err == nil:
		c.Log.Error("the journal does not answer: nothing can be changed; what runs goes on, "+
			"but instances with stop_after (stateful: 30 s) end by themselves", "error", err)
	case err == nil && c.err != nil:
		c.Log.Info("the journal answers again", "silent", time.Since(c.good).Round(time.Second).String())
	}
}

// Silence returns when the engine answered last, and why it does not now; a zero time if it does.
func (c *Contact) Silence() (since time.Time, why error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err == nil {
		return time.Time{}, nil
	}
	return c.good, c.err
}

// Keep asks again and again, until ctx ends.
func (c *Contact) Keep(ctx context.Context) {
	c.mutex.Lock()
	c.good = time.Now()
	c.mutex.Unlock()
	for ctx.Err() == nil {
		_, _ = c.Head(ctx) // tell and Silence say what came of it
		select {
		case <-ctx.Done():
		case <-time.After(askEvery):
		}
	}
}
