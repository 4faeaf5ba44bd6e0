package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/terms"
)

const (
	// resumeMax is how long a stream that broke is begun again without anything new: an agent that restarts is back.
	resumeMax   = 30 * time.Second
	resumePause = 200 * time.Millisecond
)

// TailJournal visits entries until there are no more, visit returns an error, or, if it follows, until ctx ends. If it
// follows, a connection that breaks is made again, to any of the peers, for half a minute; the entries go on with the
// next. Otherwise, and after that, it is an error.
func (c *Client) TailJournal(
	ctx context.Context, request *starlingv1.TailJournalRequest, visit func(*starlingv1.TailJournalResponse) error,
) error {
	next, refused := uint64(0), error(nil)
	return c.resume(ctx, func() (moved bool, err error) {
		request.MinIndex = c.least(request.MinIndex)
		if next != 0 {
			request.From, request.Last = next, 0
		}
		err = stream(ctx, c, streamCall[starlingv1.TailJournalRequest, starlingv1.TailJournalResponse]{
			request: request, method: starlingv1connect.StarlingClient.TailJournal,
			visit: func(answer *starlingv1.TailJournalResponse) error {
				if answer.GetEntry() != nil {
					next = answer.GetEntry().GetIndex() + 1
				}
				moved = true
				refused = visit(answer)
				return refused
			},
		})
		return moved, final(err, refused != nil || !request.GetFollow() || next == 0)
	})
}

// Logs visits pieces of output; the first has no data and says whose output it is. If it follows from the beginning, a
// connection that breaks is made again, to any of the peers, for half a minute, and the output goes on where it was.
func (c *Client) Logs(
	ctx context.Context, request *starlingv1.LogsRequest, visit func(*starlingv1.LogsResponse) error,
) error {
	f, lost := &logFollower{visit: visit, seen: sha256.New()}, false
	for rest := request; ; rest = request {
		err := c.resume(ctx, func() (moved bool, err error) {
			if rest = request; f.allocation != "" && !f.ended && !lost {
				rest = &starlingv1.LogsRequest{Allocation: f.allocation, Stream: request.GetStream(), Follow: true}
			}
			rest.MinIndex = c.least(rest.MinIndex)
			f.begin()
			err = stream(ctx, c, streamCall[starlingv1.LogsRequest, starlingv1.LogsResponse]{
				request: rest, method: starlingv1connect.StarlingClient.Logs, visit: f.take})
			// Where its machine is gone the instance is asked for next: it may go on elsewhere.
			failure := wire.FailureOf(err)
			lost = failure != nil && failure.Decided && rest != request
			return f.moved, final(err, f.refused || !request.GetFollow() || request.TailBytes != nil || f.allocation == "")
		})
		if err != nil || rest == request || request.GetAllocation() != "" {
			return err
		}
		f.ended = true // and the allocations that follow it are still to come
	}
}

// errFinal wraps what ends a stream that is not to be begun again.
type errFinal struct{ error }

func final(err error, isFinal bool) error {
	if err != nil && isFinal {
		return errFinal{err}
	}
	return err
}

// resume calls again what broke, until nothing new has come of it for resumeMax; moved tells that something has.
func (c *Client) resume(ctx context.Context, call func() (moved bool, err error)) error {
	for since := time.Now(); ; {
		moved, err := call()
		ends := errFinal{}
		switch failure := (*wire.Failure)(nil); {
		case errors.As(err, &ends):
			return ends.error
		case ctx.Err() != nil, !errors.As(err, &failure), failure.Code != wire.Unavailable && failure.Code != wire.Unknown:
			return err
		case moved:
			since = time.Now()
		case time.Since(since) > resumeMax:
			return err
		}
		pause(ctx, resumePause)
	}
}

// logFollower passes on the output of allocations, and of one that is sent again only what it had not.
type logFollower struct {
	visit func(*starlingv1.LogsResponse) error
	// allocation is the one whose output came last; ended tells that all of it has come.
	allocation string
	ended      bool
	// seen has the bytes of it that were passed on, count is their number.
	seen  hash.Hash
	count int
	// again has those that were sent once more since the stream was begun anew, repeated is their number.
	again    hash.Hash
	repeated int
	// over tells that what comes now is of an allocation that was passed on before this one.
	over bool
	// moved tells that something new has come, refused that visit returned an error.
	moved, refused bool
}

func (f *logFollower) begin() { f.again, f.repeated, f.moved, f.over = sha256.New(), 0, false, false }

// take passes on what is new.
func (f *logFollower) take(piece *starlingv1.LogsResponse) error {
	if head := piece.GetAllocation(); head != "" {
		last, _ := terms.ParseAllocationID(f.allocation)
		next, _ := terms.ParseAllocationID(head)
		if f.over = next.Order < last.Order; f.over || head == f.allocation {
			return nil
		}
		f.allocation, f.ended, f.count, f.repeated = head, false, 0, 0
		f.seen.Reset()
		return f.pass(piece)
	}
	if f.over {
		return nil
	}
	if known := min(len(piece.Data), f.count-f.repeated); known > 0 {
		f.again.Write(piece.Data[:known])
		piece.Data, f.repeated = piece.Data[known:], f.repeated+known
		if f.repeated == f.count && !bytes.Equal(f.again.Sum(nil), f.seen.Sum(nil)) {
			f.refused = true
			return fmt.Errorf("the connection broke off, and the output of %s does not begin any more where it did", f.allocation)
		}
	}
	if len(piece.GetData()) == 0 {
		return nil
	}
	f.seen.Write(piece.GetData())
	f.count, f.repeated = f.count+len(piece.GetData()), f.count+len(piece.GetData())
	return f.pass(piece)
}

func (f *logFollower) pass(piece *starlingv1.LogsResponse) error {
	f.moved = true
	err := f.visit(piece)
	f.refused = err != nil
	return err
}
