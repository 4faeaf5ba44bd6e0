// Package inflight bounds the requests that are open at a time, and what their bodies hold, so that nobody who may ask
// takes the memory of a peer: one connection carries many requests.
package inflight

import (
	"errors"
	"fmt"
	"sync"
)

// Share is what the requests of a key may have together.
type Share struct {
	Key string
	// Requests bounds those that are open, Bytes what has come of their bodies.
	Requests, Bytes int
}

// ErrFull is the reason why a request, or more of its body, has no place.
var ErrFull = errors.New("too many requests")

// Counter counts the open requests of a peer. The zero value has none.
type Counter struct {
	mu   sync.Mutex
	used map[string]use // by Share.Key
}

type use struct{ requests, bytes int }

// Request is one that counts until it ends. A nil one has no bounds.
type Request struct {
	of     *Counter
	shares []Share
	bytes  int
}

// Begin counts a request. The error is an ErrFull that says what is full.
func (c *Counter) Begin(shares ...Share) (*Request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range shares {
		if c.used[s.Key].requests >= s.Requests {
			return nil, fmt.Errorf("%w of %s are open at this peer: it answers %d at a time; close some, or wait",
				ErrFull, s.Key, s.Requests)
		}
	}
	c.add(shares, use{requests: 1})
	return &Request{of: c, shares: shares}, nil
}

// Take counts more bytes of the body, as long as the request is open. Beyond a bound it counts nothing.
func (r *Request) Take(bytes int) error {
	if r == nil {
		return nil
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	for _, s := range r.shares {
		if r.of.used[s.Key].bytes+bytes > s.Bytes {
			return fmt.Errorf("%w of %s are open at this peer: it takes %d MiB at a time; send less, or wait",
				ErrFull, s.Key, s.Bytes>>20)
		}
	}
	r.bytes += bytes
	r.of.add(r.shares, use{bytes: bytes})
	return nil
}

// End gives back all that the request counts.
func (r *Request) End() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.add(r.shares, use{-1, -r.bytes})
}

// add is called with the lock.
func (c *Counter) add(shares []Share, more use) {
	if c.used == nil {
		c.used = map[string]use{}
	}
	for _, s := range shares {
		now := use{c.used[s.Key].requests + more.requests, c.used[s.Key].bytes + more.bytes}
		if c.used[s.Key] = now; now.requests == 0 {
			delete(c.used, s.Key)
		}
	}
}
