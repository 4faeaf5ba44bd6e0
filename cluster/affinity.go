package cluster

import (
	"encoding/binary"
	"slices"

	"github.com/tidwall/btree"

	"starling/cluster/division"
	"starling/cluster/facts"
	"starling/cluster/topology"
	"starling/cluster/vector"
	"starling/terms"
	"starling/terms/constraint"
)

// What runs around a node: how many instances with each label, and of each task that counts its own, and what waits for
// these numbers to change. All of it follows from the slots, but for the times in softSince.

// counter counts the instances with one label, or of one task.
type counter struct {
	epoch  *vector.Epoch
	counts *topology.Counts[facts.NodeIndex]
	// more and fewer are the blocked tasks that may fit somewhere when there are more instances, or fewer.
	more, fewer *btree.Set[facts.TaskKey]
}

// wakeUp is what a blocked task waits for besides room.
type wakeUp struct {
	counters []string
	// timeout is when its next soft constraint ends, 0 for never.
	timeout terms.Time
}

type timeout struct {
	at  terms.Time
	key facts.TaskKey
}

// labelCounter and ownCounter name counters.
func labelCounter(label, value string) string { return label + "\x00" + value }

func ownCounter(job terms.JobID, task int) string {
	return string(binary.BigEndian.AppendUint64([]byte{0}, uint64(facts.KeyOf(job, task))))
}

// countsOwn tells whether instances of the task are counted for its own sake.
func countsOwn(t *terms.Task) bool { return t.PerNodeMax != 0 || t.SpreadOver != "" }

// eachCounter visits the names of the counters in which an instance counts.
func eachCounter(t *terms.Task, r facts.SlotRef, visit func(name string)) {
	for i := range t.Labels {
		visit(labelCounter(t.Labels[i].Name, t.Labels[i].Value))
	}
	if countsOwn(t) {
		visit(ownCounter(r.Job, int(r.Task)))
	}
}

// countAt counts an instance on a node, or no more.
func (s *State) countAt(t *terms.Task, r facts.SlotRef, n facts.NodeIndex, change int) {
	eachCounter(t, r, func(name string) {
		h := s.editCounter(name)
		h.counts.Add(n, change, func(attribute string) string { return s.valueOn(n, attribute) })
		s.wake(h, change > 0, change < 0)
		s.dropCounter(name)
	})
}

// countSlot counts what a slot has on its node, or no more.
func (s *State) countSlot(r facts.SlotRef, slot *facts.Slot, change int) {
	if slot.Phase.Holds() {
		s.countAt(s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version), r, slot.Node, change)
	}
}

func (s *State) editCounter(name string) *counter {
	h, ok := s.counters.Get(name)
	switch {
	case !ok:
		h = &counter{epoch: s.epoch, counts: topology.New[facts.NodeIndex](), more: new(btree.Set[facts.TaskKey]),
			fewer: new(btree.Set[facts.TaskKey])}
	case h.epoch != s.epoch:
		more, fewer := *h.more, *h.fewer // their Copy marks what it copies, and others may be reading
		h = &counter{epoch: s.epoch, counts: h.counts.Copy(), more: more.Copy(), fewer: fewer.Copy()}
	default:
		return h
	}
	s.counters.Set(name, h)
	return h
}

// dropCounter forgets a counter of which nothing is left.
func (s *State) dropCounter(name string) {
	if h, ok := s.counters.Get(name); ok && h.counts.Empty() && h.more.Len()+h.fewer.Len() == 0 {
		s.counters.Delete(name)
	}
}

// wake lets the tasks that waited for such a change try all nodes.
func (s *State) wake(h *counter, more, fewer bool) {
	var keys []facts.TaskKey
	if more && h.more.Len() > 0 {
		keys = append(keys, h.more.Keys()...)
	}
	if fewer && h.fewer.Len() > 0 {
		keys = append(keys, h.fewer.Keys()...)
	}
	for _, key := range keys {
		if s.Blocked(key) {
			s.SetBlocked(key, false)
		}
	}
}

