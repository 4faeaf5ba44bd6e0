package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/journal/etcd"
	"starling/peer"
	"starling/peer/inbox"
	"starling/replica"
	"starling/terms"
)

// entriesVariable says how many entries BenchmarkStart has, entriesDefault how many it has otherwise.
const (
	entriesVariable = "STARLING_ENTRIES"
	entriesDefault  = 20_000
)

// writers is how many machines write.
const writers = 100

// BenchmarkStart tells what a peer's start costs, and how much of the engine's file is used, before a long journal is
// trimmed and after it: one of so many reports of instances that start, by a hundred machines.
func BenchmarkStart(b *testing.B) {
	entries := entriesDefault
	if text := os.Getenv(entriesVariable); text != "" {
		var err error
		entries, err = strconv.Atoi(text)
		must(b, err)
	}
	m, err := etcd.Start(b.Context(), etcd.MemberConfig{Name: "only", DataDir: b.TempDir(),
		ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0"})
	must(b, err)
	b.Cleanup(func() { must(b, m.Close()) })
	must(b, m.Ready(b.Context()))
	j := m.Journal()
	b.Cleanup(func() { must(b, j.Close()) })
	s := machines()
	must(b, peer.Seed(b.Context(), j, s))
	write(b, j, s, entries)

	before, took := start(b, j)
	used, began := room(b, j), time.Now()
	must(b, peer.Seed(b.Context(), j, before))
	trim := time.Since(began)
	head, err := j.Client().Get(b.Context(), "journal/head")
	must(b, err)
	_, err = j.Client().Compact(b.Context(), head.Header.Revision, clientv3.WithCompactPhysical())
	must(b, err)
	left := room(b, j)
	for b.Loop() {
		if after, _ := start(b, j); after.Digest() != before.Digest() {
			b.Fatal("the value from the snapshot is another")
		}
	}
	b.ReportMetric(float64(entries)/took.Seconds(), "entries/s")
	b.ReportMetric(took.Seconds(), "s-start-before")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s-start-after")
	b.ReportMetric(float64(used)/(1<<20), "MB-before")
	b.ReportMetric(float64(left)/(1<<20), "MB-after")
	b.ReportMetric(trim.Seconds(), "s-trim")
	b.ReportMetric(0, "ns/op")
}

// machines is a value with a job that has an instance on each.
func machines() *cluster.State {
	s := cluster.NewState()
	for i := range writers {
		n := s.EnsureNode(terms.NodeName(fmt.Sprintf("m%02d", i))).Index
		s.Wrote(n, 1, 1)
		s.SetPeer(n, writer(i))
		s.SetOffer(n, &terms.Offer{Capacity: terms.Resources{64_000, 256 << 30, 1 << 40}, Address: "m:1"})
	}
	replica.Apply(s, 1, &command.Entry{Writer: writer(0), Seq: 2, Time: 1, Commands: []command.Command{&command.SubmitJob{
		Spec: terms.Job{Name: "job", Type: terms.Stateless, Tasks: []terms.Task{{Name: "main", Instances: 10 * writers,
			Command: []string{"true"}, Resources: terms.Resources{100, 1 << 20, 0}, Placement: terms.Spread}}}}}}, false)
	return s
}

func writer(i int) terms.PeerID { return terms.NewPeerID(terms.NodeName(fmt.Sprintf("m%02d", i)), 1) }

// write appends entries, by all machines at once.
func write(b *testing.B, j journal.Journal, s *cluster.State, entries int) {
	var writing sync.WaitGroup
	for i := range writers {
		held := s.Node(facts.NodeIndex(i)).Held
		writing.Go(func() {
			for n := range entries / writers {
				slot, _ := s.SlotAt(held[n%len(held)])
				report := &command.ReportTasks{Peer: writer(i),
					Reports: []command.Report{{Slot: held[n%len(held)], Order: slot.Order}}}
				e := &command.Entry{Writer: writer(i), Seq: uint64(n + 3), Time: terms.Time(n + 2),
					Commands: []command.Command{report}}
				r := journal.Record{Writer: string(e.Writer), Seq: e.Seq, Payload: command.Encode(e)}
				for j.Append(b.Context(), r) != nil && b.Context().Err() == nil {
					continue // it is in doubt, and stands there once
				}
			}
		})
	}
	writing.Wait()
}

// start reads the journal as a peer does that has just begun, and returns the value and how long that took.
func start(b *testing.B, j journal.Journal) (*cluster.State, time.Duration) {
	began := time.Now()
	core, done := peer.NewCore(terms.DefaultLimits()), errors.New("done")
	head, err := j.Head(b.Context())
	must(b, err)
	err = inbox.Follow(b.Context(), j, 1, func(d inbox.Delivery) error {
		if d.Snapshot.Index > 0 {
			core.Restore(inbox.Named(d.Snapshot), d.Data, 1)
		}
		for _, r := range d.Records {
			core.Fold(r, 1)
		}
		if core.Halt() != nil || core.State().Index >= terms.Index(head) {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) || core.Halt() != nil {
		b.Fatal(err, core.Halt())
	}
	return core.State(), time.Since(began)
}

// room is how many bytes of the engine's file are used, once that does not change any more.
func room(b *testing.B, j journal.Journal) int64 {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	last := journal.Room{}
	for {
		now, err := j.Room(ctx)
		must(b, err)
		if now == last {
			return now.Used
		}
		last = now
		inbox.Pause(ctx, time.Second)
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
