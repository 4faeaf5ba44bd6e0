package sim

// fault is a kind of trouble.
type fault int

// The faults. Rates are thousandths, drawn per seed; many are zero in any one seed.
const (
	crashProcess fault = iota
	crashMachine
	dieForGood
	partition
	cutReading
	cutWriting
	slowReading
	repeatDelivery
	withholdDelivery
	lostAck
	ghostAppend
	doubleAppend
	latePulse
	clockJump
	failTask
	slowTask
	failStart
	garbage
	leaveGracefully
	faultCount
)

// String returns the fault's name in reports.
func (f fault) String() string {
	return [...]string{"process crash", "machine crash", "death for good", "partition", "one-way: reads nothing", "one-way: writes nothing",
		"slow reading", "repeated delivery", "withheld delivery", "lost acknowledgement", "late append of the dead", "record twice in the journal",
		"late end of a pulse", "clock jump", "failing task", "slow task", "failing start", "garbage in the journal", "goodbye"}[f]
}

// rates are the thousandths per occasion of every fault.
type rates [faultCount]int

// draw chooses which faults this seed has, and how often.
func (w *World) draw() {
	most := rates{
		crashProcess: 150, crashMachine: 60, dieForGood: 60, partition: 100, cutReading: 80, cutWriting: 80, slowReading: 300, repeatDelivery: 300,
		withholdDelivery: 200, lostAck: 300, ghostAppend: 800, doubleAppend: 200, latePulse: 500, clockJump: 60, failTask: 400,
		slowTask: 200, failStart: 200, garbage: 60, leaveGracefully: 30,
	}
	for f := range most {
		if w.rng.IntN(3) > 0 {
			w.rates[f] = w.rng.IntN(most[f] + 1)
		}
	}
}

// trouble lets faults befall the machines from time to time while the run is young.
func (w *World) trouble() {
	if w.calm {
		return
	}
	m := w.machines[w.rng.IntN(len(w.machines))]
	switch {
	case !m.up:
	case w.chance(crashProcess):
		m.crash(false)
	case w.chance(crashMachine):
		m.crash(true)
	case w.living() > 1 && w.chance(dieForGood):
		m.crash(true)
		m.dead = true
	case w.chance(partition):
		m.cut(true, true)
	case w.chance(cutReading):
		m.cut(true, false)
	case w.chance(cutWriting):
		m.cut(false, true)
	case w.chance(clockJump):
		m.skew += jump(w)
	case w.chance(leaveGracefully):
		m.goodbye()
	}
	w.after(w.between(20, 1500), w.trouble)
}

func (w *World) living() int {
	count := 0
	for _, m := range w.machines {
		if !m.dead {
			count++
		}
	}
	return count
}
