package replica

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/limits"
	"starling/replica/report"
	"starling/ring"
	"starling/terms"
)

func (f *fold) prepareJoin(c *command.PrepareJoin) report.Result {
	if r := f.author(c.Joiner); r.Refused() {
		return r
	}
	result := report.Result{Refusal: ring.Prepare(f.s, c.Joiner, c.Attempt)}
	if _, joins := f.s.Attempt(c.Joiner); joins || f.s.IsMember(c.Joiner) {
		// Of a new life nothing is kept unless its attempt is.
		node, incarnation := f.s.NodeOf(c.Joiner.Node()), incarnationOf(c.Joiner)
		f.s.Wrote(node.Index, incarnation, f.entry.Seq)
		f.writer = f.s.Node(node.Index)
	}
	if !result.Refused() {
		f.joined(c.Joiner)
	}
	return result
}

func incarnationOf(p terms.PeerID) uint32 {
	_, incarnation := p.Split()
	return incarnation
}

func (f *fold) notifyJoin(c *command.NotifyJoin) report.Result {
	return report.Result{Refusal: ring.Notify(f.s, f.entry.Writer, c.Joiner, c.Attempt)}
}

func (f *fold) acceptJoin(c *command.AcceptJoin) report.Result {
	if r := f.author(c.Joiner); r.Refused() {
		return r
	}
	result := report.Result{Refusal: ring.Accept(f.s, c.Joiner, c.Observer, c.Attempt)}
	if !result.Refused() {
		f.joined(c.Joiner)
	}
	return result
}

func (f *fold) abortJoin(c *command.AbortJoin) report.Result {
	if r := f.author(c.Joiner); r.Refused() {
		return r
	}
	return report.Result{Refusal: ring.Abort(f.s, c.Joiner, c.Attempt)}
}

// joined notes as an effect that the peer is a member now, if it is.
func (f *fold) joined(p terms.PeerID) {
	if f.explain && f.s.IsMember(p) {
		f.outcome.Effects = append(f.outcome.Effects, report.Effect{Kind: report.Joined, Peer: p, Node: p.Node()})
	}
}

// leave takes the peer out, as somebody says, and gives what it ran to others.
func (f *fold) leave(by, p terms.PeerID) report.Result {
	result := report.Result{Refusal: ring.Leave(f.s, by, p)}
	if result.Refused() {
		return result
	}
	node := f.s.NodeOf(p.Node())
	if f.explain {
		f.outcome.Effects = append(f.outcome.Effects, report.Effect{Kind: report.Left, Peer: p, Node: node.Name})
	}
	if node.Peer != "" {
		return result
	}
	f.s.SetOffer(node.Index, nil)
	for _, r := range f.held(node.Index) {
		f.lose(r)
	}
	for _, id := range f.s.Workflows() {
		f.loseOutputs(id)
	}
	f.daemonsOf(node.Index)
	return result
}

// finish notes that a job ended, if it did. One whose update has instances to add has not.
func (f *fold) finish(id terms.JobID) {
	j := f.s.Job(id)
	if j.Finished != 0 || id == f.deciding ||
		slices.ContainsFunc(f.duePolicies, func(r facts.SlotRef) bool { return r.Job == id }) {
		return
	}
	f.abandon(j)
	if j = f.s.Job(id); j.Busy() || f.resizes(j) || f.unheard(j) {
		return
	}
	name := j.Name()
	f.s.FinishIfDone(id)
	if j = f.s.Job(id); j == nil || j.Finished == 0 {
		return
	}
	f.over = append(f.over, jobEnd{name, j.Status() == workload.StatusSucceeded})
	f.endUpdate(j)
	if f.explain {
		f.outcome.Effects = append(f.outcome.Effects,
			report.Effect{Kind: report.JobFinished, Slot: terms.SlotName{Job: name}, Reason: j.Status().String()})
	}
}

// volunteer takes a member's offer.
func (f *fold) volunteer(c *command.Volunteer) report.Result {
	if r := f.author(c.Peer); r.Refused() {
		return r
	}
	if r := f.member(); r.Refused() {
		return r
	}
	offer := c.Offer
	if r := limits.Offer(f.s, f.writer, &offer); r.Refused() {
		return r
	}
	ring.Volunteer(f.s, c.Peer, &offer)
	f.daemonsOf(f.writer.Index)
	return report.Result{}
}
