package share

import (
	"starling/schedule/entitle"
	"starling/terms"
)

// Gang is what is admitted together or not at all: the least instances that a job runs with, or a single one.
type Gang struct {
	// Need is of the whole gang.
	Need terms.Amounts
	// Count is the number of equal gangs that wait, such as the single instances of a task. A job that may run at most
	// so many instances counts only those that it may run beside those that run.
	Count uint32
	// Revocable gangs are bound by the slack alone.
	Revocable bool
	// NonPreemptible gangs are bound by what is firm, and Controller gangs by the controller limit, besides the
	// entitlement.
	NonPreemptible, Controller bool
}

// Pool is a leaf as admission sees it.
type Pool struct {
	Entitlement entitle.Entitlement
	// Firm bounds what is never preempted, ControllerLimit what controllers use.
	Firm, ControllerLimit terms.Amounts
	// Ceiling is how much more the pool may hold below the limits of the pools above it; nil is without any.
	Ceiling *terms.Amounts
	// Allocated is what runs, Lasting the part of it that runs until it is stopped.
	Allocated, Lasting terms.Work
}

// bound is one thing that gangs must fit into.
type bound uint8

const (
	entitled bound = iota
	slack
	reserved
	controlled
	ceiling
	boundCount
)

// class numbers the gangs that are bound alike.
func (g *Gang) class() terms.Class {
	return terms.ClassOf(g.Revocable, g.NonPreemptible, g.Controller)
}

// bounds are what the gangs of each class must fit into. What comes free in any of them comes free in the first as well,
// but in the last, which others are below as well.
var bounds = [terms.ClassCount][]bound{
	{entitled, ceiling}, {entitled, reserved, ceiling}, {entitled, controlled, ceiling}, {entitled, reserved, controlled, ceiling},
	{slack, ceiling},
}

// ownBounds are those of the pool itself.
func ownBounds(class terms.Class) []bound { return bounds[class][:len(bounds[class])-1] }

// Admission is one pass over the waiting gangs of a pool.
type Admission struct {
	// free is what is neither used nor kept, below 0 where the bound has shrunk; ever is what would be free if all work
	// were done that ends.
	free, ever [boundCount]terms.Amounts
	// awaited are the classes for whose first gang room is kept, kept is what they are to have of the entitlement, free or not.
	awaited [terms.ClassCount]bool
	kept    terms.Amounts
}

// NewAdmission begins a pass.
func NewAdmission(p *Pool) *Admission {
	a := &Admission{}
	for k := range terms.AmountCount {
		held, lasting := &p.Allocated, &p.Lasting
		for b, row := range [boundCount]struct{ most, held, lasting int64 }{
			entitled:   {p.Entitlement.NonSlack[k], held.NonSlack[k], lasting.NonSlack[k]},
			slack:      {p.Entitlement.Slack[k], held.Slack[k], lasting.Slack[k]},
			reserved:   {p.Firm[k], held.NonPreemptible[k], lasting.NonPreemptible[k]},
			controlled: {p.ControllerLimit[k], held.Controller[k], lasting.Controller[k]},
			ceiling:    {terms.Unlimited, 0, 0}, // what others borrow they have to give back
		} {
			a.free[b][k], a.ever[b][k] = row.most-row.held, row.most-row.lasting
		}
		if p.Ceiling != nil {
			a.free[ceiling][k] = p.Ceiling[k]
		}
		if !k.Overcommitted() {
			// Revocable work that has not given way yet is within the same entitlement.
			left := p.Entitlement.NonSlack[k] + p.Entitlement.Slack[k] - held.NonSlack[k] - held.Slack[k]
			a.free[entitled][k], a.free[slack][k] = min(a.free[entitled][k], left), min(a.free[slack][k], left)
		}
	}
	return a
}

// Room returns how many of the equal gangs can be admitted now.
func (a *Admission) Room(g *Gang) uint32 { return a.room(g, bounds[g.class()]) }

// Entitled returns how many of the equal gangs could be admitted now if the pools beside held only what they are entitled
// to.
func (a *Admission) Entitled(g *Gang) uint32 { return a.room(g, ownBounds(g.class())) }

func (a *Admission) room(g *Gang, within []bound) uint32 {
	times := int64(g.Count)
	for _, b := range within {
		for k, need := range g.Need {
			if need > 0 {
				times = min(times, max(a.free[b][k], 0)/need)
			}
		}
	}
	return uint32(times)
}

// Fits tells whether work of a class that needs so much can be admitted now.
func (a *Admission) Fits(class terms.Class, need *terms.Amounts) bool {
	for _, b := range bounds[class] {
		for k, amount := range need {
			if amount > 0 && amount > a.free[b][k] {
				return false
			}
		}
	}
	return true
}

// FitsWithin tells whether work of a class is within all its bounds but the entitlement.
func (a *Admission) FitsWithin(class terms.Class, need *terms.Amounts) bool {
	for _, b := range ownBounds(class)[1:] {
		for k, amount := range need {
			if amount > 0 && amount > a.free[b][k] {
				return false
			}
		}
	}
	return true
}

// Awaits tells whether room is kept for a gang of the class.
func (a *Admission) Awaits(class terms.Class) bool { return a.awaited[class] }

// Kept returns what of the entitlement is to be kept for gangs that are awaited, free or not.
func (a *Admission) Kept() terms.Amounts { return a.kept }

// Take admits so many of the equal gangs.
func (a *Admission) Take(g *Gang, count uint32) {
	for _, b := range bounds[g.class()] {
		for k, need := range g.Need {
			a.free[b][k] -= need * int64(count)
		}
	}
}

// Give takes back that so many of the equal gangs were admitted.
func (a *Admission) Give(g *Gang, count uint32) {
	for _, b := range bounds[g.class()] {
		for k, need := range g.Need {
			a.free[b][k] += need * int64(count)
		}
	}
}

// Await is told of a gang that is not admitted now, for want of room here or on the machines. If it is the first of its
// class, what it needs is kept for it from now on.
func (a *Admission) Await(g *Gang) {
	class := g.class()
	if a.awaited[class] {
		return
	}
	for _, b := range bounds[class] {
		for k, need := range g.Need {
			if need > max(a.ever[b][k], 0) {
				return
			}
		}
	}
	a.awaited[class] = true
	outer, inner := bounds[class][0], ownBounds(class)[1:]
	for k, need := range g.Need {
		// What is still to come free in an inner bound comes free in the entitlement then: only the rest is kept there.
		for _, b := range inner {
			kept := min(g.Need[k], max(a.free[b][k], 0))
			a.free[b][k] -= kept
			need = min(need, kept)
		}
		if outer == entitled {
			a.kept[k] += need
		}
		a.free[outer][k] -= min(need, max(a.free[outer][k], 0))
		a.free[ceiling][k] -= min(g.Need[k], max(a.free[ceiling][k], 0))
	}
}
