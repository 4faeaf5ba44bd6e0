package cluster

import (
	"slices"

	"starling/terms"
)

// DeviceUse tells how much of a device a slot has: of number Number of its kind.
type DeviceUse struct {
	Kind   string
	Number uint32
	Amount terms.Millidevices
	Slot   SlotRef
}

// DeviceOf returns what the node offers of a kind.
func (n *Node) DeviceOf(kind string) terms.DeviceOffer {
	if n.Offer != nil {
		for _, d := range n.Offer.Devices {
			if d.Kind == kind {
				return d
			}
		}
	}
	return terms.DeviceOffer{Kind: kind}
}

// EachDeviceInUse visits the devices of a kind that are given away, whole or in part, in the order of their numbers.
// Some may have numbers that the node does not offer any more.
func (n *Node) EachDeviceInUse(kind string, visit func(number uint32, used terms.Millidevices)) {
	for i := 0; i < len(n.Devices); {
		first, used := &n.Devices[i], terms.Millidevices(0)
		for ; i < len(n.Devices) && n.Devices[i].Kind == first.Kind && n.Devices[i].Number == first.Number; i++ {
			used += n.Devices[i].Amount
		}
		if first.Kind == kind {
			visit(first.Number, used)
		}
	}
}

// DeviceTimes returns for how many instances with the request the node has devices left, at most most.
func (n *Node) DeviceTimes(q *terms.DeviceRequest, most uint32) uint32 {
	offer := n.DeviceOf(q.Kind)
	if !q.Takes(offer.Model) {
		return 0
	}
	unused, shares, rest := offer.Count, uint32(0), int64(0)
	n.EachDeviceInUse(q.Kind, func(number uint32, used terms.Millidevices) {
		if number < offer.Count || q.Kind == terms.VirtualPeers.String() { // of these only the number of them counts
			unused -= min(unused, 1)
			shares += uint32((terms.WholeDevice - used) / q.Amount)
			rest += int64(terms.WholeDevice - used)
		}
	})
	if k, ok := terms.DeviceKind(q.Kind); ok {
		// What is kept for others is taken from the devices that nobody has, and then from what is left of the others.
		whole := min(unused, uint32((n.claimed[k]+int64(terms.WholeDevice)-1)/int64(terms.WholeDevice)))
		rest -= max(n.claimed[k]-int64(whole)*int64(terms.WholeDevice), 0)
		unused, shares = unused-whole, min(shares, uint32(max(rest, 0)/int64(q.Amount)))
	}
	if q.Share() {
		return min(most, shares+unused*uint32(terms.WholeDevice/q.Amount))
	}
	return min(most, unused/uint32(q.Amount/terms.WholeDevice))
}

// giveDevices gives a slot what it asked for, which placement has found: the lowest unused devices, or a share of the
// device in use that has the least left for it.
func (n *Node) giveDevices(q *terms.DeviceRequest, r SlotRef) {
	if !q.Share() {
		for range q.Amount / terms.WholeDevice {
			n.giveDevice(DeviceUse{q.Kind, n.unusedDevice(q.Kind), terms.WholeDevice, r})
		}
		return
	}
	number, least := n.unusedDevice(q.Kind), terms.WholeDevice
	count := n.DeviceOf(q.Kind).Count
	n.EachDeviceInUse(q.Kind, func(inUse uint32, used terms.Millidevices) {
		if left := terms.WholeDevice - used; inUse < count && left >= q.Amount && left < least {
			number, least = inUse, left
		}
	})
	n.giveDevice(DeviceUse{q.Kind, number, q.Amount, r})
}

// unusedDevice returns the lowest number of a kind that nobody has.
func (n *Node) unusedDevice(kind string) uint32 {
	number := uint32(0)
	n.EachDeviceInUse(kind, func(inUse uint32, _ terms.Millidevices) {
		if inUse == number {
			number++
		}
	})
	return number
}

// giveDevice notes a use behind those that come before it.
func (n *Node) giveDevice(use DeviceUse) {
	at := len(n.Devices)
	for at > 0 && (n.Devices[at-1].Kind > use.Kind || n.Devices[at-1].Kind == use.Kind && n.Devices[at-1].Number > use.Number) {
		at--
	}
	n.Devices = slices.Insert(n.Devices, at, use)
}
