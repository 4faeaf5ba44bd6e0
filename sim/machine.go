package sim

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/peer"
	"starling/peer/outbox"
	"starling/replica/report"
	"starling/sim/promises"
	"starling/terms"
	"starling/terms/rules"
)

// machine is a computer with its peer and what runs there.
type machine struct {
	w    *World
	name terms.NodeName
	// label tells machines apart in stories, also those that have the same name by mistake.
	label string
	core  *peer.Core
	// up tells that the process runs, dead that it never will again, begun that it leads a life.
	up, dead, begun bool
	// run counts starts of the process, power those of the whole machine, so that what was begun before is void.
	run, power int
	disk       disk
	// cursor is the last record folded, target the last there was when the process started.
	cursor, target    int
	cutRead, cutWrite bool
	// slow tells that this start reads the journal slowly.
	slow bool
	// claimed tells that a new life waits until the journal was read up to its beginning.
	claimed                       bool
	delivering, seeking, noticing bool
	skew                          terms.Time
	appending                     *journal.Record
	appendingSince                terms.Time
	// sent is the last record that the core asked to append.
	sent     recordName
	watching []terms.PeerID
	// tasks are ordered by allocation; stale tells that the core has not been told of the latest.
	tasks []*running
	stale bool
	// volumes are what its disk keeps of volumes.
	volumes promises.Disk
	offer   terms.Offer
	wakeAt  terms.Time
	// joins counts how often it has joined by a token, leaving tells that it was removed and has not joined again yet.
	// Unwanted tells that somebody asks for its removal, or has.
	joins             int
	leaving, unwanted bool
	// absent is when it is back that went away with notice.
	absent terms.Time
	// program is the newest version of the rules that the installed program knows.
	program rules.Number
}

// disk is what a machine keeps over restarts of the process.
type disk struct {
	incarnation uint32
	// interrupted tells that the incarnation's pulse has ended once and was brought back.
	interrupted bool
	// away tells that the process has ended with notice.
	away bool
	// starts counts from 1 when the incarnation's pulse is this machine's, so that it may be taken up again.
	starts uint32
}

func (m *machine) own() terms.Time { return m.w.now + m.skew }

func (m *machine) tell(format string, args ...any) { m.w.tell(m.label, format, args...) }

// later lets something happen to this run of the process, unless it ends before.
func (m *machine) later(millis int, act func()) {
	run := m.run
	m.w.after(millis, func() {
		if m.run == run && m.up {
			act()
		}
	})
}

// boot starts the process: an empty core reads the journal from its beginning.
func (m *machine) boot() {
	if m.dead || m.up || m.leaving {
		return
	}
	if m.absent > m.w.now {
		m.w.after(int(m.absent-m.w.now), m.boot)
		return
	}
	m.tell("boots")
	m.up, m.begun, m.claimed, m.delivering, m.seeking, m.noticing = true, false, false, false, false, false
	m.run++
	m.core = peer.NewCore(m.w.limits)
	m.core.StartsMax = m.w.startsMax
	m.core.Key = m.w.registrar.keyOf(m)
	m.core.Knows = max(m.program, rules.Released)
	m.core.Explain = m.w.trace != nil || !m.w.unchecked
	m.cursor, m.target = 0, len(m.w.records)
	m.appending, m.watching, m.wakeAt = nil, nil, 0
	m.slow = m.w.chance(slowStart)
	if m.w.chance(changeOffer) {
		m.offer = m.w.drawOffer(m)
	}
	if m.target == 0 {
		m.begin()
		return
	}
	m.deliverSoon()
}

// crash ends the process, and with the machine also its tasks; it comes back later unless it is dead.
func (m *machine) crash(whole bool) {
	m.tell("crashes; with its tasks: %v", whole)
	m.up = false
	m.run++
	if m.begun {
		m.w.neglect(m.core.Self())
	}
	if m.claimed {
		m.w.neglect(m.self())
	}
	m.leaveGhost()
	m.prove()
	if whole {
		m.power++
	}
	for _, t := range m.tasks {
		if whole && t.Ended == facts.NotEnded {
			t.Ended, t.ExitCode = facts.BySignal, 137
		}
	}
	if m.core != nil {
		m.core.Fail(outbox.ErrStopped)
	}
	if m.w.chance(forgetDisk) {
		m.disk = disk{}
	}
	m.w.after(m.w.between(10, 2*pulseMillis), m.boot)
}

