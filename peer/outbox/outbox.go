// Package outbox holds what a peer is to write. One entry is under way at a time; its requests are answered when it was
// folded.
package outbox

import (
	"errors"
	"fmt"

	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/replica/report"
	"starling/terms"
)

// Errors of a submission that never became an entry.
var (
	// ErrOverloaded tells that the outbox is full.
	ErrOverloaded = errors.New("this peer has too many requests waiting: try again in a moment")
	// ErrStopped tells that the peer has stopped.
	ErrStopped = errors.New("this peer has stopped")
	// ErrTooLarge tells that the command does not fit into an entry.
	ErrTooLarge = errors.New("the request is too large for one entry of the journal: make it smaller")
)

// ErrStalled tells that the journal has taken nothing for a while. What was under way may have become an entry, and
// that error wraps report.ErrUnknown; what only waited, or came later, will not.
var ErrStalled = errors.New("the journal takes no entries now: bring back most of what keeps it, and give it room")

// ErrNotTaken tells that a request is in no entry.
var ErrNotTaken = errors.New("this request was not taken")

// ErrOvertaken tells that the peer was so far behind that the entry was trimmed before it was read here.
var ErrOvertaken = fmt.Errorf("this peer was far behind the others; %w", report.ErrUnknown)

// requestsMax bounds the requests that wait in an outbox.
const requestsMax = 4096

// Request is a command that somebody waits for.
type Request struct {
	Command command.Command
	// Answer is called once, with the outcome or an error.
	Answer func(report.Receipt, error)
}

// Outbox holds what is to be written. One entry is under way at a time: the next is made when that was folded, so that
// reactions are computed on a value that knows it, and nothing is sent twice because of a retry.
type Outbox struct {
	waiting []Request
	// underway is the entry that was sent and not folded yet; nil if there is none.
	underway *command.Entry
	// reactions is how many of its commands were reactions; the rest belong to requests, in order.
	reactions int
	requests  []Request
	// Seq numbered the last entry.
	Seq uint64
	// Stalled is why no request is taken; nil while the journal takes entries.
	Stalled error
	// Room is how full the journal is: if it is, what would make the value larger is refused.
	Room journal.Room
}

// Next makes the next entry of reactions and waiting requests and returns its bytes, nil if there is nothing to write.
// Requests are held back unless open. The header has the rules in force; the entry gets what its commands need of them.
func (b *Outbox) Next(header command.Entry, reactions []command.Command, open bool) []byte {
	if open {
		b.refuseNewer(&header)
	}
	if b.underway != nil {
		return nil
	}
	e := header
	size := command.OverheadBytesMax
	for _, c := range reactions {
		size += command.Size(c)
		if size <= command.EntryBytesMax && len(e.Commands) < command.CommandsMax {
			e.Commands = append(e.Commands, c)
		}
	}
	b.reactions = len(e.Commands)
	for open && len(b.waiting) > 0 && len(e.Commands) < command.CommandsMax {
		size += command.Size(b.waiting[0].Command)
		if size > command.EntryBytesMax {
			break
		}
		e.Commands = append(e.Commands, b.waiting[0].Command)
		b.requests = append(b.requests, b.waiting[0])
		b.waiting = b.waiting[1:]
	}
	if len(e.Commands) == 0 {
		return nil
	}
	b.Seq++
	e.Seq, e.Rules = b.Seq, command.Needs(e.Commands)
	b.underway = &e
	return command.Encode(&e)
}

// refuseNewer answers the requests that wait with commands which the rules in force do not have.
func (b *Outbox) refuseNewer(header *command.Entry) {
	kept := b.waiting[:0]
	for _, r := range b.waiting {
		need := command.Needs([]command.Command{r.Command})
		if need <= header.Rules {
			kept = append(kept, r)
			continue
		}
		r.Answer(report.Receipt{Index: header.Cause, Refusal: facts.Refusal{Code: facts.Conflict, Reason: fmt.Sprintf(
			"%s needs version %d of the rules, which are at version %d: raise them with \"starling rules raise\" when the programs "+
				"of all peers know it", command.Plain(r.Command).Kind(), need, header.Rules)}}, nil)
	}
	b.waiting = kept
}

