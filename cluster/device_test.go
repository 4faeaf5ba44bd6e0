package cluster

import (
	"fmt"
	"testing"

	"starling/cluster/facts"
	"starling/terms"
)

// give gives a slot a device of a node.
func give(n *Node, q terms.DeviceRequest, r facts.SlotRef) {
	n.Give(nil, &terms.Task{Devices: []terms.DeviceRequest{q}}, r)
}

// TestDevices gives devices one by one, tells which numbers came of it, and how many more such would fit.
func TestDevices(t *testing.T) {
	gpu := func(amount terms.Millidevices, models ...string) terms.DeviceRequest {
		return terms.DeviceRequest{Kind: "gpu", Amount: amount, Models: models}
	}
	cases := []struct {
		count  uint32
		given  []terms.DeviceRequest
		next   terms.DeviceRequest
		want   string
		second uint32
	}{
		{2, nil, gpu(1000), "[0:1000]", 1},
		{2, nil, gpu(2000), "[0:1000 1:1000]", 0},
		{1, nil, gpu(2000), "none", 0},
		{2, nil, gpu(300), "[0:300]", 5},
		{2, []terms.DeviceRequest{gpu(300)}, gpu(1000), "[1:1000]", 0},
		{2, []terms.DeviceRequest{gpu(300)}, gpu(2000), "none", 0},
		{2, []terms.DeviceRequest{gpu(300)}, gpu(800), "[1:800]", 0},
		// A share goes where the least is left for it, although a device before that has room.
		{2, []terms.DeviceRequest{gpu(300), gpu(800)}, gpu(200), "[1:200]", 3},
		{2, []terms.DeviceRequest{gpu(300), gpu(800)}, gpu(700), "[0:700]", 0},
		{3, []terms.DeviceRequest{gpu(500), gpu(500)}, gpu(1), "[1:1]", 1999},
		// Six hundred twice do not share a device, although there is as much in all.
		{1, []terms.DeviceRequest{gpu(600)}, gpu(600), "none", 0},
		{4, nil, gpu(1000, "H100"), "none", 0},
		{4, nil, gpu(1000, "A100", "H100"), "[0:1000]", 3},
		{4, nil, terms.DeviceRequest{Kind: "fpga", Amount: 1000}, "none", 0},
		// Two devices are left of four that were offered: a number that is not offered any more counts for nothing.
		{2, []terms.DeviceRequest{gpu(1000), gpu(1000), gpu(500)}, gpu(500), "none", 0},
	}
	for i, c := range cases {
		n := &Node{Node: facts.Node{Offer: &terms.Offer{Devices: []terms.DeviceOffer{{Kind: "gpu", Model: "A100",
			Count: 8}}}}}
		for k := range c.given {
			give(n, c.given[k], facts.SlotRef{Index: uint32(k)})
		}
		n.Offer.Devices[0].Count = c.count
		got := "none"
		r := facts.SlotRef{Job: 1}
		if n.DeviceTimes(&c.next, 1) == 1 {
			give(n, c.next, r)
			var uses []string
			for _, u := range n.Devices {
				if u.Slot == r {
					uses = append(uses, fmt.Sprintf("%d:%d", u.Number, u.Amount))
				}
			}
			got = fmt.Sprint(uses)
		}
		if second := n.DeviceTimes(&c.next, 1<<20); got != c.want || second != c.second {
			t.Errorf("case %d: got %s and %d more, want %s and %d", i, got, second, c.want, c.second)
		}
	}
}

// TestFewerPeers checks that a node with fewer virtual peers than it runs takes no others, whatever their numbers are.
func TestFewerPeers(t *testing.T) {
	q := terms.DeviceRequest{Kind: terms.VirtualPeers.String(), Amount: terms.WholeDevice}
	n := &Node{Node: facts.Node{Offer: &terms.Offer{Devices: []terms.DeviceOffer{{Kind: q.Kind, Count: 5}}}}}
	for i := range 5 {
		give(n, q, facts.SlotRef{Index: uint32(i)})
	}
	n.Devices = n.Devices[1:] // the first has ended
	for _, c := range []struct{ offered, want uint32 }{{3, 0}, {4, 0}, {5, 1}, {7, 3}} {
		n.Offer.Devices[0].Count = c.offered
		if got := n.DeviceTimes(&q, 9); got != c.want {
			t.Errorf("of %d that are offered four are used: got room for %d, want %d", c.offered, got, c.want)
		}
	}
}
