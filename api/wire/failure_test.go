package wire_test

import (
	"errors"
	"reflect"
	"testing"

	"connectrpc.com/connect"

	"starling/api/wire"
	"starling/cluster/facts"
	"starling/terms"
)

func TestFailureComesBack(t *testing.T) {
	codes := []wire.Code{
		wire.Invalid, wire.NotFound, wire.Conflict, wire.Denied, wire.Exhausted, wire.Unavailable, wire.Unknown,
		wire.Canceled, wire.Internal,
	}
	for _, code := range codes {
		sent := &wire.Failure{Code: code, Reason: "why", Index: 7, Problems: []terms.Problem{{Path: "a", Reason: "b"}},
			Decided: true}
		if got := wire.FailureOf(sent.Wire()); !reflect.DeepEqual(got, sent) {
			t.Errorf("got %+v, want %+v", got, sent)
		}
	}
}

func TestRefusalsHaveCodes(t *testing.T) {
	for code := facts.Invalid; code <= facts.Unavailable; code++ {
		failure := wire.Refused(7, facts.Refusal{Code: code, Reason: "why"})
		if got := failure.Wire().Code(); got == connect.CodeInternal {
			t.Errorf("refusal %s: got %s, want a code of its own", code, got)
		}
	}
}

func TestFailureOfOthers(t *testing.T) {
	cases := []struct {
		err  error
		want wire.Code
	}{
		{connect.NewError(connect.CodeDeadlineExceeded, errors.New("late")), wire.Canceled},
		{connect.NewError(connect.CodeUnimplemented, errors.New("what")), wire.Invalid},
		{connect.NewError(connect.CodeUnknown, errors.New("what")), wire.Internal},
		{errors.New("plain"), wire.Internal},
	}
	for _, c := range cases {
		if got := wire.FailureOf(c.err); got.Code != c.want || got.Decided {
			t.Errorf("%v: got %+v, want code %s, not decided", c.err, got, c.want)
		}
	}
	if got := wire.FailureOf(nil); got != nil {
		t.Errorf("got %+v for no error", got)
	}
}
