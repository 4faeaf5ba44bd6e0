package terms

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"starling/terms/rules"
)

// Offer is what a node gives to the cluster.
type Offer struct {
	Capacity Resources
	// Attributes are ordered by name, each name once.
	Attributes []EnvVar
	// Devices are ordered by kind, each kind once.
	Devices []DeviceOffer
	// PortFirst to PortLast may be given to tasks that leave the choice to the scheduler.
	PortFirst, PortLast uint16
	// Address is where the node's peer answers requests: "host:port".
	Address string
	// Rules is the newest version of the fold that the node's program knows.
	Rules rules.Number
	// AwayUntil is not 0 while the peer is away with notice: until then what runs on the node stays its own, and it is
	// given nothing new.
	AwayUntil Time
}

// The versions of an offer's encoding: the second has AwayUntil.
const (
	OfferVersionFirst = 1
	OfferVersion      = 2
)

// AwayMillisMax bounds how long a peer may be away with notice: a day.
const AwayMillisMax = 24 * 60 * 60 * 1000

// Version returns the lowest version of the encoding that has every field which is not zero.
func (o *Offer) Version() uint16 {
	if o.AwayUntil != 0 {
		return OfferVersion
	}
	return OfferVersionFirst
}

// Open tells whether there is an offer that takes new work: its peer is not away.
func (o *Offer) Open() bool { return o != nil && o.AwayUntil == 0 }

// Less tells whether an offer is less than, or other than, one of the same node before, but for devices; nil is none.
func (o *Offer) Less(before *Offer) bool {
	return before != nil && (o == nil || o.Capacity != before.Capacity || before.Open() && !o.Open() ||
		!slices.Equal(o.Attributes, before.Attributes))
}

// NodeAttribute is the attribute with which a node tells its name. It is not part of a node's class.
const NodeAttribute = "node"

// Attribute returns the value of an attribute and whether the node has it.
func (o *Offer) Attribute(name string) (string, bool) {
	for i := range o.Attributes {
		if o.Attributes[i].Name == name {
			return o.Attributes[i].Value, true
		}
	}
	return "", false
}

// Class is the same for offers with equal attributes, but for the node's own name, and equal kinds and models of
// devices.
func (o *Offer) Class() string {
	var key []byte
	for _, a := range o.Attributes {
		if a.Name != NodeAttribute {
			key = append(append(append(append(key, a.Name...), 0), a.Value...), 0)
		}
	}
	key = append(key, 1)
	for _, d := range o.Devices {
		key = append(append(append(append(key, d.Kind...), 0), d.Model...), 0)
	}
	return string(key)
}

// Amounts returns what a node gives to pools.
func (o *Offer) Amounts() (a Amounts) {
	copy(a[:], o.Capacity[:])
	for _, d := range o.Devices {
		if k, ok := DeviceKind(d.Kind); ok {
			a[k] += int64(d.Count) * int64(WholeDevice)
		}
	}
	return a
}

// Purpose says for what a node is kept.
type Purpose uint8

// The purposes, of which each node has one.
const (
	// AnyWork nodes are kept for no kind of work.
	AnyWork Purpose = iota
	// DeviceWork nodes offer devices of a rare kind; other work goes there when it fits nowhere else.
	DeviceWork
	// ExclusiveWork nodes have the attribute ExclusiveAttribute and take only tasks that have a constraint on it.
	ExclusiveWork
	PurposeCount
)

// ExclusiveAttribute keeps a node for the tasks with a constraint on it, anywhere among their constraints.
const ExclusiveAttribute = "exclusive"

// Exclusive tells whether a node with the offer is kept for ExclusiveWork.
func (o *Offer) Exclusive() bool {
	_, exclusive := o.Attribute(ExclusiveAttribute)
	return exclusive
}

// Purpose returns for what a node with the offer is kept.
func (o *Offer) Purpose(in rules.Number) Purpose {
	switch {
	case o.Exclusive():
		return ExclusiveWork
	case slices.ContainsFunc(o.Devices, func(d DeviceOffer) bool { return Rare(d.Kind, in) }):
		return DeviceWork
	}
	return AnyWork
}

// Limits of an offer.
const (
	// AttributesMax bounds the attributes, AttributeBytesMax the name and value of one together.
	AttributesMax     = 256
	AttributeBytesMax = 1024
	// AddressBytesMax bounds the address.
	AddressBytesMax = 252
)

// Problem returns what is wrong with the offer, or "".
func (o *Offer) Problem() string {
	for k, amount := range o.Capacity {
		if amount < 0 || amount > BytesMax {
			return Kind(k).String() + " must be 0 to 2^60"
		}
	}
	if reason := o.attributeProblem(); reason != "" {
		return reason
	}
	if len(o.Address) > AddressBytesMax || !utf8.ValidString(o.Address) {
		return fmt.Sprintf("the address must be UTF-8 of at most %d bytes", AddressBytesMax)
	}
	if o.PortFirst > o.PortLast || o.PortFirst == 0 && o.PortLast != 0 {
		return "the first port must be above 0 and not above the last"
	}
	return o.deviceProblem()
}

func (o *Offer) attributeProblem() string {
	if len(o.Attributes) > AttributesMax {
		return fmt.Sprintf("must have at most %d attributes, has %d", AttributesMax, len(o.Attributes))
	}
	for i, a := range o.Attributes {
		if len(a.Name)+len(a.Value) > AttributeBytesMax {
			return fmt.Sprintf("attribute %q must have at most %d bytes with its value", a.Name, AttributeBytesMax)
		}
		if text := a.Name + a.Value; strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return fmt.Sprintf("attribute %q must be UTF-8 without zero bytes, and so must its value", a.Name)
		}
		if a.Name == "" || i > 0 && o.Attributes[i-1].Name >= a.Name {
			return "attributes must be named and ordered by name, each name once"
		}
	}
	return ""
}

func (o *Offer) deviceProblem() string {
	for i, d := range o.Devices {
		switch {
		case NameProblem(d.Kind, false) != "":
			return fmt.Sprintf("the kind of device %q %s", d.Kind, NameProblem(d.Kind, false))
		case i > 0 && o.Devices[i-1].Kind == d.Kind:
			return fmt.Sprintf("devices of kind %s are given twice: give each kind once", d.Kind)
		case d.Count > DevicesMax || i > 0 && o.Devices[i-1].Kind > d.Kind:
			return fmt.Sprintf("devices must be ordered by kind, at most %d of each", DevicesMax)
		}
		if reason := NameProblem(d.Model, false); reason != "" && d.Model != "" {
			return "the model of " + d.Kind + " " + reason
		}
	}
	return ""
}

// Equal tells whether two offers are the same in every field.
func (o *Offer) Equal(other *Offer) bool {
	return o.Capacity == other.Capacity && slices.Equal(o.Attributes, other.Attributes) &&
		slices.Equal(o.Devices, other.Devices) &&
		o.PortFirst == other.PortFirst && o.PortLast == other.PortLast && o.Address == other.Address &&
		o.Rules == other.Rules && o.AwayUntil == other.AwayUntil
}
