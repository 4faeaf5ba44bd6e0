package schedule

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/workload"
	"starling/schedule/admission"
	"starling/schedule/place"
	"starling/terms"
)

// heldBackMax bounds, for each pool and entry, how many of those that wait are asked whether nodes could ever have
// them.
const heldBackMax = 8

// queuePass goes through the queue of one pool.
type queuePass struct {
	*pass
	number    int
	revocable bool
	// admission is of no use to daemons, which are not admitted.
	admission admission.Admission
	// looks is how many may still be asked whether nodes could ever have them.
	looks int
	// gang is the job whose gang was tried last.
	gang terms.JobID
	// underWay tells that others gave way to the job whose turn it is.
	underWay bool
	// nominated are the jobs to which others give way, holding those of them that have had a turn: from then on the
	// pool keeps for them what the others free.
	nominated, holding []terms.JobID
	// nomination is what is kept for the job that has its turn.
	nomination facts.Nomination
}

// daemons tells whether the queue is that of daemons.
func (p *queuePass) daemons() bool { return p.number < 0 }

func (p *queuePass) take() {
	for at := p.s.QueueStart(p.number); p.left > 0; {
		next, ok := p.s.NextInQueue(at, p.wanted)
		if !ok {
			return
		}
		if at = next; p.serve(next) {
			// The tasks of the job are served as single instances, from the first on.
			id, _ := next.Key.Split()
			at.Key = facts.KeyOf(id, 0) - 1
		}
	}
}

// wanted tells whether something may come of an entry of the queue: it may be admitted, or room may be kept for it.
func (p *queuePass) wanted(t workload.QueueEntry) bool {
	p.s.Visit(1)
	switch {
	case p.daemons():
		// What is kept for a daemon is given up with its turn when nothing leaves for it any more, wherever the last
		// one was.
		return !t.Blocked || len(p.grown) > 0 || p.isNominated(jobOf(t.Key))
	case (t.Class == terms.Revocable) != p.revocable:
		return false
	case len(p.nominated) > 0 && slices.Contains(p.nominated, jobOf(t.Key)):
		return true
	case p.admission.Fits(t.Class, &t.Need,
		p.admission.Guarantees() && p.admission.Passes(p.s.Job(jobOf(t.Key)).Spec.RunsAtMost())):
	case p.looks > 0 && !p.admission.Awaits(t.Class):
		return true
	default:
		p.refused(t.Key, t.Blocked)
		return false
	}
	return !t.Blocked || len(p.grown) > 0 || len(p.heads[p.number]) < int(p.s.Limits.Preemptions)
}

// isNominated tells whether room is kept for a job.
func (p *pass) isNominated(id terms.JobID) bool {
	_, ok := p.s.NominationOf(id)
	return ok
}

// refused notes that an entry of the queue is not admitted. If nodes have grown, it is to try all when it is.
func (p *queuePass) refused(key facts.TaskKey, blocked bool) {
	if blocked && len(p.grown) > 0 {
		p.outgrown = append(p.outgrown, key)
	}
}

// serve places what it can of one entry of the queue, or the gang of its job; then it returns true.
func (p *queuePass) serve(entry workload.QueueEntry) (gangPlaced bool) {
	id, task := entry.Key.Split()
	j := p.s.Job(id)
	nomination, lifted := p.lift(id)
	if p.nomination = nomination; lifted {
		p.release(j, nomination)
		before := p.runsOn(id, nomination.Seats)
		defer func() {
			p.restore(id, nomination, before)
			p.hold(id)
		}()
	}
	p.underWay = lifted && !nomination.Backfill
	switch j.GangState() {
	case gang.Absent, gang.Growing:
		if p.gang == id {
			return false
		}
		p.gang = id
		return p.placeGang(j)
	case gang.Broken:
		p.singles(j, entry.Key, min(j.Tasks[task].Asks(), lacks(j, entry.Key)))
	default:
		p.singles(j, entry.Key, j.Tasks[task].Asks())
	}
	return false
}

