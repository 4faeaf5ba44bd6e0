package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"starling/api/wire"
)

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("x"), exitFailed},
		{fmt.Errorf("x: %w", fail(exitNotPlaced, "y")), exitNotPlaced},
		{silent(42), 42},
		{context.DeadlineExceeded, exitTimeout},
		{&wire.Failure{Code: wire.Invalid}, exitUsage},
		{fmt.Errorf("x: %w", &wire.Failure{Code: wire.Conflict}), exitConflict},
		{&wire.Failure{Code: wire.Unavailable}, exitUnreachable},
		{&wire.Failure{Code: wire.Denied}, exitDenied},
		{&wire.Failure{Code: wire.NotFound}, exitFailed},
		{&wire.Failure{Code: wire.Internal}, exitFailed},
	} {
		if got := statusOf(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}
