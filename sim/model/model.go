// Package model is the fold once more, as plainly as it can be said and as slow as that is: no books, no queues, no
// counters; whatever follows from something else is computed from it anew. It shares with the fold only the nouns and
// the commands, and package reconcile, which it asks about all slots where the fold asks about one. So a mistake would
// have to be made twice.
//
// Who is placed where and who gives way it does not decide: it follows the fold, and checks that it may (see follow).
package model

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/command"
	"starling/reconcile"
	"starling/replica/report"
	"starling/sim/model/keeping"
	"starling/sim/model/known"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/rules"
)

// Model is the value as the model has it.
type Model struct {
	index terms.Index
	// number is that of the entry among its writer's.
	number uint64
	time   terms.Time
	rules  rules.Number
	// raised is the number of the rules from the next entry on, 0 if they stay.
	raised     rules.Number
	limits     terms.Limits
	unfinished bool
	// Ring is the ring: every member watches the next, the last the first; one alone watches nobody.
	Ring     []terms.PeerID
	Attempts map[terms.PeerID]membership.Attempt
	// Nodes stand at their numbers.
	Nodes []*Node
	// Jobs are kept in the order of their submission, ended in that of their ends.
	Jobs, ended []*Job
	// heeds are the seats of which it is due now what a policy says.
	heeds []*seat
	// asked is the last question to reconcile.
	asked *reconcile.Task
	// lacking tells that the update that rolls lacks room for who could take the place of what runs.
	lacking bool
	// changed are the jobs with a new version whose instances have not been looked at.
	changed []*Job
	// Forgotten are the names of jobs that were forgotten.
	Forgotten map[terms.JobName]bool
	// closed are the jobs that have ended with the entry, told by what allocations were told to end with it, the first
	// time.
	closed  []*Job
	told    map[allocation]facts.Cause
	lastJob terms.JobID
	// pools is the tree of resource pools, each directly before those below it.
	pools        []terms.Pool
	poolsVersion uint32
	// nominations are what is kept for jobs.
	nominations []facts.Nomination
	// fold is the value as the fold has it after the entry, wrongs is what it may not have done with that.
	fold   *cluster.State
	wrongs []string
	// left is what is left on the nodes while placements are followed, nil if that is to be added up.
	left    []*room
	known   *known.Twin
	volumes *keeping.Twin
	// requests are the remembered ones, oldest first.
	requests []keeping.Request
	obeyed   command.Command
	// dropped and refused tell what the last entry came to.
	dropped bool
	refused []bool
}

// Node is a machine.
type Node struct {
	number   facts.NodeIndex
	Name     terms.NodeName
	Peer     terms.PeerID
	Departed uint32
	// written has the number of the last entry of each life that may write.
	written  map[uint32]uint64
	offer    *terms.Offer
	drain    facts.Drain
	portNext uint16
}

// allocation is one of a slot, in whatever seat it is.
type allocation struct {
	slot  facts.SlotRef
	order terms.Index
}

// Told returns by what an allocation was told to end with the last entry, the first time; NoCause if it was not.
func (m *Model) Told(r facts.SlotRef, order terms.Index) facts.Cause {
	r.Seat = facts.MainSeat
	return m.told[allocation{r, order}]
}

// New returns the value before the first entry, under the given limits.
func New(limits terms.Limits) *Model {
	return &Model{
		rules: rules.First, limits: limits, Attempts: map[terms.PeerID]membership.Attempt{},
		pools: []terms.Pool{terms.NewPool(terms.DefaultPool)}, poolsVersion: 1,
		Forgotten: map[terms.JobName]bool{}, known: known.New(), volumes: &keeping.Twin{},
	}
}

// Apply folds the next entry, which made of the value what fold is now.
func (m *Model) Apply(folded *report.Folded, fold *cluster.State) {
	m.index++
	m.fold, m.wrongs, m.refused, m.told = fold, nil, nil, map[allocation]facts.Cause{}
	e := folded.Entry
	m.dropped = e == nil || !m.takes(e)
	if m.dropped {
		return
	}
	m.time, m.number = reading.TimeAt(e, m.time, m.rules), e.Seq
	m.volumes.Rules, m.volumes.Now = m.rules, m.time
	for _, j := range m.Jobs {
		j.touched = false
	}
	m.closed, m.heeds, m.changed = nil, nil, nil
	m.meetDeadlines()
	m.tidy()
	for i, c := range e.Commands {
		kind := c.Kind() // of snapshots the simulator checks what comes of it
		m.obeyed = c
		vouches := kind == command.KindVouchSnapshot || kind == command.KindTakeSnapshot
		m.refused = append(m.refused, vouches && folded.Outcome.Results[i].Refused() || !vouches && !m.obey(e.Writer, c))
		m.tidy()
	}
	m.heedAll()
	m.tidy()
	m.advance()
	m.tidy()
	m.followJobs()
	m.follow(&folded.Outcome)
	m.unfinished = fold.Unfinished
	m.tidy()
	m.regroup()
	m.forgetJobs()
	m.rules, m.raised = max(m.rules, m.raised), 0
}

