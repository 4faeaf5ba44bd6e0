package zookeeper_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"starling/journal"
	"starling/journal/journaltest"
	"starling/journal/journaltest/engines"
	"starling/journal/zookeeper"
	"starling/journal/zookeeper/ensemble"
)

// pulseTTL is the least that a pulse keeps to on a machine whose cores are busy with something else.
const pulseTTL = 3 * time.Second

// patience bounds every wait.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	status := m.Run()
	one.end()
	three.end()
	os.Exit(status)
}

// shared is an ensemble that all tests use, each with a chroot of its own. It starts with the first.
type shared struct {
	servers int
	once    sync.Once
	err     error
	folder  string
	running *ensemble.Ensemble
}

var (
	one   = &shared{servers: 1}
	three = &shared{servers: 3}
)

// ensemble returns the servers, which all run.
func (s *shared) ensemble(t testing.TB) *ensemble.Ensemble {
	t.Helper()
	ensemble.Need(t)
	s.once.Do(func() {
		if s.folder, s.err = os.MkdirTemp("", "starling-zookeeper-"); s.err == nil {
			s.running, s.err = ensemble.New(s.folder, engines.At("127.0.0.1", s.servers)...)
		}
		if s.err == nil {
			s.err = s.running.Start()
		}
	})
	must(t, s.err)
	return s.running
}

func (s *shared) end() {
	if s.running != nil {
		s.running.Kill()
	}
	os.RemoveAll(s.folder)
}

// chroots counts those that were used.
var chroots atomic.Int64

// place returns how to reach an ensemble, with a chroot that nothing else has.
func place(e *ensemble.Ensemble) zookeeper.Config {
	return zookeeper.Config{
		Servers: e.Addresses(), Chroot: fmt.Sprintf("/tests/test-%d", chroots.Add(1)), PulseTTL: pulseTTL,
	}
}

// The contracts run side by side, after all that disturbs servers: they wait most of the time.

func TestContract(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, harness(one, 0))
}

// TestContractSmallShards has shards of a few records, so that each test crosses many.
func TestContractSmallShards(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, harness(one, 3))
}

func TestContractEnsemble(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as TestContract, and three servers")
	}
	t.Parallel()
	journaltest.Run(t, harness(three, 0))
}

// harness is the ensemble in the eyes of the contract; 0 shardRecords means as many as there are usually.
func harness(s *shared, shardRecords int) func(testing.TB) journaltest.Harness {
	return func(t testing.TB) journaltest.Harness {
		config := place(s.ensemble(t))
		return journaltest.Harness{PulseTTL: pulseTTL, PulseSlack: 3 * time.Second, Open: func(t testing.TB) journal.Journal {
			j := open(t, config)
			if shardRecords > 0 {
				j.ShardRecords(shardRecords)
			}
			return j
		}}
	}
}

func BenchmarkOne(b *testing.B) { journaltest.Benchmark(b, harness(one, 0)) }

func BenchmarkThree(b *testing.B) { journaltest.Benchmark(b, harness(three, 0)) }

func open(t testing.TB, config zookeeper.Config) *zookeeper.Journal {
	t.Helper()
	j, err := zookeeper.Open(limited(t), config)
	must(t, err)
	return j
}

// limited returns a context that ends with the test, or when patience does.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHistory checks the answers of writers and readers while leaders are killed, or paused until another leads:
// one that goes on then believes for a while that it still does.
func TestHistory(t *testing.T) {
	c := disturbed(t)
	journaltest.History(t, harness(three, 50)(t), func() {
		for range 2 {
			c.leader().Kill()
			must(t, c.Start())
			paused := c.leader()
			must(t, paused.Pause())
			_, err := c.Leader(paused)
			must(t, err)
			must(t, paused.Resume())
			must(t, c.Ready())
		}
	})
}

// TestHistoryDivided has each server on a machine of its own.
func TestHistoryDivided(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for elections")
	}
	ensemble.Need(t)
	network := engines.NeedNetwork(t, 3)
	e, err := ensemble.New(t.TempDir(), network.Places()...)
	must(t, err)
	t.Cleanup(e.Kill)
	must(t, e.Start())
	config := place(e)
	h := journaltest.Harness{PulseTTL: pulseTTL, PulseSlack: 3 * time.Second, Open: func(t testing.TB) journal.Journal {
		return open(t, config)
	}}
	journaltest.HistoryDivided(t, h, journaltest.Divided{
		Leader: func(but ...int) int {
			var without []*server
			for _, i := range but {
				without = append(without, e.Servers[i])
			}
			leader, err := e.Leader(without...)
			must(t, err)
			return slices.Index(e.Servers, leader)
		},
		Cut:   func(away ...int) { must(t, network.Cut(away...)) },
		Ready: func() { must(t, e.Ready()) },
	})
}