// singles places up to most instances of one queue entry of a task, each by itself.
func (p *queuePass) singles(j *workload.Job, key facts.TaskKey, most uint32) {
	if !p.s.Queued(key) {
		return
	}
	blocked := p.s.Blocked(key)
	if most == 0 {
		p.refused(key, blocked)
		return
	}
	if key.IsSpecial() {
		p.special(j, key, most)
		return
	}
	q := p.memory.search.Again(p.s, key, p.visit).Within(p.spots)
	q.Gaps = p.gaps
	most = min(most, taskOf(p.s, key).Waits())
	gang := admission.GangOf(j, q.Spec.Amounts(), most)
	room, placed := p.room(gang), uint32(0)
	if room > 0 && (!blocked || len(p.grown) > 0) {
		placed = q.Nominated(&p.nomination, min(room, p.left, most))
		placed += q.Among(p.pages(blocked), min(room, p.left)-placed)
		p.took(gang, placed)
	}
	switch {
	case p.left == 0 || placed == most:
	case placed == room:
		p.refused(key, blocked)
		p.starve(p.refusedHead(head{job: j.ID, key: key, most: most - placed}, gang), gang)
		p.await(gang, func() bool { return q.Possible(1) })
	default:
		if !blocked {
			p.s.SetBlocked(key, true)
		}
		p.starve(head{job: j.ID, key: key, most: room - placed, entitled: true}, gang)
	}
}

// pages returns the nodes on which an entry of the queue is tried: one for which all were tried before only those that
// have grown.
func (p *queuePass) pages(blocked bool) []int {
	if blocked {
		return p.grown
	}
	return p.all
}

// special places up to most seats that wait for a particular node or version.
func (p *queuePass) special(j *workload.Job, key facts.TaskKey, most uint32) {
	blocked := p.s.Blocked(key)
	q, refused := place.NewSearch(p.s, key, p.visit).Within(p.spots).SpecialSeats(j.GangState() == gang.Broken), false
	q.Gaps = p.gaps
	q.Admit = func(spec *terms.Task, later bool) bool {
		gang := admission.GangOf(j, spec.Amounts(), 1)
		if p.room(gang) == 0 {
			if refused {
				return false
			}
			refused = true
			p.await(gang, func() bool { return place.SearchFor(p.s, key, spec, nil).Possible(1) })
			return false
		}
		if !later {
			p.took(gang, 1)
		}
		return true
	}
	if blocked && len(p.grown) == 0 {
		return
	}
	most = min(most, p.left)
	placed, finished := q.Special(p.pages(blocked), most)
	if p.number < 0 && p.evict != nil && taskOf(p.s, key).SpecialWaits() > 0 {
		p.lacksRoom(key, p.pages(blocked))
	}
	if refused {
		p.refused(key, blocked)
	}
	switch waits := taskOf(p.s, key).SpecialWaits() > 0; {
	case !finished:
		p.s.SetBlocked(key, true)        // its soft timeout begins
		p.s.SetBlocked(key, placed == 0) // the next round may admit more with what was placed
		p.later = append(p.later, key)
	case waits && placed < most && !blocked && !refused:
		p.s.SetBlocked(key, true)
	}
}

// room returns how many of the equal gangs are admitted now.
func (p *queuePass) room(g *admission.Gang) uint32 {
	if p.daemons() {
		return g.Count
	}
	return p.admission.Room(g)
}

// took notes that so many of the equal gangs were placed.
func (p *queuePass) took(g *admission.Gang, count uint32) {
	p.left -= count
	if !p.daemons() {
		p.admission.Take(g, count)
	}
}

// await keeps room for a gang that has to wait, if it is the first of its class and nodes could ever have it.
func (p *queuePass) await(g *admission.Gang, possible func() bool) {
	if p.daemons() || p.looks == 0 {
		return
	}
	class := terms.ClassOf(g.Revocable, g.NonPreemptible, g.Controller)
	if p.admission.Awaits(class) {
		return
	}
	if p.looks--; possible() {
		p.admission.Await(g, func() []admission.Unit { return admission.UnitsOf(p.s, p.number) })
	}
}

func jobOf(key facts.TaskKey) terms.JobID {
	id, _ := key.Split()
	return id
}

func taskOf(s *cluster.State, key facts.TaskKey) *workload.Task {
	id, task := key.Split()
	return s.Job(id).Tasks[task]
}
