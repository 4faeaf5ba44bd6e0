package sim

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/journal"
	"starling/peer"
	"starling/replica"
)

// machine is a computer with its peer and what runs there.
type machine struct {
	w    *World
	name cluster.NodeName
	core *peer.Core
	// up tells that the process runs, dead that it never will again.
	up, dead bool
	// life counts starts of the process, so that what was begun by an earlier one is void.
	life int
	// incarnation and starts are what the process keeps on disk.
	incarnation, starts uint32
	cursor, target      int
	begun, renaming     bool
	cutRead, cutWrite   bool
	delivering          bool
	skew                cluster.Time
	appending           *journal.Record
	watching            []cluster.PeerID
	tasks               []*running
	offer               cluster.Offer
	wakeAt              cluster.Time
}

// running is an allocation that the driver has.
type running struct {
	replica.LocalTask
	spec *cluster.TaskSpec
	// stopAt is when a task that was told to end does so.
	stopping bool
}

func jump(w *World) cluster.Time { return cluster.Time(w.between(-3_600_000, 3_600_000)) }

func (m *machine) own() cluster.Time { return m.w.now + m.skew }

// boot starts the process: an empty core reads the journal from its beginning.
func (m *machine) boot() {
	if m.dead || m.up {
		return
	}
	m.up, m.begun, m.renaming, m.delivering = true, false, false, false
	m.life++
	m.w.tell(string(m.name), "boots")
	m.core = peer.NewCore()
	m.core.Explain = m.w.trace != nil || m.w.explain
	m.cursor, m.target = 0, len(m.w.records)
	m.appending, m.watching, m.wakeAt = nil, nil, 0
	m.deliverSoon()
}

// crash ends the process, and with the machine also its tasks; it comes back later unless it is dead.
func (m *machine) crash(whole bool) {
	m.w.tell(string(m.name), "crashes; with its tasks: %v", whole)
	m.up = false
	m.life++
	if m.incarnation > 0 {
		m.w.neglect(m.core.Self())
	}
	if record := m.appending; record != nil && m.w.chance(ghostAppend) {
		m.w.after(m.w.between(0, 10_000), func() { m.w.land(*record) })
	}
	for _, t := range m.tasks {
		if whole && t.Ended == cluster.NotEnded {
			t.Ended, t.ExitCode = cluster.BySignal, 137
		}
	}
	m.core.Fail(peer.ErrStopped)
	m.w.after(m.w.between(10, 2*pulseMillis), m.boot)
}

// goodbye ends the process with a word: it asks to leave and comes back as another life.
func (m *machine) goodbye() {
	if m.begun {
		m.core.Request(&command.Leave{Peer: m.core.Self()}, func(replica.Receipt, error) {})
		m.wake()
	}
}

// cut separates the machine from the journal for a while, in one direction or both.
func (m *machine) cut(reading, writing bool) {
	m.cutRead, m.cutWrite = m.cutRead || reading, m.cutWrite || writing
	m.w.tell(string(m.name), "is cut from the journal: cannot read %v, cannot write %v", m.cutRead, m.cutWrite)
	if writing && m.begun {
		m.w.neglect(m.core.Self())
	}
	m.w.after(m.w.between(50, 3*pulseMillis), m.heal)
}

// heal ends all separation.
func (m *machine) heal() {
	if m.cutRead || m.cutWrite {
		m.w.tell(string(m.name), "is no longer cut from the journal")
	}
	m.cutRead, m.cutWrite = false, false
	if m.up && m.begun {
		m.w.renew(m.core.Self())
	}
	for _, p := range m.watching {
		m.lookSoon(p)
	}
	m.deliverSoon()
}

func (m *machine) deliverSoon() {
	if m.delivering || !m.up {
		return
	}
	m.delivering = true
	wait := m.w.between(0, 3)
	if m.w.chance(slowReading) {
		wait = m.w.between(10, 500)
	}
	if m.w.chance(withholdDelivery) {
		wait = m.w.between(500, 5000)
	}
	life := m.life
	m.w.after(wait, func() {
		if m.life == life {
			m.delivering = false
			m.deliver()
		}
	})
}

// deliver folds some of the records that the machine has not seen.
func (m *machine) deliver() {
	if !m.up || m.cutRead {
		return
	}
	if m.cursor > 0 && m.w.chance(repeatDelivery) {
		if _, ok := m.core.Fold(m.w.records[m.w.rng.IntN(m.cursor)], m.own()); ok {
			m.w.fail("%s folded a record twice", m.name)
		}
	}
	for range m.w.between(1, 20) {
		if m.cursor == len(m.w.records) || m.w.failure != nil {
			break
		}
		folded, ok := m.core.Fold(m.w.records[m.cursor], m.own())
		m.cursor++
		if !ok {
			m.w.fail("%s did not fold record %d", m.name, m.cursor)
			return
		}
		m.w.checkEntry(m, &folded)
	}
	if m.cursor < len(m.w.records) {
		m.deliverSoon()
	}
	if !m.begun && m.cursor >= m.target {
		m.begin()
	}
	m.wake()
}

