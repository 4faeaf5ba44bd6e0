package terms

import (
	"slices"

	"starling/terms/rules"
)

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

// Slack is the kind of device of which a node has one for each whole core that its instances were promised and do not
// use. Revocable jobs may ask for it; a node that has less of it than is in use ends the instances beyond.
const Slack = "slack"

// Rare tells whether nodes with devices of the kind are kept for work that asks for them: virtual peers and slack are
// made of processors, which all nodes have.
func Rare(kind string, in rules.Number) bool {
	return in < rules.RareDevices || kind != VirtualPeers.String() && kind != Slack
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

// Slack returns what an instance asks for of slack.
func (t *Task) Slack() Millidevices {
	for i := range t.Devices {
		if t.Devices[i].Kind == Slack {
			return t.Devices[i].Amount
		}
	}
	return 0
}

// DeviceOffer is what a node has of one kind of device; their numbers are 0 to Count-1.
type DeviceOffer struct {
	Kind string
	// Model is what all of them are, such as "A100"; "" if it was not told.
	Model string
	Count uint32
}
