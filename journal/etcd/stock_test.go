package etcd_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/etcd/stock"
	"starling/journal/journaltest"
	"starling/journal/journaltest/engines"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
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

// withPasswords has an etcd ask who asks, and returns how its one user reaches it. Whoever it is may do everything.
func withPasswords(t *testing.T, s *stock.Servers) etcd.ClientConfig {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: s.URLs(), Logger: zap.NewNop()})
	must(t, err)
	defer client.Close()
	_, err = client.UserAdd(t.Context(), "root", "secret")
	must(t, err)
	_, err = client.UserGrantRole(t.Context(), "root", "root")
	must(t, err)
	_, err = client.AuthEnable(t.Context())
	must(t, err)
	return etcd.ClientConfig{Endpoints: s.URLs(), User: "root", Password: "secret"}
}

// signIns tells how often somebody has signed in at a server, which takes it a tenth of a second each time.
func signIns(t *testing.T, s *stock.Server) (count int) {
	t.Helper()
	answer, err := http.Get(s.URL + "/metrics")
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "grpc_server_started_total{") && strings.Contains(line, `"Authenticate"`) {
			_, err := fmt.Sscan(line[strings.LastIndex(line, " "):], &count)
			must(t, err)
		}
	}
	return count
}

func TestContractPassword(t *testing.T) {
	s := others(t, engines.At("127.0.0.1", 1)...)
	t.Parallel()
	must(t, s.Start(t.Context()))
	config := withPasswords(t, s)
	var p places
	journaltest.Run(t, func(testing.TB) journaltest.Harness {
		own := config
		own.Prefix = p.next()
		return harness(func(t testing.TB) journal.Journal { return open(t, own) })
	})
}

// TestSignsInSeldom has an etcd that asks for passwords killed and started again: a pulse that is renewed all the time
// goes on, and neither it nor writers sign in for each request.
func TestSignsInSeldom(t *testing.T) {
	s := others(t, engines.At("127.0.0.1", 1)...)
	t.Parallel()
	must(t, s.Start(t.Context()))
	j := open(t, withPasswords(t, s))
	p, err := j.Pulse(t.Context(), "a", pulseTTL, false)
	must(t, err)
	write := func(from, to uint64) {
		for seq := from; seq < to; seq++ {
			must(t, j.Append(t.Context(), journal.Record{Writer: "a", Seq: seq, Payload: []byte("x")}))
			must(t, p.Confirm(t.Context()))
		}
	}
	write(1, 50)
	select { // it is renewed meanwhile
	case <-p.Lost():
		t.Error("the pulse has ended")
	case <-time.After(pulseTTL):
	}
	if got := signIns(t, s.All[0]); got != 1 {
		t.Errorf("it signed in %d times, want once", got)
	}
	s.Kill()
	must(t, s.Start(t.Context()))
	write(50, 100)
	if got := signIns(t, s.All[0]); got > 2 {
		t.Errorf("it signed in %d times after a restart, want once or twice at most", got)
	}
	_, err = etcd.Open(t.Context(), etcd.ClientConfig{Endpoints: s.URLs(), User: "root", Password: "other"})
	if err == nil || !strings.Contains(err.Error(), "invalid user ID or password") {
		t.Errorf("a wrong password: %v", err)
	}
}

// TestSetBack puts an older copy of an etcd's data back under a reader that has one record more, and lets others write
// more than were lost: the reader stops, and takes none of them for what follows what it has.
func TestSetBack(t *testing.T) {
	s := others(t, engines.At("127.0.0.1", 1)...)
	t.Parallel()
	must(t, s.Start(t.Context()))
	j := open(t, etcd.ClientConfig{Endpoints: s.URLs()})
	w := writer{t: t, journal: j}
	w.append(5)
	s.Kill()
	kept := filepath.Join(t.TempDir(), "kept")
	must(t, os.CopyFS(kept, os.DirFS(s.Data())))
	must(t, s.Start(t.Context()))
	w.append(1)
	r := follow(t, j)
	r.expect(6)
	s.Kill()
	must(t, os.RemoveAll(s.Data()))
	must(t, os.CopyFS(s.Data(), os.DirFS(kept)))
	must(t, s.Start(t.Context()))
	for seq := range uint64(4) { // the first two may come before the reader looks
		must(t, open(t, etcd.ClientConfig{Endpoints: s.URLs()}).Append(limited(t),
			journal.Record{Writer: "other", Seq: seq + 1, Payload: []byte("x")}))
	}
	if err := r.failed(); !errors.Is(err, etcd.ErrDamaged) {
		t.Errorf("the reader got %v, want damage", err)
	}
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
