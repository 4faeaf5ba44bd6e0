package dns

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestClientsAreLimited counts the answers to questions within a second, and in the next.
func TestClientsAreLimited(t *testing.T) {
	now := time.Unix(100, 0)
	c := &clients{now: func() time.Time { return now }, asked: map[netip.Prefix]int{}}
	from := func(address string) net.Addr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)) }
	answered := func(addresses ...string) (count int) {
		for i := range 3 * questionsMax {
			if c.allow(from(addresses[i%len(addresses)])) {
				count++
			}
		}
		return count
	}
	if got := answered("10.0.0.1:1", "10.0.0.1:2"); got != questionsMax {
		t.Errorf("got %d answers for one client, want %d", got, questionsMax)
	}
	if got := answered("10.0.0.2:1", "[2001:db8::1]:1", "[2001:db8::2]:1"); got != 2*questionsMax {
		t.Errorf("got %d answers for another and a network of version 6, want %d", got, 2*questionsMax)
	}
	for i := range 2 * clientsMax {
		c.allow(from(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 1).String()))
	}
	if got := len(c.asked); got > clientsMax+1 {
		t.Errorf("%d clients are counted, want at most %d", got, clientsMax+1)
	}
	if c.allow(from("10.9.9.9:1")) {
		t.Error("a client beyond those that are counted is answered, although they have asked too much together")
	}
	if now = now.Add(time.Second); !c.allow(from("10.0.0.1:1")) || len(c.asked) != 1 {
		t.Error("a client is not answered in the next second")
	}
}
