package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"starling/api/wire"
	"starling/peer"
)

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, OK},
		{errors.New("x"), Failed},
		{fmt.Errorf("x: %w", Fail(NotPlaced, "y")), NotPlaced},
		{Silent(42), 42},
		{context.DeadlineExceeded, Timeout},
		{&wire.Failure{Code: wire.Invalid}, Usage},
		{fmt.Errorf("x: %w", &wire.Failure{Code: wire.Conflict}), Conflict},
		{&wire.Failure{Code: wire.Unavailable}, Unreachable},
		{&wire.Failure{Code: wire.Unknown}, Unknown},
		{&wire.Failure{Code: wire.Denied}, Denied},
		{fmt.Errorf("stopped: %w", peer.ErrProgram), Outdated},
		{&wire.Failure{Code: wire.NotFound}, Failed},
		{&wire.Failure{Code: wire.Internal}, Failed},
	} {
		if got := StatusOf(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}