// leaveGhost lets a record that was under way get into the journal although its writer is no more.
func (m *machine) leaveGhost() {
	if record := m.appending; record != nil && m.w.chance(ghostAppend) {
		m.w.after(m.w.between(0, 10_000), func() { m.w.landOnce(*record) })
	}
	m.appending = nil
}

// goodbye ends a life with a word: the peer asks to leave and comes back in another.
func (m *machine) goodbye() {
	if m.begun {
		m.core.Request(&command.Leave{Peer: m.core.Self()}, func(report.Receipt, error) {})
		m.wake()
	}
}

// goAway gives notice that the process ends and comes back, and ends it a moment later, whether or not that counts by
// then. It may be away for longer than it has said, too.
func (m *machine) goAway() {
	within := m.w.between(500, absenceMillisMax)
	if !m.begun || !m.core.GoAway(m.own(), uint32(within)) {
		return
	}
	m.tell("goes away for %d ms at most", within)
	m.disk.away = true
	m.wake()
	m.later(m.w.between(1, 3000), func() {
		m.crash(false)
		m.absent = m.w.now + terms.Time(m.w.between(10, 2*within))
	})
}

// absenceMillisMax is how long an absence may last that a machine gives notice of.
const absenceMillisMax = 20_000

// begin leads the life that the disk knows if its pulse still beats, or the process ended with notice, and the value
// knows no end of it; otherwise a new one. It is what peer.Peer does, without its goroutines.
func (m *machine) begin() {
	switch {
	case m.cutWrite || m.cutRead:
		m.seek(m.w.between(50, 1000))
		return
	case m.claimed:
		m.confirm()
		return
	}
	departed := uint32(0)
	if node := m.core.State().NodeOf(m.name); node != nil {
		departed = node.Departed
	}
	if m.disk.starts > 0 && m.disk.incarnation > departed {
		m.disk.starts++
		if one := m.w.pulseOf(m.self()); one.alive && one.owner == m {
			m.lead(m.self())
			return
		}
		if m.disk.away && !m.w.pulseOf(m.self()).alive {
			m.disk.interrupted = true
			m.claim()
			return
		}
	}
	m.disk = disk{incarnation: max(m.disk.incarnation+1, m.core.NextIncarnation(m.name))}
	if m.w.pulseOf(m.self()).alive {
		m.tell("finds the pulse of %s taken", m.self())
		m.seek(1000)
		return
	}
	m.claim()
}

// claim makes the pulse of a life this machine's.
func (m *machine) claim() {
	m.w.pulseOf(m.self()).owner = m
	m.w.renew(m.self())
	m.claimed, m.target = true, len(m.w.records)
	m.confirm()
}

// confirm leads the new life whose pulse is this machine's since a moment, unless the journal, read up to that moment,
// knows that another machine of this name had that life meanwhile.
func (m *machine) confirm() {
	if m.cursor < m.target {
		return
	}
	m.claimed = false
	if m.disk.away && m.core.State().IsMember(m.self()) {
		m.lead(m.self())
		return
	}
	if m.disk.away || m.core.NextIncarnation(m.name) > m.disk.incarnation {
		m.tell("finds that another has been %s", m.self())
		m.w.neglect(m.self())
		m.disk.away = false
		m.begin()
		return
	}
	if one := m.w.pulseOf(m.self()); !one.alive || one.owner != m {
		m.tell("lost the pulse of %s while it read", m.self())
		m.seek(1000)
		return
	}
	m.disk.starts = 1 + uint32(m.joins) // an emptied machine may lead a life again of which nothing counted
	m.lead(m.self())
}

func (m *machine) self() terms.PeerID { return terms.NewPeerID(m.name, m.disk.incarnation) }

