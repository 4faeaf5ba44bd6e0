// Package suitable says what keeps a task from a node, and changes the offer of an imagined node, or the task, until it
// may run there.
package suitable

import (
	"cmp"
	"slices"
	"strconv"

	"starling/terms"
	"starling/terms/constraint"
)

// Provide gives an offer the devices that so many instances need.
func Provide(o *terms.Offer, d *terms.DeviceRequest, instances int64) {
	one := terms.DeviceOffer{Kind: d.Kind,
		Count: uint32((int64(d.Amount)*instances + int64(terms.WholeDevice) - 1) / int64(terms.WholeDevice))}
	if len(d.Models) > 0 {
		one.Model = d.Models[0]
	}
	at, found := slices.BinarySearchFunc(o.Devices, d.Kind,
		func(o terms.DeviceOffer, kind string) int { return cmp.Compare(o.Kind, kind) })
	if !found {
		o.Devices = slices.Insert(o.Devices, at, one)
		return
	}
	o.Devices[at].Count = max(o.Devices[at].Count, one.Count)
}

// Satisfy gives an offer the attributes with which a constraint holds, as far as attributes decide it.
func Satisfy(o *terms.Offer, k *constraint.Constraint) {
	switch {
	case len(k.All) > 0:
		for i := range k.All {
			Satisfy(o, &k.All[i])
		}
	case len(k.Any) > 0:
		Satisfy(o, &k.Any[0])
	case k.Label != "":
		if k.Within != "" && (k.Operator == constraint.Less || k.Operator == constraint.LessOrEqual ||
			k.Operator == constraint.Equal) {
			Set(o, k.Within, "another")
		}
	case k.Attribute != terms.NodeAttribute:
		satisfyAttribute(o, k)
	}
}

// satisfyAttribute is Satisfy for a constraint about an attribute.
func satisfyAttribute(o *terms.Offer, k *constraint.Constraint) {
	switch k.Operator {
	case constraint.Exists:
		if _, exists := o.Attribute(k.Attribute); !exists {
			Set(o, k.Attribute, "1")
		}
	case constraint.NotExists, constraint.NotEqual, constraint.NotIn:
		o.Attributes = slices.DeleteFunc(o.Attributes, func(a terms.EnvVar) bool { return a.Name == k.Attribute })
	case constraint.Equal, constraint.In:
		Set(o, k.Attribute, k.Values[0])
	default:
		number, _ := strconv.ParseInt(k.Values[0], 10, 64)
		Set(o, k.Attribute, strconv.FormatInt(number+
			map[constraint.Operator]int64{constraint.Less: -1, constraint.Greater: 1}[k.Operator], 10))
	}
}

// Set gives an offer an attribute.
func Set(o *terms.Offer, name, value string) {
	at, found := slices.BinarySearchFunc(o.Attributes, name,
		func(a terms.EnvVar, name string) int { return cmp.Compare(a.Name, name) })
	if !found {
		o.Attributes = slices.Insert(o.Attributes, at, terms.EnvVar{})
	}
	o.Attributes[at] = terms.EnvVar{Name: name, Value: value}
}
