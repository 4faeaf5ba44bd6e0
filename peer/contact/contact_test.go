package contact

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/journal"
)

type engine struct{ err error }

func (e *engine) Head(ctx context.Context) (journal.Index, error) {
	if e.err != nil {
		<-ctx.Done() // as an engine without quorum
		return 0, e.err
	}
	return 7, nil
}

// TestSilence is known without anybody who asks, and is over when the engine answers again; each is told once.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, text := &engine{}, &strings.Builder{}
		c := &Contact{Engine: e, Log: slog.New(slog.NewTextHandler(text, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		go c.Keep(ctx)
		synctest.Wait()
		if since, why := c.Silence(); why != nil || !since.IsZero() {
			t.Errorf("got silence since %v because of %v, want none", since, why)
		}
		good := time.Now()
		e.err = errors.New("no quorum")
		<-time.After(time.Minute)
		if since, why := c.Silence(); !errors.Is(why, e.err) || since != good {
			t.Errorf("got silence since %v because of %v, want since %v because of %v", since, why, good, e.err)
		}
		e.err = nil
		<-time.After(2*askEvery + timeout)
		if _, why := c.Silence(); why != nil {
			t.Errorf("got silence because of %v, want none", why)
		}
		cancel()
		synctest.Wait()
		if told := text.String(); strings.Count(told, "does not answer") != 1 || strings.Count(told, "answers again") != 1 {
			t.Errorf("got told %s, want each once", told)
		}
	})
}
