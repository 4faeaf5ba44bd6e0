package cluster

import (
	"fmt"
	"slices"

	"starling/cluster/census"
)

// Audit recomputes everything in the value that is kept although it could be derived, and returns a line for each
// difference: room, counts, queues, deadlines, digest. It takes time proportional to the value.
func (s *State) Audit() []string {
	a := &audit{s: s, free: make([]Resources, s.Nodes()), held: make([][]SlotRef, s.Nodes()), sum: s.auditRows()}
	for n := range a.free {
		if offer := s.Node(NodeIndex(n)).Offer; offer != nil {
			a.free[n] = offer.Capacity
		}
	}
	s.EachJob(func(j *Job) bool {
		a.job(j)
		return true
	})
	a.nodes()
	a.headcounts()
	a.membership()
	if a.deadlines != s.deadlines.Len() {
		a.say("%d deadlines are kept for %d delayed slots", s.deadlines.Len(), a.deadlines)
	}
	if a.sum != s.digest {
		a.say("the digest of the rows is %016x, kept is %016x", a.sum, s.digest)
	}
	return a.found
}

type audit struct {
	s         *State
	found     []string
	free      []Resources
	held      [][]SlotRef
	sum       uint64
	deadlines int
}

func (a *audit) say(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

// auditRows sums the hashes of the rows that are not slots.
func (s *State) auditRows() uint64 {
	sum := uint64(0)
	for n := range s.Nodes() {
		sum += s.Node(NodeIndex(n)).hash()
	}
	s.jobs.Scan(func(_ JobID, j *Job) bool {
		sum += j.hash()
		return true
	})
	s.patience.Scan(func(key TaskKey, since Time) bool {
		sum += hashWords(tagPatience, uint64(key), uint64(since))
		return true
	})
	s.requests.Scan(func(id string, r Request) bool {
		sum += r.hash(id)
		return true
	})
	return sum
}

func (a *audit) job(j *Job) {
	for i, t := range j.Tasks {
		var counts [PhaseCount]uint32
		waits, digest := uint32(0), uint64(0)
		for index := range t.Slots.Len() {
			r := SlotRef{Job: j.ID, Task: uint16(i), Index: uint32(index)}
			slot := t.Slots.At(index)
			counts[slot.Phase]++
			digest += slot.hash(r)
			if slot.Phase == Waiting && uint32(index) < t.Desired {
				waits++
			}
			if slot.Phase == Delayed {
				a.deadlines++
			}
			if slot.Phase.Holds() {
				a.take(j, r, &slot)
			}
		}
		a.sum += digest + t.hash(j.ID, i)
		if counts != t.Counts || waits != t.Waits() || digest != t.digest {
			a.say("task %s of job %s has counts %v and %d waiting, kept are %v and %d", t.Name, j.Name(), counts, waits, t.Counts, t.Waits())
		}
		key := KeyOf(j.ID, i)
		if queued := a.s.blocked.Contains(key) != a.s.unblocked.Contains(key); queued != (waits > 0) {
			a.say("task %s of job %s has %d slots waiting, but queued is %v", t.Name, j.Name(), waits, queued)
		}
	}
}

func (a *audit) take(j *Job, r SlotRef, slot *Slot) {
	spec := j.TaskSpecOf(int(r.Task), slot.Version)
	if spec == nil {
		a.say("slot %s runs version %d, which is not kept", a.s.NameOf(r), slot.Version)
		return
	}
	a.free[slot.Node] = a.free[slot.Node].Minus(spec.Resources)
	a.held[slot.Node] = append(a.held[slot.Node], r)
	ports := 0
	for _, u := range a.s.Node(slot.Node).Ports {
		if u.Slot == r {
			ports++
		}
	}
	given, wanted := Millidevices(0), Millidevices(0)
	for _, u := range a.s.Node(slot.Node).Devices {
		if u.Slot == r {
			given += u.Amount
		}
	}
	for _, q := range spec.Devices {
		wanted += q.Amount
	}
	if given != wanted {
		a.say("slot %s has %d thousandths of devices, wants %d", a.s.NameOf(r), given, wanted)
	}
	if ports != len(spec.Ports) {
		a.say("slot %s has %d ports, wants %d", a.s.NameOf(r), ports, len(spec.Ports))
	}
}

func (a *audit) nodes() {
	for n := range a.free {
		node := a.s.Node(NodeIndex(n))
		held := slices.Clone(node.Held)
		slices.SortStableFunc(held, SlotRef.Compare)
		slices.SortStableFunc(a.held[n], SlotRef.Compare)
		if !slices.Equal(held, a.held[n]) {
			a.say("node %s holds %v, kept is %v", node.Name, a.held[n], held)
		}
		if a.free[n] != a.s.free(node.Index) {
			a.say("node %s has %v free, kept is %v", node.Name, a.free[n], a.s.free(node.Index))
		}
		if a.s.Eligible(node.Index) != (node.Offer != nil) {
			a.say("node %s takes work: %v, but its offer is %v", node.Name, a.s.Eligible(node.Index), node.Offer)
		}
		for i := 1; i < len(node.Ports); i++ {
			if node.Ports[i-1].Number >= node.Ports[i].Number {
				a.say("node %s gave port %d twice", node.Name, node.Ports[i].Number)
			}
		}
		for _, u := range node.Devices {
			node.EachDeviceInUse(u.Kind, func(number uint32, used Millidevices) {
				if number == u.Number && used > WholeDevice {
					a.say("node %s gave %d thousandths of %s %d", node.Name, used, u.Kind, number)
				}
			})
		}
	}
}

// headcounts counts instances anew, by node and by the attributes that are counted.
func (a *audit) headcounts() {
	counts := map[string]*census.Census[NodeIndex]{}
	a.s.headcounts.Scan(func(heads string, h *headcount) bool {
		counts[heads] = census.New[NodeIndex]()
		if h.census.Empty() && h.more.Len()+h.fewer.Len() == 0 {
			a.say("a headcount of nothing is kept: %q", heads)
		}
		return true
	})
	for n := range a.held {
		for _, r := range a.held[n] {
			slot, _ := a.s.SlotAt(r)
			a.s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version).eachHeads(r, func(heads string) {
				if counts[heads] == nil {
					a.say("slot %s is not in headcount %q", a.s.NameOf(r), heads)
					return
				}
				counts[heads].Add(NodeIndex(n), 1, func(string) string { return "" })
			})
		}
	}
	a.s.headcounts.Scan(func(heads string, h *headcount) bool {
		if !h.census.Same(counts[heads], a.s.valueOn) {
			a.say("headcount %q differs from the slots", heads)
		}
		return true
	})
}

