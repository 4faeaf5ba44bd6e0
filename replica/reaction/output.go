package reaction

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/terms"
)

// Handover is what an instance of a workflow gets of the tasks that it comes after, and where it leaves what it makes.
type Handover struct {
	Output terms.OutputSet
	// User is the account that it runs as.
	User   string
	Inputs []Input
	// Problem says why it cannot have its inputs now, "" if it can.
	Problem string
}

// Input is the output of an instance that has succeeded.
type Input struct {
	Output terms.OutputSet
	// User is the account that it ran as; empty with an image is what that says.
	User  string
	Image bool
	Node  terms.NodeName
	// Address is where the peer of that node answers, "" if there is none now.
	Address string
}

// IsDue tells whether an allocation is to be started, or to run.
func IsDue(s *cluster.State, id terms.AllocationID) bool {
	ref, ok := s.RefOf(id.Slot)
	if !ok {
		return false
	}
	_, slot, ok := s.SeatOf(ref, id.Order)
	return ok && (slot.Phase == facts.Assigned || slot.Phase == facts.Running)
}

// TaskOn returns the task of an allocation that a node has, nil if it has no such.
func TaskOn(s *cluster.State, node terms.NodeName, id terms.AllocationID) *terms.Task {
	ref, ok := s.RefOf(id.Slot)
	if !ok {
		return nil
	}
	seat, slot, ok := s.SeatOf(ref, id.Order)
	if !ok || !slot.Phase.Holds() || s.Node(slot.Node).Name != node {
		return nil
	}
	return s.Job(seat.Job).TaskSpecOf(int(seat.Task), slot.Version)
}

// HandoverOf returns it for an allocation; false if that is not due, or of a job whose tasks have no order.
func HandoverOf(s *cluster.State, id terms.AllocationID) (h Handover, ok bool) {
	if !IsDue(s, id) {
		return h, false
	}
	ref, _ := s.RefOf(id.Slot)
	slot, _ := s.SlotAt(ref)
	j := s.Job(ref.Job)
	if !slices.ContainsFunc(j.SpecOf(slot.Version).Tasks, comesAfter) {
		return h, false
	}
	task := j.TaskSpecOf(int(ref.Task), slot.Version)
	h = Handover{Output: terms.OutputSet{Allocation: id, Job: j.ID}, User: task.User}
	for _, name := range task.After {
		if number := j.TaskIndex(name); number >= 0 {
			h.take(s, j, number)
		}
	}
	return h, true
}

// OutputOf returns the output that an instance has left, or why it has left none.
func OutputOf(s *cluster.State, r facts.SlotRef) (set terms.OutputSet, problem string) {
	j, name := s.Job(r.Job), s.NameOf(r)
	slot, _ := s.SlotAt(r)
	set = terms.OutputSet{Allocation: terms.AllocationID{Slot: name, Order: slot.Order}, Job: j.ID}
	switch {
	case !slices.ContainsFunc(j.Spec.Tasks, comesAfter):
		return set, fmt.Sprintf("%s has no output folder: only in jobs whose tasks come after each other have instances such", name)
	case slot.Phase != facts.Succeeded:
		return set, fmt.Sprintf("%s is %s, and its output is whole only when it has succeeded", name, slot.Phase)
	case !keepsOutput(s, set):
		return set, fmt.Sprintf("the output of %s was deleted when the job ended: only that of tasks which no other comes after is kept", name)
	}
	return set, ""
}

func comesAfter(t terms.Task) bool { return len(t.After) > 0 }

// take adds the outputs of a task.
func (h *Handover) take(s *cluster.State, j *workload.Job, task int) {
	for index := range j.Tasks[task].Slots.Len() {
		ref := facts.SlotRef{Job: j.ID, Task: uint16(task), Index: uint32(index)}
		slot, _ := s.SlotAt(ref)
		name := s.NameOf(ref)
		if slot.Phase != facts.Succeeded {
			h.Problem = fmt.Sprintf("%s has not succeeded: it is %s", name, slot.Phase)
			continue
		}
		node := s.Node(slot.Node)
		in := Input{
			Output: terms.OutputSet{Allocation: terms.AllocationID{Slot: name, Order: slot.Order}, Job: j.ID},
			Node:   node.Name,
		}
		if spec := j.TaskSpecOf(task, slot.Version); spec != nil {
			in.User, in.Image = spec.User, spec.Container.Image != ""
		}
		if node.Offer != nil && node.Peer != "" {
			in.Address = node.Offer.Address
		}
		h.Inputs = append(h.Inputs, in)
	}
}

// lostOutputs tells, of so many at most, that what others need is not here any more.
func (r *reacting) lostOutputs(most int) (news []command.Report) {
	for _, id := range r.o.Lost {
		ref, ok := r.s.RefOf(id.Slot)
		slot, _ := r.s.SlotAt(ref)
		mine := ok && slot.Order == id.Order && r.s.Node(slot.Node).Peer == r.self
		if mine && len(news) < most && NeedsOutput(r.s, ref, &slot) {
			news = append(news, command.Report{Slot: ref, Order: id.Order, Ended: facts.OutputLost})
		}
	}
	return news
}

// IsKept tells whether the node where an allocation ran is to have its output.
func IsKept(s *cluster.State, id terms.AllocationID) bool {
	ref, ok := s.RefOf(id.Slot)
	slot, _ := s.SlotAt(ref)
	return ok && slot.Order == id.Order && slot.Phase == facts.Succeeded
}

// outputs lists the outputs that nobody will ask for. The rule: one stays, where it was made and where it was brought,
// while it is the latest of its slot, that has not failed, until the job has ended. A result of the job, what has
// succeeded and no task comes after, stays until the job is forgotten.
func (r *reacting) outputs() {
	if !r.s.IsMember(r.self) || len(r.o.Outputs) == 0 {
		return
	}
	used := map[terms.JobName]bool{}
	for i := range r.o.Local {
		if r.o.Local[i].Ended == facts.NotEnded {
			used[r.o.Local[i].ID.Slot.Job] = true // it may read any of them
		}
	}
	for _, set := range r.o.Outputs {
		if !used[set.Allocation.Slot.Job] && !keepsOutput(r.s, set) {
			r.out.DeleteOutputs = append(r.out.DeleteOutputs, set)
		}
	}
}

func keepsOutput(s *cluster.State, set terms.OutputSet) bool {
	j, slotName := s.Job(set.Job), set.Allocation.Slot
	if j == nil || j.Name() != slotName.Job {
		return false
	}
	task := j.TaskIndex(slotName.Task)
	if task < 0 {
		return false
	}
	slot, ok := s.SlotAt(facts.SlotRef{Job: set.Job, Task: uint16(task), Index: slotName.Index})
	switch {
	case !ok || slot.Order != set.Allocation.Order:
		return false
	case j.Finished == 0:
		return slot.Phase != facts.Failed
	}
	return slot.Phase == facts.Succeeded &&
		!slices.ContainsFunc(j.Spec.Tasks, func(t terms.Task) bool { return slices.Contains(t.After, slotName.Task) })
}

// NeedsOutput tells whether others wait for what an allocation has left, or use it.
func NeedsOutput(s *cluster.State, r facts.SlotRef, slot *facts.Slot) bool {
	j := s.Job(r.Job)
	return r.Seat == facts.MainSeat && slot.Phase == facts.Succeeded && !j.Stop && j.Finished == 0 &&
		slices.Contains(j.Needed(), int(r.Task))
}
