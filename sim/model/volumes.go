package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/sim/model/keeping"
	"starling/terms"
)

// keeps tells whether any kept version of a task has volumes.
func (t *task) keeps() bool {
	return slices.ContainsFunc(t.job.versions, func(v facts.JobVersion) bool {
		spec := t.spec(v.Number)
		return spec != nil && len(spec.Volumes) > 0
	})
}

// tied tells whether instances of a spec stay where volumes of the task are.
func (t *task) tied(spec *terms.Task) bool {
	return spec != nil && (len(spec.Volumes) > 0 || t.job.volumes.On() && t.keeps())
}

func (s *slot) name() terms.SlotName {
	return terms.SlotName{Job: s.task.job.newest().Name, Task: s.task.name, Index: s.index}
}

func (t *task) drop(s *slot) {
	if t.keeps() {
		t.job.volumes.Drop(s.name(), t.job.ID, &s.main().Slot, t.job.volumes.Until(t.spec(0)))
	}
}

// findVolumes lets slots from one on that were never placed wait for what is kept for them.
func (m *Model) findVolumes(t *task, from uint32) {
	for i := from; i < t.desired && t.keeps(); i++ {
		s := t.slots[i].main()
		if s.Order != 0 {
			continue
		}
		if row, ok := m.volumes.Find(t.slots[i].name(), t.job.ID); ok {
			for below := t.used(); below < i; below++ {
				t.slots[below].main().Since = m.time
			}
			s.Slot = row
		}
	}
}

// expire lets a job that has ended be forgotten at the end of the entry. What its volumes hold is kept for the next.
func (m *Model) expire(j *Job) {
	for _, t := range j.tasks {
		for i := 0; !j.expired && i < len(t.slots); i++ {
			t.drop(t.slots[i])
		}
	}
	if !j.expired {
		m.volumes.Forget(j.ID)
	}
	j.expired = true
}

// removeVolumes lets what is in volumes be deleted that no instance is to have.
func (m *Model) removeVolumes(set terms.VolumeSet) bool {
	gone, s := m.volumes.Remove(set), m.slotWith(set)
	if gone || s == nil || !m.volumes.Has(set, s.task.job.ID, &s.main().Slot, s.task.keeps()) ||
		s.main().Phase.Holds() || s.wanted() && s.task.job.finished == 0 {
		return gone
	}
	m.lastJob++
	m.volumes.Renew(set.Slot, s.task.job.ID, m.lastJob, m.index)
	return true
}

// moveVolumes lets the node of a member have volumes, as an allocation left them.
func (m *Model) moveVolumes(writer terms.PeerID, c *command.MoveVolumes) bool {
	s, ok := m.slotWith(c.Volumes), slices.Contains(m.Ring, writer)
	move := keeping.Moved{Set: c.Volumes, Left: c.Order, To: m.nodeOf(writer.Node()).number}
	free := ok && m.volumes.Move(move, 0, &facts.Slot{})
	if free || !ok || s == nil || s.holds() ||
		s.task.name != "" && !s.task.keeps() || !m.volumes.Move(move, s.task.job.ID, &s.main().Slot) {
		return free
	}
	if row := s.main().Slot; row.Order != 0 {
		row.Node = move.To
		m.put(s.main(), row)
	}
	return true
}

// slotWith returns the slot of a set, an empty one if its job has none now, nil if there is no job.
func (m *Model) slotWith(set terms.VolumeSet) *slot {
	j := m.jobOf(set.Slot.Job)
	if j == nil || j.expired {
		return nil
	}
	for _, t := range j.tasks {
		if t.name == set.Slot.Task && int(set.Slot.Index) < len(t.slots) {
			return t.slots[set.Slot.Index]
		}
	}
	return &slot{task: &task{job: j}}
}
