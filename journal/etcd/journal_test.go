package etcd_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/journaltest"
)

// pulseTTL is the least that a pulse keeps to on a machine whose cores are busy with something else.
const pulseTTL = 3 * time.Second

func TestContractEmbedded(t *testing.T) {
	journaltest.Run(t, embedded(single(t)))
}

func TestContractClient(t *testing.T) {
	journaltest.Run(t, remote(single(t).ClientURL()))
}

func BenchmarkEmbedded(b *testing.B) {
	journaltest.Benchmark(b, func(t testing.TB) journaltest.Harness { return embedded(single(t))(t) })
}

func BenchmarkClient(b *testing.B) {
	journaltest.Benchmark(b, func(t testing.TB) journaltest.Harness { return remote(single(t).ClientURL())(t) })
}

// single starts the only member of a cluster.
func single(t testing.TB) *etcd.Member {
	t.Helper()
	m, err := etcd.Start(t.Context(), etcd.MemberConfig{
		Name: "only", DataDir: t.TempDir(), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0",
	})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	must(t, m.Ready(limited(t)))
	return m
}

// places makes a prefix of its own for every test.
type places struct{ used atomic.Int64 }

func (p *places) next() string {
	return fmt.Sprintf("test-%d/", p.used.Add(1))
}

func embedded(m *etcd.Member) func(testing.TB) journaltest.Harness {
	var p places
	return func(testing.TB) journaltest.Harness {
		prefix := p.next()
		return harness(func(testing.TB) journal.Journal { return m.JournalAt(prefix) })
	}
}

func remote(endpoints ...string) func(testing.TB) journaltest.Harness {
	var p places
	return func(testing.TB) journaltest.Harness {
		prefix := p.next()
		return harness(func(t testing.TB) journal.Journal {
			return open(t, etcd.ClientConfig{Endpoints: endpoints, Prefix: prefix})
		})
	}
}

func harness(open func(testing.TB) journal.Journal) journaltest.Harness {
	return journaltest.Harness{Open: open, PulseTTL: pulseTTL, PulseSlack: 2 * time.Second}
}

func open(t testing.TB, config etcd.ClientConfig) *etcd.Journal {
	t.Helper()
	j, err := etcd.Open(limited(t), config)
	must(t, err)
	return j
}

// limited returns a context that ends with the test, or after half a minute.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
