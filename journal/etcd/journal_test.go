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

// patience bounds every wait.
const patience = 30 * time.Second

func TestContractEmbedded(t *testing.T) {
	journaltest.Run(t, embedded(single(t)))
}

func TestContractClient(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as TestContractEmbedded, and three members")
	}
	members := cluster(t, "a", "b", "c")
	startAll(t, members)
	journaltest.Run(t, remote(endpoints(members)...))
}

func BenchmarkEmbedded(b *testing.B) {
	journaltest.Benchmark(b, func(t testing.TB) journaltest.Harness { return embedded(single(t))(t) })
}

func BenchmarkClient(b *testing.B) {
	journaltest.Benchmark(b, func(t testing.TB) journaltest.Harness { return remote(single(t).ClientURL())(t) })
}

func BenchmarkCluster(b *testing.B) {
	journaltest.Benchmark(b, func(t testing.TB) journaltest.Harness {
		members := cluster(t, "a", "b", "c")
		startAll(t, members)
		return remote(endpoints(members)...)(t)
	})
}

func TestRoomIsWhatTheFileHoldsOfItsQuota(t *testing.T) {
	m := start(t, etcd.MemberConfig{
		Name: "only", DataDir: t.TempDir(), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0",
		QuotaBytes: 32 << 20,
	})
	must(t, m.Ready(limited(t)))
	for i, h := range []journaltest.Harness{embedded(m)(t), remote(m.ClientURL())(t)} {
		j := h.Open(t)
		before, err := j.Room(limited(t))
		must(t, err)
		for seq := range uint64(4) {
			must(t, j.Append(limited(t),
				journal.Record{Writer: fmt.Sprint("writer-", i), Seq: seq + 1, Payload: make([]byte, 1<<20)}))
		}
		after, again := before, time.NewTicker(10*time.Millisecond) // the file has it a moment later
		for within := limited(t); after.Used < before.Used+3<<20 && within.Err() == nil; <-again.C {
			after, err = j.Room(within)
			must(t, err)
		}
		again.Stop()
		if after.Quota != 32<<20 || after.Used < before.Used+3<<20 || after.Full() {
			t.Errorf("before %+v, with four megabytes more %+v", before, after)
		}
	}
}

// single starts the only member of a cluster.
func single(t testing.TB) *etcd.Member {
	t.Helper()
	m := start(t, etcd.MemberConfig{
		Name: "only", DataDir: t.TempDir(), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0",
	})
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

// opened returns a journal that is closed with the test.
func opened(t testing.TB, config etcd.ClientConfig) *etcd.Journal {
	t.Helper()
	j := open(t, config)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

// limited returns a context that ends with the test, or when patience does.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// timeLimit is limited outside of a test, or for another time.
func timeLimit(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
