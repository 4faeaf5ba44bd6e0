package zookeeper_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal/journaltest"
)

// BenchmarkBare measures appends beside what the library itself takes to create sequential nodes with the same data.
func BenchmarkBare(b *testing.B) {
	for _, servers := range []*shared{one, three} {
		for _, writers := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("servers=%d/writers=%d", servers.servers, writers), func(b *testing.B) {
				e := servers.ensemble(b)
				j := opened(b, place(e))
				c, _, err := zk.Connect(e.Addresses(), 10*time.Second, zk.WithLogInfo(false))
				must(b, err)
				b.Cleanup(c.Close)
				root := fmt.Sprintf("/bare-%d", chroots.Add(1))
				_, err = c.Create(root, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
				must(b, err)
				journaltest.Beside(b, j, writers, func(_ uint64, payload []byte) error {
					_, err := c.Create(root+"/r", payload, zk.FlagSequence, zk.WorldACL(zk.PermAll))
					return err
				})
			})
		}
	}
}
