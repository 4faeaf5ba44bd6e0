package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"starling/journal"
	"starling/journal/etcd"
)

// TestLeaderKilled kills the process of the leader, and with it the owner of a pulse.
func TestLeaderKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits for an election")
	}
	t.Parallel()
	members := cluster(t, "a", "b", "c")
	var processes []*process
	for _, m := range members {
		processes = append(processes, launch(t, role{Member: m, Pulse: "pulse-" + m.Name}))
	}
	for _, p := range processes {
		p.ready()
	}
	j := opened(t, etcd.ClientConfig{Endpoints: endpoints(members)})
	mine, err := j.Pulse(limited(t), "mine", pulseTTL, false)
	must(t, err)
	r := follow(t, j)
	w := writer{t: t, journal: j}
	w.append(100)
	r.expect(100)

	dead := leader(t, members)
	gone := died(t, j, "pulse-"+members[dead].Name)
	killed := time.Now()
	processes[dead].kill()
	w.append(100)
	t.Logf("100 appends after the kill took %v, of which the first %v", time.Since(killed), w.first)
	r.expect(200)
	took := (<-gone).Sub(killed)
	t.Logf("the pulse was seen gone after %v", took)
	if limit := pulseTTL + 2*time.Second; took > limit {
		t.Errorf("the pulse of a process that died with the leader was seen gone after %v, want at most %v", took, limit)
	}
	select {
	case <-mine.Lost():
		t.Error("the election cost a pulse whose owner lives")
	default:
	}

	// The dead comes back with what it had, and catches up.
	launch(t, role{Member: members[dead]}).ready()
	back := opened(t, etcd.ClientConfig{Endpoints: []string{members[dead].ClientURL}})
	w.append(10)
	follow(t, back).expect(210)
	r.expect(210)
}

func TestMemberRestarts(t *testing.T) {
	t.Parallel()
	config := cluster(t, "only")[0]
	m, err := etcd.Start(t.Context(), config)
	must(t, err)
	must(t, m.Ready(limited(t)))
	j := opened(t, etcd.ClientConfig{Endpoints: []string{config.ClientURL}})
	r := follow(t, j)
	w := writer{t: t, journal: j}
	w.append(20)
	r.expect(20)
	must(t, m.Close())
	<-m.Stopped()

	over, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := j.Append(over, record(21)); err == nil {
		t.Error("an append without a member succeeded")
	}
	start(t, config)
	w.append(20)
	must(t, j.Append(limited(t), record(20)))
	r.expect(40)
	if head, err := j.Head(limited(t)); head != 40 || err != nil {
		t.Errorf("head is %d, %v, want 40", head, err)
	}
}

func TestMemberWithoutQuorum(t *testing.T) {
	t.Parallel()
	members := cluster(t, "a", "b", "c")
	a := start(t, members[0])
	over, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := a.Ready(over); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("alone of three it is ready: %v", err)
	}
	b := start(t, members[1])
	must(t, a.Ready(limited(t)))
	must(t, b.Ready(limited(t)))
	j := a.Journal()
	defer j.Close()
	w := writer{t: t, journal: j}
	w.append(1)
}

// TestMemberClosedFirst closes a member before the journal that asks it, in the wrong order.
func TestMemberClosedFirst(t *testing.T) {
	t.Parallel()
	config := cluster(t, "only")[0]
	m, err := etcd.Start(t.Context(), config)
	must(t, err)
	must(t, m.Ready(limited(t)))
	j := m.Journal()
	w := writer{t: t, journal: j}
	w.append(1)
	r := follow(t, j)
	r.expect(1)
	if _, err := j.Pulse(limited(t), "p", pulseTTL, false); err != nil {
		t.Fatal(err)
	}
	must(t, m.Close())
	if err := j.Append(limited(t), record(2)); err == nil {
		t.Error("an append without a member succeeded")
	}
	must(t, j.Close())
	if err := r.failed(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Follow returned %v, want that the journal is closed", err)
	}
}

