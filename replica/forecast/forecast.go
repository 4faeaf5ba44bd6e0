// Package forecast tells what would come of a command, by folding imagined entries: it is the scheduler that answers.
//
// The command is folded into a copy of the value. Then all goes well: every machine does at once what it is told, what
// it starts becomes ready, what it stops ends, and time passes whenever nothing else happens, until nothing does. In
// the same way it is tried what would help work that waits, see Tries.
package forecast

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
)

// Limits of a forecast.
const (
	// StepsMax bounds the steps that are listed.
	StepsMax = 1000
	// entriesMax bounds the imagined entries, horizon the imagined time.
	entriesMax = 20_000
	horizon    = terms.DelayMillisMax
)

// Forecast is what would come of a command.
type Forecast struct {
	// Refusal is why it would be refused; nothing else is known then.
	Refusal facts.Refusal
	// Waves are the steps in their order. Cut tells that there are more than are listed.
	Waves []Wave
	Cut   bool
	// Complete tells that nothing more would happen by itself; otherwise it was not imagined to the end.
	Complete bool
	// End is the value in the end.
	End *cluster.State
}

// Wave is what begins together, without waiting for anything else in it.
type Wave struct {
	// After is how long from now it begins if all goes well.
	After terms.Time
	// Needs is what a user must do before, 0 for nothing: resume an update that starts paused, or promote its canaries.
	Needs command.Steering
	Steps []*Step
}

// Step is what happens to one slot: it is stopped on one node, placed on another, or both.
type Step struct {
	Slot terms.SlotName
	Seat facts.Seat
	// Stops and Starts are the nodes; either may be empty.
	Stops, Starts terms.NodeName
	// Reason is the scheduler's, if it gave one.
	Reason string
}

// Of forecasts a command about a job on a copy of s. It stops, incomplete, once enough says so; nil never does.
func Of(s *cluster.State, c command.Command, job terms.JobName, enough func() bool) Forecast {
	d := newSimulation(s, job)
	d.enough = enough
	if d.member == "" {
		return Forecast{Refusal: facts.Refusal{Code: facts.Unavailable, Reason: "the cluster has no member"}}
	}
	d.activateAll()
	outcome := d.fold(d.member, c, d.s.Time)
	if outcome.Dropped != "" {
		panic("forecast: the entry was dropped: " + outcome.Dropped) // its writer is a member and its number the next
	}
	if refusal := outcome.Results[0].Refusal; refusal.Code != facts.OK {
		return Forecast{Refusal: refusal}
	}
	d.note()
	complete := d.run()
	return Forecast{Waves: d.waves, Cut: d.cut, Complete: complete, End: d.s}
}

func newSimulation(s *cluster.State, job terms.JobName) *simulation {
	d := &simulation{s: s.Copy(), job: job, began: s.Time, until: s.Time + trialMillis}
	d.s.EachMember(func(p terms.PeerID) bool {
		d.member = p
		return false
	})
	return d
}

// simulation is an imagined future.
type simulation struct {
	s      *cluster.State
	job    terms.JobName
	began  terms.Time
	member terms.PeerID
	// entries counts the imagined entries, most bounds those of a trial.
	entries, most int
	// enough tells whether to stop here, over that it did.
	enough func() bool
	over   bool
	// active are the nodes at which something has changed, each once, in the order of that.
	active  []facts.NodeIndex
	waiting map[facts.NodeIndex]bool
	// until is up to when time passes in a trial, or while nothing but time can bring instances room.
	until terms.Time
	// effects are those of the present round, gaveWay all that tell of instances that gave way.
	effects, gaveWay []report.Effect

	waves  []Wave
	listed int
	cut    bool
	// needs is what a user did since the last wave.
	needs command.Steering
	// open are the steps of the last wave.
	open map[seatName]*Step
}

// seatName names one of the seats of a slot.
type seatName struct {
	slot terms.SlotName
	seat facts.Seat
}

// run lets rounds follow each other. It returns whether nothing is left to happen.
func (d *simulation) run() bool {
	for d.entries < entriesMax && !d.isOver() {
		if len(d.active) > 0 {
			d.obey()
			d.note()
			continue
		}
		at, ok := d.s.NextDeadline()
		switch {
		case !ok || d.rests() && (at > d.until || !d.waits()):
			if !d.steer() {
				return true
			}
			continue
		case at > d.began+horizon:
			return false
		}
		d.fold(d.member, &command.TellTime{}, max(at, d.s.Time))
		d.note()
	}
	return false
}

// isOver tells whether nothing more is to be imagined.
func (d *simulation) isOver() bool {
	d.over = d.over || d.enough != nil && d.enough()
	return d.over
}

// steer does what the job's update waits for a user to do. It returns false if that is nothing.
func (d *simulation) steer() bool {
	j := d.s.JobOf(d.job)
	if j == nil || d.needs != 0 {
		return false
	}
	switch u := &j.Update; {
	case u.State == facts.Paused:
		d.needs = command.Resume
	case u.State.Rolls() && !u.Promoted:
		d.needs = command.Promote
	default:
		return false
	}
	outcome := d.fold(d.member, &command.SteerUpdate{Job: d.job, Version: j.Update.To, Steering: d.needs}, d.s.Time)
	d.note()
	return outcome.Results[0].Refusal.Code == facts.OK
}

