package sim

import "starling/terms"

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
