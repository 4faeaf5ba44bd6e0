// Package journal is the total order as a port: an append-only sequence of records that every reader
// sees alike, and the pulses by which peers show that they live.
//
// It moves bytes and knows nothing of what they mean. Invariants, checked by journaltest for every backend:
//
//  1. Every record has an index; the first is 1 and there are no gaps.
//  2. All readers see the same records in the same order, however late or slow they read.
//  3. A record whose Append returned nil is never lost and never moves.
//  4. Appending the same (Writer, Seq) twice leaves one record: a resend is safe. That of a record that was trimmed may
//     be kept as another: readers pass over it, by its Seq.
//  5. Records of one writer appear in the order of their Seq if each was appended after the one before it returned.
//  6. A snapshot stands for all records up to its index once Trim has returned nil: those may be gone, and no other
//     record is. The records after it keep their indexes.
//  7. A pulse ends no earlier than its owner stopped renewing it, and within its time to live after that.
//  8. After a seal no record comes any more, at any reader, and no pulse is confirmed.
package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Index is the position of a record in the journal. The first record has index 1; 0 means before all.
type Index uint64

// PayloadBytesMax bounds one record's payload; Append refuses a larger one with ErrTooLarge.
const PayloadBytesMax = 1 << 20

// ValueBytesMax bounds what a pulse publishes; Publish refuses more with ErrTooLarge.
const ValueBytesMax = 1 << 10

// ChunkBytesMax bounds a chunk of a snapshot; PutChunk refuses a larger one with ErrTooLarge.
const ChunkBytesMax = 512 << 10

// nameBytesMax bounds the name of a writer or a pulse.
const nameBytesMax = 255

// Sentinels that callers tell apart.
var (
	// ErrTooLarge is returned for a payload above PayloadBytesMax. Nothing was appended.
	ErrTooLarge = errors.New("record is larger than the journal takes")
	// ErrName is returned for a writer or pulse whose name no backend takes. Nothing was done.
	ErrName = errors.New(`name must be 1 to 255 bytes without "/"`)
	// ErrPulseTaken is returned when a pulse to be created exists already: another process has that identity.
	ErrPulseTaken = errors.New("a pulse with this identity exists already")
	// ErrNoPulse is returned when a pulse to be adopted has ended, or one to be published is no longer its owner's.
	ErrNoPulse = errors.New("no pulse with this identity exists")
	// ErrTrimmed ends a Follow to which records are missing that were trimmed: read the snapshot, follow from behind it.
	ErrTrimmed = errors.New("records were trimmed that are wanted here: a snapshot stands for them")
	// ErrNoChunk is returned for a chunk that is not there: it was never put, or a later snapshot stands by now.
	ErrNoChunk = errors.New("the journal has no such chunk of a snapshot")
	// ErrSealed is returned for a record that comes after the seal, and never will be appended; it ends a Follow that has
	// delivered all there is; and a pulse that is to be confirmed proves nothing any more.
	ErrSealed = errors.New("the journal is sealed: it goes on elsewhere")
	// ErrAhead is returned when a snapshot is to stand for records that the journal does not have. Nothing was trimmed.
	ErrAhead = errors.New("the snapshot is ahead of the journal")
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("journal is closed")
)

// Record is one element of the journal.
type Record struct {
	Index Index
	// Writer and Seq identify the record: a resend has the same. Writer is 1 to 255 bytes without "/".
	Writer string
	// Seq only grows for one writer; gaps are allowed.
	Seq uint64
	// Payload is never changed by anybody once handed over.
	Payload []byte
}

// Snapshot is what stands for the records up to an index.
type Snapshot struct {
	// Index is that of the last record it stands for, 0 if there is no snapshot.
	Index Index
	// Chunks is how many chunks it is kept in, numbered from 0.
	Chunks uint32
	// Sum is the SHA-256 of the chunks, one after the other.
	Sum [sha256.Size]byte
}

// Seal is the end of a journal that goes on elsewhere; the zero value is of one that has none.
type Seal struct {
	// Index is that of the last record.
	Index Index
	// To says, for people, where the journal goes on. It is never empty.
	To string
}

// Check returns ErrName or ErrTooLarge for a record that no journal takes.
func (r Record) Check() error {
	if err := CheckName(r.Writer); err != nil {
		return fmt.Errorf("record %d of writer: %w", r.Seq, err)
	}
	if len(r.Payload) > PayloadBytesMax {
		return fmt.Errorf("record %s/%d has %d bytes, at most %d: %w", r.Writer, r.Seq, len(r.Payload), PayloadBytesMax,
			ErrTooLarge)
	}
	return nil
}

// CheckName returns ErrName for what cannot name a writer or a pulse.
func CheckName(name string) error {
	if name == "" || len(name) > nameBytesMax || strings.Contains(name, "/") {
		return fmt.Errorf("%q: %w", name, ErrName)
	}
	return nil
}