func TestMemberRefused(t *testing.T) {
	good := cluster(t, "a")[0]
	for name, bad := range map[string]etcd.MemberConfig{
		"not in its cluster": {Name: "b", DataDir: good.DataDir, ClientURL: good.ClientURL, PeerURL: good.PeerURL,
			InitialCluster: good.InitialCluster},
		"no peer URL": {Name: "a", DataDir: good.DataDir, ClientURL: good.ClientURL},
	} {
		if _, err := etcd.Start(t.Context(), bad); err == nil || !strings.Contains(err.Error(), bad.Name) {
			t.Errorf("%s: got %v, want an error that names the member", name, err)
		}
	}
}

func TestOpenUnreachable(t *testing.T) {
	url := freeURL(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := etcd.Open(ctx, etcd.ClientConfig{Endpoints: []string{url}})
	if err == nil || !strings.Contains(err.Error(), url) {
		t.Errorf("got %v, want an error that names %s", err, url)
	}
	t.Log(err)
}

// TestConnectionLost cuts every connection again and again while records are appended.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	m := single(t)
	relay := listen(t, m.ClientURL())
	r := follow(t, opened(t, etcd.ClientConfig{Endpoints: []string{relay.url()}}))
	w := writer{t: t, journal: opened(t, etcd.ClientConfig{Endpoints: []string{m.ClientURL()}})}
	total := 0
	for range 5 {
		w.append(50)
		relay.cut()
		w.append(50)
		total += 100
		r.expect(total)
	}
}

// TestWatchSilent lets a reader's connection go silent without an end; the reader finds another way.
func TestWatchSilent(t *testing.T) {
	t.Parallel()
	m := single(t)
	one, other := listen(t, m.ClientURL()), listen(t, m.ClientURL())
	j := opened(t, etcd.ClientConfig{Endpoints: []string{one.url(), other.url()}})
	j.CheckEvery(100 * time.Millisecond)
	r := follow(t, j)
	w := writer{t: t, journal: opened(t, etcd.ClientConfig{Endpoints: []string{m.ClientURL()}})}
	w.append(20)
	r.expect(20)
	one.freeze()
	w.append(20)
	r.expect(40)
	one.thaw()
	other.freeze()
	w.append(20)
	r.expect(60)
}

// TestPulseSilent lets one of two connections go silent: whose owner lives is kept, and what ends is seen.
func TestPulseSilent(t *testing.T) {
	t.Parallel()
	m := single(t)
	one, other := listen(t, m.ClientURL()), listen(t, m.ClientURL())
	j := opened(t, etcd.ClientConfig{Endpoints: []string{one.url(), other.url()}})
	kept, err := j.Pulse(limited(t), "kept", pulseTTL, false)
	must(t, err)
	direct := opened(t, etcd.ClientConfig{Endpoints: []string{m.ClientURL()}})
	left, err := direct.Pulse(limited(t), "left", pulseTTL, false)
	must(t, err)
	gone := died(t, j, "left")
	one.freeze()
	left.Abandon()
	abandoned := time.Now()
	took := (<-gone).Sub(abandoned)
	if limit := pulseTTL + 2*time.Second; took > limit {
		t.Errorf("a pulse was seen gone after %v, want at most %v", took, limit)
	}
	alive, err := direct.Pulses(limited(t))
	must(t, err)
	if len(alive) != 1 || alive[0].ID != "kept" {
		t.Errorf("pulses are %v, want the one whose owner lives", alive)
	}
	select {
	case <-kept.Lost():
		t.Error("it is lost")
	default:
	}
}

// TestCompactionUnderSlowReader compacts what a reader has not read, after its queue has overflown.
func TestCompactionUnderSlowReader(t *testing.T) {
	t.Parallel()
	m := single(t)
	j := opened(t, etcd.ClientConfig{Endpoints: []string{m.ClientURL()}})
	r := follow(t, j)
	w := writer{t: t, journal: m.Journal()}
	defer w.journal.Close()
	w.append(1)
	r.expect(1)
	const many = 3000 // more than a reader's queue holds
	w.append(many)
	c := raw(t, m.ClientURL())
	got, err := c.Get(limited(t), "any")
	must(t, err)
	_, err = c.Compact(limited(t), got.Header.Revision)
	must(t, err)
	w.append(10)
	r.expect(1 + many + 10)
	follow(t, j).expect(1 + many + 10)
}

