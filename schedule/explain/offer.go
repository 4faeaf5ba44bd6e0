package explain

import (
	"cmp"
	"slices"
	"strconv"

	"starling/terms"
	"starling/terms/constraint"
)

// offer is that of a node which is like the nearest, has room for so many instances of the task, and brings certain
// amounts instead of what those need.
func (c *diagnosis) offer(instances int64, brought terms.Amounts) terms.Offer {
	o := terms.Offer{PortFirst: portFirst, PortLast: portLast, Rules: c.e.s.Rules}
	if len(c.misses) > 0 {
		o.Attributes = slices.Clone(c.misses[0].node.Offer.Attributes)
	}
	o.Attributes = slices.DeleteFunc(o.Attributes, func(a terms.EnvVar) bool { return a.Name == terms.ExclusiveAttribute })
	for _, t := range c.beside(brought == terms.Amounts{}) {
		for i := range t.Constraints {
			satisfy(&o, &t.Constraints[i])
		}
		for k, amount := range t.Resources {
			o.Capacity[k] = max(o.Capacity[k], amount*instances)
		}
		for i := range t.Devices {
			provide(&o, &t.Devices[i], instances)
		}
	}
	for k := range o.Capacity {
		o.Capacity[k] = cmp.Or(brought[k], o.Capacity[k])
	}
	for i := range o.Devices {
		if k, ok := terms.DeviceKind(o.Devices[i].Kind); ok && brought[k] > 0 {
			o.Devices[i].Count = uint32(brought[k] / int64(terms.WholeDevice))
		}
	}
	return o
}

// The ports of nodes in trials.
const portFirst, portLast = 20000, 29999

// beside returns the tasks whose instances must run beside those of the task, itself last: those that virtual peers
// run, and if a node is to take any of its gang, those of that.
func (c *diagnosis) beside(any bool) (all []*terms.Task) {
	for i := range c.e.job.Spec.Tasks {
		if t := &c.e.job.Spec.Tasks[i]; t.Name != c.e.task.Name && (any && c.e.job.HasGang() || c.e.job.Spec.Shares()) {
			all = append(all, t)
		}
	}
	return append(all, c.e.spec)
}

// provide gives an offer the devices that so many instances need.
func provide(o *terms.Offer, d *terms.DeviceRequest, instances int64) {
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

// satisfy gives an offer the attributes with which a constraint holds, as far as attributes decide it.
func satisfy(o *terms.Offer, k *constraint.Constraint) {
	switch {
	case len(k.All) > 0:
		for i := range k.All {
			satisfy(o, &k.All[i])
		}
	case len(k.Any) > 0:
		satisfy(o, &k.Any[0])
	case k.Label != "":
		if k.Within != "" && (k.Operator == constraint.Less || k.Operator == constraint.LessOrEqual ||
			k.Operator == constraint.Equal) {
			set(o, k.Within, "another")
		}
	case k.Attribute != terms.NodeAttribute:
		satisfyAttribute(o, k)
	}
}

// satisfyAttribute is satisfy for a constraint about an attribute.
func satisfyAttribute(o *terms.Offer, k *constraint.Constraint) {
	switch k.Operator {
	case constraint.Exists:
		if _, exists := o.Attribute(k.Attribute); !exists {
			set(o, k.Attribute, "1")
		}
	case constraint.NotExists, constraint.NotEqual, constraint.NotIn:
		o.Attributes = slices.DeleteFunc(o.Attributes, func(a terms.EnvVar) bool { return a.Name == k.Attribute })
	case constraint.Equal, constraint.In:
		set(o, k.Attribute, k.Values[0])
	default:
		number, _ := strconv.ParseInt(k.Values[0], 10, 64)
		set(o, k.Attribute, strconv.FormatInt(number+
			map[constraint.Operator]int64{constraint.Less: -1, constraint.Greater: 1}[k.Operator], 10))
	}
}

// set gives an offer an attribute.
func set(o *terms.Offer, name, value string) {
	at, found := slices.BinarySearchFunc(o.Attributes, name,
		func(a terms.EnvVar, name string) int { return cmp.Compare(a.Name, name) })
	if !found {
		o.Attributes = slices.Insert(o.Attributes, at, terms.EnvVar{})
	}
	o.Attributes[at] = terms.EnvVar{Name: name, Value: value}
}