// Journal is safe for concurrent use.
type Journal interface {
	// Append makes the record durable at some index and returns nil, or returns an error. Index is ignored.
	// After any error but ErrTooLarge, ErrName, ErrSealed and ErrClosed it is unknown whether the record was appended:
	// append the same record again until nil.
	Append(ctx context.Context, r Record) error

	// Follow calls deliver with every record from index from on (from 0 and 1 mean all), in order, without gap or
	// repeat, in batches of at least one. It blocks until ctx ends or deliver returns an error, and returns that
	// error; outages of the engine are waited out. A slow deliver slows only this reader, and loses nothing. It returns
	// ErrTrimmed when the next record to deliver was trimmed, and ErrSealed when none will come any more.
	Follow(ctx context.Context, from Index, deliver func([]Record) error) error

	// Head returns the index of the last record known to be durable, 0 for an empty journal. It is
	// linearizable: a record whose Append returned before Head was called is counted.
	Head(ctx context.Context) (Index, error)

	// PutChunk keeps a chunk of a snapshot, which Index and Sum name; it replaces one of the same number, and touches no
	// other snapshot of the same Index. Chunks are kept until a later snapshot stands.
	PutChunk(ctx context.Context, s Snapshot, number uint32, chunk []byte) error

	// Chunk returns a chunk, or ErrNoChunk.
	Chunk(ctx context.Context, s Snapshot, number uint32) ([]byte, error)

	// Trim lets a snapshot whose chunks were put stand for all records up to its index, and deletes those, and what was
	// put for earlier snapshots. It returns ErrNoChunk if a chunk is missing and ErrAhead if the index is above the head;
	// into a journal that never had a record it may go at any index, and the first record comes after it. Where a later
	// snapshot stands, that one stays. After another error call it again: the snapshot may stand already.
	Trim(ctx context.Context, s Snapshot) error

	// Snapshot returns the snapshot that stands, one of index 0 if there is none.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Pulse creates the pulse of id (adopt false; ErrPulseTaken if there is one) or takes over an existing one
	// without a moment in which it ended (adopt true; ErrNoPulse if there is none), and keeps renewing it until
	// it is ended, abandoned or lost. An adopted pulse keeps its value; its former owner, should it still run,
	// finds it lost. The id is 1 to 255 bytes without "/".
	Pulse(ctx context.Context, id string, ttl time.Duration, adopt bool) (Pulse, error)

	// WatchPulse calls changed with the present state of id's pulse at once and after every change, until ctx
	// ends; it returns ctx's error. Changes that come while changed runs may be merged into the latest, but an
	// end is never skipped. During an outage of the engine nothing is called: silence is not death.
	WatchPulse(ctx context.Context, id string, changed func(PulseState)) error

	// Pulses lists the live pulses, ordered by ID.
	Pulses(ctx context.Context) ([]PulseState, error)

	// Cluster returns the id of the cluster whose journal this is, "" if it has none. One that has none takes the proposed
	// id, unless that is ""; of several proposals the first one stays for ever.
	Cluster(ctx context.Context, proposed string) (id string, err error)

	// Seal ends the journal for ever, and says where it goes on; with to "" it only asks. Of several seals the first one
	// stays. It returns the seal, the zero value if there is none.
	Seal(ctx context.Context, to string) (Seal, error)

	// Room tells how full the engine is: of its members that answer, the fullest.
	Room(ctx context.Context) (Room, error)

	// Close releases what the journal holds. Pulses owned by this process are abandoned, not ended.
	Close() error
}

// Room is how much the engine holds, and may hold, in bytes. Quota is 0 if nothing bounds it that it knows of.
type Room struct{ Used, Quota int64 }

// fullPercent is how much of the quota may be used before work that is new is refused: snapshots, which let the journal
// be trimmed, and reports need what is left.
const fullPercent = 80

// Full tells whether what is left is for snapshots and reports.
func (r Room) Full() bool { return r.Quota > 0 && r.Used/fullPercent >= r.Quota/100 }

// PulseState is what a pulse shows.
type PulseState struct {
	ID    string
	Alive bool
	// Value is what the owner published last; nil when not alive or nothing was published.
	Value []byte
}

// Pulse is one's own sign of life. It is safe for concurrent use.
type Pulse interface {
	// Publish replaces the pulse's value, at most ValueBytesMax. It returns ErrNoPulse when the pulse has ended,
	// was abandoned, or is another's.
	Publish(ctx context.Context, value []byte) error
	// Confirm returns nil if the pulse was alive and its owner's at some moment after the call. It returns ErrNoPulse if
	// it is not, and ErrSealed if the journal may have been sealed by then; after any other error that is not known.
	Confirm(ctx context.Context) error
	// Lost is closed when the pulse has ended although its owner did not end it: it could not be renewed in time,
	// or another has adopted it.
	Lost() <-chan struct{}
	// End deletes the pulse at once: watchers see it gone. To end one that is no longer one's own does nothing.
	End(ctx context.Context) error
	// Abandon stops renewing without deleting, as a crash would: the pulse lives until its time to live is over.
	Abandon()
}

// CheckChunk returns ErrTooLarge for a chunk that no journal takes.
func CheckChunk(s Snapshot, number uint32, chunk []byte) error {
	if len(chunk) > ChunkBytesMax {
		return fmt.Errorf("chunk %d of the snapshot at %d has %d bytes, at most %d: %w", number, s.Index, len(chunk),
			ChunkBytesMax, ErrTooLarge)
	}
	return nil
}
