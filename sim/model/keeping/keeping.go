// Package keeping is the list of volumes whose slots are away, or that a slot has from elsewhere, as plainly as it can
// be kept.
package keeping

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/rules"
)

// Kept is a set of volumes, with what is known of it.
type Kept struct {
	Set terms.VolumeSet
	facts.Volumes
}

// Twin is the list.
type Twin struct {
	// Rules are those in force, Now is the time.
	Rules rules.Number
	Now   terms.Time
	all   []*Kept
}

// On tells that the rules have it.
func (w *Twin) On() bool { return w.Rules >= rules.Volumes }

// Full tells whether so much is kept that no job with volumes may come.
func (w *Twin) Full(l *terms.Limits, spec *terms.Job) bool {
	keeps := slices.ContainsFunc(spec.Tasks, func(t terms.Task) bool { return len(t.Volumes) > 0 })
	all := len(w.all)
	if w.Rules >= rules.KeptVolumes {
		all = 0
		for _, k := range w.all {
			if !k.Empty {
				all++
			}
		}
	}
	return w.On() && keeps && all >= int(l.FinishedSlots)
}

// of returns what a slot of a job has that is not as its name says, nil for nothing.
func (w *Twin) of(slot terms.SlotName, job terms.JobID) *Kept {
	for _, k := range w.all {
		if k.Set.Slot == slot && k.User == job {
			return k
		}
	}
	return nil
}

// Due returns the set that is kept no longer than all others, and until when, 0 if there is none.
func (w *Twin) Due() (set terms.VolumeSet, at terms.Time) {
	for _, k := range w.all {
		if k.Until != 0 && (at == 0 || k.Until < at || k.Until == at && k.Set.Compare(set) < 0) {
			set, at = k.Set, k.Until
		}
	}
	return set, at
}

// Stay keeps a set until it is removed if a job has it, and a version of that its instance; false for any other.
func (w *Twin) Stay(set terms.VolumeSet, job terms.JobID, spec *terms.Job) bool {
	asked := slices.ContainsFunc(spec.Tasks, func(t terms.Task) bool {
		return t.Name == set.Slot.Task && t.Instances > set.Slot.Index
	})
	at := slices.IndexFunc(w.all, func(k *Kept) bool { return k.Set == set && k.User == job })
	if asked && at >= 0 {
		w.all[at].Until = 0
	}
	return asked && at >= 0
}

// Until is until when volumes are kept for nobody from now on, as a task says; 0 is until they are removed.
func (w *Twin) Until(spec *terms.Task) terms.Time {
	if spec == nil || spec.KeepVolumesMillis == 0 {
		return 0
	}
	return w.Now + terms.Time(spec.KeepVolumesMillis)
}

// Drop notes what a slot of a job had that no instance is to have any more.
func (w *Twin) Drop(slot terms.SlotName, job terms.JobID, row *facts.Slot, until terms.Time) {
	if !w.On() || row.Order == 0 {
		return
	}
	k := w.of(slot, job)
	if k == nil {
		k = &Kept{Set: terms.VolumeSet{Slot: slot, Job: job}, Volumes: facts.Volumes{User: job}}
		w.all = append(w.all, k)
	}
	if row.Order > k.Order || k.Empty && row.Order == k.Order {
		k.Volumes = facts.Volumes{User: job, Node: row.Node, Order: row.Order, Since: w.Now, Until: until}
	} else if !k.Empty && k.Until == 0 {
		k.Until = until
	}
}

// Forget leaves what a job had to the next of its name.
func (w *Twin) Forget(job terms.JobID) {
	w.all = slices.DeleteFunc(w.all, func(k *Kept) bool { return k.User == job && k.Empty })
	for _, k := range w.all {
		if k.User == job {
			k.User, k.Since = 0, w.Now
		}
	}
}

// Find returns how a slot of a job waits that was never placed and for which volumes are kept.
func (w *Twin) Find(slot terms.SlotName, job terms.JobID) (row facts.Slot, ok bool) {
	found := w.of(slot, job)
	for _, k := range w.all {
		if own := found != nil && found.User == job; k.Set.Slot == slot && k.User == 0 && !own &&
			(found == nil || k.Set.Job > found.Set.Job) {
			found = k
		}
	}
	if !w.On() || found == nil || found.Empty {
		return row, false
	}
	found.User, found.Until = job, 0
	return facts.Slot{Order: found.Order, Node: found.Node, Preference: facts.OnlyNode, Since: w.Now}, true
}

// Renew lets a slot of a job begin with empty volumes, under a number that no job has.
func (w *Twin) Renew(slot terms.SlotName, job, number terms.JobID, at terms.Index) {
	w.all = slices.DeleteFunc(w.all, func(k *Kept) bool { return k.Set.Slot == slot && k.User == job })
	w.all = append(w.all, &Kept{terms.VolumeSet{Slot: slot, Job: number},
		facts.Volumes{User: job, Empty: true, Order: at, Since: w.Now}})
}

// Remove forgets what no job has; ok is false for anything else.
func (w *Twin) Remove(set terms.VolumeSet) (ok bool) {
	before := len(w.all)
	w.all = slices.DeleteFunc(w.all, func(k *Kept) bool { return k.Set == set && k.User == 0 })
	return len(w.all) < before
}

// Has tells whether a slot of a job has a set, and something may be in it; row is the slot's, zero if it is away.
func (w *Twin) Has(set terms.VolumeSet, job terms.JobID, row *facts.Slot, keeps bool) bool {
	k := w.of(set.Slot, job)
	if k == nil {
		return set.Job == job && row.Order != 0 && keeps
	}
	return k.Set == set && (!k.Empty || row.Order >= k.Order)
}

// Moved is a set that a node is to have, as an allocation left it.
type Moved struct {
	Set  terms.VolumeSet
	Left terms.Index
	To   facts.NodeIndex
}

// Move lets a node have a set that a job has, 0 for none; row is its slot's, zero if it is away. It returns whether it
// was as it is said to be, and elsewhere.
func (w *Twin) Move(m Moved, job terms.JobID, row *facts.Slot) bool {
	at := slices.IndexFunc(w.all, func(k *Kept) bool { return k.Set == m.Set && k.User == job })
	was := facts.Volumes{Order: row.Order, Node: row.Node}
	if at >= 0 && row.Order == 0 {
		was = w.all[at].Volumes
	}
	if job != 0 && !w.Has(m.Set, job, row, true) || was.Empty || was.Order != m.Left || m.Left == 0 || was.Node == m.To {
		return false
	}
	if at >= 0 && !w.all[at].Empty {
		w.all[at].Node = m.To
	}
	return true
}

// Same tells whether the fold has the same.
func (w *Twin) Same(fold []facts.Row[terms.VolumeSet, facts.Volumes]) bool {
	slices.SortFunc(w.all, func(a, b *Kept) int { return a.Set.Compare(b.Set) })
	return slices.EqualFunc(fold, w.all, func(a facts.Row[terms.VolumeSet, facts.Volumes], b *Kept) bool {
		return a.Key == b.Set && a.Value == b.Volumes
	})
}
