package dns

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// questionsMax bounds the questions of one client that are answered within a second.
	questionsMax = 1000
	// clientsMax bounds the clients within a second that are counted each by itself. Those beyond count as one.
	clientsMax = 4096
)

// clients counts what each of them asks. It is safe for concurrent use.
type clients struct {
	now func() time.Time

	mu     sync.Mutex
	second int64
	asked  map[netip.Prefix]int
}

// allow counts a question of a client, and tells whether it is to be answered.
func (c *clients) allow(client net.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if second := c.now().Unix(); second != c.second {
		c.second = second
		clear(c.asked)
	}
	name := networkOf(client)
	if _, known := c.asked[name]; !known && len(c.asked) >= clientsMax {
		name = netip.Prefix{}
	}
	c.asked[name]++
	return c.asked[name] <= questionsMax
}

// networkOf names a client: by its address, in version 6 by the network of 64 bits, of which one machine has all.
func networkOf(client net.Addr) netip.Prefix {
	from, err := netip.ParseAddrPort(client.String())
	if err != nil {
		return netip.Prefix{}
	}
	address := from.Addr().Unmap()
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(address, bits).Masked()
}
