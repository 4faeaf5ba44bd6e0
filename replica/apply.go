package replica

import (
	"fmt"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/command"
	"starling/plugin/roster"
	"starling/reconcile"
	"starling/replica/enrol"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/schedule"
	"starling/schedule/place"
	"starling/schedule/preempt"
	"starling/terms"
	"starling/terms/rules"
)

// fold is the work of one entry.
type fold struct {
	s      *cluster.State
	writer *cluster.Node
	entry  *command.Entry
	// asked is the command that is obeyed, with who asked.
	asked command.Command
	// explain tells that effects are wanted.
	explain bool
	outcome report.Outcome
	// touched are the jobs whose slots changed.
	touched []terms.JobID
	// duePolicies are the slots of which it is due now what a policy says.
	duePolicies []facts.SlotRef
	// over are the jobs that have ended with the entry, in that order.
	over []jobEnd
	// raised is the number that the rules have from the next entry on, 0 if they stay.
	raised rules.Number
	// lacking tells that the update that rolls lacks room for instances that could take the place of earlier ones.
	lacking bool
	// deciding is the job of which reconcile has decided about a slot and not all of that is done, 0 if there is none: it
	// does not end.
	deciding terms.JobID
	// predecessors are the instances whose room is that of what takes their places.
	predecessors []place.Predecessor
	// settled counts the questions to reconcile.
	settled int
	// result is that of the last question to reconcile.
	result reconcile.Result
}

// touch notes that a slot of the job changed, so that its update is looked at.
func (f *fold) touch(id terms.JobID) {
	if len(f.touched) == 0 || f.touched[len(f.touched)-1] != id {
		f.touched = append(f.touched, id)
	}
}

// Apply folds the entry at an index, which must be the next, into s. It is total: a command that cannot be obeyed
// changes nothing and is refused in the outcome, alike on every peer. With explain the outcome lists the effects.
func Apply(s *cluster.State, index terms.Index, e *command.Entry, explain bool) report.Outcome {
	if index != s.Index+1 {
		panic(fmt.Sprintf("replica: entry %d does not follow entry %d", index, s.Index))
	}
	f, _ := s.Scratch.Fold.(*fold)
	if f == nil {
		f = new(fold)
	}
	*f = fold{s: s, entry: e, explain: explain, outcome: report.Outcome{Index: index}}
	s.Index = index
	if f.outcome.Dropped = f.admit(); f.outcome.Dropped == "" {
		f.run()
	}
	if !f.vouches() {
		snapshot.Count(&s.Head, uint64(e.Bytes))
	}
	outcome := f.outcome
	*f = fold{} // nothing of it is kept from being collected
	s.Scratch.Fold = f
	return outcome
}

// run does what the commands of the entry ask for, and what follows.
func (f *fold) run() {
	s, e := f.s, f.entry
	visited := s.Visited()
	s.Time = f.timeNow()
	finished := f.meetDeadlines()
	f.outcome.Results = make([]report.Result, len(e.Commands))
	for i, c := range e.Commands {
		f.asked = c
		f.outcome.Results[i] = f.obey(c)
	}
	f.runDuePolicies()
	f.advance()
	f.followJobs()
	s.Unfinished = !schedule.Run(s, f.predecessors, f.placed(), f.evict) || !finished
	f.awaitGivers()
	f.noteRosters()
	s.ForgetJobs()
	s.RaiseRules(f.raised)
	f.outcome.Visited = s.Visited() - visited
}

// awaitGivers sets the deadlines of the updates of jobs that gave way anew, for they try less than before.
func (f *fold) awaitGivers() {
	for _, id := range f.touched {
		if j := f.s.Job(id); j.Update.State.Rolls() {
			f.setUpdate(j, j.Update)
		}
	}
}

// noteRosters notes which lists of members this entry has changed.
func (f *fold) noteRosters() {
	for _, id := range f.s.TakeDirtyRosters() {
		f.s.SetRoster(id, roster.Sum(f.s, f.s.Job(id)))
	}
}

// Skip folds a record of so many bytes that are no entry which this version of the rules knows: only the index moves.
func Skip(s *cluster.State, index terms.Index, bytes int, reason string) report.Outcome {
	if index != s.Index+1 {
		panic(fmt.Sprintf("replica: entry %d does not follow entry %d", index, s.Index))
	}
	s.Index = index
	snapshot.Count(&s.Head, uint64(bytes))
	return report.Outcome{Index: index, Dropped: reason}
}