// membership checks what holds between entries for every ring: it is one cycle, whatever is being stitched.
func (a *audit) membership() {
	m := &a.s.Membership
	digest := uint64(0)
	m.EachMember(func(p PeerID) bool {
		digest += hashText(tagMember, string(p))
		if q := m.Watched(p); q != "" {
			digest += hashText(tagWatched, string(p), string(q))
		}
		if open := m.mayObserve(p); open != m.open.Contains(p) {
			a.say("member %s is open: %v, kept is %v", p, open, m.open.Contains(p))
		}
		return true
	})
	m.EachAttempt(func(p PeerID, attempt Attempt) bool {
		digest += attempt.hash(p)
		if attempt.Observer != "" && (m.Stitching(attempt.Observer) != p || !m.IsMember(attempt.Observer)) {
			a.say("joiner %s has observer %s, who stitches %q", p, attempt.Observer, m.Stitching(attempt.Observer))
		}
		return true
	})
	if digest != m.digest {
		a.say("the digest of the membership is %016x, kept is %016x", digest, m.digest)
	}
	if m.Members() < 2 && m.watched.Len() == 0 {
		return
	}
	length, first := 0, m.MemberAt(0)
	for p := first; p != "" && length <= m.Members(); length++ {
		if p = m.Watched(p); p == first {
			break
		}
	}
	if length+1 != m.Members() || m.watched.Len() != m.Members() || m.watchers.Len() != m.Members() {
		a.say("the ring is no single cycle of the %d members", m.Members())
	}
}