// valueOn returns a node's value of an attribute, "" if it has none.
func (s *State) valueOn(n facts.NodeIndex, attribute string) string {
	offer := s.Node(n).Offer
	if offer == nil {
		return ""
	}
	value, _ := offer.Attribute(attribute)
	return value
}

// moveCounters counts what a node holds with the node's new attributes, after its offer changed.
func (s *State) moveCounters(n facts.NodeIndex, old *terms.Offer) {
	if s.counters.Len() == 0 {
		return
	}
	before := func(attribute string) string {
		if old == nil {
			return ""
		}
		value, _ := old.Attribute(attribute)
		return value
	}
	now := func(attribute string) string { return s.valueOn(n, attribute) }
	for _, r := range s.Node(n).Held {
		slot, _ := s.SlotAt(r)
		eachCounter(s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version), r, func(name string) {
			h := s.editCounter(name)
			h.counts.Move(before, now)
			s.wake(h, true, true) // rules ask by attributes by which nobody counts yet, too
		})
	}
}

// Instances returns how many instances a constraint of a task about a label counts for a node. As long as none with the
// label runs anywhere, a task that has it and asks to be near such counts as one: so the first can start.
func (s *State) Instances(t *terms.Task, c *constraint.Constraint, n *Node) uint32 {
	h, ok := s.counters.Get(labelCounter(c.Label, c.Values[0]))
	switch {
	case !ok || h.counts.Empty():
		if c.Begins() && slices.Contains(t.Labels, terms.EnvVar{Name: c.Label, Value: c.Values[0]}) {
			return 1
		}
		return 0
	case c.Within == "":
		return h.counts.On(n.Index)
	}
	return s.within(h, c.Within, s.valueOn(n.Index, c.Within))
}

// within returns how many instances the nodes with a value of an attribute have.
func (s *State) within(h *counter, attribute, value string) (count uint32) {
	if h.counts.Divided(attribute) {
		return h.counts.Within(attribute, value)
	}
	h.counts.Each(func(n facts.NodeIndex, some uint32) {
		if s.valueOn(n, attribute) == value {
			count += some
		}
	})
	return count
}

// OwnInstances returns how many instances of a task the node has, of those versions that count their own.
func (s *State) OwnInstances(key facts.TaskKey, n facts.NodeIndex) uint32 {
	if h, ok := s.counters.Get(ownCounter(key.Split())); ok {
		return h.counts.On(n)
	}
	return 0
}

// OwnInstancesWithin returns how many instances of a task the nodes with a value of an attribute have, of those
// versions that count their own.
func (s *State) OwnInstancesWithin(key facts.TaskKey, attribute, value string) uint32 {
	if h, ok := s.counters.Get(ownCounter(key.Split())); ok {
		return s.within(h, attribute, value)
	}
	return 0
}

// Divide makes ready to count quickly by the attributes that a task's rules ask about.
func (s *State) Divide(key facts.TaskKey, spec *terms.Task) {
	divide := func(name, attribute string) {
		if h, ok := s.counters.Get(name); ok && attribute != "" && !h.counts.Divided(attribute) {
			s.editCounter(name).counts.Divide(attribute, func(n facts.NodeIndex) string { return s.valueOn(n, attribute) })
		}
	}
	if spec.SpreadOver != "" {
		divide(ownCounter(key.Split()), spec.SpreadOver)
	}
	for i := range spec.Constraints {
		spec.Constraints[i].EachLeaf(func(c *constraint.Constraint) {
			if c.Within != "" {
				divide(labelCounter(c.Label, c.Values[0]), c.Within)
			}
		})
	}
}

