package journaltest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"starling/journal"
)

// besideRound is how many records are appended, and written by the bare client, in turn.
const besideRound = 500

// Beside measures appends by some writers beside what the engine's own client takes to write the same data, in turns,
// so that both see the same machine. The share is the rate of appends in that of the bare client.
func Beside(b *testing.B, j journal.Journal, writers int, bare func(number uint64, payload []byte) error) {
	payload := make([]byte, 256)
	var seq atomic.Uint64
	var ours, theirs time.Duration
	rounds := 0
	for b.Loop() {
		rounds++
		ours += atOnce(writers, func(w int) error {
			r := journal.Record{Writer: fmt.Sprintf("writer-%d", w), Seq: seq.Add(1), Payload: payload}
			return j.Append(b.Context(), r)
		})
		theirs += atOnce(writers, func(int) error { return bare(seq.Add(1), payload) })
	}
	each := func(d time.Duration) float64 { return d.Seconds() / float64(rounds*besideRound) }
	b.ReportMetric(1/each(ours), "appends/s")
	b.ReportMetric(1/each(theirs), "bare/s")
	b.ReportMetric(float64(writers)*each(ours)*1e3, "ms/append")
	b.ReportMetric(float64(theirs)/float64(ours), "share")
	b.ReportMetric(0, "ns/op")
}

// atOnce does something as often as a round has it, by some at once, and returns how long that took.
func atOnce(workers int, work func(worker int) error) time.Duration {
	began := time.Now()
	var left atomic.Int64
	left.Store(besideRound)
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for left.Add(-1) >= 0 {
				if err := work(w); err != nil {
					panic(err) // the figures would be wrong
				}
			}
		})
	}
	working.Wait()
	return time.Since(began)
}
