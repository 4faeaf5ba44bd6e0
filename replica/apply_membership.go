package replica

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/ring"
)

func (f *fold) prepareJoin(c *command.PrepareJoin) Result {
	if r := f.author(c.Joiner); r.refused() {
		return r
	}
	result := Result{Refusal: ring.Prepare(f.s, c.Joiner, c.Attempt)}
	f.joined(c.Joiner)
	return result
}

func (f *fold) notifyJoin(c *command.NotifyJoin) Result {
	return Result{Refusal: ring.Notify(f.s, f.entry.Writer, c.Joiner, c.Attempt)}
}

func (f *fold) acceptJoin(c *command.AcceptJoin) Result {
	if r := f.author(c.Joiner); r.refused() {
		return r
	}
	result := Result{Refusal: ring.Accept(f.s, c.Joiner, c.Observer, c.Attempt)}
	if !result.refused() {
		f.joined(c.Joiner)
	}
	return result
}

func (f *fold) abortJoin(c *command.AbortJoin) Result {
	if r := f.author(c.Joiner); r.refused() {
		return r
	}
	return Result{Refusal: ring.Abort(f.s, c.Joiner, c.Attempt)}
}

// joined notes as an effect that the peer is a member now, if it is.
func (f *fold) joined(p cluster.PeerID) {
	if f.explain && f.s.IsMember(p) {
		f.outcome.Effects = append(f.outcome.Effects, Effect{Kind: Joined, Peer: p, Node: p.Node()})
	}
}

// leave takes the peer out and gives what it ran to others.
func (f *fold) leave(c *command.Leave) Result {
	result := Result{Refusal: ring.Leave(f.s, c.Peer)}
	if result.refused() {
		return result
	}
	node := f.s.NodeOf(c.Peer.Node())
	if f.explain {
		f.outcome.Effects = append(f.outcome.Effects, Effect{Kind: Left, Peer: c.Peer, Node: node.Name})
	}
	if node.Offer == nil || node.Peer != "" {
		return result
	}
	f.s.SetOffer(node.Index, nil)
	held := slices.Clone(f.s.Node(node.Index).Held)
	slices.SortStableFunc(held, cluster.SlotRef.Compare)
	for _, r := range held {
		f.lose(r)
	}
	return result
}

// lose ends the allocation of a slot whose node left.
func (f *fold) lose(r cluster.SlotRef) {
	slot, _ := f.s.SlotAt(r)
	slot.Ended, slot.ExitCode = cluster.NodeLost, 0
	f.effect(Lost, r, "its node left")
	f.vacate(r, slot)
}

// vacate frees a slot whose allocation is over: it waits for another if it is still wanted.
func (f *fold) vacate(r cluster.SlotRef, slot cluster.Slot) {
	j := f.s.Job(r.Job)
	slot.Phase, slot.Since, slot.NotBefore = cluster.Waiting, f.s.Time, 0
	if j.Stop || r.Index >= j.Tasks[r.Task].Desired {
		slot.Phase = cluster.Stopped
	}
	f.s.SetSlot(r, slot)
	f.finish(r.Job)
}

// finish notes that a job ended, if it did.
func (f *fold) finish(id cluster.JobID) {
	j := f.s.Job(id)
	if j.Finished != 0 {
		return
	}
	name := j.Name()
	f.s.FinishIfDone(id)
	if j = f.s.Job(id); j != nil && j.Finished != 0 && f.explain {
		f.outcome.Effects = append(f.outcome.Effects, Effect{Kind: JobFinished, Slot: cluster.SlotName{Job: name}, Reason: j.Status().String()})
	}
}

// volunteer takes a member's offer.
func (f *fold) volunteer(c *command.Volunteer) Result {
	if r := f.author(c.Peer); r.refused() {
		return r
	}
	if r := f.member(); r.refused() {
		return r
	}
	offer := c.Offer
	if reason := offer.Problem(); reason != "" {
		return refused(cluster.Invalid, "offer of %s: %s", c.Peer, reason)
	}
	f.s.SetOffer(f.writer.Index, &offer)
	return Result{}
}

// reportTasks takes the news of allocations. News of an allocation that is not the slot's present one is void.
func (f *fold) reportTasks(c *command.ReportTasks) Result {
	if r := f.author(c.Peer); r.refused() {
		return r
	}
	if r := f.member(); r.refused() {
		return r
	}
	for i := range c.Reports {
		f.report(&c.Reports[i])
	}
	return Result{}
}

func (f *fold) report(news *command.Report) {
	slot, ok := f.s.SlotAt(news.Slot)
	switch {
	case !ok || slot.Order != news.Order || !slot.Phase.Holds() || slot.Phase == cluster.Delayed || slot.Node != f.writer.Index:
	case news.Ended == cluster.NotEnded && slot.Phase == cluster.Assigned:
		slot.Phase, slot.Since = cluster.Running, f.s.Time
		f.s.SetSlot(news.Slot, slot)
		f.effect(Started, news.Slot, "")
	case news.Ended == cluster.NotEnded:
	default:
		f.ended(news, slot)
	}
}

// ended decides what comes after the end of an allocation.
func (f *fold) ended(news *command.Report, slot cluster.Slot) {
	j := f.s.Job(news.Slot.Job)
	ran := f.s.Time - slot.Since
	wasRunning, stopping := slot.Phase == cluster.Running, slot.Phase == cluster.Stopping
	slot.Ended, slot.ExitCode, slot.Since = news.Ended, news.ExitCode, f.s.Time
	f.effect(Ended, news.Slot, endingWords(news))
	if stopping {
		f.vacate(news.Slot, slot)
		return
	}
	if j.Spec.Type == cluster.Batch && news.Ended == cluster.ByItself && news.ExitCode == 0 {
		slot.Phase, slot.Failures = cluster.Succeeded, 0
		f.s.SetSlot(news.Slot, slot)
		f.finish(news.Slot.Job)
		return
	}
	f.s.SetFailure(j.ID, int(news.Slot.Task), cluster.Failure{
		Index: news.Slot.Index, Order: slot.Order, At: f.s.Time, Ended: news.Ended, ExitCode: news.ExitCode, Detail: news.Detail,
	})
	restart := j.TaskSpecOf(int(news.Slot.Task), slot.Version).Restart
	if wasRunning && ran >= cluster.Time(restart.ResetMillis) {
		slot.Failures = 0
	}
	slot.Failures++
	if restart.AttemptsMax != cluster.RestartsUnlimited && slot.Failures > restart.AttemptsMax {
		slot.Phase = cluster.Failed
		f.s.SetSlot(news.Slot, slot)
		f.finish(news.Slot.Job)
		return
	}
	delay := restart.Delay(slot.Failures)
	slot.Phase, slot.NotBefore = cluster.Delayed, f.s.Time+cluster.Time(delay)
	f.s.SetSlot(news.Slot, slot)
	f.effect(Delayed, news.Slot, fmt.Sprintf("failure %d in a row: starts again in %d ms", slot.Failures, delay))
}

func endingWords(news *command.Report) string {
	if news.Ended == cluster.ByItself {
		return fmt.Sprintf("exited with %d", news.ExitCode)
	}
	if news.Ended == cluster.BySignal {
		return fmt.Sprintf("killed by signal %d", news.ExitCode-128)
	}
	if news.Detail != "" {
		return news.Ended.String() + ": " + news.Detail
	}
	return news.Ended.String()
}
