package explain

import (
	"cmp"
	"slices"

	"starling/schedule/explain/suitable"
	"starling/terms"
)

// offer is that of a node which is like the nearest, has room for so many instances of the task, and brings certain
// amounts instead of what those need.
func (c *diagnosis) offer(instances int64, brought terms.Amounts) terms.Offer {
	o := terms.Offer{PortFirst: 20000, PortLast: 29999, Rules: c.e.s.Rules}
	if len(c.misses) > 0 {
		o.Attributes = slices.Clone(c.misses[0].node.Offer.Attributes)
	}
	o.Attributes = slices.DeleteFunc(o.Attributes, func(a terms.EnvVar) bool { return a.Name == terms.ExclusiveAttribute })
	if c.roomiest.Value != "" {
		suitable.Set(&o, c.roomiest.Name, c.roomiest.Value)
	}
	for _, t := range c.beside(brought == terms.Amounts{}) {
		for i := range t.Constraints {
			suitable.Satisfy(&o, &t.Constraints[i])
		}
		for k, amount := range t.Resources {
			o.Capacity[k] = max(o.Capacity[k], amount*instances)
		}
		for i := range t.Devices {
			suitable.Provide(&o, &t.Devices[i], instances)
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
