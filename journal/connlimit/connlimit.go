// Package connlimit bounds the connections that a listener has open at a time, so that nobody who reaches its address
// takes all file descriptors of the process. Both listeners of the etcd member and those of the API have one.
//
// A connection is a stranger's until its owner has proved who it is, by Conn.Known. Strangers have few places; when
// those are taken, the one from which nothing was read for the longest time is closed for the next. Other owners have
// places of their own.
package connlimit

import (
	"container/list"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// Limits are those of one listener.
type Limits struct {
	// Known bounds the connections whose owner is known, Strangers all others.
	Known, Strangers int
	// OfAddress bounds the strangers of one address: an IPv4 address, 64 bits of an IPv6 address, or what the method
	// Address() string of a connection returns.
	OfAddress int
	// Within is how long a connection may be a stranger's, 0 for as long as it likes.
	Within time.Duration
}

const (
	// allMax bounds the connections of a listener, whatever the process may open.
	allMax = 1 << 14
	// allMin is what a listener has even where the process may open very few files.
	allMin = 64
	// strangersMax bounds those whose owner is not known.
	strangersMax = 1 << 10
	// toldEvery is the pause between two lines of the log about connections that were closed: there can be many.
	toldEvery = time.Minute
)

// Default returns the limits of a listener that may have a quarter of the files that the process may open.
func Default() Limits {
	var files unix.Rlimit
	all := uint64(allMax)
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		all = max(min(all, uint64(files.Cur)/4), allMin)
	}
	strangers := min(int(all)/2, strangersMax)
	return Limits{Known: int(all) - strangers, Strangers: strangers, OfAddress: strangers / 2}
}

// ErrFull is the reason why the owner of a connection has no place for it.
var ErrFull = errors.New("too many connections")

// Listener is a listener with limits.
type Listener struct {
	net.Listener
	limits  Limits
	log     *slog.Logger
	telling rate.Sometimes

	mu        sync.Mutex
	strangers *list.List            // of *Conn; in front is from which nothing was read for the longest time
	addresses map[string]*list.List // the same of each address
	known     int
	shares    map[string]int // the connections that are known, by Share.Key
}

// New bounds a listener. The log is told of connections that are closed; nil for nobody.
func New(listener net.Listener, limits Limits, log *slog.Logger) *Listener {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Listener{Listener: listener, limits: limits, log: log,
		telling:   rate.Sometimes{First: 1, Interval: toldEvery},
		strangers: list.New(), addresses: map[string]*list.List{}, shares: map[string]int{}}
}

// Accept returns the next connection, and may close another for it. Its type is *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: connection, of: l, address: addressOf(connection)}
	l.mu.Lock()
	var reason string
	var last *Conn
	if own := l.addresses[c.address]; own != nil && own.Len() >= l.limits.OfAddress {
		last, reason = own.Front().Value.(*Conn), "its address has too many on which nobody has shown credentials"
	} else if l.strangers.Len() >= l.limits.Strangers {
		last, reason = l.strangers.Front().Value.(*Conn), "there are too many on which nobody has shown credentials"
	}
	if last != nil {
		last.leave()
	}
	c.enter()
	l.mu.Unlock()
	if last != nil {
		_ = last.Conn.Close() // its owner cannot be told
		l.telling.Do(func() { l.log.Warn("connections are closed", "from", last.address, "reason", reason) })
	}
	return c, nil
}

// addressOf is whose strangers a connection counts with.
func addressOf(connection net.Conn) string {
	if named, ok := connection.(interface{ Address() string }); ok {
		return named.Address()
	}
	at, err := netip.ParseAddrPort(connection.RemoteAddr().String())
	if err != nil {
		return ""
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}

// Conn is a connection that counts until it is closed.
type Conn struct {
	net.Conn
	of      *Listener
	address string

	// All below is guarded by the listener's lock.
	gone     bool
	inAll    *list.Element // nil if it is no stranger's
	inOwn    *list.Element
	deadline *time.Timer
	shares   []Share
}

// Address is whose strangers the connection counts with until its owner is known.
func (c *Conn) Address() string { return c.address }

// Share is a part of the places that the connections of a key have together.
type Share struct {
	Key string
	Max int
}

// Known gives the connection one of the places of its owner, and of all that the owner is counted with. Without a
// place it stays a stranger's, and the error is an ErrFull that says what is full. What is known already stays so.
func (c *Conn) Known(shares ...Share) error {
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.inAll == nil {
		return nil
	}
	for _, s := range shares {
		if l.shares[s.Key] >= s.Max {
			return fmt.Errorf("%w: %s has %d at this peer, as many as it may have; close some", ErrFull, s.Key, s.Max)
		}
	}
	if l.known >= l.limits.Known {
		return fmt.Errorf("%w: this peer has %d, as many as it may have; ask another peer", ErrFull, l.known)
	}
	c.leave()
	c.gone, c.shares = false, shares
	l.known++
	for _, s := range shares {
		l.shares[s.Key]++
	}
	return nil
}

// enter makes the connection a stranger's. The caller has the lock.
func (c *Conn) enter() {
	l := c.of
	own := l.addresses[c.address]
	if own == nil {
		own = list.New()
		l.addresses[c.address] = own
	}
	c.inAll, c.inOwn = l.strangers.PushBack(c), own.PushBack(c)
	if l.limits.Within > 0 {
		c.deadline = time.AfterFunc(l.limits.Within, c.late)
	}
}

// late closes a connection that is a stranger's yet.
func (c *Conn) late() {
	c.of.mu.Lock()
	late := c.inAll != nil
	c.of.mu.Unlock()
	if late {
		_ = c.Close()
	}
}

// leave has the connection count no more. The caller has the lock.
func (c *Conn) leave() {
	l := c.of
	if c.gone {
		return
	}
	c.gone = true
	if c.inAll == nil {
		l.known--
		for _, s := range c.shares {
			if l.shares[s.Key]--; l.shares[s.Key] == 0 {
				delete(l.shares, s.Key)
			}
		}
		return
	}
	l.strangers.Remove(c.inAll)
	own := l.addresses[c.address]
	if own.Remove(c.inOwn); own.Len() == 0 {
		delete(l.addresses, c.address)
	}
	c.inAll, c.inOwn = nil, nil
	if c.deadline != nil {
		c.deadline.Stop()
	}
}

// Read reads, and keeps a stranger's connection from being the next that is closed.
func (c *Conn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if n > 0 {
		c.of.mu.Lock()
		if c.inAll != nil {
			c.of.strangers.MoveToBack(c.inAll)
			c.of.addresses[c.address].MoveToBack(c.inOwn)
		}
		c.of.mu.Unlock()
	}
	return n, err
}

// Close gives the place back.
func (c *Conn) Close() error {
	c.of.mu.Lock()
	c.leave()
	c.of.mu.Unlock()
	return c.Conn.Close()
}
