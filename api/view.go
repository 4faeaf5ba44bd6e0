package api

import (
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/explain"
	"starling/schedule/preempt"
	"starling/terms"
)

func timestamp(t terms.Time) *timestamppb.Timestamp { return wire.Timestamp(t) }

func jobMessage(j *workload.Job) *starlingv1.Job {
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
	m.Update, m.Restarts = updateMessage(&j.Update), j.PolicyState.Restarts
	if d := &j.PolicyState.Last; d.Entry != 0 {
		m.PolicyAction = &starlingv1.PolicyAction{
			Index: uint64(d.Entry), At: timestamp(d.At), Text: explain.PolicyAction(j, d),
		}
	}
	return m
}

// updateMessage returns nil for a job that has had no update.
func updateMessage(u *facts.Update) *starlingv1.Update {
	if u.State == facts.NoUpdate {
		return nil
	}
	return &starlingv1.Update{
		State: u.State.String(), Final: u.State.Final(), From: u.From, To: u.To, Promoted: u.Promoted, Reason: u.Reason,
		BeganIndex: uint64(u.Began), BeganAt: timestamp(u.BeganAt), ProgressAt: timestamp(u.ProgressAt),
		EndedAt: timestamp(u.EndedAt),
	}
}

func counts(t *workload.Task) *starlingv1.Counts {
	m := &starlingv1.Counts{}
	add(m, t)
	return m
}

// add counts the slots of a task.
func add(m *starlingv1.Counts, t *workload.Task) {
	m.Desired += t.Desired
	for phase, count := range map[facts.Phase]*uint32{
		facts.Waiting: &m.Waiting, facts.Rescheduling: &m.Rescheduling, facts.Assigned: &m.Assigned,
		facts.Running:    &m.Running,
		facts.BackingOff: &m.BackingOff, facts.Stopping: &m.Stopping, facts.Unknown: &m.Unknown,
		facts.Succeeded: &m.Succeeded,
		facts.Failed:    &m.Failed, facts.Stopped: &m.Stopped,
	} {
		*count += t.Counts[phase] + t.Secondary[phase]
	}
}

func taskMessage(j *workload.Job, number int) *starlingv1.Task {
	t := j.Tasks[number]
	m := &starlingv1.Task{
		Name: string(t.Name), Counts: counts(t), Preemption: preemptionMessage(&t.Preemption), State: taskState(j, number),
		Follows: explain.Follows(j, number), Changes: taskChanges(t),
	}
	if t.Seal != (facts.Seal{}) {
		slot := terms.SlotName{Job: j.Name(), Task: t.Name, Index: t.Seal.Index}
		m.SealedBy = terms.AllocationID{Slot: slot, Order: t.Seal.Order}.String()
	}
	if share, ok := t.Share(); ok {
		m.Share = &share
	}
	for _, before := range j.After(number) {
		if !j.Complete(before) {
			m.HeldBy = append(m.HeldBy, string(j.Tasks[before].Name))
		}
	}
	return m
}

// taskChanges counts what is still to be done for a task.
func taskChanges(t *workload.Task) *starlingv1.TaskChanges {
	m := &starlingv1.TaskChanges{
		Place: t.Counts[facts.Waiting] + t.Counts[facts.Rescheduling],
		Stop:  t.Counts[facts.Stopping] + t.Secondary[facts.Stopping],
	}
	for health := range t.Old {
		m.Replace += t.Old[health]
		m.Canaries += t.Canaries[health]
	}
	m.Ignore = t.Desired - min(t.Desired, m.Place+m.Replace)
	return m
}

// taskState says in a word how far a task is.
func taskState(j *workload.Job, number int) string {
	t := j.Tasks[number]
	switch {
	case j.Spec.Type == terms.Batch && j.Complete(number):
		return "complete"
	case t.Live() > 0:
		return "running"
	case j.Stop:
		return "stopped"
	case slices.Contains(j.Unreachable(), number):
		return "will not run"
	case j.Held(number):
		return "held"
	case t.Pending() > 0:
		return "waiting"
	case t.Counts[facts.Failed] > 0:
		return "failed"
	case j.Wants(number) == 0:
		return "idle"
	}
	return "stopped"
}

// preemptionMessage returns nil if nothing gave way.
func preemptionMessage(p *facts.Preemption) *starlingv1.Preemption {
	if p.Entry == 0 {
		return nil
	}
	return &starlingv1.Preemption{
		Slot: p.Index, Index: uint64(p.Entry), At: timestamp(p.At), By: string(p.By), Rule: preempt.Rule(p.Rule).String(),
	}
}

// slotMessages returns the messages of a slot's seats, the main one first.
func slotMessages(state *cluster.State, r facts.SlotRef) []*starlingv1.Slot {
	messages := []*starlingv1.Slot{slotMessage(state, r)}
	for _, seat := range []facts.Seat{facts.CanarySeat, facts.UnknownSeat} {
		r.Seat = seat
		if _, taken := state.SlotAt(r); taken {
			messages = append(messages, slotMessage(state, r))
		}
	}
	return messages
}

func slotMessage(state *cluster.State, r facts.SlotRef) *starlingv1.Slot {
	slot, _ := state.SlotAt(r)
	name := state.NameOf(r)
	m := &starlingv1.Slot{
		Task: string(name.Task), Number: r.Index, Phase: slot.Phase.String(), Version: slot.Version,
		ExitCode: slot.ExitCode, Failures: slot.Failures, Since: timestamp(slot.Since), Deadline: timestamp(slot.Deadline),
		Seat: r.Seat.String(), Health: slot.Health.String(), Cause: slot.Cause.String(),
		WaitsFor: explain.Slot(state.Job(r.Job), int(r.Task), r, slot),
	}
	if slot.Ended != facts.NotEnded {
		m.Ended = slot.Ended.String()
	}
	if slot.Order == 0 {
		return m
	}
	node := state.Node(slot.Node)
	m.Node, m.Order = string(node.Name), uint64(slot.Order)
	m.Allocation = terms.AllocationID{Slot: name, Order: slot.Order}.String()
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