// takes tells whether the entry counts: it is the next of a life that has not left, and a life begins by joining.
func (m *Model) takes(e *command.Entry) bool {
	name, life := e.Writer.Split()
	if life == 0 || e.Seq == 0 || terms.NameProblem(string(name), true) != "" {
		return false
	}
	joins := len(e.Commands) > 0 && e.Commands[0].Kind() == command.KindPrepareJoin
	node := m.nodeOf(name)
	if node == nil || m.known.IsGone(name) {
		return joins && !m.known.IsGone(name)
	}
	last := node.written[life]
	if life <= node.Departed || e.Seq <= last || last == 0 && !joins {
		return false
	}
	if last > 0 {
		node.written[life] = e.Seq
	}
	return true
}

// obey applies one command and tells whether it was obeyed.
func (m *Model) obey(writer terms.PeerID, c command.Command) bool {
	member := slices.Contains(m.Ring, writer)
	switch c := c.(type) {
	case *command.PrepareJoin:
		return writer == c.Joiner && m.begins(c.Joiner, c.Attempt)
	case *command.NotifyJoin:
		return m.notify(writer, c)
	case *command.AcceptJoin:
		return writer == c.Joiner && m.accept(c)
	case *command.AbortJoin:
		return writer == c.Joiner && m.abort(c)
	case *command.Leave:
		return (writer == c.Peer || !m.away(c.Peer)) && m.leave(c.Peer)
	case *command.Volunteer:
		return writer == c.Peer && member && m.volunteer(writer, c.Offer)
	case *command.ReportTasks:
		return writer == c.Peer && member && m.reports(writer, c.Reports)
	case *command.TellTime:
		return member
	case *command.RaiseRules:
		return member && m.raise(c.Version)
	case *command.As:
		return m.may(c.Subject, c.Command) && m.obey(writer, c.Command)
	case *command.Unreadable:
		return false
	}
	return member && m.ask(writer, c)
}

// ask applies what a user asked for.
func (m *Model) ask(writer terms.PeerID, c command.Command) bool {
	return m.once(known.RequestOf(c), func() bool { return m.act(writer, c) })
}

func (m *Model) act(writer terms.PeerID, c command.Command) bool {
	switch c := c.(type) {
	case *command.SubmitJob:
		return m.submit(c.Against, &c.Spec)
	case *command.KillJob:
		return m.onJob(c.Job, c.Against, func(j *Job) bool {
			return m.kill(j) && (!c.Now || m.hurry(j, func(*seat) bool { return true }))
		})
	case *command.SteerUpdate:
		return m.onJob(c.Job, 0, func(j *Job) bool { return m.steer(j, c.Version, c.Steering) })
	case *command.RevertJob:
		return m.onJob(c.Job, c.Against, func(j *Job) bool { return m.revert(j, c.To) })
	case *command.RestartJob:
		return m.onJob(c.Job, c.Against, func(j *Job) bool { return m.restart(j, c.Task) })
	case *command.SuspendJob:
		return m.onJob(c.Job, c.Against, func(j *Job) bool { return m.suspend(j, !c.Resume) })
	case *command.SealTask:
		return m.onJob(c.Slot.Job, 0, func(j *Job) bool { return m.seal(j, c) })
	case *command.EndAllocation:
		return m.onJob(c.Slot.Job, 0, func(j *Job) bool { return m.endAllocation(j, c) })
	case *command.RemoveVolumes:
		return m.removeVolumes(c.Volumes)
	case *command.MoveVolumes:
		return m.moveVolumes(writer, c)
	case *command.DrainNode:
		return m.drainNode(c)
	case *command.ChangePools:
		return m.changePools(c)
	}
	return m.actAccess(writer, c)
}

// once answers a repeated request as the first.
func (m *Model) once(id string, act func() bool) bool {
	id = command.RequestKey(m.rules, m.obeyed, id)
	for _, r := range m.requests {
		if id != "" && r.ID == id {
			return !r.Refused
		}
	}
	ok := act()
	if id != "" {
		m.requests = keeping.Remember(m.rules, append(m.requests, keeping.Request{ID: id, Refused: !ok}), m.limits.Requests)
	}
	return ok
}

