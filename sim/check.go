package sim

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/snapshot"
	"starling/cluster/workload"
	"starling/command"
	"starling/peer"

	"starling/replica/bound"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
)

// checkEntry compares what a machine folded with what the first one found, and audits what is new.
func (w *World) checkEntry(m *machine, folded *report.Folded) {
	index := int(folded.Index)
	w.versions.check(m, folded)
	w.snapshots.check(m.core.State(), folded)
	if index <= len(w.digests) {
		if w.digests[index-1] != folded.Digest {
			w.fail("%s has digest %016x at entry %d, others have %016x", m.label, folded.Digest, index, w.digests[index-1])
		}
		return
	}
	w.digests = append(w.digests, folded.Digest)
	w.tellEntry(folded)
	if index%auditEvery == 0 {
		w.audit(m)
	}
	w.checkWork(m, folded)
	w.checkLed(m.core.State())
	w.disks.Entry(folded)
	w.countJoins(folded)
	if w.unchecked {
		w.joined = m.core.State().Members()
		return
	}
	w.model.Apply(folded, m.core.State())
	w.promises.Entry(m.core.State(), folded)
	for _, line := range w.model.Differences(m.core.State(), &folded.Outcome) {
		w.tell("", "the slow model differs: %s", line)
		w.fail("the slow model differs: %s", line)
	}
}

// checkWork checks that a new entry was no more work than it may be.
func (w *World) checkWork(m *machine, folded *report.Folded) {
	before := w.size
	w.size = bound.SizeOf(m.core.State())
	if folded.Entry == nil {
		return
	}
	if most := bound.RowsMax(before, w.size, len(folded.Entry.Commands)); folded.Outcome.Visited > most {
		w.fail("entry %d visits %d rows, at most %d", folded.Index, folded.Outcome.Visited, most)
	}
}

// auditEvery is how many entries pass between two audits of the books; the model looks at every one.
const auditEvery = 8

func (w *World) audit(m *machine) {
	for _, line := range m.core.State().Audit() {
		w.fail("books: %s", line)
	}
}

// checkLed checks that nobody is said to run, or to be told to, what is on a machine that has left.
func (w *World) checkLed(s *cluster.State) {
	for n := range facts.NodeIndex(s.Nodes()) {
		for _, r := range s.Node(n).Held {
			if slot, _ := s.SlotAt(r); s.Node(n).Peer == "" && slot.Phase != facts.Unknown {
				w.fail("%s is %s on %s, which has left", s.NameOf(r), slot.Phase, s.Node(n).Name)
			}
		}
	}
}

