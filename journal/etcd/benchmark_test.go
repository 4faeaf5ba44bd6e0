package etcd_test

import (
	"fmt"
	"testing"

	"starling/journal/etcd"
	"starling/journal/etcd/stock"
	"starling/journal/journaltest"
	"starling/journal/journaltest/engines"
)

// BenchmarkBare measures appends beside puts of the same data by the engine's own client.
func BenchmarkBare(b *testing.B) {
	for _, servers := range []int{1, 3} {
		s, err := stock.New(b.Context(), b.TempDir(), engines.At("127.0.0.1", servers)...)
		must(b, err)
		b.Cleanup(s.Kill)
		must(b, s.Start(b.Context()))
		for _, writers := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("servers=%d/writers=%d", servers, writers), func(b *testing.B) {
				c := raw(b, s.URLs()...)
				j := opened(b, etcd.ClientConfig{Endpoints: s.URLs(), Prefix: fmt.Sprintf("bench-%d/", writers)})
				journaltest.Beside(b, j, writers, func(number uint64, payload []byte) error {
					_, err := c.Put(b.Context(), fmt.Sprintf("bare/%016x", number), string(payload))
					return err
				})
			})
		}
	}
}
