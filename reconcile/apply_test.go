package reconcile_test

import (
	"slices"

	"starling/reconcile"
	"starling/terms"
)

// apply does to copies of the task and the slots what a result asks for, as whoever keeps the value does.
func apply(t reconcile.Task, slots []reconcile.Slot, out *reconcile.Result) (reconcile.Task, []reconcile.Slot) {
	a := applier{t: t, slots: make([]reconcile.Slot, len(slots))}
	for i, s := range slots {
		a.slots[i] = reconcile.Slot{Index: s.Index, Closed: s.Closed, Candidates: slices.Clone(s.Candidates)}
		for k := range a.slots[i].Candidates {
			a.slots[i].Candidates[k].Again = false // it has been asked about
		}
	}
	for _, s := range out.Stops {
		a.stop(s)
	}
	a.write(out)
	for _, r := range out.Replacements {
		a.find(r).Told = true
		a.place(r.Index)
	}
	for _, p := range out.Placements {
		c := a.place(p.Index)
		if p.Seat == reconcile.CanarySeat {
			c.CanaryOf = a.t.Update.ID
		}
	}
	return a.t, a.slots
}

// write writes down what is to be known of allocations that stay.
func (a *applier) write(out *reconcile.Result) {
	for _, r := range out.Disconnects {
		c := a.find(r)
		c.Client, c.UnknownSince, c.Unknown = reconcile.UnknownClient, a.t.Now, true
	}
	for _, r := range out.Reconnects {
		a.find(r).Unknown = false
	}
}

type applier struct {
	t     reconcile.Task
	slots []reconcile.Slot
}

func (a *applier) find(r reconcile.Reference) *reconcile.Candidate {
	candidates := a.slots[r.Index].Candidates
	return &candidates[slices.IndexFunc(candidates, func(c reconcile.Candidate) bool { return c.Order == r.Order })]
}

func (a *applier) stop(s reconcile.Stopping) {
	c := a.find(s.Reference)
	c.Told = true
	if s.Client != reconcile.NoClient {
		c.Client = s.Client
	}
}

// place adds an instance that was not there.
func (a *applier) place(index uint32) *reconcile.Candidate {
	slot, order := &a.slots[index], terms.Index(0)
	for i := range slot.Candidates {
		order = max(order, slot.Candidates[i].Order)
	}
	slot.Candidates = append(slot.Candidates, reconcile.Candidate{
		Order: order + 1, Version: a.t.Version, Client: reconcile.PendingClient, Update: a.t.Update.ID,
	})
	return &slot.Candidates[len(slot.Candidates)-1]
}
