package connlimit_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"starling/journal/connlimit"
)

// queue is a listener whose connections come from where a test says.
type queue chan net.Conn

func (q queue) Accept() (net.Conn, error) { return <-q, nil }
func (q queue) Close() error              { return nil }
func (q queue) Addr() net.Addr            { return &net.TCPAddr{} }

// from is one end of a connection from an address.
type from struct {
	net.Conn
	at string
}

func (f from) RemoteAddr() net.Addr {
	at, _ := net.ResolveTCPAddr("tcp", f.at)
	return at
}

// come has a connection accepted, and returns both ends.
func come(t *testing.T, l *connlimit.Listener, q queue, at string) (there net.Conn, here *connlimit.Conn) {
	t.Helper()
	there, end := net.Pipe()
	t.Cleanup(func() { there.Close() })
	go func() { q <- from{end, at} }()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return there, accepted.(*connlimit.Conn)
}

// isOpen tells whether the other end is there yet.
func isOpen(there net.Conn) bool {
	there.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := there.Read(make([]byte, 1))
	return !errors.Is(err, io.EOF)
}

func TestTheIdlestStrangerIsClosed(t *testing.T) {
	var told strings.Builder
	q := make(queue)
	log := slog.New(slog.NewTextHandler(&told, nil))
	l := connlimit.New(q, connlimit.Limits{Known: 2, Strangers: 4, OfAddress: 2}, log)
	first, here := come(t, l, q, "10.0.0.1:1")
	second, _ := come(t, l, q, "10.0.0.1:2")
	go first.Write([]byte("x"))
	if _, err := here.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	third, _ := come(t, l, q, "10.0.0.1:3")
	if !isOpen(first) || isOpen(second) || !isOpen(third) {
		t.Error("of one address the idlest is closed, and no other")
	}
	six, _ := come(t, l, q, "[2001:db8::1]:1")
	also, _ := come(t, l, q, "[2001:db8::2]:1")
	same, _ := come(t, l, q, "[2001:db8::3]:1")
	if isOpen(six) || !isOpen(also) || !isOpen(same) {
		t.Error("64 bits of an IPv6 address are one")
	}
	fifth, _ := come(t, l, q, "10.0.0.9:1")
	if isOpen(first) || !isOpen(third) || !isOpen(also) || !isOpen(same) || !isOpen(fifth) {
		t.Error("of all addresses the idlest is closed, and no other")
	}
	if log := told.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "from=10.0.0.1") {
		t.Errorf("the log tells %q", log)
	}
}

func TestKnownOwnersHaveTheirOwnPlaces(t *testing.T) {
	q := make(queue)
	l := connlimit.New(q, connlimit.Limits{Known: 3, Strangers: 1, OfAddress: 1}, nil)
	alice := connlimit.Share{Key: "user alice", Max: 2}
	var all []*connlimit.Conn
	for range 2 {
		_, here := come(t, l, q, "10.0.0.1:1")
		if err := here.Known(alice); err != nil {
			t.Fatal(err)
		}
		all = append(all, here)
	}
	there, here := come(t, l, q, "10.0.0.1:1")
	err := here.Known(alice)
	if !errors.Is(err, connlimit.ErrFull) || !strings.Contains(err.Error(), "user alice has 2") || !isOpen(there) {
		t.Errorf("a third of alice gets %v", err)
	}
	if err := all[0].Known(alice); err != nil {
		t.Errorf("what is known already gets %v", err)
	}
	for range 2 {
		all[0].Close() // twice is once
	}
	if err := here.Known(alice); err != nil {
		t.Errorf("after another has ended it gets %v", err)
	}
	_, other := come(t, l, q, "10.0.0.1:1")
	if err := other.Known(connlimit.Share{Key: "user bob", Max: 2}); err != nil {
		t.Fatal(err)
	}
	_, more := come(t, l, q, "10.0.0.1:1")
	if err := more.Known(); !errors.Is(err, connlimit.ErrFull) {
		t.Errorf("one beyond all gets %v", err)
	}
	for range 9 {
		come(t, l, q, "10.0.0.1:1")
	}
	if err := errors.Join(all[1].Close(), more.Known()); err != nil {
		t.Errorf("one that was closed meanwhile gets %v", err)
	}
}

func TestStrangersHaveATime(t *testing.T) {
	q := make(queue)
	l := connlimit.New(q, connlimit.Limits{Known: 1, Strangers: 2, OfAddress: 2, Within: 50 * time.Millisecond}, nil)
	known, here := come(t, l, q, "10.0.0.1:1")
	if err := here.Known(); err != nil {
		t.Fatal(err)
	}
	stranger, _ := come(t, l, q, "10.0.0.1:1")
	stranger.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := stranger.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a stranger that says nothing gets %v", err)
	}
	if !isOpen(known) {
		t.Error("one that is known is closed")
	}
}

func TestAListenerHasAQuarterOfTheFiles(t *testing.T) {
	d := connlimit.Default()
	if d.Known < 32 || d.Known+d.Strangers > 1<<14 || d.Strangers > 1<<10 || d.OfAddress > d.Strangers {
		t.Errorf("got %+v", d)
	}
}
