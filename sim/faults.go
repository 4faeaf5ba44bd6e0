package sim

import "starling/terms"

// fault is a kind of trouble.
type fault int

// The faults.
const (
	crashProcess fault = iota
	crashMachine
	dieForGood
	forgetDisk
	slowStart
	twinName
	partition
	cutReading
	cutWriting
	splitGroup
	engineOutage
	slowReading
	repeatDelivery
	withholdDelivery
	slowAppend
	lostAck
	ghostAppend
	doubleAppend
	garbage
	forgery
	latePulse
	falseDeath
	clockJump
	changeOffer
	leaveGracefully
	failTask
	slowTask
	failStart
	hugeJob
	raiseRules
	badVersion
	unreadyTask
	failedCheck
	staleWrite
	drainMachine
	changePools
	loseOutput
	faultCount
)

// faultTable has for every fault its name in reports and its highest rate, in thousandths per occasion.
var faultTable = [faultCount]struct {
	name string
	most int
}{
	crashProcess:     {"process crash", 150},
	crashMachine:     {"machine crash", 60},
	dieForGood:       {"death for good", 60},
	forgetDisk:       {"disk forgot its incarnation", 300},
	slowStart:        {"slow start", 500},
	twinName:         {"two machines with one name", 30},
	partition:        {"partition", 100},
	cutReading:       {"one-way: reads nothing", 80},
	cutWriting:       {"one-way: writes nothing", 80},
	splitGroup:       {"partition of a group", 60},
	engineOutage:     {"outage of the engine", 40},
	slowReading:      {"slow reading", 300},
	repeatDelivery:   {"repeated delivery", 300},
	withholdDelivery: {"withheld delivery", 200},
	slowAppend:       {"slow append", 200},
	lostAck:          {"lost acknowledgement", 300},
	ghostAppend:      {"late append of the dead", 800},
	doubleAppend:     {"record twice in the journal", 200},
	garbage:          {"garbage in the journal", 60},
	forgery:          {"forged entry", 150},
	latePulse:        {"late end of a pulse", 500},
	falseDeath:       {"false report of a death", 40},
	clockJump:        {"clock jump", 60},
	changeOffer:      {"changed offer", 200},
	leaveGracefully:  {"goodbye", 30},
	failTask:         {"failing task", 400},
	slowTask:         {"slow task", 200},
	failStart:        {"failing start", 200},
	hugeJob:          {"huge job", 12},
	raiseRules:       {"premature raise of the rules", 60},
	badVersion:       {"version that always fails", 800},
	unreadyTask:      {"task that is ready late or never", 400},
	failedCheck:      {"failed check", 300},
	staleWrite:       {"write against an old version", 300},
	drainMachine:     {"drained machine", 800},
	changePools:      {"changed pools", 500},
	loseOutput:       {"lost output", 300},
}

// String returns the fault's name in reports.
func (f fault) String() string { return faultTable[f].name }

// rates are the thousandths per occasion of every fault.
type rates [faultCount]int

// draw chooses which faults this seed has, and how often; in every one many are missing.
func (w *World) draw() {
	for f := range faultTable {
		if w.rng.IntN(3) > 0 {
			w.rates[f] = w.rng.IntN(faultTable[f].most + 1)
		}
	}
	w.explain = w.rng.IntN(4) == 0
}

// trouble lets faults befall the machines from time to time while the run is young.
func (w *World) trouble() {
	if w.calm {
		return
	}
	w.troubleMachine(w.machines[w.rng.IntN(len(w.machines))])
	switch {
	case w.chance(splitGroup):
		w.split()
	case w.chance(engineOutage):
		w.outage()
	case w.chance(forgery):
		w.forge()
	case w.chance(falseDeath):
		w.slander()
	case len(w.machines) < 10 && w.chance(twinName):
		w.addTwin()
	}
	w.after(w.between(20, 1500), w.trouble)
}

func (w *World) troubleMachine(m *machine) {
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
		m.cut(true, true, w.cutMillis())
	case w.chance(cutReading):
		m.cut(true, false, w.cutMillis())
	case w.chance(cutWriting):
		m.cut(false, true, w.cutMillis())
	case w.chance(clockJump):
		m.skew += terms.Time(w.between(-3_600_000, 3_600_000))
	case w.chance(changeOffer):
		m.offer = w.drawOffer(m)
		m.wake()
	case w.chance(leaveGracefully):
		m.goodbye()
	case w.chance(loseOutput):
		m.loseOutput()
	}
}

func (w *World) cutMillis() int { return w.between(50, 3*pulseMillis) }

// split separates a group of machines from the journal for one time.
func (w *World) split() {
	millis := w.cutMillis()
	for _, m := range w.machines {
		if w.rng.IntN(2) == 0 {
			m.cut(true, true, millis)
		}
	}
}

// outage stops the engine for everybody. Pulses do not end meanwhile, and live their whole time to live after it.
func (w *World) outage() {
	millis := w.cutMillis()
	w.outageUntil = w.now + terms.Time(millis)
	for _, m := range w.machines {
		m.cut(true, true, millis)
	}
}

// addTwin starts another machine with the name of one that there is already.
func (w *World) addTwin() {
	first := w.machines[w.rng.IntN(len(w.machines))]
	m := &machine{w: w, name: first.name, label: first.label + "'", program: first.program}
	m.offer = w.drawOffer(m)
	w.machines = append(w.machines, m)
	m.boot()
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