// TestFoundersDiffer founds two clusters by the same names and addresses: what is left of the first is no member of the
// second.
func TestFoundersDiffer(t *testing.T) {
	t.Parallel()
	config, ids := etcd.MemberConfig{Name: "a", ClientURL: freeURL(t), PeerURL: freeURL(t)}, []uint64(nil)
	first := t.TempDir()
	for _, dir := range []string{first, t.TempDir(), first} {
		config.DataDir = dir
		m, err := etcd.Start(limited(t), config)
		must(t, err)
		must(t, m.Ready(limited(t)))
		list, err := m.Journal().Client().MemberList(limited(t))
		must(t, err)
		ids = append(ids, list.Header.ClusterId)
		must(t, m.Close())
	}
	if ids[0] == ids[1] || ids[0] != ids[2] {
		t.Errorf("the clusters are %x, want two, and the first again", ids)
	}
}

// TestLeaderLeaves has the leader of three go for good: when Leave returns nothing of it runs, so that its data may be
// moved, and its addresses are free.
func TestLeaderLeaves(t *testing.T) {
	t.Parallel()
	members := cluster(t, "a", "b", "c")
	all := make([]*etcd.Member, len(members))
	for i, config := range members {
		var err error
		all[i], err = etcd.Start(limited(t), config)
		must(t, err)
	}
	must(t, all[0].Ready(limited(t)))
	left := false
	status, err := all[0].Journal().Client().Status(limited(t), members[0].ClientURL)
	must(t, err)
	for i, m := range all {
		if m.ID() != status.Leader {
			defer func() { must(t, m.Close()) }()
			continue
		}
		left = true
		must(t, m.Leave())
		must(t, os.Rename(members[i].DataDir, members[i].DataDir+".old"))
		if open, err := os.ReadDir("/proc/self/fd"); err == nil {
			for _, one := range open {
				if at, _ := os.Readlink("/proc/self/fd/" + one.Name()); strings.HasPrefix(at, members[i].DataDir) {
					t.Errorf("it has %s open still", at)
				}
			}
		}
		for _, at := range []string{members[i].ClientURL, members[i].PeerURL} {
			l, err := net.Listen("tcp", strings.TrimPrefix(at, "http://"))
			must(t, err)
			must(t, l.Close())
		}
	}
	if !left {
		t.Error("none of the members leads")
	}
}

// TestDamage has the engine lose what it had: a reader stops and says so, it does not deliver something else.
func TestDamage(t *testing.T) {
	t.Parallel()
	m := single(t)
	for name, lose := range map[string]string{"head": "journal/head", "record": "journal/record/w/0000000000000005"} {
		prefix := name + "/"
		j := opened(t, etcd.ClientConfig{Endpoints: []string{m.ClientURL()}, Prefix: prefix})
		j.CheckEvery(50 * time.Millisecond)
		w := writer{t: t, journal: j}
		w.append(10)
		r := follow(t, j)
		r.expect(10)
		_, err := raw(t, m.ClientURL()).Delete(limited(t), prefix+lose)
		must(t, err)
		if name == "record" { // which a reader that has it does not need
			w.append(1)
			r.expect(11)
			r = follow(t, j)
		}
		if err := r.failed(); !errors.Is(err, etcd.ErrDamaged) {
			t.Errorf("%s lost: got %v, want damage", name, err)
		}
	}
}

// record is the n-th record of the only writer here.
func record(n int) journal.Record {
	return journal.Record{Writer: "w", Seq: uint64(n), Payload: fmt.Append(nil, n)}
}

// writer appends records one after the other, each until that has succeeded.
type writer struct {
	t       testing.TB
	journal journal.Journal
	last    int
	first   time.Duration // how long the first record of the last append took
}

func (w *writer) append(n int) {
	w.t.Helper()
	ctx, began := limited(w.t), time.Now()
	for i := range n {
		w.last++
		for {
			err := w.journal.Append(ctx, record(w.last))
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				w.t.Fatal(err)
			}
		}
		if i == 0 {
			w.first = time.Since(began)
		}
	}
}

// reader is a Follow that takes what is delivered only while it is asked for.
type reader struct {
	t         testing.TB
	delivered chan []journal.Record
	ended     chan error
	last      int
}

