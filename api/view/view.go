// Package view says how pools, jobs, tasks and instances stand, as the messages of the API have it.
package view

import (
	"fmt"
	"slices"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/explain"
	"starling/schedule/explain/brief"
	"starling/schedule/preempt"
	"starling/terms"
)

// Job says how a job stands.
func Job(j *workload.Job) *starlingv1.Job {
	status := j.Status()
	m := &starlingv1.Job{
		Name: string(j.Name()), Id: uint32(j.ID), Type: j.Spec.Type.String(), Status: status.String(), Final: status.Final(),
		Version: j.Version, Counts: &starlingv1.Counts{}, SubmittedIndex: uint64(j.Submitted),
		SubmittedAt: wire.Timestamp(j.SubmittedAt), ChangedIndex: uint64(j.Changed), FinishedIndex: uint64(j.Finished),
		FinishedAt: wire.Timestamp(j.FinishedAt),
	}
	for _, t := range j.Tasks {
		add(m.Counts, j, t)
	}
	m.Update, m.Restarts = Update(&j.Update), j.PolicyState.Restarts
	// A job that its user stopped after a policy had suspended it is not what that made of it any more.
	stopped := j.Stop && j.PolicyState.Outcome == facts.NoOutcome && j.PolicyState.Last.Before == ""
	if d := &j.PolicyState.Last; d.Entry != 0 && !stopped {
		m.PolicyAction = &starlingv1.PolicyAction{
			Index: uint64(d.Entry), At: wire.Timestamp(d.At), Text: explain.PolicyAction(j, d),
		}
	}
	return m
}

// Update returns nil for a job that has had no update.
func Update(u *facts.Update) *starlingv1.Update {
	if u.State == facts.NoUpdate {
		return nil
	}
	return &starlingv1.Update{
		State: u.State.String(), Final: u.State.Final(), From: u.From, To: u.To, Promoted: u.Promoted, Reason: u.Reason,
		BeganIndex: uint64(u.Began), BeganAt: wire.Timestamp(u.BeganAt), ProgressAt: wire.Timestamp(u.ProgressAt),
		EndedAt: wire.Timestamp(u.EndedAt),
	}
}

func counts(j *workload.Job, t *workload.Task) *starlingv1.Counts {
	m := &starlingv1.Counts{}
	add(m, j, t)
	return m
}

// closed counts the slots of a daemon that stand for nodes which take no instance of it: none is wanted there.
func closed(j *workload.Job, t *workload.Task) uint32 {
	if j.Spec.Type != terms.Daemon || j.Stop {
		return 0
	}
	return min(t.Counts[facts.Stopped], t.Desired)
}

// add counts the slots of a task, but for those that are closed.
func add(m *starlingv1.Counts, j *workload.Job, t *workload.Task) {
	m.Desired += t.Desired - closed(j, t)
	if running := t.Counts[facts.Running] + t.Secondary[facts.Running]; j.Spec.Type != terms.Batch {
		m.NotHealthy += running - min(running, t.New[facts.Healthy]+t.Old[facts.Healthy]+t.Canaries[facts.Healthy])
	}
	for phase, count := range map[facts.Phase]*uint32{
		facts.Waiting: &m.Waiting, facts.Rescheduling: &m.Rescheduling, facts.Assigned: &m.Assigned,
		facts.Running:    &m.Running,
		facts.BackingOff: &m.BackingOff, facts.Stopping: &m.Stopping, facts.Unknown: &m.Unknown,
		facts.Succeeded: &m.Succeeded,
		facts.Failed:    &m.Failed, facts.Stopped: &m.Stopped,
	} {
		*count += t.Counts[phase] + t.Secondary[phase]
	}
	m.Stopped -= closed(j, t)
}

