package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal"
	"starling/journal/zookeeper"
)

// disturbed returns the ensemble of three for a test that kills or pauses its servers, and leaves all running.
func disturbed(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("waits for elections")
	}
	e := three.ensemble(t)
	t.Cleanup(func() {
		for _, s := range e.Servers {
			_ = s.Resume() // it may not run
		}
		must(t, e.Start())
	})
	return &cluster{t, e}
}

// TestLeaderKilled kills the leader, and with it abandons a pulse. What lives is kept, what does not is seen to end.
func TestLeaderKilled(t *testing.T) {
	c := disturbed(t)
	config := place(c.Ensemble)
	j := opened(t, config)
	mine, err := j.Pulse(limited(t), "mine", pulseTTL, false)
	must(t, err)
	left, err := j.Pulse(limited(t), "left", pulseTTL, false)
	must(t, err)
	r, w := follow(t, j), writer{t: t, journal: j}
	w.append(100)
	r.expect(100)
	gone := died(t, opened(t, config), "left")

	leader := c.leader()
	killed := time.Now()
	leader.Kill()
	left.Abandon()
	w.append(100)
	t.Logf("100 appends after the kill took %v, of which the first %v", time.Since(killed), w.first)
	r.expect(200)
	took := (<-gone).Sub(killed)
	t.Logf("the pulse was seen gone after %v", took)
	// The next leader lets every session begin anew.
	if limit := pulseTTL + 5*time.Second; took > limit {
		t.Errorf("a pulse that was abandoned with the leader was seen gone after %v, want at most %v", took, limit)
	}
	must(t, mine.Confirm(limited(t)))
	wantKept(t, mine)
	must(t, leader.Start())
	w.append(10)
	follow(t, opened(t, config)).expect(210)
	r.expect(210)
}

// TestServersPaused pauses first a follower, then the leader, each for longer than pulses live. Nothing ends.
func TestServersPaused(t *testing.T) {
	c := disturbed(t)
	j := opened(t, place(c.Ensemble))
	mine, err := j.Pulse(limited(t), "mine", pulseTTL, false)
	must(t, err)
	states := watch(t, j, "mine")
	r, w := follow(t, j), writer{t: t, journal: j}
	for i, pause := range []func() *server{c.follower, c.leader} {
		w.append(20)
		paused := pause()
		must(t, paused.Pause())
		for began := time.Now(); time.Since(began) < pulseTTL+time.Second; {
			w.append(10)
			head, err := j.Head(limited(t))
			must(t, err)
			if head != journal.Index(w.last) {
				t.Errorf("with a paused server the head is %d, want %d", head, w.last)
			}
		}
		must(t, paused.Resume())
		must(t, c.Ready())
		w.append(20)
		r.expect(w.last)
		must(t, mine.Confirm(limited(t)))
		wantKept(t, mine)
		t.Logf("pause %d: %d records", i, w.last)
	}
	for s := range states {
		if !s.Alive {
			t.Error("the pulse was seen to end")
		}
	}
}

// TestAllRestarted kills all servers at once. What was acknowledged is there again, and no pulse has ended.
func TestAllRestarted(t *testing.T) {
	c := disturbed(t)
	const ttl = 9 * time.Second
	config := place(c.Ensemble)
	config.PulseTTL = ttl
	j := opened(t, config)
	mine, err := j.Pulse(limited(t), "mine", ttl, false)
	must(t, err)
	states := watch(t, j, "mine")
	r, w := follow(t, j), writer{t: t, journal: j}
	w.append(50)
	r.expect(50)
	c.Kill()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := j.Append(short, record(51)); err == nil {
		t.Error("an append without a server succeeded")
	}
	must(t, c.Start())
	w.append(50)
	r.expect(100)
	follow(t, opened(t, config)).expect(100)
	must(t, mine.Confirm(limited(t)))
	wantKept(t, mine)
	for s := range states {
		if !s.Alive {
			t.Error("the pulse was seen to end")
		}
	}
}

