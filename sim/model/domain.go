package model

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/terms"
	"starling/terms/constraint"
)

// domain are the nodes with one value of an attribute.
type domain struct{ attribute, value string }

// roomMax bounds how much room is counted on a node.
const roomMax = 1000

// within tells whether a node is in a domain where instances of a task may go: the one that was chosen for its gang, or where
// those of its job are.
func (p *placing) within(j *Job, n *Node) bool {
	value, exists := n.attribute(j.newest().Within)
	switch home, found := j.home(p.m); {
	case p.chosen && p.domain == nil:
		return true
	case p.chosen:
		value, _ = n.attribute(p.domain.attribute)
		return value == p.domain.value
	case j.newest().Within == "":
		return true
	case found:
		return value == home
	}
	return exists
}

func (n *Node) attribute(name string) (value string, exists bool) {
	if n.offer != nil {
		for _, a := range n.offer.Attributes {
			if a.Name == name {
				return a.Value, true
			}
		}
	}
	return "", false
}

// home returns the domain of the first instance of a job that has a node, of each task the main seats first.
func (j *Job) home(m *Model) (value string, found bool) {
	if j.newest().Within == "" {
		return "", false
	}
	for _, t := range j.tasks {
		for _, beside := range []bool{false, true} {
			t.each(func(s *seat) {
				if !found && (s.kind != cluster.MainSeat) == beside && s.Phase.Holds() && s.Phase != cluster.Stopping {
					value, found = m.Nodes[s.Node].attribute(j.newest().Within)
				}
			})
		}
	}
	return value, found
}

// together returns the attribute of which the members of a gang are to have one value, "" for none.
func (j *Job) together() (attribute string) {
	if attribute = j.newest().Within; attribute != "" {
		return attribute
	}
	for _, t := range j.tasks {
		spec := t.spec(0)
		if spec == nil {
			continue
		}
		for _, rule := range spec.Constraints {
			rule.EachLeaf(func(leaf *constraint.Constraint) {
				company := leaf.Label != "" && !compared(leaf.Operator, 0, int(leaf.Count)) && compared(leaf.Operator, 1, int(leaf.Count))
				if attribute != "" || !company {
					return
				}
				for _, other := range j.newest().Tasks {
					if slices.Contains(other.Labels, terms.EnvVar{Name: leaf.Label, Value: leaf.Values[0]}) {
						attribute = leaf.Within
					}
				}
			})
		}
	}
	return attribute
}

// choice is a domain in which a gang may be.
type choice struct {
	domain
	// whole tells that there is room for all that the job asks for, fits that there is for the gang; sum is the room.
	whole, fits bool
	sum         int
}

// domains returns where the members of a gang are tried, nil for everywhere: those with room for all of the job first, the
// tightest of them first, then the others with room for the gang, the roomiest first.
func (p *placing) domains(j *Job) (all []*domain) {
	attribute := j.together()
	if attribute == "" {
		return []*domain{nil}
	}
	var found []choice
	home, settled := j.home(p.m)
	for _, value := range p.m.valuesOf(attribute) {
		if j.newest().Within != "" && value == "" || settled && value != home {
			continue
		}
		if one := p.measured(j, domain{attribute, value}); one.fits {
			found = append(found, one)
		}
	}
	slices.SortStableFunc(found, func(a, b choice) int {
		switch {
		case a.whole != b.whole && a.whole:
			return -1
		case a.whole != b.whole:
			return 1
		case a.whole:
			return cmp.Compare(a.sum, b.sum)
		}
		return cmp.Compare(b.sum, a.sum)
	})
	for i := range found {
		all = append(all, &found[i].domain)
	}
	if j.newest().Within == "" {
		all = append(all, nil)
	}
	return all
}

// measured counts the room of a domain for a job.
func (p *placing) measured(j *Job, d domain) choice {
	one, spare := choice{domain: d, whole: true, fits: true}, 0
	for _, t := range j.tasks {
		asks, missing, count := int(t.gets()), int(t.missing()), 0
		if asks == 0 || t.spec(0) == nil {
			one.fits = one.fits && missing == 0
			continue
		}
		for _, n := range p.m.Nodes {
			if value, _ := n.attribute(d.attribute); value == d.value {
				count += p.roomFor(t, n)
			}
		}
		one.sum += count
		one.whole = one.whole && count >= asks
		one.fits = one.fits && count >= missing
		spare += min(count, asks) - min(count, asks, missing)
	}
	one.fits = one.fits && spare >= int(j.missingAny())
	return one
}