// Task says how a task stands, by its number.
func Task(j *workload.Job, number int) *starlingv1.Task {
	t := j.Tasks[number]
	m := &starlingv1.Task{
		Name: string(t.Name), Counts: counts(j, t), Preemption: preemptionMessage(&t.Preemption), State: taskState(j, number),
		Follows: brief.Follows(j, number), Changes: taskChanges(j, t),
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
func taskChanges(j *workload.Job, t *workload.Task) *starlingv1.TaskChanges {
	m := &starlingv1.TaskChanges{
		Place: t.Counts[facts.Waiting] + t.Counts[facts.Rescheduling],
		Stop:  t.Counts[facts.Stopping] + t.Secondary[facts.Stopping],
	}
	for health := range t.Old {
		m.Replace += t.Old[health]
		m.Canaries += t.Canaries[health]
	}
	wanted := t.Desired - closed(j, t)
	m.Ignore = wanted - min(wanted, m.Place+m.Replace)
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
		Slot: p.Index, Index: uint64(p.Entry), At: wire.Timestamp(p.At), By: string(p.By),
		Rule: preempt.Rule(p.Rule).String(),
	}
}

// Slots returns the messages of a slot's seats, the main one first.
func Slots(state *cluster.State, r facts.SlotRef) []*starlingv1.Slot {
	messages := []*starlingv1.Slot{Slot(state, r)}
	for _, seat := range []facts.Seat{facts.CanarySeat, facts.UnknownSeat} {
		r.Seat = seat
		if _, taken := state.SlotAt(r); taken {
			messages = append(messages, Slot(state, r))
		}
	}
	return messages
}

// Slot says how a seat of a slot stands.
func Slot(state *cluster.State, r facts.SlotRef) *starlingv1.Slot {
	slot, _ := state.SlotAt(r)
	m := Seat(state, r)
	m.WaitsFor = brief.Slot(state.Job(r.Job), int(r.Task), r, slot)
	return m
}

// NotReady is the health of an instance that nobody is told of before its checks pass.
const NotReady = "not ready"

// healthOf says how healthy the instance in a seat is.
func healthOf(j *workload.Job, r facts.SlotRef, slot *facts.Slot) string {
	if slot.Phase == facts.Running && slot.Health == facts.Starting && !j.IsTold(r, slot) {
		return NotReady
	}
	return slot.Health.String()
}

// Seat says how a seat of a slot stands by itself: all but what it waits for.
func Seat(state *cluster.State, r facts.SlotRef) *starlingv1.Slot {
	slot, _ := state.SlotAt(r)
	name := state.NameOf(r)
	m := &starlingv1.Slot{
		Task: string(name.Task), Number: r.Index, Phase: slot.Phase.String(), Version: slot.Version,
		ExitCode: slot.ExitCode, Failures: slot.Failures, Since: wire.Timestamp(slot.Since),
		Deadline: wire.Timestamp(slot.Deadline),
		Seat:     r.Seat.String(), Health: healthOf(state.Job(r.Job), r, &slot), Cause: slot.Cause.String(),
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

// Held lists the devices of a node that instances have.
func Held(s *cluster.State, node *cluster.Node) (all []*starlingv1.HeldDevice) {
	for _, d := range node.Devices {
		if d.Kind == terms.VirtualPeers.String() {
			continue
		}
		name := s.NameOf(d.Slot)
		all = append(all, &starlingv1.HeldDevice{Kind: d.Kind, Number: d.Number, Milli: uint32(d.Amount),
			Job: string(name.Job), Instance: fmt.Sprintf("%s[%d]", name.Task, name.Index)})
	}
	return all
}

// Absent says why a node cannot be asked that is no member.
func Absent(s *cluster.State, node terms.NodeName) string {
	if s.Registry().IsGone(node) {
		return "was removed from the cluster, with what only it had"
	}
	return "is not in the cluster now: ask again when it is back"
}

// Departed is the state of a node that is no member.
func Departed(s *cluster.State, node terms.NodeName) string {
	if s.Registry().IsGone(node) {
		return "removed"
	}
	return "left"
}