// admit returns why the entry as a whole is passed over, or notes its number and returns "".
func (f *fold) admit() string {
	name, incarnation := f.entry.Writer.Split()
	node := f.s.NodeOf(name)
	joins := false
	if len(f.entry.Commands) > 0 {
		_, joins = f.entry.Commands[0].(*command.PrepareJoin)
	}
	switch {
	case f.entry.Seq == 0:
		return "its number is 0"
	case incarnation == 0 || terms.NameProblem(string(name), true) != "":
		return fmt.Sprintf("its writer %q is not a name of a peer", f.entry.Writer)
	case node == nil && !joins:
		return fmt.Sprintf("its writer %s is not known", f.entry.Writer)
	case f.s.Registry().IsGone(name):
		return fmt.Sprintf("its node %s was removed from the cluster", name)
	case node == nil:
		return "" // it is known once its attempt to join is
	case incarnation <= node.Departed:
		return fmt.Sprintf("its writer %s has left", f.entry.Writer)
	case f.entry.Seq <= node.LastSeq(incarnation):
		return fmt.Sprintf("it is a repetition: entry %d of %s was folded before", f.entry.Seq, f.entry.Writer)
	case node.LastSeq(incarnation) == 0 && !joins:
		return fmt.Sprintf("its writer %s is not known", f.entry.Writer)
	case node.LastSeq(incarnation) == 0:
		return ""
	}
	f.s.Wrote(node.Index, incarnation, f.entry.Seq)
	f.writer = f.s.Node(node.Index)
	return ""
}

// meetDeadlines does what is due. It returns false if there is more.
func (f *fold) meetDeadlines() bool {
	for range f.s.Limits.Placements {
		f.s.Visit(1)
		r, ok := f.s.Due()
		switch {
		case storage.Expire(f.s):
		case !ok:
			return true
		case r.OfNode():
			f.drainDue(facts.NodeIndex(r.Index))
		case r.OfUpdate():
			f.updateDue(r.Job)
		case r.OfTask():
			f.completionDue(r.Job, int(r.Task))
		default:
			f.touch(r.Job)
			f.slotDue(r)
		}
	}
	return false
}

// slotDue does what is due about a slot.
func (f *fold) slotDue(r facts.SlotRef) {
	slot, _ := f.s.SlotAt(r)
	if slot.ByPolicy() {
		f.policyDue(r, slot)
		return
	}
	switch slot.Phase {
	case facts.BackingOff:
		if f.s.OrderedNow(r) {
			slot.Deadline = f.s.Time + 1
			f.s.SetSlot(r, slot)
			return
		}
		slot.Phase, slot.Deadline, slot.Order, slot.Since = facts.Assigned, 0, f.s.Index, f.s.Time
		f.s.SetSlot(r, slot)
		f.outcome.Counts.Restarted++
		f.effect(report.Placed, r, "started again after its delay")
	case facts.Rescheduling:
		slot.Deadline = 0
		f.settle(r, slot, func(c *reconcile.Candidate) { c.Due = true })
	case facts.Unknown:
		f.awayDue(r, slot)
	case facts.Assigned, facts.Running:
		f.judge(r, slot)
	default:
		slot.Deadline = 0
		f.s.SetSlot(r, slot)
	}
}

// awayDue gives up an allocation that was out of reach for too long, or looks for another node meanwhile.
func (f *fold) awayDue(r facts.SlotRef, slot facts.Slot) {
	lived := f.s.Job(r.Job).MayLive(r, &slot)
	switch {
	case lived && slot.Cause != facts.NoCause:
		f.vacate(r, slot)
	case lived:
		f.wait(r, slot, facts.AnyNode)
		f.evicted(r)
	default:
		slot.Deadline = 0
		f.settle(r, slot, func(c *reconcile.Candidate) { c.Due = true })
		// Nobody waits for it any more if all that is left of it is that its slot waits: nothing took its place meanwhile.
		if left, row, ok := f.s.SeatOf(r, slot.Order); ok && row.Phase == facts.Waiting {
			f.evicted(left)
		}
	}
}

func (f *fold) placed() place.Visit {
	if !f.explain {
		return nil
	}
	return func(r facts.SlotRef) {
		f.outcome.Counts.Placed++
		f.effect(report.Placed, r, "")
	}
}

