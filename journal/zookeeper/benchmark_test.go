package zookeeper_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// BenchmarkBare measures appends beside what the library itself takes to create sequential nodes with the same data, in
// turns, so that both see the same machine. The share is the rate of appends in that of the bare client.
func BenchmarkBare(b *testing.B) {
	for _, servers := range []*shared{one, three} {
		for _, writers := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("servers=%d/writers=%d", servers.servers, writers), func(b *testing.B) {
				benchmarkBare(b, servers, writers)
			})
		}
	}
}

// bareRound is how many are appended, and created, in turn.
const bareRound = 500

func benchmarkBare(b *testing.B, servers *shared, writers int) {
	e := servers.ensemble(b)
	j := opened(b, place(e))
	c, _, err := zk.Connect(e.Addresses(), 10*time.Second, zk.WithLogInfo(false))
	must(b, err)
	b.Cleanup(c.Close)
	root := fmt.Sprintf("/bare-%d", chroots.Add(1))
	_, err = c.Create(root, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	must(b, err)
	payload := make([]byte, 256)
	var seq atomic.Uint64
	var ours, bare time.Duration
	rounds := 0
	for b.Loop() {
		rounds++
		ours += atOnce(writers, func(w int) error {
			r := journal.Record{Writer: fmt.Sprintf("writer-%d", w), Seq: seq.Add(1), Payload: payload}
			return j.Append(b.Context(), r)
		})
		bare += atOnce(writers, func(int) error {
			_, err := c.Create(root+"/r", payload, zk.FlagSequence, zk.WorldACL(zk.PermAll))
			return err
		})
	}
	each := func(d time.Duration) float64 { return d.Seconds() / float64(rounds*bareRound) }
	b.ReportMetric(1/each(ours), "appends/s")
	b.ReportMetric(1/each(bare), "bare/s")
	b.ReportMetric(float64(writers)*each(ours)*1e3, "ms/append")
	b.ReportMetric(float64(bare)/float64(ours), "share")
	b.ReportMetric(0, "ns/op")
}

// atOnce does something as often as a round has it, by some at once, and returns how long that took.
func atOnce(workers int, work func(worker int) error) time.Duration {
	began := time.Now()
	var left atomic.Int64
	left.Store(bareRound)
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
