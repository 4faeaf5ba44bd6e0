package cluster

import "slices"

// Millidevices is an amount of one kind of device, in thousandths of a device.
type Millidevices uint32

const (
	// WholeDevice is one device. What is less is a share of one device; what is more is a number of whole ones.
	WholeDevice Millidevices = 1000
	// DevicesMax bounds the devices of one kind on a node.
	DevicesMax = 1 << 16
)

// String returns the number of devices: "2", "0.25".
func (m Millidevices) String() string { return GPU.Text(int64(m)) }

// DeviceRequest asks for a share of one device of a kind, or for whole ones: 500 or 2000 of "gpu".
type DeviceRequest struct {
	Kind   string
	Amount Millidevices
	// Models are those of which it may be, each once; none if any will do.
	Models []string
}

// Share tells whether less than one device is asked for.
func (q *DeviceRequest) Share() bool { return q.Amount < WholeDevice }

// Takes tells whether a device of the model will do.
func (q *DeviceRequest) Takes(model string) bool {
	return len(q.Models) == 0 || slices.Contains(q.Models, model)
}

// Equal tells whether two requests are the same in every field.
func (q DeviceRequest) Equal(other DeviceRequest) bool {
	return q.Kind == other.Kind && q.Amount == other.Amount && slices.Equal(q.Models, other.Models)
}

// DeviceOffer is what a node has of one kind of device; their numbers are 0 to Count-1.
type DeviceOffer struct {
	Kind string
	// Model is what all of them are, such as "A100"; "" if it was not told.
	Model string
	Count uint32
}

// DeviceUse tells how much of a device a slot has: of number Number of its kind.
type DeviceUse struct {
	Kind   string
	Number uint32
	Amount Millidevices
	Slot   SlotRef
}

// DeviceOf returns what the node offers of a kind.
func (n *Node) DeviceOf(kind string) DeviceOffer {
	if n.Offer != nil {
		for _, d := range n.Offer.Devices {
			if d.Kind == kind {
				return d
			}
		}
	}
	return DeviceOffer{Kind: kind}
}

// EachDeviceInUse visits the devices of a kind that are given away, whole or in part, in the order of their numbers.
// Some may have numbers that the node does not offer any more.
func (n *Node) EachDeviceInUse(kind string, visit func(number uint32, used Millidevices)) {
	for i := 0; i < len(n.Devices); {
		first, used := &n.Devices[i], Millidevices(0)
		for ; i < len(n.Devices) && n.Devices[i].Kind == first.Kind && n.Devices[i].Number == first.Number; i++ {
			used += n.Devices[i].Amount
		}
		if first.Kind == kind {
			visit(first.Number, used)
		}
	}
}

// DeviceTimes returns for how many instances with the request the node has devices left, at most most.
func (n *Node) DeviceTimes(q *DeviceRequest, most uint32) uint32 {
	offer := n.DeviceOf(q.Kind)
	if !q.Takes(offer.Model) {
		return 0
	}
	unused, shares := offer.Count, uint32(0)
	n.EachDeviceInUse(q.Kind, func(number uint32, used Millidevices) {
		if number < offer.Count {
			unused--
			shares += uint32((WholeDevice - used) / q.Amount)
		}
	})
	if q.Kind == GPU.String() {
		// What is kept for others is taken from the devices that nobody has.
		unused -= min(unused, uint32((n.claimed[GPU]+int64(WholeDevice)-1)/int64(WholeDevice)))
	}
	if q.Share() {
		return min(most, shares+unused*uint32(WholeDevice/q.Amount))
	}
	return min(most, unused/uint32(q.Amount/WholeDevice))
}

// giveDevices gives a slot what it asked for, which placement has found: the lowest unused devices, or a share of the
// device in use that has the least left for it.
func (n *Node) giveDevices(q *DeviceRequest, r SlotRef) {
	if !q.Share() {
		for range q.Amount / WholeDevice {
			n.giveDevice(DeviceUse{q.Kind, n.unusedDevice(q.Kind), WholeDevice, r})
		}
		return
	}
	number, least := n.unusedDevice(q.Kind), WholeDevice
	count := n.DeviceOf(q.Kind).Count
	n.EachDeviceInUse(q.Kind, func(inUse uint32, used Millidevices) {
		if left := WholeDevice - used; inUse < count && left >= q.Amount && left < least {
			number, least = inUse, left
		}
	})
	n.giveDevice(DeviceUse{q.Kind, number, q.Amount, r})
}

// unusedDevice returns the lowest number of a kind that nobody has.
func (n *Node) unusedDevice(kind string) uint32 {
	number := uint32(0)
	n.EachDeviceInUse(kind, func(inUse uint32, _ Millidevices) {
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