// evict tells an instance to give way to a job that is entitled to its room, or more important.
func (f *fold) evict(r facts.SlotRef, to terms.JobID, rule preempt.Rule) {
	j := f.s.Job(to)
	f.s.SetPreemption(r, facts.Preemption{Index: r.Index, At: f.s.Time, Entry: f.s.Index, By: j.Name(),
		Rule: uint8(rule)})
	f.outcome.Counts.Preempted++
	f.effectBy(report.GaveWay, r, j.Name(), rule.String())
	f.touch(r.Job)
	f.stop(r, facts.ByPreemption)
}

// effect notes an effect on a slot, as it is now.
func (f *fold) effect(kind report.EffectKind, r facts.SlotRef, reason string) {
	f.effectBy(kind, r, "", reason)
}

// effectBy notes one that happens for another job.
func (f *fold) effectBy(kind report.EffectKind, r facts.SlotRef, by terms.JobName, reason string) {
	if !f.explain || len(f.outcome.Effects) > report.EffectsMax {
		return
	}
	if len(f.outcome.Effects) == report.EffectsMax {
		f.outcome.Effects = append(f.outcome.Effects, report.Effect{Kind: report.More})
		return
	}
	slot, _ := f.s.SlotAt(r)
	e := report.Effect{Kind: kind, Slot: f.s.NameOf(r), Seat: r.Seat, Order: slot.Order, By: by, Reason: reason}
	if slot.Order != 0 {
		e.Node = f.s.Node(slot.Node).Name
	}
	f.outcome.Effects = append(f.outcome.Effects, e)
}

// obey applies one command.
func (f *fold) obey(c command.Command) report.Result {
	switch c := c.(type) {
	case *command.PrepareJoin:
		return f.prepareJoin(c)
	case *command.NotifyJoin:
		return f.notifyJoin(c)
	case *command.AcceptJoin:
		return f.acceptJoin(c)
	case *command.AbortJoin:
		return f.abortJoin(c)
	case *command.Leave:
		return f.leave(f.entry.Writer, c.Peer)
	case *command.Volunteer:
		return f.volunteer(c)
	case *command.SubmitJob:
		return f.submitJob(c)
	case *command.KillJob:
		return f.killJob(c)
	case *command.ReportTasks:
		return f.reportTasks(c)
	case *command.TellTime:
		return f.member()
	case *command.RaiseRules:
		return f.raiseRules(c)
	case *command.SteerUpdate:
		return f.steerUpdate(c)
	case *command.RevertJob:
		return f.revertJob(c)
	case *command.RestartJob:
		return f.restartJob(c)
	case *command.SuspendJob:
		return f.suspendJob(c)
	case *command.SealTask:
		return f.sealTask(c)
	case *command.EndAllocation:
		return f.endAllocation(c)
	case *command.RemoveVolumes:
		return f.once(c.RequestID, func() report.Result { return storage.Remove(f.s, c.Volumes) })
	case *command.MoveVolumes:
		return f.once(c.RequestID, func() report.Result { return storage.Move(f.s, f.entry.Writer, c) })
	case *command.DrainNode:
		return f.drainNode(c)
	case *command.ChangePools:
		return f.changePools(c)
	case *command.VouchSnapshot:
		return f.vouch(c)
	case *command.PassTime:
		return f.passTime(c)
	case *command.Unreadable:
		return refused(facts.Invalid, "%s", c.Problem)
	case *command.As:
		return f.as(c)
	}
	return f.enrol(c)
}

// enrol applies a command about who is known.
func (f *fold) enrol(c command.Command) report.Result {
	switch c := c.(type) {
	case *command.RemoveNode:
		return f.removeNode(c)
	case *command.TakeSnapshot:
		return f.once("", func() report.Result { return report.Result{Refusal: snapshot.Ask(&f.s.Head)} })
	}
	id, obey := enrol.Request(f.s, f.entry.Writer, c)
	return f.once(id, obey)
}

func refused(code facts.Code, format string, args ...any) report.Result {
	return report.Refuse(code, format, args...)
}

// author refuses what only p itself may write.
func (f *fold) author(p terms.PeerID) report.Result {
	if f.entry.Writer != p {
		return refused(facts.Denied, "%s may not write this for %s", f.entry.Writer, p)
	}
	return report.Result{}
}

// member refuses what only members may write.
func (f *fold) member() report.Result {
	if !f.s.IsMember(f.entry.Writer) {
		return refused(facts.Denied, "%s is not a member", f.entry.Writer)
	}
	return report.Result{}
}
