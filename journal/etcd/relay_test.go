package etcd_test

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// relay stands between a client and a member, and fails as a network does.
type relay struct {
	listener net.Listener
	target   string

	mu          sync.Mutex
	connections map[net.Conn]struct{}
	flowing     chan struct{} // closed while bytes pass
}

// listen starts a relay to the member at url. It ends with the test.
func listen(t testing.TB, url string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r := &relay{
		listener: l, target: strings.TrimPrefix(url, "http://"),
		connections: make(map[net.Conn]struct{}), flowing: make(chan struct{}),
	}
	close(r.flowing)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", r.target)
			if err != nil {
				_ = near.Close()
				continue
			}
			r.add(near, far)
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

func (r *relay) url() string {
	return "http://" + r.listener.Addr().String()
}

func (r *relay) add(both ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range both {
		r.connections[c] = struct{}{}
	}
}

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
	for c := range r.connections {
		_ = c.Close()
	}
	clear(r.connections)
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