// Add takes a request, or refuses it.
func (b *Outbox) Add(r Request) {
	switch {
	case b.Stalled != nil:
		r.Answer(report.Receipt{}, fmt.Errorf("%w; %w", b.Stalled, ErrNotTaken))
	case b.Full() != "" && grows(r.Command):
		r.Answer(report.Receipt{Refusal: facts.Refusal{Code: facts.Exhausted, Reason: b.Full()}}, nil)
	case len(b.waiting) >= requestsMax:
		r.Answer(report.Receipt{}, ErrOverloaded)
	case command.Size(r.Command) > command.EntryBytesMax-1024:
		r.Answer(report.Receipt{}, ErrTooLarge)
	default:
		b.waiting = append(b.waiting, r)
	}
}

// IsUnderWay tells whether an entry was sent of which it is not known yet what came of it.
func (b *Outbox) IsUnderWay() bool { return b.underway != nil }

// Full says that the journal is full and what to do, "" if it is not.
func (b *Outbox) Full() string {
	if !b.Room.Full() {
		return ""
	}
	return fmt.Sprintf("the journal is full: %s of %s are in use, and the rest is kept for what trims it; "+
		"stop jobs that are not needed, or let its engine have more room (etcd.quota, or what a ZooKeeper has as quota)",
		terms.Memory.Round(b.Room.Used), terms.Memory.Round(b.Room.Quota))
}

// grows tells whether a command can make the value much larger.
func grows(c command.Command) bool {
	switch command.Plain(c).(type) {
	case *command.SubmitJob, *command.RevertJob, *command.ChangePools:
		return true
	}
	return false
}

// Folded takes note of an entry of this writer that was folded, and answers the requests that it carried. It may be
// another's who leads the same life: then the number is taken, and what is under way will never count. Last is the
// highest number that counted: a lower one never will.
func (b *Outbox) Folded(e *command.Entry, outcome *report.Outcome, last uint64) {
	if b.underway == nil || b.underway.Seq != e.Seq {
		return
	}
	own := e.Time == b.underway.Time && e.Cause == b.underway.Cause && len(e.Commands) == len(b.underway.Commands)
	if outcome.Dropped != "" || !own {
		b.TakeBack()
		b.Seq = max(b.Seq, last)
		return
	}
	for i, r := range b.requests { // none if it stalled
		result := outcome.Results[b.reactions+i]
		r.Answer(report.Receipt{Index: outcome.Index, Refusal: result.Refusal, Job: result.Job}, nil)
	}
	b.underway, b.requests, b.Stalled = nil, nil, nil
}

// Unreadable gives up an entry of this writer that nobody can decode: sent again it would be no better.
func (b *Outbox) Unreadable(seq uint64, err error) {
	if b.underway == nil || b.underway.Seq != seq {
		return
	}
	for _, r := range b.requests {
		r.Answer(report.Receipt{}, fmt.Errorf("the journal cannot hold this request: %w", err))
	}
	b.underway, b.requests, b.Stalled = nil, nil, nil
}

// Overtaken takes note that entries of this writer up to a number were folded by others, of which this peer never will
// learn what came of them.
func (b *Outbox) Overtaken(last uint64) {
	if b.underway == nil || b.underway.Seq > last {
		return
	}
	for _, r := range b.requests {
		r.Answer(report.Receipt{}, ErrOvertaken)
	}
	b.underway, b.requests, b.Stalled = nil, nil, nil
}

// TakeBack puts the requests of an entry that will never be taken in front of those that wait.
func (b *Outbox) TakeBack() {
	b.waiting = append(b.requests, b.waiting...)
	b.underway, b.requests, b.Stalled = nil, nil, nil
}

// Fail answers everybody who waits. What comes of the requests that are under way is not known.
func (b *Outbox) Fail(err error) {
	for _, r := range b.requests {
		r.Answer(report.Receipt{}, fmt.Errorf("%w; %w", err, report.ErrUnknown))
	}
	for _, r := range b.waiting {
		r.Answer(report.Receipt{}, fmt.Errorf("%w; %w", err, ErrNotTaken))
	}
	b.requests, b.waiting = nil, nil
}

// Stall answers everybody who waits, and whoever comes, until the entry is folded that the journal did not take.
func (b *Outbox) Stall(seq uint64, why error) {
	if b.underway == nil || b.underway.Seq != seq {
		return
	}
	b.Stalled = fmt.Errorf("%w (%w)", ErrStalled, why)
	b.Fail(b.Stalled)
}

// Waiting returns how many requests have no answer yet.
func (b *Outbox) Waiting() int { return len(b.requests) + len(b.waiting) }

// Sequence returns the number before the first of a process's start: starts are the upper half, entries the lower, so
// that a process which comes back under the same incarnation never uses a number again.
func Sequence(start uint32) uint64 { return uint64(start) << 32 }