// rests tells that nothing of the job is under way, so that it need not be waited for: what only a user can end, or
// what is in the hands of a node that left, is not.
func (d *simulation) rests() bool {
	j := d.s.JobOf(d.job)
	if d.s.Unfinished || j == nil {
		return j == nil
	}
	if j.Update.State.Rolls() && (j.Update.Promoted || j.Spec.Update.AutoPromote) {
		return false
	}
	for _, t := range j.Tasks {
		if t.Canaries[facts.Starting]+t.Canaries[facts.Ready] > 0 || t.Completion.Due != 0 {
			return false
		}
		for _, phase := range []facts.Phase{facts.Rescheduling, facts.Assigned, facts.BackingOff, facts.Stopping} {
			if t.Counts[phase]+t.Secondary[phase] > 0 {
				return false
			}
		}
	}
	return true
}

// waits tells whether instances of the job wait: time alone may bring them room, by an instance that is to give way or
// a rule that counts for a while.
func (d *simulation) waits() bool {
	j := d.s.JobOf(d.job)
	return j != nil && slices.ContainsFunc(j.Tasks, func(t *workload.Task) bool {
		return t.Counts[facts.Waiting]+t.Secondary[facts.Waiting] > 0
	})
}

// obey lets every active node do what it is told.
func (d *simulation) obey() {
	active := d.active
	d.active, d.waiting = nil, nil
	for _, n := range active {
		self := d.s.Node(n).Peer
		if self == "" || d.most > 0 && d.entries >= d.most || d.isOver() {
			continue
		}
		reports := &command.ReportTasks{Peer: self}
		for _, a := range reaction.ViewOf(d.s, self) {
			news := command.Report{Slot: a.Slot, Order: a.ID.Order}
			switch {
			case a.Phase == facts.Stopping:
				news.Ended = facts.OnRequest
			case a.Phase == facts.Assigned, a.Phase == facts.Running && a.Health == facts.Starting:
				news.Ready = true
			default:
				continue
			}
			reports.Reports = append(reports.Reports, news)
		}
		if len(reports.Reports) > 0 {
			d.fold(self, reports, d.s.Time)
		}
	}
}

// fold imagines an entry with one command.
func (d *simulation) fold(writer terms.PeerID, c command.Command, now terms.Time) report.Outcome {
	return d.foldAll(writer, []command.Command{c}, now)
}

// foldAll imagines an entry.
func (d *simulation) foldAll(writer terms.PeerID, all []command.Command, now terms.Time) report.Outcome {
	d.entries++
	name, incarnation := writer.Split()
	seq := uint64(1)
	if node := d.s.NodeOf(name); node != nil {
		seq += node.LastSeq(incarnation)
	}
	outcome := replica.Apply(d.s, d.s.Index+1, &command.Entry{
		Writer: writer, Seq: seq, Time: now, Cause: d.s.Index, Commands: all,
	}, true)
	for _, e := range outcome.Effects {
		if e.Kind == report.More {
			d.cut = true
			d.activateAll()
		} else if e.Node != "" {
			d.activate(d.s.NodeOf(e.Node).Index)
		}
		if e.Kind == report.GaveWay {
			d.gaveWay = append(d.gaveWay, e)
		}
	}
	d.effects = append(d.effects, outcome.Effects...)
	return outcome
}

// activateAll makes all nodes active: what they do was not told one by one.
func (d *simulation) activateAll() {
	for n := range facts.NodeIndex(d.s.Nodes()) {
		if slices.ContainsFunc(d.s.Node(n).Held, d.told) {
			d.activate(n)
		}
	}
}

// told tells whether the node of a slot has something to do about it.
func (d *simulation) told(r facts.SlotRef) bool {
	slot, _ := d.s.SlotAt(r)
	return slot.Phase == facts.Stopping || slot.Phase == facts.Assigned ||
		slot.Phase == facts.Running && slot.Health == facts.Starting
}

func (d *simulation) activate(n facts.NodeIndex) {
	if d.waiting == nil {
		d.waiting = map[facts.NodeIndex]bool{}
	}
	if !d.waiting[n] {
		d.waiting[n] = true
		d.active = append(d.active, n)
	}
}

// note adds the effects of a round to the waves: what does not complete a step of the last wave begins the next.
func (d *simulation) note() {
	last := d.open
	begun := false
	for i := range d.effects {
		e := &d.effects[i]
		step := last[seatName{e.Slot, e.Seat}]
		switch {
		case e.Kind != report.Placed && e.Kind != report.Stopping:
		case step != nil && e.Kind == report.Placed && step.Starts == "":
			step.take(e)
		case !begun:
			begun = true
			d.begin()
			fallthrough
		default:
			d.step(e)
		}
	}
	d.effects = nil
}

// begin begins a wave, unless no more steps are listed.
func (d *simulation) begin() {
	d.open = map[seatName]*Step{}
	if d.listed < StepsMax {
		d.waves = append(d.waves, Wave{After: d.s.Time - d.began, Needs: d.needs})
	}
	d.needs = 0
}

// step begins a step of the last wave.
func (d *simulation) step(e *report.Effect) {
	step := &Step{Slot: e.Slot, Seat: e.Seat}
	step.take(e)
	d.open[seatName{e.Slot, e.Seat}] = step
	if d.listed == StepsMax {
		d.cut = true
		return
	}
	d.listed++
	wave := &d.waves[len(d.waves)-1]
	wave.Steps = append(wave.Steps, step)
}

// take adds what an effect tells.
func (t *Step) take(e *report.Effect) {
	if e.Kind == report.Placed {
		t.Starts = e.Node
	} else {
		t.Stops = e.Node
	}
	if e.Reason != "" {
		t.Reason = e.Reason
	}
}
