package forecast

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/schedule/explain"
	"starling/terms"
)

// Limits of trials.
const (
	// settlingMax bounds the imagined entries of what settles before, trialMax those of one trial, trialsMax those of all.
	// What runs only after more is not counted.
	settlingMax, trialMax, trialsMax = 400, 150, 300
	// trialMillis is how much time passes in a trial: what comes by itself by then needs no help.
	trialMillis terms.Time = 10 * 60 * 1000
)

// Tries returns what tries on copies of s what may help a job. In each trial all goes well, as in a forecast.
func Tries(s *cluster.State, job terms.JobName) explain.Try {
	t := &trials{s: s, job: job}
	return t.try
}

// trials are what may help a job of a value.
type trials struct {
	s   *cluster.State
	job terms.JobName
	// settled is the value when all that is under way has ended, alone what becomes of it by itself; nil before the first
	// trial.
	settled, alone *cluster.State
	// left is how many entries may be imagined yet.
	left int
}

// begin lets what is under way end, and time pass without help.
func (t *trials) begin() {
	d := newSimulation(t.s, t.job)
	d.most, t.left = settlingMax, trialsMax
	d.activateAll()
	d.calm()
	t.settled = d.s.Copy()
	d.most += trialMax
	d.pass()
	t.alone = d.s
}

// try returns how many instances of a task run if something is done that do not without it.
func (t *trials) try(task terms.TaskName, what []*explain.Trial) uint32 {
	if t.alone == nil {
		t.begin()
	}
	d := newSimulation(t.settled, t.job)
	d.most = min(t.left, trialMax)
	defer func() { t.left -= d.entries }()
	for _, one := range what {
		if !d.do(task, one) {
			return 0
		}
	}
	d.calm()
	d.pass()
	with, without := running(d.s, t.job, task), running(t.alone, t.job, task)
	return with - min(with, without)
}

// running returns how many instances of a task run.
func running(s *cluster.State, job terms.JobName, task terms.TaskName) uint32 {
	j := s.JobOf(job)
	if j == nil || j.TaskIndex(task) < 0 {
		return 0
	}
	t := j.Tasks[j.TaskIndex(task)]
	return t.Counts[facts.Running] + t.Secondary[facts.Running]
}

// do does what may help. It returns false if that would be refused.
func (d *simulation) do(task terms.TaskName, what *explain.Trial) bool {
	for i := range what.Nodes {
		if !d.join(terms.NodeName(fmt.Sprintf("imagined-%d", d.s.Nodes())), &what.Nodes[i]) {
			return false
		}
	}
	for _, name := range what.Ends {
		if !d.obeyed(d.member, &command.KillJob{Job: name}) {
			return false
		}
	}
	if what.Pools != nil {
		tree := slices.Clone(d.s.Pools())
		what.Pools(tree)
		return d.obeyed(d.member, &command.ChangePools{Pools: tree})
	}
	return what.Job == nil || d.edit(task, what)
}

// edit submits another version of the job, or lets it end and runs it with that.
func (d *simulation) edit(task terms.TaskName, what *explain.Trial) bool {
	j := d.s.JobOf(d.job)
	if j == nil || j.Finished != 0 {
		return false
	}
	c := &command.SubmitJob{Spec: *j.Spec, Against: j.Version}
	c.Spec.Tasks = slices.Clone(c.Spec.Tasks)
	at := slices.IndexFunc(c.Spec.Tasks, func(t terms.Task) bool { return t.Name == task })
	if at < 0 {
		return false
	}
	what.Job(&c.Spec, &c.Spec.Tasks[at])
	if what.Anew {
		if c.Against = 0; !d.obeyed(d.member, &command.KillJob{Job: d.job}) {
			return false
		}
		d.calm()
	}
	return d.obeyed(d.member, c)
}

// obeyed folds an imagined entry and tells whether its command was obeyed.
func (d *simulation) obeyed(writer terms.PeerID, c command.Command) bool {
	outcome := d.fold(writer, c, d.s.Time)
	return outcome.Dropped == "" && outcome.Results[0].Refusal.Code == facts.OK
}

// join lets a node join and offer.
func (d *simulation) join(name terms.NodeName, offer *terms.Offer) bool {
	self := terms.NewPeerID(name, 1)
	if d.s.NodeOf(name) != nil || d.fold(self, &command.PrepareJoin{Joiner: self, Attempt: 1},
		d.s.Time).Results[0].Refusal.Code != facts.OK {
		return false
	}
	if attempt, joins := d.s.Attempt(self); joins {
		d.fold(attempt.Observer, &command.NotifyJoin{Joiner: self, Attempt: 1}, d.s.Time)
		d.fold(self, &command.AcceptJoin{Joiner: self, Observer: attempt.Observer, Attempt: 1}, d.s.Time)
	}
	if d.member == "" {
		d.member = self
	}
	return d.obeyed(self, &command.Volunteer{Peer: self, Offer: *offer})
}

// calm lets all that is told be done, while no time passes.
func (d *simulation) calm() {
	for len(d.active) > 0 && d.entries < d.most && !d.isOver() {
		d.obey()
		d.effects = nil
	}
}

// pass lets time pass from deadline to deadline. After many it does so in steps that double: what is due meanwhile is
// done late, as if no peer had told the time before.
func (d *simulation) pass() {
	step := terms.Time(0)
	for rounds := 0; d.entries < d.most && !d.isOver(); rounds++ {
		at, ok := d.s.NextDeadline()
		if !ok || max(at, d.s.Time) > d.until {
			return
		}
		if rounds > exactMax {
			step = 2*step + 1
		}
		d.fold(d.member, &command.TellTime{}, max(at, d.s.Time+step))
		d.calm()
	}
}

// exactMax is how many deadlines are met in time.
const exactMax = 16
