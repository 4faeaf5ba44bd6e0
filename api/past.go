package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/replica/report"
	"starling/terms"
)

// Archive is the past of a peer. Errors with a method Refusal tell that it does not have what is asked for.
type Archive interface {
	// At returns the value at an index, as a copy of the caller's own.
	At(ctx context.Context, index terms.Index) (*cluster.State, error)
	// IndexAt returns the last index of which the value's time is not after a time; now is the present time.
	IndexAt(at, now time.Time) (terms.Index, error)
	// Oldest returns the oldest index from which all entries up to another are there.
	Oldest(to terms.Index) (terms.Index, error)
	// Walk folds the entries behind an index up to another, and visits each with what it did and the value after it, which
	// is only to be read.
	Walk(ctx context.Context, from, to terms.Index, visit func(*cluster.State, *report.Folded) error) error
	// Export writes the value at an index and the records behind it up to another, as one file.
	Export(ctx context.Context, from, to terms.Index, w io.Writer) error
}

// moment is what a request asks about: an index, or a time if that is not zero.
type moment struct {
	index terms.Index
	at    time.Time
}

// momentOf reads "4711", or a time as RFC 3339 has it.
func momentOf(text, field string) (moment, error) {
	if index, err := strconv.ParseUint(text, 10, 63); err == nil {
		return moment{index: terms.Index(index)}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return moment{}, invalid("the request", terms.Problem{Path: field,
			Reason: fmt.Sprintf("must be an index such as 4711, or a time such as 2006-01-02T15:04:05Z, is %q", text)})
	}
	return moment{at: at}, nil
}

// momentKey finds the moment of a request about the past.
type momentKey struct{}

// isPast tells whether a request is about the past.
func isPast(ctx context.Context) bool { return ctx.Value(momentKey{}) != nil }

// pasts lets requests be about the past, if they say so in the header wire.AtHeader.
type pasts struct{}

// WrapUnary does so for procedures with one answer.
func (pasts) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		ctx, err := withMoment(ctx, request.Header(), request.Spec())
		if err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

// WrapStreamingHandler does so for procedures with a stream of answers.
func (pasts) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		ctx, err := withMoment(ctx, conn.RequestHeader(), conn.Spec())
		if err != nil {
			return err
		}
		return next(ctx, conn)
	}
}

// WrapStreamingClient does nothing: this is a server.
func (pasts) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// withMoment adds the moment that a request asks about. Only what reads the value knows of a past.
func withMoment(ctx context.Context, header http.Header, spec connect.Spec) (context.Context, error) {
	text := header.Get(wire.AtHeader)
	if text == "" {
		return ctx, nil
	}
	switch {
	case spec.IdempotencyLevel != connect.IdempotencyNoSideEffects:
		return ctx, &wire.Failure{Code: wire.Invalid, Reason: "the past cannot be changed: leave out --at"}
	case spec.Procedure == starlingv1connect.StarlingLogsProcedure,
		spec.Procedure == starlingv1connect.StarlingOutputProcedure,
		spec.Procedure == starlingv1connect.StarlingInfoProcedure:
		return ctx, &wire.Failure{Code: wire.Invalid,
			Reason: "this is not part of the value that is archived: leave out --at"}
	}
	m, err := momentOf(text, wire.AtHeader)
	return context.WithValue(ctx, momentKey{}, m), err
}

// past returns the value of the past that a request asks about.
func (s *server) past(ctx context.Context, m moment) (*cluster.State, error) {
	index, archive, err := s.indexOf(m)
	if err != nil {
		return nil, err
	}
	state, err := archive.At(ctx, index)
	return state, archived(err)
}

// indexOf returns the index of a moment.
func (s *server) indexOf(m moment) (terms.Index, Archive, error) {
	archive := s.backend.Archive()
	if archive == nil {
		return 0, nil, &wire.Failure{Code: wire.NotFound, Decided: true, Reason: "this peer keeps no archive: " +
			"start `starling dev` with --data, or the agent with archive.bytes, and ask for what comes from then on"}
	}
	if m.at.IsZero() {
		return m.index, archive, nil
	}
	index, err := archive.IndexAt(m.at, time.Now())
	return index, archive, archived(err)
}

// archived returns what an error of an archive means to who asked.
func archived(err error) error {
	var refused interface {
		error
		Refusal() facts.Refusal
	}
	if errors.As(err, &refused) {
		return wire.Refused(0, refused.Refusal())
	}
	return err
}
