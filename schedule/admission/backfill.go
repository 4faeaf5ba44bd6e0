package admission

import (
	"slices"

	"starling/terms"
)

// What passes a gang that is awaited. Nothing may delay it that comes behind it, and that must be certain from what is
// known: that some units have to end before it can begin, whatever else happens; or by when enough will have ended at
// the latest. The second is the rule of EASY: Lifka, The ANL/IBM SP scheduling system, 1995.

// Unit is what runs of a pool and ends together: a single instance, or all of a gang.
type Unit struct {
	Work terms.Work
	// Ends is when it has ended at the latest, 0 if that is not known.
	Ends terms.Time
}

// UnitsMax bounds the units that are looked at: of more none is taken into account.
const UnitsMax = 4096

// room is what is free in each bound.
type room [boundCount]terms.Amounts

// hold tells whether there is room for a gang in the bounds of its class.
func (r *room) hold(g *Gang) bool {
	for _, b := range bounds[g.class()] {
		for k, need := range g.Need {
			if need > 0 && need > r[b][k] {
				return false
			}
		}
	}
	return true
}

// add adds so many times what a unit takes.
func (r *room) add(u *Unit, times int64) {
	for k := range terms.AmountCount {
		for b, amount := range [boundCount]int64{
			entitled: u.Work.NonSlack[k], slack: u.Work.Slack[k], reserved: u.Work.NonPreemptible[k],
			controlled:    u.Work.Controller[k],
			ancestorLimit: u.Work.NonSlack[k] + u.Work.Slack[k],
		} {
			r[b][k] += amount * times
		}
	}
}

// keeps tells whether anything is free of all that a gang needs, so that to keep it keeps others from running.
func (a *Admission) keeps(g *Gang) bool {
	for _, b := range bounds[g.class()] {
		for k, need := range g.Need {
			if need > 0 && a.free[b][k] <= 0 {
				return false
			}
		}
	}
	return true
}

// coming returns what comes free before a gang can begin in any case: what those units take without which there is
// never room.
func (a *Admission) coming(g *Gang, units []Unit) (sum room) {
	for i := range units {
		without := a.ever
		without.add(&units[i], -1)
		if !without.hold(g) {
			sum.add(&units[i], 1)
		}
	}
	return sum
}

// guaranteed returns by when there is room for a gang at the latest, 0 if that is not known.
func (a *Admission) guaranteed(g *Gang, units []Unit) terms.Time {
	ending := slices.DeleteFunc(slices.Clone(units), func(u Unit) bool { return u.Ends == 0 })
	slices.SortStableFunc(ending, func(a, b Unit) int { return int(max(min(a.Ends-b.Ends, 1), -1)) })
	left := a.free
	if left.hold(g) {
		return 0 // it waits for machines
	}
	for i := range ending {
		if left.add(&ending[i], 1); left.hold(g) {
			return ending[i].Ends
		}
	}
	return 0
}