func (m *Model) nodeOf(name terms.NodeName) *Node {
	for _, n := range m.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// open tells whether the node takes work.
func (n *Node) open() bool { return n.offer.Open() && !n.drain.On }

// due is something whose time has come: of a node's drain, of a seat, of a task that is complete, or of a job's update.
type due struct {
	at   terms.Time
	node *Node
	seat *seat
	task *task
	job  *Job
	set  terms.VolumeSet
}

// next returns what is due first; at is 0 if nothing ever is. Volumes whose time has come are first, then nodes, then
// jobs in the order of their submission, in each the tasks, the seats of each before itself, and then the update.
func (m *Model) next() due {
	first := due{}
	first.set, first.at = m.volumes.Due()
	offer := func(d due) {
		if d.at != 0 && (first.at == 0 || d.at < first.at && (first.set.Slot.Job == "" || first.at > m.time)) {
			first = d
		}
	}
	for _, n := range m.Nodes {
		offer(due{at: n.drain.Deadline, node: n})
	}
	for _, j := range m.Jobs {
		for _, t := range j.tasks {
			t.each(func(s *seat) { offer(due{at: s.Deadline, seat: s}) })
			offer(due{at: t.completion.Due, task: t})
		}
		offer(due{at: j.deadline(), job: j})
	}
	return first
}

// meetDeadlines does what is due, as far as an entry may.
func (m *Model) meetDeadlines() {
	for range m.limits.Placements {
		switch d := m.next(); {
		case d.at == 0 || d.at > m.time:
			return
		case d.set.Slot.Job != "":
			if j := m.jobOf(d.set.Slot.Job); j == nil || j.stop || j.finished != 0 || !m.volumes.Stay(d.set, j.ID, j.newest()) {
				m.removeVolumes(d.set)
			}
		case d.node != nil:
			m.drainDue(d.node)
		case d.job != nil && d.job.finished != 0:
			m.expire(d.job)
		case d.job != nil:
			m.updateDue(d.job)
		case d.task != nil:
			m.completionDue(d.task)
		default:
			m.seatDue(d.seat)
		}
	}
}

// tidy ends the jobs of which nothing waits or runs any more, or is to be added, and whose type lets them end.
func (m *Model) tidy() {
	for _, j := range slices.Clone(m.Jobs) {
		if slices.Contains(m.changed, j) || slices.ContainsFunc(m.heeds, func(s *seat) bool { return s.job() == j }) {
			continue
		}
		m.abandon(j)
		if !j.resizes() {
			m.finish(j)
		}
	}
}

// forgetJobs forgets the jobs that have expired, and the oldest ended ones beyond the limits.
func (m *Model) forgetJobs() {
	for _, j := range slices.Clone(m.Jobs) {
		if j.expired {
			m.forget(j)
		}
	}
	slices.SortFunc(m.ended, func(a, b *Job) int {
		return cmp.Or(cmp.Compare(a.finished, b.finished), cmp.Compare(a.ID, b.ID))
	})
	for at := m.excess(); at >= 0; at = m.excess() {
		m.expire(m.ended[at])
		m.forget(m.ended[at])
	}
}

// finish ends a job if its type lets it end, it is not suspended, nothing of it waits or runs, and no policy is to
// follow.
func (m *Model) finish(j *Job) {
	wants := slices.ContainsFunc(j.newest().Tasks, func(t terms.Task) bool { return t.Instances > 0 })
	open := j.newest().Type == terms.Batch && wants && !j.suspended && !slices.ContainsFunc(j.tasks, m.followsCompletion)
	if j.finished != 0 || !j.stop && !open || j.busy() {
		return
	}
	j.finished, j.finishedAt, j.awaits = m.index, m.time, nil
	m.ended, m.closed = append(m.ended, j), append(m.closed, j)
	m.endUpdate(j)
	for _, t := range j.tasks {
		for i := 0; i < len(t.slots) && m.volumes.Until(t.spec(0)) > 0; i++ {
			t.drop(t.slots[i])
		}
	}
}

func (m *Model) excess() int {
	all := make([]keeping.Ended, len(m.ended))
	for i, j := range m.ended {
		all[i] = keeping.Ended{Pool: j.newest().Name.Pool(), Kept: j.newest().KeepMillis > 0}
		for _, t := range j.tasks {
			all[i].Slots += len(t.slots)
		}
	}
	return keeping.Excess(m.rules, all, &m.limits)
}

func (m *Model) forget(j *Job) {
	m.Forgotten[j.newest().Name] = true
	m.Jobs = slices.DeleteFunc(m.Jobs, func(one *Job) bool { return one == j })
	m.ended = slices.DeleteFunc(m.ended, func(one *Job) bool { return one == j })
}

// Seat is one allocation as it stands in the value, for who wants to write news of it.
type Seat struct {
	Ref facts.SlotRef
	facts.Slot
}

// Seats returns all that was ever ordered and is remembered.
func (m *Model) Seats() (all []Seat) {
	for _, j := range m.Jobs {
		j.each(func(s *seat) {
			if s.Order > 0 {
				all = append(all, Seat{s.ref(), s.Slot})
			}
		})
	}
	return all
}
