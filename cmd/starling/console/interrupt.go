package console

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Attached returns a context that ends with the first Ctrl-C or SIGTERM, and with the timeout if there is one; the
// second signal ends the process as usual. interrupted tells whether it was a signal.
func Attached(ctx context.Context, timeout time.Duration) (following context.Context, interrupted func() bool,
	release func()) {
	following, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	signals := following
	context.AfterFunc(signals, stop)
	cancel := stop
	if timeout > 0 {
		following, cancel = context.WithTimeout(following, timeout)
	}
	return following, func() bool { return signals.Err() != nil && ctx.Err() == nil }, func() { cancel(); stop() }
}