// TestSessionExpires lets the connections of a process go silent until its pulse has ended. The process learns it when
// it is back, and can begin it again.
func TestSessionExpires(t *testing.T) {
	e := one.ensemble(t)
	config := place(e)
	gone := died(t, opened(t, config), "p")
	relayed := listen(t, e.Servers[0].Address)
	far := config
	far.Servers = []string{relayed.address()}
	j := opened(t, far)
	r := follow(t, j)
	p, err := j.Pulse(limited(t), "p", pulseTTL, false)
	must(t, err)
	w := writer{t: t, journal: opened(t, config)}
	w.append(10)
	r.expect(10)
	relayed.freeze()
	<-gone
	wantKept(t, p) // it cannot know
	w.append(10)
	relayed.thaw()
	select {
	case <-p.Lost():
	case <-time.After(patience):
		t.Fatal("the owner of a pulse that has ended does not learn it")
	}
	if err := p.Publish(limited(t), nil); !errors.Is(err, journal.ErrNoPulse) {
		t.Errorf("publish: got %v, want that it has ended", err)
	}
	again, err := j.Pulse(limited(t), "p", pulseTTL, false)
	must(t, err)
	must(t, again.Confirm(limited(t)))
	r.expect(20)
}

// TestConnectionsLost cuts all connections again and again while records are appended.
func TestConnectionsLost(t *testing.T) {
	e := one.ensemble(t)
	config := place(e)
	relayed := listen(t, e.Servers[0].Address)
	far := config
	far.Servers = []string{relayed.address()}
	j := opened(t, far)
	p, err := j.Pulse(limited(t), "p", pulseTTL, false)
	must(t, err)
	r, w := follow(t, j), writer{t: t, journal: j}
	for range 10 {
		w.append(20)
		relayed.cut()
		w.append(20)
		r.expect(w.last)
	}
	must(t, p.Confirm(limited(t)))
	wantKept(t, p)
}

