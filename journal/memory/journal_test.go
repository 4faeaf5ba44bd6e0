package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"starling/journal"
	"starling/journal/journaltest"
	"starling/journal/memory"
)

func TestContract(t *testing.T) {
	journaltest.Run(t, start)
}

func start(testing.TB) journaltest.Harness {
	first := memory.New()
	return journaltest.Harness{
		Open:       func(testing.TB) journal.Journal { return first.Open() },
		PulseTTL:   100 * time.Millisecond,
		PulseSlack: time.Second,
	}
}

// TestSimulatedClock has an abandoned pulse end exactly when its time to live is over.
func TestSimulatedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 5 * time.Second
		j := memory.New()
		p, err := j.Pulse(t.Context(), "p", ttl, false)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan time.Time)
		go func() {
			for s := range states(t, j) {
				if !s.Alive {
					ended <- time.Now()
				}
			}
		}()
		synctest.Wait()
		abandoned := time.Now()
		p.Abandon()
		if got := (<-ended).Sub(abandoned); got != ttl {
			t.Errorf("it ended after %v, want %v", got, ttl)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// states yields what a watch of pulse "p" shows, until the journal is closed.
func states(t *testing.T, j journal.Journal) <-chan journal.PulseState {
	shown := make(chan journal.PulseState)
	go func() {
		defer close(shown)
		_ = j.WatchPulse(t.Context(), "p", func(s journal.PulseState) { shown <- s })
	}()
	return shown
}

func BenchmarkJournal(b *testing.B) {
	journaltest.Benchmark(b, start)
}

// TestHistory checks the answers of writers and readers at once, with nothing to disturb them.
func TestHistory(t *testing.T) {
	journaltest.History(t, start(t), func() {})
}
