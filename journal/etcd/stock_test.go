package etcd_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/etcd/stock"
	"starling/journal/journaltest"
	"starling/journal/journaltest/engines"
)

// others returns servers of an etcd as others keep it. None runs yet.
func others(t *testing.T, places ...engines.Place) *stock.Servers {
	t.Helper()
	if testing.Short() {
		t.Skip("builds etcd")
	}
	s, err := stock.New(t.Context(), t.TempDir(), places...)
	must(t, err)
	t.Cleanup(s.Kill)
	return s
}

// outside is an etcd of others in the eyes of the contract.
func outside(s *stock.Servers) journaltest.Harness {
	return journaltest.Harness{PulseTTL: pulseTTL, PulseSlack: 2 * time.Second, Open: func(t testing.TB) journal.Journal {
		return open(t, etcd.ClientConfig{Endpoints: s.URLs(), Prefix: "some/where/"})
	}}
}

func TestContractExternal(t *testing.T) {
	s := others(t, engines.At("127.0.0.1", 1)...)
	must(t, s.Start(t.Context()))
	journaltest.Run(t, remote(s.URLs()...))
}

func TestContractExternalThree(t *testing.T) {
	s := others(t, engines.At("127.0.0.1", 3)...)
	t.Parallel()
	must(t, s.Start(t.Context()))
	journaltest.Run(t, remote(s.URLs()...))
}

// TestHistoryExternal checks the answers of writers and readers while leaders are killed, or paused until another
// leads: one that goes on then believes for a while that it still does.
func TestHistoryExternal(t *testing.T) {
	s := others(t, engines.At("127.0.0.1", 3)...)
	t.Parallel()
	must(t, s.Start(t.Context()))
	journaltest.History(t, outside(s), func() {
		for range 2 {
			leader, err := s.Leader(t.Context())
			must(t, err)
			leader.Kill()
			must(t, s.Start(t.Context()))
			paused, err := s.Leader(t.Context())
			must(t, err)
			must(t, paused.Pause())
			_, err = s.Leader(t.Context(), paused)
			must(t, err)
			must(t, paused.Resume())
			must(t, s.Start(t.Context()))
		}
	})
}

// TestHistoryDivided has each server on a machine of its own.
func TestHistoryDivided(t *testing.T) {
	network := engines.NeedNetwork(t, 3)
	s := others(t, network.Places()...)
	t.Parallel()
	must(t, s.Start(t.Context()))
	journaltest.HistoryDivided(t, outside(s), journaltest.Divided{
		Leader: func(but ...int) int {
			var without []*stock.Server
			for _, i := range but {
				without = append(without, s.All[i])
			}
			leader, err := s.Leader(t.Context(), without...)
			must(t, err)
			return slices.Index(s.All, leader)
		},
		Cut:   func(away ...int) { must(t, network.Cut(away...)) },
		Ready: func() { must(t, s.Start(t.Context())) },
	})
}

func TestTrimKilledExternal(t *testing.T) {
	s := others(t, engines.At("127.0.0.1", 1)...)
	t.Parallel()
	must(t, s.Start(t.Context()))
	journaltest.TrimKilled(t, outside(s), func() {
		s.Kill()
		must(t, s.Start(t.Context()))
	})
}

// diskBytes has room for the engine's first log and the one that it makes ready beside, each of which is made 64 MB
// large at once, and for little more.
const diskBytes = 160 << 20

func TestFullDiskExternal(t *testing.T) {
	s := others(t, engines.At("127.0.0.1", 1)...)
	t.Parallel()
	disk := journaltest.NewDisk(t, s.Data(), diskBytes)
	t.Cleanup(s.Kill)
	must(t, s.Start(t.Context()))
	journaltest.FullDisk(t, outside(s), disk, func() {
		s.Kill()
		must(t, s.Start(t.Context()))
	})
}

// alone is a member in a process of its own, and what starts it, or starts it again.
func alone(t *testing.T, folder string) (h journaltest.Harness, restart func()) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	members := cluster(t, "a")
	members[0].DataDir = filepath.Join(folder, "data")
	var running *process
	restart = func() {
		if running != nil {
			running.kill()
		}
		running = launch(t, role{Member: members[0]})
		running.ready()
	}
	return journaltest.Harness{PulseTTL: pulseTTL, PulseSlack: 2 * time.Second, Open: func(t testing.TB) journal.Journal {
		return open(t, etcd.ClientConfig{Endpoints: endpoints(members)})
	}}, restart
}

func TestTrimKilled(t *testing.T) {
	h, restart := alone(t, t.TempDir())
	t.Parallel()
	restart()
	journaltest.TrimKilled(t, h, restart)
}

func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	h, restart := alone(t, folder)
	t.Parallel()
	disk := journaltest.NewDisk(t, folder, diskBytes)
	restart()
	journaltest.FullDisk(t, h, disk, restart)
}
