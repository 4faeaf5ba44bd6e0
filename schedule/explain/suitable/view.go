package suitable

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/schedule/explain/wording"
	"starling/terms"
	"starling/terms/constraint"
)

// View answers constraints about a node.
type View struct {
	State *cluster.State
	Task  *terms.Task
	Node  *cluster.Node
}

// Attribute returns the value of an attribute of the node and whether it has it.
func (p *View) Attribute(name string) (value string, exists bool) {
	return p.Node.Offer.Attribute(name)
}

// Instances returns how many instances a constraint about a label counts.
func (p *View) Instances(k *constraint.Constraint) uint32 {
	return p.State.Instances(p.Task, k, p.Node)
}

// Failing says what is there instead of what a constraint asks for.
func (p *View) Failing(k *constraint.Constraint) string {
	var words []string
	k.EachLeaf(func(leaf *constraint.Constraint) {
		if leaf.Holds(p) {
			return
		}
		value, exists := p.Attribute(leaf.Attribute)
		switch {
		case leaf.Label != "":
			words = append(words, fmt.Sprintf("%s with %s=%s%s", wording.Plural(int(p.Instances(leaf)), "instance", "instances"),
				leaf.Label, leaf.Values[0], p.around(leaf)))
		case exists:
			words = append(words, fmt.Sprintf("%s is %s", leaf.Attribute, value))
		default:
			words = append(words, "has no "+leaf.Attribute)
		}
	})
	return strings.Join(words, ", ")
}

// around says where a constraint counts.
func (p *View) around(k *constraint.Constraint) string {
	value, exists := p.Attribute(k.Within)
	switch {
	case k.Within == "":
		return ""
	case exists:
		return fmt.Sprintf(" in %s %s", k.Within, value)
	}
	return " without " + k.Within
}

// Reduce changes a task so that the node of a view can run it.
func Reduce(t *terms.Task, p *View) {
	_, exclusive := p.Node.Offer.Attribute(terms.ExclusiveAttribute)
	for k := range t.Resources {
		t.Resources[k] = min(t.Resources[k], p.Node.Offer.Capacity[k])
	}
	t.Constraints, t.Devices, t.Ports = slices.Clone(t.Constraints), slices.Clone(t.Devices), slices.Clone(t.Ports)
	for i := len(t.Constraints) - 1; i >= 0; i-- {
		if k := &t.Constraints[i]; !k.Social() && !k.Holds(p) && !(exclusive && k.Mentions(terms.ExclusiveAttribute)) {
			t.Constraints = slices.Delete(t.Constraints, i, i+1)
		}
	}
	for i := len(t.Devices) - 1; i >= 0; i-- {
		d, offered := &t.Devices[i], p.Node.DeviceOf(t.Devices[i].Kind)
		if d.Amount = min(d.Amount, terms.WholeDevice*terms.Millidevices(offered.Count)); d.Amount == 0 ||
			!d.Takes(offered.Model) {
			t.Devices = slices.Delete(t.Devices, i, i+1)
		}
	}
	if p.Node.Offer.PortLast == 0 {
		t.Ports = slices.DeleteFunc(t.Ports, func(p terms.PortRequest) bool { return p.Number == 0 })
	}
}