// countJoins counts what the new entry did for membership.
func (w *World) countJoins(folded *report.Folded) {
	if folded.Outcome.Dropped != "" {
		return
	}
	about := false
	for i, c := range folded.Entry.Commands {
		switch c.Kind() {
		case command.KindAcceptJoin:
			if folded.Outcome.Results[i].Refusal.Code == facts.OK {
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

// The longest that healing may take once the faults have ended: until the ring is whole, and after the last task has
// ended until nothing is written any more.
const (
	ringRestMillisMax = 75_000
	restMillisMax     = 90_000
)

// ringRest returns how long after the last fault the ring changed last, negative if before, in milliseconds.
func (w *World) ringRest() terms.Time { return w.ringChanged - max(w.calmAt, w.movedAt) }

// checkRest checks what must hold when nothing happens any more.
func (w *World) checkRest() {
	if took := w.ringRest(); took > ringRestMillisMax {
		w.fail("the ring was whole only %d ms after the faults had ended", took)
	}
	if took := w.landedAt - max(w.calmAt, w.workedAt); took > restMillisMax {
		w.fail("entries were written for %d ms after the faults and the last task had ended", took)
	}
	first, members := w.membersAtRest()
	if w.failure != nil {
		return
	}
	w.audit(first)
	s := first.core.State()
	for _, m := range w.machines {
		if !m.dead && !members[m.name] {
			w.fail("%s lives and is no member", m.label)
		}
	}
	if s.Members() != len(members) {
		w.fail("%d machines live, %d are members", len(members), s.Members())
	}
	s.EachAttempt(func(p terms.PeerID, a membership.Attempt) bool {
		if a.Phase <= membership.Accepted || w.lives(p.Node()) && !members[p.Node()] {
			w.fail("attempt %d of %s is left %s", a.Number, p, a.Phase)
		}
		return true
	})
	w.checkJobs(s)
	w.promises.Rest(s)
	w.snapshots.rest(s)
	w.foldAgain(s)
}

// membersAtRest checks that all who live have read everything, hold the same value and are members, or wait for another
// of their name. It returns the first of them and the names of the members.
func (w *World) membersAtRest() (first *machine, members map[terms.NodeName]bool) {
	members = map[terms.NodeName]bool{}
	for _, m := range w.machines {
		if m.dead {
			continue
		}
		if first == nil {
			first = m
		}
		if m.cursor != len(w.records) || m.core.State().Digest() != first.core.State().Digest() {
			w.fail("%s rests at entry %d of %d", m.label, m.cursor, len(w.records))
			return first, members
		}
		phase, why := m.core.Phase()
		switch {
		case phase == peer.Member && !members[m.name]:
			members[m.name] = true
		case phase != peer.Joining || !w.hasTwin(m):
			w.fail("%s is %s %s", m.label, phase, why)
			return first, members
		}
		w.checkMachine(m)
	}
	return first, members
}

func (w *World) lives(name terms.NodeName) bool {
	return slices.ContainsFunc(w.machines, func(m *machine) bool { return m.name == name && !m.dead })
}

func (w *World) hasTwin(m *machine) bool {
	return slices.ContainsFunc(w.machines,
		func(other *machine) bool { return other != m && other.name == m.name && !other.dead })
}

// checkMachine checks that exactly what the value gives to a machine runs on it.
func (w *World) checkMachine(m *machine) {
	view := reaction.ViewOf(m.core.State(), m.core.Self())
	if !m.core.State().IsMember(m.core.Self()) {
		view = nil
	} else {
		w.disks.Rest(m.core.State(), &m.volumes)
	}
	for _, a := range view {
		if a.Phase != facts.Running {
			w.fail("%s rests %s on %s", a.ID, a.Phase, m.label)
		}
		if at, found := m.find(a.ID); !found || m.tasks[at].Ended != facts.NotEnded {
			w.fail("%s should run on %s and does not", a.ID, m.label)
		}
	}
	if len(view) != len(m.tasks) {
		w.fail("%s should run %d allocations, has %d", m.label, len(view), len(m.tasks))
	}
	if work := m.core.React(m.own()); work.Append != nil ||
		len(work.Start)+len(work.Stop)+len(work.Renew)+len(work.Forget)+len(work.DeleteVolumes) > 0 || work.Snapshot != nil {
		w.fail("%s rests but would still act: %+v", m.label, work)
	}
}

// checkJobs checks that nothing acknowledged was lost, that nothing is said to be done that is not, and that what can
// run runs.
func (w *World) checkJobs(s *cluster.State) {
	for _, name := range w.clients.accepted {
		if s.JobOf(name) == nil && !w.clients.kept[name] && !w.model.Forgotten[name] {
			w.fail("job %s was acknowledged and is lost", name)
		}
	}
	for name, sent := range w.clients.killed {
		if j := s.JobOf(name); j != nil && j.Submitted <= sent && j.Finished == 0 {
			w.fail("job %s was killed and has not ended", name)
		}
	}
	s.EachJob(func(j *workload.Job) bool {
		for _, t := range j.Tasks {
			for index := range t.Slots.Len() {
				slot := t.Slots.At(index)
				id := terms.AllocationID{Slot: terms.SlotName{Job: j.Name(), Task: t.Name, Index: uint32(index)}, Order: slot.Order}
				if slot.Phase == facts.Succeeded && !w.clients.succeeded[id] {
					w.fail("%s is said to have succeeded and did not", id)
				}
			}
		}
		return true
	})
	if s.Unfinished {
		w.fail("work is left over")
	}
	if idle := w.model.Idle(); idle != "" {
		w.fail("%s", idle)
	}
}

// foldAgain folds the whole journal from its beginning in one go, keeps copies on the way, and checks that the value is
// the same everywhere, and that no copy changed with what came after it. Now and then it goes on with a value made from
// the facts alone.
func (w *World) foldAgain(s *cluster.State) {
	core := w.versions.knows()
	core.Explain = w.explain
	copies := map[int]*cluster.State{}
	for i, r := range w.records {
		folded, _ := core.Fold(r, w.now)
		if folded.Digest != w.digests[i] {
			w.fail("folded again, entry %d has digest %016x, it had %016x", i+1, folded.Digest, w.digests[i])
			return
		}
		if w.rng.IntN(20) == 0 {
			copies[i] = core.State().Copy()
			core = w.restore(core.State(), i)
		}
	}
	if w.failure != nil {
		return
	}
	for i, c := range copies {
		if c.Digest() != w.digests[i] || len(c.Audit()) > 0 {
			w.fail("the copy of entry %d changed: %v", i+1, c.Audit())
		}
	}
	if core.State().Digest() != s.Digest() {
		w.fail("folded again, the value has digest %016x, it had %016x", core.State().Digest(), s.Digest())
	}
}

// restore returns a core that goes on from a snapshot of the value, which is to be the same in all that it does.
func (w *World) restore(s *cluster.State, i int) *peer.Core {
	core, data := w.versions.knows(), snapshot.Encode(s.Facts())
	core.Explain = w.explain
	core.Restore(facts.Snapshot{Index: s.Index, Sum: sha256.Sum256(data)}, data, w.now)
	if err := core.Halt(); err != nil {
		w.fail("the snapshot of entry %d cannot be read: %v", i+1, err)
	}
	if core.State().Digest() != w.digests[i] {
		w.fail("made from its snapshot, the value of entry %d has digest %016x, it had %016x", i+1, core.State().Digest(),
			w.digests[i])
	}
	if !bytes.Equal(snapshot.Encode(core.State().Facts()), data) {
		w.fail("made from its snapshot, the value of entry %d has another snapshot", i+1)
	}
	return core
}
