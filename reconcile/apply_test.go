package reconcile_test

import (
	"slices"

	"starling/reconcile"
	"starling/terms"
)

// apply does to copies of the task and the slots what a result asks for, as whoever keeps the value does.
func apply(t reconcile.Task, slots []reconcile.Slot, out *reconcile.Result) (reconcile.Task, []reconcile.Slot) {
	a := applier{t: applyUpdate(t, &out.Update), slots: make([]reconcile.Slot, len(slots))}
	for i, s := range slots {
		a.slots[i] = reconcile.Slot{Index: s.Index, Candidates: slices.Clone(s.Candidates)}
	}
	if a.t.Update.ID != t.Update.ID && t.Update.Promoted {
		a.promote(t.Update.ID)
	}
	for _, s := range out.Stops {
		a.stop(s)
	}
	a.write(out)
	for _, r := range out.Replacements {
		a.find(r.Reference).Desired = reconcile.Stop
		if c := a.place(r.Index, r.Order); r.Seat == reconcile.CanarySeat {
			c.CanaryOf = a.t.Update.ID
		}
	}
	for _, p := range out.Placements {
		c := a.place(p.Index, p.Previous)
		if p.Stable {
			c.Version, c.Change, c.Update = 2, reconcile.Destructive, 0
		}
		if p.Seat == reconcile.CanarySeat {
			c.CanaryOf = a.t.Update.ID
		}
	}
	return a.t, a.slots
}

// promote makes the canaries of an update instances like others.
func (a *applier) promote(update terms.Index) {
	for i := range a.slots {
		for j := range a.slots[i].Candidates {
			if c := &a.slots[i].Candidates[j]; c.CanaryOf == update {
				c.CanaryOf = 0
			}
		}
	}
}

// write writes down what is to be known of allocations that stay.
func (a *applier) write(out *reconcile.Result) {
	for _, r := range out.Disconnects {
		c := a.find(r)
		c.Client, c.UnknownSince, c.Away = reconcile.UnknownClient, a.t.Now, true
	}
	for _, r := range out.Reconnects {
		a.find(r).Away = false
	}
	for _, w := range out.Waits {
		if w.Kind == reconcile.UntilRetry {
			a.find(w.Reference).FollowUp = reconcile.FollowUpPending
		}
	}
	for _, r := range out.Changes {
		c := a.find(r)
		c.Version, c.Instance, c.Change, c.Update, c.Health = a.t.Version, a.t.Instance, reconcile.NoChange, a.update(), reconcile.Unjudged
	}
}

type applier struct {
	t     reconcile.Task
	slots []reconcile.Slot
}

// applyUpdate returns the task with the record of the update as it is afterwards.
func applyUpdate(t reconcile.Task, change *reconcile.UpdateChange) reconcile.Task {
	switch standing := t.Standing(); {
	case standing == reconcile.SupersededUpdate || standing == reconcile.AbandonedUpdate:
		t.Update.State = reconcile.UpdateCancelled
	case change.Complete:
		t.Update.State = reconcile.UpdateSuccessful
	case standing == reconcile.CurrentUpdate && t.Update.Joined:
		t.Update.Canaries = change.Canaries
	}
	if change.Begins {
		if t.Standing() != reconcile.CurrentUpdate {
			t.Update = reconcile.Update{ID: 8, Instance: t.Instance, Version: t.Version}
		}
		t.Update.Joined, t.Update.Total, t.Update.Canaries, t.Update.Promoted = true, change.Total, change.Canaries, false
	}
	return t
}

// update returns the update that what is placed now belongs to.
func (a *applier) update() terms.Index {
	if a.t.Standing() == reconcile.CurrentUpdate && a.t.Update.Joined {
		return a.t.Update.ID
	}
	return 0
}

func (a *applier) find(r reconcile.Reference) *reconcile.Candidate {
	candidates := a.slots[r.Index].Candidates
	return &candidates[slices.IndexFunc(candidates, func(c reconcile.Candidate) bool { return c.Order == r.Order })]
}

func (a *applier) stop(s reconcile.Stopping) {
	c := a.find(s.Reference)
	c.Desired = reconcile.Stop
	c.Closed, c.Parked = c.Closed || s.Closes, s.Parks
	if s.Client != reconcile.NoClient {
		c.Client = s.Client
	}
	if s.Client == reconcile.LostClient && c.LostSince == 0 {
		c.LostSince = a.t.Now
	}
}

// place adds an instance that was not there.
func (a *applier) place(index uint32, previous terms.Index) *reconcile.Candidate {
	slot, order := &a.slots[index], terms.Index(0)
	for i := range slot.Candidates {
		order = max(order, slot.Candidates[i].Order)
	}
	if previous != 0 {
		a.find(reconcile.Reference{Index: index, Order: previous}).Next = order + 1
	}
	slot.Candidates = append(slot.Candidates, reconcile.Candidate{
		Order: order + 1, Instance: a.t.Instance, Version: a.t.Version, Client: reconcile.PendingClient, Update: a.update(),
	})
	return &slot.Candidates[len(slot.Candidates)-1]
}
