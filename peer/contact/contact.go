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

	// asking is held while the engine is asked.
	asking sync.Mutex

	mutex sync.Mutex
	// head and err are what it said at a time, good is when it last answered.
	head     terms.Index
	err      error
	at, good time.Time
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
	c.head, c.err, c.at = terms.Index(head), err, time.Now()
	if err == nil {
		c.good = c.at
	}
	return c.head, err
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
		c.Log.Error("the journal does not answer: nothing can be changed, and what runs goes on", "error", err)
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
