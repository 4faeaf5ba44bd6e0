package zookeeper_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal"
	"starling/journal/zookeeper"
	"starling/journal/zookeeper/ensemble"
)

// cluster is an ensemble whose servers are found by what they are.
type cluster struct {
	t *testing.T
	*ensemble.Ensemble
}

type server = ensemble.Server

func (c *cluster) leader() *server {
	c.t.Helper()
	leader, err := c.Leader()
	must(c.t, err)
	return leader
}

func (c *cluster) follower() *server {
	c.t.Helper()
	leader := c.leader()
	for _, s := range c.Servers {
		if s != leader {
			return s
		}
	}
	panic("unreachable")
}

// client is one of the only server, which does what no journal does.
func client(t testing.TB) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(one.ensemble(t).Addresses(), 10*time.Second, zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// opened returns a journal that is closed with the test.
func opened(t testing.TB, config zookeeper.Config) *zookeeper.Journal {
	t.Helper()
	j := open(t, config)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
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

// reader is a Follow whose records are checked as they come.
type reader struct {
	t     testing.TB
	read  chan int // how many were read
	ended chan error
}

func follow(t testing.TB, j journal.Journal) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{t: t, read: make(chan int), ended: make(chan error, 1)}
	var reading sync.WaitGroup
	reading.Go(func() {
		last := 0
		r.ended <- j.Follow(ctx, 0, func(batch []journal.Record) error {
			for _, got := range batch {
				last++
				if want := record(last); int(got.Index) != last || got.Seq != want.Seq ||
					string(got.Payload) != string(want.Payload) {
					return fmt.Errorf("record %d is %s/%d %q with index %d", last, got.Writer, got.Seq, got.Payload, got.Index)
				}
			}
			select {
			case r.read <- last:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	t.Cleanup(func() {
		cancel()
		reading.Wait()
	})
	return r
}

// expect waits for record n, the last.
func (r *reader) expect(n int) {
	r.t.Helper()
	timeout := time.After(patience)
	for last := 0; last < n; {
		select {
		case last = <-r.read:
			if last > n {
				r.t.Fatalf("%d records delivered, want %d", last, n)
			}
		case err := <-r.ended:
			r.t.Fatalf("Follow returned %v", err)
		case <-timeout:
			r.t.Fatalf("%d records delivered, want %d", last, n)
		}
	}
}

// failed waits for Follow to return.
func (r *reader) failed() error {
	r.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case <-r.read:
		case err := <-r.ended:
			return err
		case <-timeout:
			r.t.Fatal("Follow goes on")
		}
	}
}

// watch returns a function that ends a watch and yields all that it has shown.
func watch(t testing.TB, j journal.Journal, id string) func(func(journal.PulseState) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var shown []journal.PulseState
	var watching sync.WaitGroup
	watching.Go(func() {
		_ = j.WatchPulse(ctx, id, func(s journal.PulseState) { shown = append(shown, s) })
	})
	end := func() {
		cancel()
		watching.Wait()
	}
	t.Cleanup(end)
	return func(yield func(journal.PulseState) bool) {
		end()
		if len(shown) == 0 {
			t.Error("the watch has shown nothing")
		}
		for _, s := range shown {
			if !yield(s) {
				return
			}
		}
	}
}

// died returns a channel that tells when a pulse that was seen alive was seen to end.
func died(t testing.TB, j journal.Journal, id string) <-chan time.Time {
	t.Helper()
	dead := make(chan time.Time, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var watching sync.WaitGroup
	watching.Go(func() {
		seen := false
		_ = j.WatchPulse(ctx, id, func(s journal.PulseState) {
			if seen && !s.Alive {
				dead <- time.Now()
				cancel()
			}
			seen = seen || s.Alive
		})
		if ctx.Err() == context.DeadlineExceeded {
			t.Errorf("the pulse %s was not seen to end", id)
			close(dead)
		}
	})
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return dead
}

func wantKept(t testing.TB, p journal.Pulse) {
	t.Helper()
	select {
	case <-p.Lost():
		t.Error("the pulse is lost")
	default:
	}
}

// relay stands between clients and a server, and fails as a network does.
type relay struct {
	listener net.Listener

	mu          sync.Mutex
	connections []net.Conn
	flowing     chan struct{} // closed while bytes pass
}

// listen starts a relay to the server at an address. It ends with the test.
func listen(t testing.TB, target string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r := &relay{listener: l, flowing: make(chan struct{})}
	close(r.flowing)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			r.mu.Lock()
			r.connections = append(r.connections, near, far)
			r.mu.Unlock()
			serving.Go(func() { r.copy(near, far) })
			serving.Go(func() { r.copy(far, near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.thaw()
		r.cut()
		serving.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

// copy moves bytes until either side ends, holding them back while the relay is frozen.
func (r *relay) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		flowing := r.flowing
		r.mu.Unlock()
		<-flowing
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// cut ends all connections; new ones are accepted.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.connections {
		_ = c.Close()
	}
	r.connections = nil
}

// freeze lets nothing pass any more, without anybody being told.
func (r *relay) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flowing = make(chan struct{})
}

// thaw lets pass what was held back, and what follows.
func (r *relay) thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.flowing:
	default:
		close(r.flowing)
	}
}
