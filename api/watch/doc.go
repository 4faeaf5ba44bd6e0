// Package watch tells programs what there is in the cluster, and what changes with every entry: jobs, their updates,
// instances and endpoints, nodes and pools.
//
// A change is what differs between the values before and after an entry, so every peer tells the same of the same
// index. While somebody reads, one goroutine folds what the peer folds into a value of its own, compares, and keeps
// the changes of the latest entries; the peer's loop does nothing for it. Readers go at their own pace. One that falls
// behind what is kept is ended, and may go on by the archive.
package watch

import (
	"context"
	"time"

	starlingv1 "starling/api/v1"
	"starling/cluster"
	"starling/replica/report"
	"starling/terms"
)

// Backend is what a feed needs of a peer.
type Backend interface {
	// State returns the value at index least or later, as a copy of the caller's own; it waits for it until ctx ends.
	State(ctx context.Context, least terms.Index) (*cluster.State, error)
	// Follow calls visit with every folded entry from the index on, or from the oldest that is remembered, until ctx
	// ends or visit returns an error, which it returns.
	Follow(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error
}

// Past is what a feed needs of an archive.
type Past interface {
	// At returns the value at an index, as a copy of the caller's own.
	At(ctx context.Context, index terms.Index) (*cluster.State, error)
	// Walk visits the entries behind an index up to another.
	Walk(ctx context.Context, from, to terms.Index, visit func(*cluster.State, *report.Folded) error) error
}

// Limits of what is kept for readers, and of what one may take.
const (
	// entriesMax and changesMax bound what a feed keeps; the changes of the latest entry are kept however many.
	entriesMax, changesMax = 4096, 1 << 15
	// replaysMax bounds the readers that read the archive at a time, replayTimeMax how long one may.
	replaysMax    = 4
	replayTimeMax = 2 * time.Minute
	// bookmarkAfter is how long a stream is quiet before a bookmark.
	bookmarkAfter = 10 * time.Second
)

// Send passes a response on to a reader.
type Send func(*starlingv1.WatchResponse) error