// TestGap leaves a number out, as ZooKeeper may. Readers see that something is behind it, and no index is left out.
func TestGap(t *testing.T) {
	config := place(one.ensemble(t))
	j := opened(t, config)
	j.CheckEvery(50 * time.Millisecond)
	r, w := follow(t, j), writer{t: t, journal: j}
	w.append(5)
	r.expect(5)
	c := client(t)
	records := config.Chroot + "/shard/0000000000/record/"
	fifth, _, err := c.Get(records + "r0000000004")
	must(t, err)
	// It is the sixth, and as if it came by another way than the next would.
	sixth := slices.Replace(slices.Clone(fifth), 3, 4, 6)
	sixth[len(sixth)-1] = '6'
	_, err = c.Create(records+"r0000000007", sixth, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	must(t, err)
	r.expect(6)
	follow(t, opened(t, config)).expect(6)
}

// TestDamage deletes a record. A reader that needs it stops and says so; it delivers nothing else in its place.
func TestDamage(t *testing.T) {
	config := place(one.ensemble(t))
	j := opened(t, config)
	r, w := follow(t, j), writer{t: t, journal: j}
	w.append(10)
	r.expect(10)
	must(t, client(t).Delete(config.Chroot+"/shard/0000000000/record/r0000000003", -1))
	if err := follow(t, opened(t, config)).failed(); !errors.Is(err, zookeeper.ErrDamaged) {
		t.Errorf("got %v, want damage", err)
	}
}

// TestTrimLeavesNothing cuts everything, with parts of large records and parts that belong to none.
func TestTrimLeavesNothing(t *testing.T) {
	config := place(one.ensemble(t))
	j, c := opened(t, config), client(t)
	for seq := range uint64(3) {
		must(t, j.Append(limited(t), journal.Record{Writer: "w", Seq: seq, Payload: make([]byte, journal.PayloadBytesMax)}))
	}
	orphan := config.Chroot + "/shard/0000000000/part/orphan"
	_, err := c.Create(orphan, []byte("of a writer that died"), zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	must(t, err)
	for at := journal.Index(3); at < 5; at++ { // the shard that is sealed by the first cut goes with it or the next
		must(t, j.PutChunk(limited(t), journal.Snapshot{Index: at}, 0, []byte("chunk")))
		must(t, j.Trim(limited(t), journal.Snapshot{Index: at, Chunks: 1}))
		must(t, j.Append(limited(t), journal.Record{Writer: "v", Seq: uint64(at)}))
	}
	var left []string
	var list func(path string)
	list = func(path string) {
		names, _, err := c.Children(path)
		must(t, err)
		for _, name := range names {
			left = append(left, strings.TrimPrefix(path+"/"+name, config.Chroot))
			list(path + "/" + name)
		}
	}
	list(config.Chroot)
	slices.Sort(left)
	last := "/snapshot/0000000000000004-" + strings.Repeat("0", 64)
	want := []string{
		"/owner", "/pulse", "/shard", "/shard/0000000002", "/shard/0000000002/part", "/shard/0000000002/record",
		"/shard/0000000002/record/r0000000000", "/snapshot", last,
		last + "/00000000", "/writer", "/writer/v", "/writer/v/0000000000000004",
	}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// TestDigest keeps others out of what a user has made.
func TestDigest(t *testing.T) {
	config := place(one.ensemble(t))
	config.Auth = "flock:secret"
	j := opened(t, config)
	w := writer{t: t, journal: j}
	w.append(3)
	p, err := j.Pulse(limited(t), "p", pulseTTL, false)
	must(t, err)
	must(t, p.Publish(limited(t), []byte("seen")))
	for _, auth := range []string{"", "flock:guess"} {
		other := config
		other.Auth = auth
		if _, err := zookeeper.Open(limited(t), other); !errors.Is(err, zookeeper.ErrRefused) ||
			!strings.Contains(fmt.Sprint(err), "for another user") {
			t.Errorf("as %q: got %v, want that it is refused", auth, err)
		}
	}
	if _, _, err := client(t).Get(config.Chroot + "/pulse/p"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("anybody reads a pulse: %v", err)
	}
	follow(t, opened(t, config)).expect(3)
}

// TestOpenRefused reaches no server, and one whose sessions cannot do what is wanted.
func TestOpenRefused(t *testing.T) {
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	nobody := listen(t, "127.0.0.1:1").address()
	_, err := zookeeper.Open(short, zookeeper.Config{Servers: []string{nobody}})
	if err == nil || !strings.Contains(err.Error(), nobody) || errors.Is(err, zookeeper.ErrRefused) {
		t.Errorf("got %v, want an error that names %s", err, nobody)
	}
	for ttl, want := range map[time.Duration]string{
		500 * time.Millisecond: "sessions last at least 1s there, so pulses cannot end after 500ms: let them live 2s",
		11 * time.Second:       "",
		time.Minute:            "sessions last at most 10s there, so pulses cannot live for 1m0s: let them live 11s",
	} {
		config := place(one.ensemble(t))
		config.PulseTTL = ttl
		j, err := zookeeper.Open(limited(t), config)
		if err == nil {
			must(t, j.Close())
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with a pulse of %v: got %v, want %q", ttl, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"h:1":             "[h:1] /starling",
		"h:1,[::1]:2/a/b": "[h:1 [::1]:2] /a/b",
		"h":               "must be HOST:PORT",
		"h:1,":            "must be HOST:PORT",
		"/a":              "must be HOST:PORT",
		"h:1/":            "must be names",
		"h:1/a/../b":      "must be names",
		"h:1/a b":         "must be names",
		"h:1/zookeeper":   "ZooKeeper's own",
	} {
		servers, chroot, err := zookeeper.Parse(text)
		if got := fmt.Sprint(servers, " ", chroot, " ", err); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
