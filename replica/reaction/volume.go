package reaction

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/rules"
)

// volumes lists the volumes that nobody will come back for. The rule: a slot's volumes stay on a node until they are
// removed or given up, or are on another node: also while the job is stopped or has fewer instances, and when it is
// forgotten. Before rules.Volumes they were not kept for the next job of the name.
func (r *reacting) volumes() {
	if !r.s.IsMember(r.self) {
		return
	}
	for _, set := range r.o.Volumes {
		if !slices.ContainsFunc(r.o.Local, r.usesOld(set.Slot)) && !r.keeps(set) {
			r.out.DeleteVolumes = append(r.out.DeleteVolumes, set)
		}
	}
}

// usesOld tells of what the driver has whether it is of the slot, and may use other volumes than the slot has now.
func (r *reacting) usesOld(slot terms.SlotName) func(LocalTask) bool {
	return func(task LocalTask) bool {
		return task.ID.Slot == slot && TaskOn(r.s, r.self.Node(), task.ID) == nil
	}
}

// Keeps tells whether volumes on a peer's machine may still be asked for.
func Keeps(self terms.PeerID, s *cluster.State, set terms.VolumeSet) bool {
	r := &reacting{self: self, s: s}
	return s.NodeOf(self.Node()) != nil && r.keeps(set)
}

// keeps tells whether the slot may still come back for its volumes on this node.
func (r *reacting) keeps(set terms.VolumeSet) bool {
	id, here := set.Job, r.s.NodeOf(r.self.Node()).Index
	kept, found := r.s.Volumes().Get(set)
	switch {
	case found && kept.User == 0:
		return kept.Node == here
	case found:
		id = kept.User
	}
	j := r.s.Job(id)
	if j == nil || j.Name() != set.Slot.Job {
		return false
	}
	if now, _, _ := r.s.Volumes().Of(set.Slot, id); now != set {
		return false
	}
	for task := range j.Tasks {
		ref := facts.SlotRef{Job: id, Task: uint16(task), Index: set.Slot.Index}
		if r.s.NameOf(ref).Task != set.Slot.Task {
			continue
		}
		slot, ok := r.s.SlotAt(ref)
		// Before rules.MovedVolumes only a place elsewhere told that a slot does not come back.
		back := !slot.Phase.Holds() && (slot.Order == 0 || r.s.Rules < rules.MovedVolumes)
		return !ok && (!found || kept.Node == here) || ok && (back || slot.Node == here)
	}
	return true
}