// begin takes up the life that the disk knows if its pulse is alive, and otherwise a new one.
func (m *machine) begin() {
	if m.incarnation > 0 && m.w.pulseOf(cluster.NewPeerID(m.name, m.incarnation)).alive {
		m.starts++
	} else {
		m.incarnation = max(m.incarnation+1, m.core.NextIncarnation(m.name))
		m.starts = 0
	}
	m.begun, m.renaming = true, false
	self := cluster.NewPeerID(m.name, m.incarnation)
	m.w.tell(string(m.name), "lives as %s, start %d, at entry %d", self, m.starts, m.cursor)
	if !m.cutWrite {
		m.w.renew(self)
	}
	m.core.Begin(self, m.starts, &m.offer)
	m.driverChanged()
}

func (m *machine) driverChanged() {
	local := make([]replica.LocalTask, len(m.tasks))
	for i, t := range m.tasks {
		local[i] = t.LocalTask
	}
	m.core.DriverHas(local)
}

// wake lets the core react and does what it asks.
func (m *machine) wake() {
	if !m.up || !m.begun || m.w.failure != nil {
		return
	}
	if phase, _ := m.core.Phase(); phase == peer.Left {
		m.rename()
		return
	}
	work := m.core.React(m.own())
	if work.Append != nil {
		m.appending = work.Append
		m.appendSoon(*work.Append)
	}
	for _, order := range work.Start {
		m.start(order)
	}
	for _, stop := range work.Stop {
		m.stop(stop)
	}
	for _, id := range work.Forget {
		m.tasks = slices.DeleteFunc(m.tasks, func(t *running) bool { return t.ID == id })
	}
	if len(work.Forget) > 0 {
		m.driverChanged()
	}
	m.watch(work.Watch)
	if at := work.AskAgain; at != 0 && (m.wakeAt <= m.own() || at < m.wakeAt) {
		m.wakeAt = at
		m.wakeIn(int(at - m.own()))
	}
}

func (m *machine) wakeIn(millis int) {
	life := m.life
	m.w.after(millis, func() {
		if m.life == life {
			m.wake()
		}
	})
}

// rename begins a new life after the value said that this one has left.
func (m *machine) rename() {
	if m.renaming || m.cutWrite {
		return
	}
	m.renaming = true
	life := m.life
	m.w.after(m.w.between(1, 50), func() {
		if m.life != life {
			return
		}
		m.renaming = false
		if phase, _ := m.core.Phase(); phase == peer.Left {
			m.appending = nil
			m.w.pulseOf(m.core.Self()).alive = false
			m.begin()
			m.wake()
		}
	})
}

// watch replaces the pulses that the machine looks at.
func (m *machine) watch(all []cluster.PeerID) {
	old := m.watching
	m.watching = all
	for _, p := range all {
		if !slices.Contains(old, p) {
			m.lookSoon(p)
		}
	}
}

// lookSoon lets the core know a watched pulse's state. During a partition it learns nothing.
func (m *machine) lookSoon(p cluster.PeerID) {
	if !m.up || !slices.Contains(m.watching, p) {
		return
	}
	life := m.life
	m.w.after(m.w.between(0, 20), func() {
		if m.life == life && !m.cutRead && slices.Contains(m.watching, p) {
			m.core.PulseSeen(p, m.w.pulseOf(p).alive)
			m.wake()
		}
	})
}

// appendSoon tries to append the record until it is known to be in.
func (m *machine) appendSoon(r journal.Record) {
	life := m.life
	m.w.after(m.w.between(1, 5), func() {
		if m.life != life || m.appending == nil || m.appending.Seq != r.Seq || m.appending.Writer != r.Writer {
			return
		}
		if m.cutWrite {
			m.w.after(m.w.between(50, 200), func() { m.appendAgain(r, life) })
			return
		}
		if !m.w.landed(r) || m.w.chance(doubleAppend) {
			m.w.land(r)
		}
		if m.w.chance(lostAck) {
			m.appendAgain(r, life)
			return
		}
		m.appending = nil
		if m.w.chance(garbage) {
			m.w.land(journal.Record{Writer: fmt.Sprint("x", len(m.w.records)), Payload: m.w.garble(r.Payload)})
		}
	})
}

func (m *machine) appendAgain(r journal.Record, life int) {
	if m.life == life {
		m.appendSoon(r)
	}
}

// garble changes some bytes of a record.
func (w *World) garble(payload []byte) []byte {
	bad := slices.Clone(payload)
	for range w.between(1, 3) {
		bad[w.rng.IntN(len(bad))] = byte(w.rng.IntN(256))
	}
	return bad[:w.between(1, len(bad))]
}
