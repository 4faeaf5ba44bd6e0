package api

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	starlingv1 "starling/api/v1"
	"starling/cluster"
)

// timestamp returns nil for the time 0, which means that it is not known.
func timestamp(t cluster.Time) *timestamppb.Timestamp {
	if t == 0 {
		return nil
	}
	return timestamppb.New(time.UnixMilli(int64(t)))
}

func jobMessage(j *cluster.Job) *starlingv1.Job {
	status := j.Status()
	m := &starlingv1.Job{
		Name: string(j.Name()), Id: uint32(j.ID), Type: j.Spec.Type.String(), Status: status.String(), Final: status.Final(),
		Version: j.Version, Counts: &starlingv1.Counts{}, SubmittedIndex: uint64(j.Submitted),
		SubmittedAt: timestamp(j.SubmittedAt), ChangedIndex: uint64(j.Changed), FinishedIndex: uint64(j.Finished),
		FinishedAt: timestamp(j.FinishedAt),
	}
	for _, t := range j.Tasks {
		add(m.Counts, t)
	}
	return m
}

func counts(t *cluster.Task) *starlingv1.Counts {
	m := &starlingv1.Counts{}
	add(m, t)
	return m
}

// add counts the slots of a task.
func add(m *starlingv1.Counts, t *cluster.Task) {
	m.Desired += t.Desired
	m.Waiting += t.Counts[cluster.Waiting]
	m.Assigned += t.Counts[cluster.Assigned]
	m.Running += t.Counts[cluster.Running]
	m.Delayed += t.Counts[cluster.Delayed]
	m.Stopping += t.Counts[cluster.Stopping]
	m.Succeeded += t.Counts[cluster.Succeeded]
	m.Failed += t.Counts[cluster.Failed]
	m.Stopped += t.Counts[cluster.Stopped]
}

func slotMessage(state *cluster.State, r cluster.SlotRef) *starlingv1.Slot {
	slot, _ := state.SlotAt(r)
	name := state.NameOf(r)
	m := &starlingv1.Slot{
		Task: string(name.Task), Number: r.Index, Phase: slot.Phase.String(), Version: slot.Version,
		ExitCode: slot.ExitCode, Failures: slot.Failures, Since: timestamp(slot.Since), Deadline: timestamp(slot.Deadline),
	}
	if slot.Ended != cluster.NotEnded {
		m.Ended = slot.Ended.String()
	}
	if slot.Order == 0 {
		return m
	}
	node := state.Node(slot.Node)
	m.Node, m.Order = string(node.Name), uint64(slot.Order)
	m.Allocation = cluster.AllocationID{Slot: name, Order: slot.Order}.String()
	if !slot.Phase.Holds() {
		return m
	}
	for _, use := range node.Ports {
		if use.Slot == r {
			m.Ports = append(m.Ports, &starlingv1.Port{Name: use.Name, Number: uint32(use.Number)})
		}
	}
	return m
}
