package sim

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/sim/model"
	"starling/sim/promises"
	"starling/terms"
)

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
	goAway
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
	goAway:           {"absence with notice", 150},
}

// String returns the fault's name in reports.
func (f fault) String() string { return faultTable[f].name }

// Faults returns the names of all faults, in the order of Report.Fired.
func Faults() (names []string) {
	for f := range faultCount {
		names = append(names, f.String())
	}
	return names
}

// rates are the thousandths per occasion of every fault.
type rates [faultCount]int

// draw chooses which faults this seed has, and how often; in every one many are missing.
func (w *World) draw() {
	for f := range goAway {
		if w.rng.IntN(3) > 0 {
			w.rates[f] = w.rng.IntN(faultTable[f].most + 1)
		}
	}
	if w.seed%4 == 0 { // no draw of its own: other seeds stay what they were
		w.rates[goAway] = int(w.seed/4%16+1) * faultTable[goAway].most / 16
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
	case w.rates[goAway] > 0 && w.chance(goAway):
		m.goAway()
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
	m.volumes = promises.Disk{Machine: m.label, Node: m.name}
	m.offer = w.drawOffer(m)
	w.machines = append(w.machines, m)
	m.boot()
}

// living counts the machines that are not dead, and that were not removed nor are to be, as whoever has their name.
func (w *World) living() int {
	unwanted := map[terms.NodeName]bool{}
	for _, m := range w.machines {
		unwanted[m.name] = unwanted[m.name] || m.unwanted || m.leaving
	}
	count := 0
	for _, m := range w.machines {
		if !m.dead && !unwanted[m.name] {
			count++
		}
	}
	return count
}

// forge appends an entry that is well formed and that no peer of this program would write: of a stranger, or of a life
// that is over, with commands for anybody about anything. The fold must refuse what does harm.
func (w *World) forge() {
	node := terms.NodeName("stranger")
	life := uint32(w.between(1, 3))
	if departed := w.departedNode(); departed != nil && w.rng.IntN(3) == 0 {
		node, life = departed.Name, uint32(w.between(1, int(departed.Departed)))
	}
	writer := terms.NewPeerID(node, life)
	w.forged[writer] += uint64(w.between(0, 2))
	e := &command.Entry{Writer: writer, Seq: w.forged[writer], Time: w.now}
	if w.rng.IntN(2) == 0 {
		e.Commands = append(e.Commands, &command.PrepareJoin{Joiner: writer, Attempt: w.model.Attempts[writer].Number + 1})
	}
	for range w.between(0, 3) {
		e.Commands = append(e.Commands, w.nonsense(writer))
	}
	w.land(journal.Record{Writer: string(writer), Seq: e.Seq, Payload: command.Encode(e)})
}

// slander appends the false report that a peer has died; it must come back in another life.
func (w *World) slander() {
	if len(w.model.Ring) == 0 {
		return
	}
	w.slanders++
	writer := terms.NewPeerID("gossip", w.slanders)
	e := &command.Entry{Writer: writer, Seq: 1, Time: w.now}
	e.Commands = append(e.Commands, &command.PrepareJoin{Joiner: writer, Attempt: 1}, &command.Leave{Peer: w.anybody()})
	w.land(journal.Record{Writer: string(writer), Seq: e.Seq, Payload: command.Encode(e)})
}

// departedNode returns a node that had a life that is over, nil if there is none.
func (w *World) departedNode() *model.Node {
	var all []*model.Node
	for _, n := range w.model.Nodes {
		if n.Departed > 0 {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[w.rng.IntN(len(all))]
}

// anybody returns a peer: a member, one that joins, one that is over, or one that never was.
func (w *World) anybody() terms.PeerID {
	all := slices.Clone(w.model.Ring)
	for _, n := range w.model.Nodes {
		for life := range n.Departed + 2 {
			all = append(all, terms.NewPeerID(n.Name, life+1))
		}
	}
	if len(all) == 0 {
		return "nobody~1"
	}
	return all[w.rng.IntN(len(all))]
}

// nonsense returns a command that may fit the present state, nearly fit it, or not at all.
func (w *World) nonsense(writer terms.PeerID) command.Command {
	about, other := w.anybody(), w.anybody()
	if w.rng.IntN(3) == 0 {
		about = writer
	}
	a := w.model.Attempts[about]
	number := a.Number + uint32(w.between(0, 2)) - min(a.Number, 1)
	if a.Observer != "" && w.rng.IntN(2) == 0 {
		other = a.Observer
	}
	name := terms.JobName("nobody")
	if len(w.clients.Names) > 0 {
		name = w.clients.Names[w.rng.IntN(len(w.clients.Names))]
	}
	gone := terms.NewPeerID("stranger", uint32(w.between(1, 3)))
	if w.rng.IntN(2) == 0 {
		gone = writer
	}
	return [...]command.Command{
		&command.Leave{Peer: gone}, &command.PrepareJoin{Joiner: about, Attempt: number},
		&command.NotifyJoin{Joiner: about, Attempt: number},
		&command.AcceptJoin{Joiner: about, Observer: other, Attempt: number},
		&command.AbortJoin{Joiner: about, Attempt: number},
		&command.Volunteer{Peer: about, Offer: terms.Offer{Capacity: terms.Resources{1 << 40, 1 << 50, 1 << 50}}},
		&command.ReportTasks{Peer: about, Reports: w.fiction()}, &command.KillJob{Job: name}, &command.TellTime{},
		&command.RaiseRules{Version: 2},
	}[w.rng.IntN(10)]
}

// fiction is news of slots that may exist, from somebody whom they do not concern.
func (w *World) fiction() []command.Report {
	var all []command.Report
	for range w.between(1, 5) {
		r := command.Report{Slot: facts.SlotRef{Job: terms.JobID(w.between(0, 5)), Index: uint32(w.between(0, 5))},
			Ended: facts.ByItself}
		for _, seat := range w.model.Seats() {
			if seat.Ref == r.Slot {
				r.Order = seat.Order
			}
		}
		all = append(all, r)
	}
	return all
}