// seek looks for a life once more after a while.
func (m *machine) seek(millis int) {
	if m.seeking {
		return
	}
	m.seeking = true
	m.later(millis, func() {
		m.seeking = false
		m.begin()
	})
}

func (m *machine) lead(self terms.PeerID) {
	m.tell("lives as %s, start %d, at entry %d", self, m.disk.starts, m.cursor)
	m.begun, m.slow, m.sent = true, false, recordName{}
	m.w.renew(self)
	m.core.Begin(self, m.disk.starts, &m.offer)
	if m.disk.away {
		m.core.ComeBack(m.own())
	}
	m.disk.away = false
	m.stale = true
	m.wake()
}

// pulseless tells whether the pulse of the life that the machine leads has ended, or is another's.
func (m *machine) pulseless() bool {
	one := m.w.pulseOf(m.self())
	return !one.alive || one.owner != m
}

// wake lets the core react, or gives up a life that is over.
func (m *machine) wake() {
	if !m.up || !m.begun || m.w.failure != nil {
		return
	}
	if m.stale {
		m.driverChanged()
	}
	m.prove()
	if m.mustMoveOn() {
		m.disk.starts, m.w.movedAt = 0, m.w.now
		m.moveOn()
		return
	}
	switch phase, _ := m.core.Phase(); phase {
	case peer.Left:
		m.moveOn()
	case peer.Removed:
		m.removed()
	default:
		m.react()
	}
}

// react lets the core react and does what it asks.
func (m *machine) react() {
	m.core.Pulseless = m.pulseless()
	work := m.core.React(m.own())
	if work.Append != nil {
		m.checkUnderway(work.Append)
		m.appending, m.appendingSince = work.Append, m.w.now
		m.appendSoon(*work.Append)
	}
	for _, order := range work.Start {
		m.start(order)
	}
	m.renew(work.Renew)
	m.snapshot(work.Snapshot)
	for _, stop := range work.Stop {
		m.stop(stop)
	}
	for _, id := range work.Forget {
		m.forget(id)
	}
	m.deleteVolumes(work.DeleteVolumes)
	m.watch(work.Watch)
	if at := work.AskAgain; at != 0 && (m.wakeAt <= m.own() || at < m.wakeAt) {
		m.wakeAt = at
		m.later(int(at-m.own()), m.wake)
	}
	if m.stale {
		m.notice()
	}
}

// forget drops the remains of a task, which must have ended.
func (m *machine) forget(id terms.AllocationID) {
	at, found := m.find(id)
	if !found {
		return
	}
	if m.tasks[at].Ended == facts.NotEnded {
		m.w.fail("%s was told to forget %s, which runs", m.label, id)
	}
	m.tasks = slices.Delete(m.tasks, at, at+1)
	m.stale = true
}

// notice lets the core, if it runs, see soon what changed at the driver.
func (m *machine) notice() {
	if !m.up {
		return
	}
	m.stale = true
	if m.noticing {
		return
	}
	m.noticing = true
	m.later(m.w.between(0, 10), func() {
		m.noticing = false
		m.wake()
	})
}

// moveOn begins a new life after the value said that this one has left.
func (m *machine) moveOn() {
	if m.seeking || m.claimed {
		return
	}
	m.w.neglect(m.core.Self())
	m.leaveGhost()
	m.seek(m.w.between(1, 50))
}

// watch replaces the pulses that the machine looks at.
func (m *machine) watch(all []terms.PeerID) {
	old := m.watching
	m.watching = all
	for _, p := range all {
		if !slices.Contains(old, p) {
			m.lookSoon(p)
		}
	}
	for _, p := range old {
		if !slices.Contains(all, p) {
			m.core.PulseSeen(p, true)
		}
	}
}

// lookSoon lets the core know a watched pulse's state. While it cannot read it learns nothing.
func (m *machine) lookSoon(p terms.PeerID) {
	if !m.up || !slices.Contains(m.watching, p) {
		return
	}
	m.later(m.w.between(0, 20), func() {
		if !m.cutRead && slices.Contains(m.watching, p) {
			m.core.PulseSeen(p, m.w.pulseOf(p).alive)
			m.wake()
		}
	})
}
