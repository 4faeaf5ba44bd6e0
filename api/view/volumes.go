package view

import (
	"slices"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/replica/storage"
	"starling/terms"
)

// Volumes says how volumes stand.
func Volumes(state *cluster.State, one *storage.Volumes) *starlingv1.Volumes {
	slot := one.Set.Slot
	m := &starlingv1.Volumes{
		Id: one.Set.String(), Job: string(slot.Job), Task: string(slot.Task), Number: slot.Index, Node: string(one.Node),
		State: string(one.State), Allocation: terms.AllocationID{Slot: slot, Order: one.Order}.String(),
	}
	if one.Since != 0 {
		m.Since = wire.Timestamp(one.Since)
	}
	if one.Until != 0 {
		m.Until = wire.Timestamp(one.Until)
	}
	if j := state.JobOf(slot.Job); j != nil {
		at := slices.IndexFunc(j.Spec.Tasks, func(t terms.Task) bool { return t.Name == slot.Task })
		for at >= 0 && len(m.Names) < len(j.Spec.Tasks[at].Volumes) {
			m.Names = append(m.Names, j.Spec.Tasks[at].Volumes[len(m.Names)].Name)
		}
	}
	return m
}
