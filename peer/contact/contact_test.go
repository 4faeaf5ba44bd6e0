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
	if err := e.err; err != nil {
		<-ctx.Done() // as an engine without quorum
		return 0, err
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

// TestDoubt has the ends of pulses say nothing after a silence, and while it lasts, until everybody had time to make a
// pulse anew. Shorter ones, and how often the engine is asked, change nothing.
func TestDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{}
		c := &Contact{Engine: e, Log: slog.New(slog.DiscardHandler), Pulse: 10 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		go c.Keep(ctx)
		wants := func(when string, doubted bool) {
			t.Helper()
			if got := c.Doubt().After(time.Now()); got != doubted {
				t.Errorf("%s the end of a pulse is doubted: %v, want %v", when, got, doubted)
			}
		}
		<-time.After(time.Minute + time.Second/2) // never at the same instant as the engine is asked
		wants("while the engine answers", false)
		e.err = errors.New("no quorum")
		<-time.After(3 * time.Second)
		e.err = nil
		wants("after a short silence", false)
		<-time.After(9 * time.Second)
		wants("after it", false)
		e.err = errors.New("no quorum")
		<-time.After(20 * time.Second)
		wants("while it is silent", true)
		e.err = nil
		<-time.After(askEvery + timeout)
		wants("when it answers again", true)
		<-time.After(6 * time.Second)
		wants("when that is longer ago than pulses last", false)
		cancel()
		synctest.Wait()
	})
}