// resubscribe notes what a task in the queue of placement waits for besides room: a blocked one for numbers of
// instances and the ends of its soft constraints, any other for nothing.
func (s *State) resubscribe(key facts.TaskKey, waits, blocked bool) {
	if s.wakeUps.Len() > 0 {
		s.unsubscribe(key)
	}
	id, task := key.Split()
	switch {
	case waits && blocked:
		s.subscribe(key, s.Job(id).RulesOf(task, key.IsSpecial()))
	case !waits && s.softSince.Len() > 0:
		if since, ok := s.softSince.Delete(key); ok {
			s.digest -= facts.SoftSinceHash(key, since)
		}
	}
}

func (s *State) subscribe(key facts.TaskKey, rules []*constraint.Constraint) {
	var what wakeUp
	for _, c := range rules {
		c.EachLeaf(func(leaf *constraint.Constraint) {
			// Where there are fewer on the node itself, it has more room, too.
			if leaf.Label == "" || leaf.Within == "" && !leaf.GainsByMore() {
				return
			}
			name := labelCounter(leaf.Label, leaf.Values[0])
			h := s.editCounter(name)
			if leaf.GainsByMore() {
				h.more.Insert(key)
			}
			if leaf.GainsByFewer() || leaf.Begins() {
				h.fewer.Insert(key)
			}
			what.counters = append(what.counters, name)
		})
		if end := s.softEnd(key, c); c.Soft && end > s.Time && (what.timeout == 0 || end < what.timeout) {
			what.timeout = end
		}
	}
	if what.timeout != 0 {
		s.timeouts.Set(timeout{what.timeout, key})
	}
	if len(what.counters) > 0 || what.timeout != 0 {
		s.wakeUps.Set(key, what)
	}
}

func (s *State) unsubscribe(key facts.TaskKey) {
	what, ok := s.wakeUps.Delete(key)
	if !ok {
		return
	}
	for _, name := range what.counters {
		h := s.editCounter(name)
		h.more.Delete(key)
		h.fewer.Delete(key)
		s.dropCounter(name)
	}
	if what.timeout != 0 {
		s.timeouts.Delete(timeout{what.timeout, key})
	}
}

// softEnd returns when a soft constraint of a waiting task ends, and begins to count.
func (s *State) softEnd(key facts.TaskKey, c *constraint.Constraint) terms.Time {
	if !c.Soft {
		return 0
	}
	since, ok := s.softSince.Get(key)
	if !ok {
		since = s.Time
		s.softSince.Set(key, since)
		s.digest += facts.SoftSinceHash(key, since)
	}
	return since + terms.Time(c.SoftTimeoutMillis)
}

// SoftEnds returns when a soft constraint of a task ends if it goes on waiting.
func (s *State) SoftEnds(key facts.TaskKey, c *constraint.Constraint) terms.Time {
	since, ok := s.SoftSince(key)
	if !ok {
		since = s.Time
	}
	return since + terms.Time(c.SoftTimeoutMillis)
}

// SoftSince returns since when a task has waited as far as its soft constraints are concerned; ok is false while
// that does not count.
func (s *State) SoftSince(key facts.TaskKey) (since terms.Time, ok bool) {
	return s.softSince.Get(key)
}

// WakeTimedOut lets the tasks of which a soft constraint has ended try all nodes.
func (s *State) WakeTimedOut() {
	for {
		first, ok := s.timeouts.Min()
		if !ok || first.at > s.Time {
			return
		}
		s.PreemptionDirty = true
		s.SetBlocked(first.key, false)
	}
}

// EnsureDivision returns which nodes have which value of an attribute, and keeps that until a node offers something
// else.
func (s *State) EnsureDivision(attribute string) *division.Division {
	for _, d := range s.divisions {
		if d.Attribute == attribute {
			return d
		}
	}
	d := &division.Division{Attribute: attribute}
	for n := range facts.NodeIndex(s.Nodes()) {
		if s.Node(n).Offer != nil {
			d.Add(s.valueOn(n, attribute), n)
		}
	}
	s.divisions = append(slices.Clone(s.divisions), d)
	return d
}
