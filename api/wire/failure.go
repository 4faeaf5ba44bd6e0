package wire

import (
	"errors"
	"io"

	"connectrpc.com/connect"

	starlingv1 "starling/api/v1"
	"starling/cluster/facts"
	"starling/terms"
)

// Code classifies what can go wrong with a request, in one word. It is cluster.Code as the edges see it, with what
// only edges meet.
type Code string

// The codes.
const (
	// Invalid: what was asked for can never be done so. NotFound: it is about something that is not there.
	Invalid  Code = "invalid"
	NotFound Code = "not_found"
	// Conflict: it does not go with how things stand. Denied: its author may not.
	Conflict Code = "conflict"
	Denied   Code = "denied"
	// Exhausted: it is beyond a limit. Unavailable: it may succeed later, or at another peer.
	Exhausted   Code = "exhausted"
	Unavailable Code = "unavailable"
	// Unknown: it may have been done, or may still be; asked again with the same request_id it is done once.
	Unknown Code = "unknown"
	// Canceled: who asked went away, or his time was up. Internal: a bug.
	Canceled Code = "canceled"
	Internal Code = "internal"
)

// codes is the one table between the codes and those of the protocol; of several codes of the protocol for one of
// ours, the first is sent.
func codes() []struct {
	ours   Code
	theirs connect.Code
} {
	return []struct {
		ours   Code
		theirs connect.Code
	}{
		{Invalid, connect.CodeInvalidArgument}, {Invalid, connect.CodeOutOfRange}, {Invalid, connect.CodeUnimplemented},
		{NotFound, connect.CodeNotFound},
		{Conflict, connect.CodeAborted}, {Conflict, connect.CodeAlreadyExists}, {Conflict, connect.CodeFailedPrecondition},
		{Denied, connect.CodePermissionDenied}, {Denied, connect.CodeUnauthenticated},
		{Exhausted, connect.CodeResourceExhausted},
		{Unknown, connect.CodeUnavailable}, {Unavailable, connect.CodeUnavailable},
		{Canceled, connect.CodeCanceled}, {Canceled, connect.CodeDeadlineExceeded},
		{Internal, connect.CodeInternal},
	}
}

// Failure is an error of the API with all that it tells.
type Failure struct {
	Code   Code
	Reason string
	// Index is the entry with which a command was refused, or what the peer has reached; 0 if neither is known.
	Index terms.Index
	// Problems are all that is wrong with what was sent.
	Problems []terms.Problem
	// Decided tells that a peer has answered so; otherwise it comes from on the way.
	Decided bool
}

// Error returns the reason.
func (f *Failure) Error() string { return f.Reason }

// Refused returns the failure of a command that the fold refused at the index.
func Refused(index terms.Index, refusal facts.Refusal) *Failure {
	return &Failure{Code: Code(refusal.Code.String()), Reason: refusal.Reason, Index: index, Decided: true}
}

// Wire returns the failure as the protocol carries it.
func (f *Failure) Wire() *connect.Error {
	theirs := connect.CodeInternal
	for _, pair := range codes() {
		if pair.ours == f.Code {
			theirs = pair.theirs
			break
		}
	}
	sent := connect.NewError(theirs, errors.New(f.Reason))
	detail, err := connect.NewErrorDetail(&starlingv1.ErrorDetail{
		Code: string(f.Code), Index: uint64(f.Index), Problems: Problems(f.Problems),
	})
	if err == nil { // it fails only for what is not a message
		sent.AddDetail(detail)
	}
	return sent
}

// FailureOf returns what an error of a call tells; nil for none.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	if own := (*Failure)(nil); errors.As(err, &own) {
		return own // it has not gone over the wire
	}
	received := (*connect.Error)(nil)
	if !errors.As(err, &received) {
		return &Failure{Code: Internal, Reason: err.Error()}
	}
	if errors.Is(received, io.ErrUnexpectedEOF) && !connect.IsWireError(err) {
		return &Failure{Code: Unavailable, Reason: "the connection broke off in the middle of an answer"}
	}
	failure := &Failure{Code: Internal, Reason: received.Message()}
	for _, pair := range codes() {
		if pair.theirs == received.Code() {
			failure.Code = pair.ours
		}
	}
	for _, one := range received.Details() {
		value, err := one.Value()
		if err != nil {
			continue // a detail of a newer program: the reason says enough
		}
		if detail, ok := value.(*starlingv1.ErrorDetail); ok {
			failure.Decided = true
			failure.Code = Code(detail.GetCode())
			failure.Index = terms.Index(detail.GetIndex())
			for _, p := range detail.GetProblems() {
				failure.Problems = append(failure.Problems, terms.Problem{Path: p.GetPath(), Reason: p.GetReason()})
			}
		}
	}
	return failure
}
