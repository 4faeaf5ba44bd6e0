// Package roster reads the members of jobs off the value: which instances a job is to have, and where each is found.
//
// A member is a slot that its task is to have and that has not ended for good. It has an address from the moment at
// which it has a node until it leaves that; if a check of its task says so, only while it is ready. Its ports are known
// with it. Lists are told in full, and never without their version.
package roster

import (
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/plugin"
	"starling/terms"
	"starling/terms/domain"
)

// Member is an instance of a job, as the others know it.
type Member struct {
	// Index is its number in its task.
	Index uint32
	// Address is that of the node where it lives, without a port. It is "" for one that waits for a node, leaves its node,
	// is out of reach, or is not ready and has a check that says so.
	Address string
	// Order is the entry with which its allocation there was decided, 0 without an address: another instance at the same
	// address has another.
	Order terms.Index
	// Ports are those that it has there, ordered by name.
	Ports []facts.PortUse
	// At is the seat of the slot that has that allocation.
	At facts.SlotRef
}

// Members returns the members of a task, ordered by number.
func Members(s *cluster.State, j *workload.Job, task int) []Member {
	t := j.Tasks[task]
	all := make([]Member, 0, t.Desired)
	for index := range t.Desired {
		if m, ok := MemberAt(s, j, facts.SlotRef{Job: j.ID, Task: uint16(task), Index: index}); ok {
			all = append(all, m)
		}
	}
	return all
}

// MemberAt returns the member of a slot, if that has one.
func MemberAt(s *cluster.State, j *workload.Job, r facts.SlotRef) (m Member, ok bool) {
	t := j.Tasks[r.Task]
	if r.Index >= min(t.Desired, uint32(t.Slots.Len())) {
		return m, false
	}
	r.Seat = facts.MainSeat
	slot := t.Slots.At(int(r.Index))
	told := j.IsTold(r, &slot)
	if !told {
		r.Seat = facts.CanarySeat
		if tried, ok := s.SlotAt(r); ok && j.IsTold(r, &tried) {
			slot, told = tried, true // it is all that there is of the slot
		}
	}
	if m.Index = r.Index; told {
		m.Address, m.Ports = at(s.Node(slot.Node), r)
		m.Order, m.At = slot.Order, r
	}
	return m, !slot.Phase.Final()
}

// at returns where a slot is found on its node. A node's address is that at which its peer answers.
func at(n *cluster.Node, r facts.SlotRef) (address string, ports []facts.PortUse) {
	for _, use := range n.Ports {
		if use.Slot == r {
			ports = append(ports, use)
		}
	}
	slices.SortStableFunc(ports, func(a, b facts.PortUse) int { return strings.Compare(a.Name, b.Name) })
	if n.Offer == nil {
		return "", ports
	}
	colon := strings.LastIndexByte(n.Offer.Address, ':')
	return strings.Trim(n.Offer.Address[:max(colon, 0)], "[]"), ports
}

// tasks returns the numbers of the tasks in the order of the job file, and then of those that the newest version does
// not have any more and that still have instances.
func tasks(j *workload.Job) []int {
	var all []int
	for i := range j.Spec.Tasks {
		all = append(all, j.TaskIndex(j.Spec.Tasks[i].Name))
	}
	for number, t := range j.Tasks {
		if t.Desired > 0 && !slices.Contains(all, number) {
			all = append(all, number)
		}
	}
	return all
}

// Of returns the list of a job's members in its present version, its tasks in the order of the job file.
func Of(s *cluster.State, j *workload.Job) *plugin.Roster {
	r := &plugin.Roster{Job: j.Name(), Version: j.Roster.Version}
	if set, err := plugin.NewSet(j.Spec.Plugins, s.Rules); err == nil {
		r.ByAddress = set.ByAddress()
	}
	for _, number := range tasks(j) {
		name := j.Tasks[number].Name
		task := plugin.Task{Name: name}
		for _, m := range Members(s, j, number) {
			one := plugin.Member{
				Index: m.Index, Address: m.Address, Order: m.Order,
				Name: domain.DefaultZone.Name(domain.Name{Job: j.Name(), Task: name, One: true, Index: m.Index}),
			}
			for _, p := range m.Ports {
				one.Ports = append(one.Ports, plugin.Port{Name: p.Name, Number: p.Number})
			}
			task.Members = append(task.Members, one)
		}
		r.Tasks = append(r.Tasks, task)
	}
	return r
}

// Sum returns a hash of the list, which is another whenever the list is, but for its version.
func Sum(s *cluster.State, j *workload.Job) uint64 {
	h := fnv(1469598103934665603)
	for _, number := range tasks(j) {
		h.text(string(j.Tasks[number].Name))
		for _, m := range Members(s, j, number) {
			h.number(uint64(m.Index) + 1)
			h.text(m.Address)
			h.number(uint64(m.Order))
			for _, p := range m.Ports {
				h.text(p.Name)
				h.number(uint64(p.Number))
			}
		}
		h.number(0)
	}
	return uint64(h)
}

// fnv is the hash FNV-1a of what was added to it. Texts end with a byte that none of them holds.
type fnv uint64

func (h *fnv) add(b byte) { *h = (*h ^ fnv(b)) * 1099511628211 }

func (h *fnv) text(text string) {
	for i := range len(text) {
		h.add(text[i])
	}
	h.add(0xff)
}

func (h *fnv) number(n uint64) {
	for range 8 {
		h.add(byte(n))
		n >>= 8
	}
}
