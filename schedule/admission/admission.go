package admission

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
	// RunsAtMost is after how many milliseconds an instance of its job has ended at the latest, 0 is never.
	RunsAtMost terms.Time
}

// Pool is a leaf as admission sees it.
type Pool struct {
	Entitlement entitle.Entitlement
	// Firm bounds what is never preempted, ControllerLimit what controllers use.
	Firm, ControllerLimit terms.Amounts
	// AncestorLimit is how much more the pool may hold below the limits of the pools above it; nil is without any.
	AncestorLimit *terms.Amounts
	// Allocated is what runs, Lasting the part of it that runs until it is stopped.
	Allocated, Lasting terms.Work
	// Now is the time of the pass.
	Now terms.Time
}

// bound is one thing that gangs must fit into.
type bound uint8

const (
	entitled bound = iota
	slack
	reserved
	controlled
	ancestorLimit
	boundCount
)

// class numbers the gangs that are bound alike.
func (g *Gang) class() terms.Class {
	return terms.ClassOf(g.Revocable, g.NonPreemptible, g.Controller)
}

// bounds are what the gangs of each class must fit into. What comes free in any of them comes free in the first as
// well, but in the last, which others are below as well.
var bounds = [terms.ClassCount][]bound{
	{entitled, ancestorLimit}, {entitled, reserved, ancestorLimit}, {entitled, controlled, ancestorLimit},
	{entitled, reserved, controlled, ancestorLimit},
	{slack, ancestorLimit},
}

// ownBounds are those of the pool itself.
func ownBounds(class terms.Class) []bound { return bounds[class][:len(bounds[class])-1] }

// Admission is one pass over the waiting gangs of a pool.
type Admission struct {
	// free is what is neither used nor kept, below 0 where the bound has shrunk; ever is what would be free if all work
	// were done that ends.
	free, ever room
	// awaited are the classes for whose first gang room is kept, kept is what they are to have of the entitlement, free or
	// not.
	awaited [terms.ClassCount]bool
	kept    terms.Amounts
	// lent is what of what is free is kept: those may have it that have ended before due, when the first gang that is
	// awaited will have its room at the latest, 0 if that is not known.
	lent     room
	now, due terms.Time
}

// New begins a pass.
func New(p *Pool) Admission {
	a := Admission{now: p.Now}
	for k := range terms.AmountCount {
		held, lasting := &p.Allocated, &p.Lasting
		for b, row := range [boundCount]struct{ most, held, lasting int64 }{
			entitled:      {p.Entitlement.NonSlack[k], held.NonSlack[k], lasting.NonSlack[k]},
			slack:         {p.Entitlement.Slack[k], held.Slack[k], lasting.Slack[k]},
			reserved:      {p.Firm[k], held.NonPreemptible[k], lasting.NonPreemptible[k]},
			controlled:    {p.ControllerLimit[k], held.Controller[k], lasting.Controller[k]},
			ancestorLimit: {terms.Unlimited, 0, 0}, // what others borrow they have to give back
		} {
			a.free[b][k], a.ever[b][k] = row.most-row.held, row.most-row.lasting
		}
		if p.AncestorLimit != nil {
			a.free[ancestorLimit][k] = p.AncestorLimit[k]
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

// Entitled returns how many of the equal gangs could be admitted now if the pools beside held only what they are
// entitled to.
func (a *Admission) Entitled(g *Gang) uint32 { return a.room(g, ownBounds(g.class())) }

func (a *Admission) room(g *Gang, within []bound) uint32 {
	times, passes := int64(g.Count), a.Passes(g.RunsAtMost)
	for _, b := range within {
		for k, need := range g.Need {
			if need > 0 {
				times = min(times, max(a.freeFor(b, k, passes), 0)/need)
			}
		}
	}
	return uint32(times)
}

// Passes tells whether what has ended after so many milliseconds at the latest may have what is kept for gangs that are
// awaited.
func (a *Admission) Passes(runsAtMost terms.Time) bool {
	return runsAtMost > 0 && a.due > 0 && a.now+runsAtMost <= a.due
}

// Guarantees tells whether anything could pass because it ends in time.
func (a *Admission) Guarantees() bool { return a.due > 0 }

// freeFor returns what is free in a bound for what passes those that are awaited, or does not.
func (a *Admission) freeFor(b bound, kind int, passes bool) int64 {
	if passes {
		return a.free[b][kind] + a.lent[b][kind]
	}
	return a.free[b][kind]
}

// Fits tells whether work of a class that needs so much can be admitted now, and may pass those that are awaited or
// not.
func (a *Admission) Fits(class terms.Class, need *terms.Amounts, passes bool) bool {
	for _, b := range bounds[class] {
		for k, amount := range need {
			if amount > 0 && amount > a.freeFor(b, k, passes) {
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
// class, what it needs is kept for it from now on, but for what comes free before it can begin in any case. Units
// returns what runs in the pool and ends by itself; it is asked only for the first gang that is awaited, and if that
// keeps something from others.
func (a *Admission) Await(g *Gang, units func() []Unit) {
	class := g.class()
	if a.awaited[class] || !a.ever.hold(g) {
		return
	}
	first := a.awaited == [terms.ClassCount]bool{}
	a.awaited[class], a.due = true, 0
	var coming room
	if first && a.keeps(g) {
		all := units()
		coming, a.due = a.coming(g, all), a.guaranteed(g, all)
	}
	outer, inner := bounds[class][0], ownBounds(class)[1:]
	for k, need := range g.Need {
		// What is still to come free in an inner bound comes free in the entitlement then: only the rest is kept there.
		for _, b := range inner {
			need = min(need, a.keep(b, k, g.Need[k]-coming[b][k]))
		}
		if outer == entitled {
			a.kept[k] += need
		}
		a.keep(outer, k, min(need, g.Need[k]-coming[outer][k]))
		a.keep(ancestorLimit, k, g.Need[k]-coming[ancestorLimit][k])
	}
}

// keep keeps so much in a bound, or what is free, and returns how much that is.
func (a *Admission) keep(b bound, kind int, most int64) int64 {
	kept := max(min(most, a.free[b][kind]), 0)
	a.free[b][kind] -= kept
	a.lent[b][kind] += kept
	return kept
}
