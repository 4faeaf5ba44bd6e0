package zookeeper

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// session is one session with the ensemble. That of a pulse goes on over one connection after another; the one for
// everything else ends with its connection, and another follows.
//
// The library keeps sessions alive, but is too patient with a server that accepts a connection and then says nothing,
// and cannot let go of a session without ending it. So the session stands between the library and its connections.
type session struct {
	config *Config
	conn   *zk.Conn
	events <-chan zk.Event
	asked  time.Duration // how long it shall outlive its connection
	brief  bool          // it ends with its first connection

	ctx     context.Context // until the ensemble has ended it, or nothing is to be sent any more
	cancel  context.CancelFunc
	begun   bool          // whether began is closed; only the library's loop asks
	began   chan struct{} // closed when the ensemble has granted it
	usable  chan struct{} // closed when it has shown who asks, too
	granted atomic.Int64  // nanoseconds for which it outlives its connection
	failed  int           // connections tried since the last that worked; only the library's loop asks

	mu    sync.Mutex
	hints map[string]<-chan zk.Event // of watched nodes
}

// newSession begins a session, and returns before a server has answered.
func newSession(ctx context.Context, config *Config, asked time.Duration, brief bool) (*session, error) {
	s := &session{
		config: config, asked: asked, brief: brief,
		began: make(chan struct{}), usable: make(chan struct{}), hints: make(map[string]<-chan zk.Event),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	var err error
	s.conn, s.events, err = zk.Connect(config.Servers, asked, zk.WithHostProvider(&serverList{session: s}),
		zk.WithDialer(s.dial), zk.WithEventCallback(s.heard), zk.WithLogger(mute{}))
	if err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// heard is called by the library with everything that happens to the session.
func (s *session) heard(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		if !s.begun {
			s.begun = true
			close(s.began)
		}
	case zk.StateDisconnected:
		if s.brief && s.begun {
			s.cancel()
		}
	case zk.StateExpired:
		s.cancel() // the library would begin another
	}
}

// tend makes the session usable, and ends it when over is closed or nothing is to be sent any more: by a word to the
// ensemble, if that still can be said. It returns when nothing of the session runs any more.
func (s *session) tend(over <-chan struct{}) {
	select {
	case <-s.began:
		if s.config.Auth != "" && s.conn.AddAuth("digest", []byte(s.config.Auth)) != nil {
			s.cancel()
			break
		}
		close(s.usable)
	case <-over:
	case <-s.ctx.Done():
	}
	select {
	case <-over:
	case <-s.ctx.Done():
	}
	s.conn.Close()
	s.cancel()
	for range s.events {
	}
}

// ready waits until the session can be used.
func (s *session) ready(ctx context.Context) error {
	select {
	case <-s.usable:
		return nil
	case <-s.ctx.Done():
		return zk.ErrConnectionClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// timeout is for how long the session outlives its connection.
func (s *session) timeout() time.Duration { return time.Duration(s.granted.Load()) }

// answered asks the ensemble within the session. An answer that comes after ctx has ended is dropped.
func answered[A any](ctx context.Context, s *session, ask func(*zk.Conn) (A, error)) (A, error) {
	type answer struct {
		answer A
		err    error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the session at the latest: the library answers everything then
		got, err := ask(s.conn)
		answers <- answer{got, err}
	}()
	select {
	case got := <-answers:
		return got.answer, got.err
	case <-ctx.Done():
		var none A
		return none, ctx.Err()
	}
}

// serverList names the servers to the library, one after the other. Names are resolved for each connection.
type serverList struct {
	session *session
	servers []string
	next    int
}

// Init implements zk.HostProvider.
func (l *serverList) Init(servers []string) error {
	l.servers = servers
	return nil
}

// Len implements zk.HostProvider.
func (l *serverList) Len() int { return len(l.servers) }

// Next implements zk.HostProvider. Only where it returns true the library looks whether it is to end.
func (l *serverList) Next() (server string, pause bool) {
	l.next = (l.next + 1) % len(l.servers)
	return l.servers[l.next], l.session.ctx.Err() != nil
}

// Connected implements zk.HostProvider.
func (l *serverList) Connected() { l.session.failed = 0 }

// dial connects to a server; after a round in vain it waits a little.
func (s *session) dial(_, address string, limit time.Duration) (net.Conn, error) {
	if s.failed > 0 && s.failed%len(s.config.Servers) == 0 {
		if err := wait(s.ctx, redialEvery); err != nil {
			return nil, err
		}
	}
	s.failed++
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	var conn net.Conn
	var err error
	if s.config.TLS != nil {
		conn, err = (&tls.Dialer{Config: s.config.TLS}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, session: s}
	w.stop = context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	return w, nil
}

// greetingBytes are those with which a server answers at first: the length of its answer, the protocol's version, and
// for how long a session outlives its connection.
const greetingBytes = 12

// wire is a connection that does not stay silent for long, and over which nothing more goes once its session is cut.
type wire struct {
	net.Conn
	session  *session
	stop     func() bool
	greeting []byte
}

// Read implements net.Conn. A session that works hears at least every third of its time out.
func (w *wire) Read(b []byte) (int, error) {
	silence := w.session.asked / 3
	if len(w.greeting) == greetingBytes {
		silence = w.session.timeout() / 2
	}
	if err := w.Conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(b)
	if missing := greetingBytes - len(w.greeting); missing > 0 {
		w.greeting = append(w.greeting, b[:min(n, missing)]...)
		if millis := binary.BigEndian.Uint32; len(w.greeting) == greetingBytes {
			w.session.granted.Store(int64(time.Duration(millis(w.greeting[8:])) * time.Millisecond))
		}
	}
	return n, err
}

// SetReadDeadline implements net.Conn: Read knows better.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// Write implements net.Conn.
func (w *wire) Write(b []byte) (int, error) {
	if w.session.ctx.Err() != nil {
		return 0, fmt.Errorf("the session is given up: %w", net.ErrClosed)
	}
	return w.Conn.Write(b)
}

// Close implements net.Conn.
func (w *wire) Close() error {
	w.stop()
	return w.Conn.Close()
}

// mute is the library's logger: what it tells of, errors tell as well.
type mute struct{}

// Printf implements zk.Logger.
func (mute) Printf(string, ...any) {}
