package sim

import (
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/peer"
	"starling/replica"
	"starling/schedule/place"
)

// checkEntry compares what a machine folded with what the first one found, and audits what is new.
func (w *World) checkEntry(m *machine, folded *replica.Folded) {
	index := int(folded.Index)
	if index <= len(w.digests) {
		if w.digests[index-1] != folded.Digest {
			w.fail("%s has digest %016x at entry %d, others have %016x", m.name, folded.Digest, index, w.digests[index-1])
		}
		return
	}
	w.digests = append(w.digests, folded.Digest)
	w.tellEntry(folded)
	for _, line := range m.core.State().Audit() {
		w.fail("books: %s", line)
	}
	w.countJoins(folded)
	w.model.apply(folded)
	for _, line := range w.model.differences(m.core.State(), &folded.Outcome) {
		w.fail("the slow model differs: %s", line)
	}
}

// countJoins counts what the new entry did for membership.
func (w *World) countJoins(folded *replica.Folded) {
	if folded.Outcome.Dropped != "" {
		return
	}
	about := false
	for i, c := range folded.Entry.Commands {
		switch c.Kind() {
		case command.KindAcceptJoin:
			if folded.Outcome.Results[i].Refusal.Code == cluster.OK {
				w.joins++
			}
			about = true
		case command.KindPrepareJoin, command.KindNotifyJoin, command.KindAbortJoin:
			about = true
		case command.KindLeave:
			w.ringChanged = w.now
		}
	}
	if about {
		w.joinEntries++
		w.ringChanged = w.now
	}
}

// checkRest checks what must hold when nothing happens any more.
func (w *World) checkRest() {
	var first *machine
	members := 0
	for _, m := range w.machines {
		if m.dead {
			continue
		}
		members++
		if first == nil {
			first = m
		}
		if phase, why := m.core.Phase(); phase != peer.Member {
			w.fail("%s is %s %s", m.name, phase, why)
			return
		}
		if m.cursor != len(w.records) || m.core.State().Digest() != first.core.State().Digest() {
			w.fail("%s rests at entry %d of %d", m.name, m.cursor, len(w.records))
			return
		}
		w.checkMachine(m)
	}
	s := first.core.State()
	if s.Members() != members {
		w.fail("%d machines live, %d are members", members, s.Members())
	}
	s.EachAttempt(func(p cluster.PeerID, a cluster.Attempt) bool {
		if node := s.NodeOf(p.Node()); !w.isDead(p.Node()) || a.Phase <= cluster.Accepted {
			w.fail("attempt %d of %s is left %s; its node lives as %q", a.Number, p, a.Phase, node.Peer)
		}
		return true
	})
	w.checkJobs(s)
}

func (w *World) isDead(name cluster.NodeName) bool {
	return slices.ContainsFunc(w.machines, func(m *machine) bool { return m.name == name && m.dead })
}

// checkMachine checks that exactly what the value gives to a machine runs on it.
func (w *World) checkMachine(m *machine) {
	view := replica.ViewOf(m.core.State(), m.core.Self())
	for _, a := range view {
		if a.Phase != cluster.Running {
			w.fail("%s rests %s on %s", a.ID, a.Phase, m.name)
		}
		if !slices.ContainsFunc(m.tasks, func(t *running) bool { return t.ID == a.ID && t.Ended == cluster.NotEnded }) {
			w.fail("%s should run on %s and does not", a.ID, m.name)
		}
	}
	if len(view) != len(m.tasks) {
		w.fail("%s should run %d allocations, has %d", m.name, len(view), len(m.tasks))
	}
	if work := m.core.React(m.own()); work.Append != nil || len(work.Start)+len(work.Stop)+len(work.Forget) > 0 {
		w.fail("%s rests but would still act: %+v", m.name, work)
	}
}

// checkJobs checks that nothing acknowledged was lost, that nothing is said to be done that is not, and that what can
// run runs.
func (w *World) checkJobs(s *cluster.State) {
	for _, name := range w.clients.accepted {
		if s.JobOf(name) == nil {
			w.fail("job %s was acknowledged and is lost", name)
		}
	}
	s.EachJob(func(j *cluster.Job) bool {
		for i, t := range j.Tasks {
			for index := range t.Slots.Len() {
				slot := t.Slots.At(index)
				id := cluster.AllocationID{Slot: cluster.SlotName{Job: j.Name(), Task: t.Name, Index: uint32(index)}, Order: slot.Order}
				if slot.Phase == cluster.Succeeded && !w.clients.succeeded[id] {
					w.fail("%s is said to have succeeded and did not", id)
				}
			}
			w.checkWaiting(s, j, i)
		}
		return true
	})
	if s.Unfinished {
		w.fail("work is left over")
	}
}

// checkWaiting checks by looking at every node that none could take what waits.
func (w *World) checkWaiting(s *cluster.State, j *cluster.Job, task int) {
	if j.Tasks[task].Waits() == 0 {
		return
	}
	spec := j.TaskSpecOf(task, j.Version)
	for n := range s.Nodes() {
		if place.Fits(s, spec, cluster.NodeIndex(n)) {
			w.fail("%s.%s waits although node %s has room", j.Name(), spec.Name, s.Node(cluster.NodeIndex(n)).Name)
		}
	}
}
