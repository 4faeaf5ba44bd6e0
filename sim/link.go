package sim

import (
	"errors"
	"fmt"
	"slices"

	"starling/journal"
	"starling/terms"
)

// appendTimeoutMillis is how long requests are kept waiting for a journal that does not take an entry.
const appendTimeoutMillis = 5000

var errCut = errors.New("the journal cannot be reached")

// cut separates the machine from the journal for a while, in one direction or both.
func (m *machine) cut(reading, writing bool, millis int) {
	m.cutRead, m.cutWrite = m.cutRead || reading, m.cutWrite || writing
	m.prove()
	m.tell("is cut from the journal for %d ms: cannot read %v, cannot write %v", millis, m.cutRead, m.cutWrite)
	if writing && m.begun {
		m.w.neglect(m.core.Self())
	}
	if writing && m.claimed {
		m.w.neglect(m.self())
	}
	m.w.after(millis, m.heal)
}

// heal ends all separation.
func (m *machine) heal() {
	if m.cutRead || m.cutWrite {
		m.tell("reaches the journal again")
	}
	m.cutRead, m.cutWrite = false, false
	m.reclaim()
	for _, p := range m.watching {
		m.lookSoon(p)
	}
	m.deliverSoon()
}

// reclaim brings the pulse back that may have ended meanwhile. If another machine of the same name has created it
// since, that one has this life now, and another must be found.
func (m *machine) reclaim() {
	if !m.up || m.seeking || !m.begun && !m.claimed {
		return
	}
	one := m.w.pulseOf(m.self())
	if one.alive && one.owner != m {
		m.tell("finds its pulse taken by another")
		m.begun, m.claimed = false, false
		m.begin()
		return
	}
	one.owner = m
	m.disk.interrupted = m.disk.interrupted || !one.alive
	m.w.renew(m.self())
	m.prove()
	if m.claimed {
		m.target = len(m.w.records)
	}
}

func (m *machine) deliverSoon() {
	if m.delivering || !m.up {
		return
	}
	m.delivering = true
	wait := m.w.between(0, 3)
	if m.w.chance(slowReading) || m.slow {
		wait = m.w.between(10, 500)
	}
	if m.w.chance(withholdDelivery) {
		wait = m.w.between(500, 5000)
	}
	m.later(wait, func() {
		m.delivering = false
		m.deliver()
	})
}

// deliver folds some of the records that the machine has not seen.
func (m *machine) deliver() {
	if m.cutRead {
		return
	}
	if m.cursor > 0 && m.w.chance(repeatDelivery) {
		if _, ok := m.core.Fold(m.w.records[m.w.rng.IntN(m.cursor)], m.own()); ok {
			m.w.fail("%s folded a record twice", m.label)
		}
	}
	most := m.w.between(1, 20)
	if m.slow {
		most = m.w.between(1, 3)
	}
	for range most {
		if m.cursor == len(m.w.records) || m.w.failure != nil {
			break
		}
		if m.foldNext(); m.core.Halt() != nil {
			m.w.versions.halts(m)
			return
		}
	}
	if m.cursor < len(m.w.records) {
		m.deliverSoon()
	}
	if (!m.begun || m.claimed) && !m.seeking && m.cursor >= m.target {
		m.begin()
	}
	m.wake()
}

// foldNext folds the next record, or takes the snapshot that stands for it.
func (m *machine) foldNext() {
	if m.trimmed() {
		m.restore()
		return
	}
	folded, ok := m.core.Fold(m.w.records[m.cursor], m.own())
	m.cursor++
	if !ok {
		m.w.fail("%s did not fold record %d", m.label, m.cursor)
		return
	}
	m.w.checkEntry(m, &folded)
}

// appendSoon tries to append the record until it is known to be in.
func (m *machine) appendSoon(r journal.Record) {
	wait := m.w.between(1, 5)
	if m.w.chance(slowAppend) {
		wait = m.w.between(50, 4000)
	}
	m.later(wait, func() {
		if m.appending == nil || m.appending.Seq != r.Seq || m.appending.Writer != r.Writer {
			return
		}
		if m.cutWrite {
			if m.w.now-m.appendingSince > appendTimeoutMillis {
				m.core.Stall(r.Seq, errCut)
			}
			m.later(m.w.between(50, 200), func() { m.appendSoon(r) })
			return
		}
		m.w.landOnce(r)
		if m.w.chance(doubleAppend) {
			m.w.land(r)
		}
		if m.w.chance(lostAck) {
			m.appendSoon(r)
			return
		}
		m.appending = nil
		if m.w.chance(garbage) {
			m.w.land(journal.Record{Writer: fmt.Sprint("x", len(m.w.records)), Payload: m.w.garble(r.Payload)})
		}
	})
}

// checkUnderway checks that the entry before this one was folded: only one is under way at a time.
func (m *machine) checkUnderway(next *journal.Record) {
	last := m.sent
	m.sent = recordName{next.Writer, next.Seq}
	if last.writer != next.Writer || last.seq>>32 != next.Seq>>32 {
		return
	}
	for i := m.cursor - 1; i >= 0; i-- {
		if r := &m.w.records[i]; r.Writer == last.writer && r.Seq == last.seq {
			return
		}
	}
	m.w.fail("%s writes entry %d of %s before it has folded entry %d", m.label, next.Seq, next.Writer, last.seq)
}

// garble changes some bytes of a record.
func (w *World) garble(payload []byte) []byte {
	bad := slices.Clone(payload)
	for range w.between(1, 3) {
		bad[w.rng.IntN(len(bad))] = byte(w.rng.IntN(256))
	}
	return bad[:w.between(1, len(bad))]
}

// pulse is one peer's sign of life.
type pulse struct {
	peer  terms.PeerID
	alive bool
	// owner is the machine that created it. Another with the same name and a disk that says so must not take it up.
	owner *machine
	// renewed counts renewals, so that an end that was planned before one is void.
	renewed int
}

func (w *World) pulseOf(p terms.PeerID) *pulse {
	if w.pulses[p] == nil {
		w.pulses[p] = &pulse{peer: p}
	}
	return w.pulses[p]
}

// renew keeps a pulse alive, or brings it back.
func (w *World) renew(p terms.PeerID) {
	one := w.pulseOf(p)
	one.renewed++
	if !one.alive {
		one.alive = true
		w.tell("pulse", "of %s beats", p)
		w.show(p)
	}
}

// neglect lets a pulse end when its time to live is over, or later, unless it is renewed.
func (w *World) neglect(p terms.PeerID) {
	wait := pulseMillis
	if w.chance(latePulse) {
		wait += w.between(1, 8000)
	}
	w.expire(w.pulseOf(p), wait)
}

// expire ends the pulse in so many milliseconds; while the engine is out, no pulse ends.
func (w *World) expire(one *pulse, wait int) {
	renewed := one.renewed
	w.after(wait, func() {
		switch {
		case one.renewed != renewed || !one.alive:
		case w.now < w.outageUntil:
			w.expire(one, int(w.outageUntil-w.now)+pulseMillis)
		default:
			one.alive = false
			if one.owner != nil {
				one.owner.prove()
			}
			w.tell("pulse", "of %s ended", one.peer)
			w.show(one.peer)
		}
	})
}

// show lets all who watch p learn soon how its pulse is.
func (w *World) show(p terms.PeerID) {
	for _, m := range w.machines {
		m.lookSoon(p)
	}
}
