package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestEnough ends what is imagined for a request when its time is over, or its caller has gone.
func TestEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		timed, gone := enough(t.Context()), enough(ctx)
		if timed() || gone() {
			t.Error("it is enough at once")
		}
		cancel()
		if timed() || !gone() {
			t.Error("a caller that has gone is waited for, or one that has not is given up")
		}
		<-time.After(imaginedWithin)
		if !timed() {
			t.Errorf("it is not enough after %v", imaginedWithin)
		}
	})
}