// valuesOf returns the values of an attribute that nodes have, in order.
func (m *Model) valuesOf(attribute string) (values []string) {
	for _, n := range m.Nodes {
		if value, _ := n.attribute(attribute); n.offer != nil {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// roomFor returns how many instances of a task a node takes, whatever runs around it.
func (p *placing) roomFor(t *task, n *Node) (count int) {
	spec := t.spec(0)
	if !n.open() || !n.rules(spec) {
		return 0
	}
	r := p.m.roomWithout(n, func(*seat) bool { return false })
	portNext := n.portNext
	for r.fits(spec) && (spec.PerNodeMax == 0 || r.own[t] < int(spec.PerNodeMax)) && count < min(roomMax, p.spots.left(t, n)) {
		imagined := t.newSlot().main()
		imagined.Version = t.job.version()
		r.give(imagined)
		count++
	}
	n.portNext = portNext
	return count
}

// rules tells whether the rules of a task hold on a node that are about the node itself and not soft.
func (n *Node) rules(spec *terms.Task) bool {
	r := &room{node: n}
	if r.exclusive() && !slices.ContainsFunc(spec.Constraints, asksExclusive) {
		return false
	}
	return !slices.ContainsFunc(spec.Constraints, func(c constraint.Constraint) bool {
		return !c.Soft && !c.Social() && !holdsAt(nil, r, &c)
	})
}

// missingAny returns how many members a gang lacks that may be of any task.
func (j *Job) missingAny() uint32 {
	beyond := j.beyond()
	for _, t := range j.tasks {
		alive, done := t.members()
		beyond -= min(beyond, alive+done-min(alive+done, t.least()))
	}
	return beyond
}

// beyond returns how many members of any task a gang has beyond the least of each.
func (j *Job) beyond() uint32 {
	spec := j.newest()
	beyond := spec.MinAvailable
	for _, t := range spec.Tasks {
		beyond -= min(beyond, t.MinAvailable)
	}
	return beyond
}

// least returns how many instances of a task belong to the gang at least.
func (t *task) least() uint32 {
	for _, spec := range t.job.newest().Tasks {
		if spec.Name == t.name {
			return spec.MinAvailable
		}
	}
	return 0
}

// needed returns how many instances of each task a gang waits for: of those that may be of any task as many of the first as
// nodes that may be named could ever have, or could if they were empty. Left are those that none could have.
func (p *placing) needed(j *Job, empty bool, among func(*Node) bool) (counts []uint32, left uint32) {
	beyond := j.missingAny()
	for _, t := range j.tasks {
		missing, gets := t.missing(), t.gets()
		most := missing + min(beyond, gets-min(gets, missing))
		could := uint32(0)
		if spec := t.spec(0); spec != nil && most > 0 {
			could = p.could(spec, most, empty, among)
		}
		left += missing - min(could, missing)
		could = max(could, missing)
		counts = append(counts, could)
		beyond -= could - missing
	}
	return counts, left + beyond
}

// wanted returns for how many instances of each task a gang looks for who gives way, and how many more no nodes could have.
func (p *placing) wanted(j *Job) (counts []uint32, left uint32) {
	counts, left = p.needed(j, true, func(*Node) bool { return true })
	if j.missingAny() == 0 {
		left = 0
	}
	return counts, left
}

// couldGang tells whether nodes could have the missing members of a gang if all work were done that ends by itself.
func (p *placing) couldGang(j *Job) bool {
	attribute := j.newest().Within
	if attribute == "" {
		_, left := p.needed(j, false, func(*Node) bool { return true })
		return left == 0
	}
	home, found := j.home(p.m)
	return slices.ContainsFunc(p.m.valuesOf(attribute), func(value string) bool {
		_, left := p.needed(j, false, func(n *Node) bool {
			other, _ := n.attribute(attribute)
			return other == value
		})
		return left == 0 && value != "" && (!found || value == home)
	})
}