func follow(t testing.TB, j journal.Journal) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{t: t, delivered: make(chan []journal.Record), ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- j.Follow(ctx, 0, func(batch []journal.Record) error {
			select {
			case r.delivered <- batch:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

// expect waits for record n and checks that each up to it came once, in order.
func (r *reader) expect(n int) {
	r.t.Helper()
	timeout := time.After(patience)
	for r.last < n {
		select {
		case batch := <-r.delivered:
			for _, got := range batch {
				r.last++
				if want := record(r.last); int(got.Index) != r.last || got.Seq != want.Seq ||
					string(got.Payload) != string(want.Payload) {
					r.t.Fatalf("record %d is %s/%d %q with index %d", r.last, got.Writer, got.Seq, got.Payload, got.Index)
				}
			}
		case err := <-r.ended:
			r.t.Fatalf("Follow returned %v after %d records", err, r.last)
		case <-timeout:
			r.t.Fatalf("%d records delivered, want %d", r.last, n)
		}
	}
	if r.last != n {
		r.t.Fatalf("%d records delivered, want %d", r.last, n)
	}
}

// failed waits for Follow to return.
func (r *reader) failed() error {
	r.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case <-r.delivered:
		case err := <-r.ended:
			return err
		case <-timeout:
			r.t.Fatal("Follow goes on")
		}
	}
}

// died returns a channel that tells when the pulse, which lives, was seen to have ended.
func died(t testing.TB, j journal.Journal, id string) <-chan time.Time {
	t.Helper()
	alive, dead := make(chan struct{}), make(chan time.Time, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		seen := false
		_ = j.WatchPulse(ctx, id, func(s journal.PulseState) {
			switch {
			case s.Alive && !seen:
				seen = true
				close(alive)
			case !s.Alive && seen:
				dead <- time.Now()
				cancel()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-alive:
	case <-time.After(patience):
		t.Fatalf("pulse %s does not live", id)
	}
	return dead
}

// TestRemovedIsAsked asks a member how it is from its removal to its end, a second later: the engine's answer to that
// would end the process.
func TestRemovedIsAsked(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until members have seen each other for some seconds")
	}
	t.Parallel()
	configs := cluster(t, "a", "b", "c")
	members := startAll(t, configs)
	within := members[2].Journal()
	t.Cleanup(func() { must(t, within.Close()) })
	outside := opened(t, etcd.ClientConfig{Endpoints: []string{configs[2].ClientURL}})
	others := opened(t, etcd.ClientConfig{Endpoints: endpoints(configs[:2])})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx := limited(t)
	for removed := false; ; {
		if !removed {
			_, err := others.Client().MemberRemove(ctx, members[2].ID())
			removed = err == nil || errors.Is(err, rpctypes.ErrMemberNotFound)
		}
		_, err := within.Room(ctx)
		_, failed := outside.Client().Status(ctx, configs[2].ClientURL)
		if !removed && (err != nil || failed != nil) {
			t.Fatalf("a member does not tell how it is: %v, %v", err, failed)
		}
		select {
		case <-members[2].Stopped():
			if !members[2].Removed() {
				t.Error("the member does not know that it was removed")
			}
			return
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the member that was removed did not end")
		}
	}
}

// TestAskedAtItsEnd asks members how they are until they have ended: the engine's answer to that reads a database that
// is closed then, which would end the process.
func TestAskedAtItsEnd(t *testing.T) {
	t.Parallel()
	for range 5 {
		config := cluster(t, "only")[0]
		m, err := etcd.Start(t.Context(), config)
		must(t, err)
		must(t, m.Ready(limited(t)))
		within, outside := m.Journal(), opened(t, etcd.ClientConfig{Endpoints: []string{config.ClientURL}})
		ctx, end := context.WithCancel(limited(t))
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for ctx.Err() == nil {
					_, _ = within.Room(ctx)
				}
			})
			asking.Go(func() {
				for ctx.Err() == nil {
					_, _ = outside.Client().Status(ctx, config.ClientURL)
				}
			})
		}
		must(t, m.Close())
		end()
		asking.Wait()
		must(t, within.Close())
	}
}
