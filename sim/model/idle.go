package model

import (
	"cmp"
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/schedule/admission"
	"starling/schedule/entitle"
	"starling/sim/model/amounts"
	"starling/sim/model/reading"
	"starling/terms"
)

// Idle tells of something that waits although its pool admits it and a node has room for it, or would have if somebody
// gave way who has to; "" if there is none. It looks at daemons, and in each pool at the jobs that wait, in their
// order, up to the first that the pool does not admit. Gangs that are not whole and jobs that share virtual peers have
// promises of their own.
func (m *Model) Idle() string {
	rooms, entitled := m.rooms(), entitle.Entitlements(entitle.Of(m.fold))
	ancestorLimits := admission.AncestorLimitsOf(m.fold, entitled, nil)
	for _, revocable := range []bool{false, true} {
		for number := range m.pools {
			pool := admission.PoolOf(m.fold, number, &entitled[number], ancestorLimits.Of(number, revocable))
			gate := admission.New(&pool)
			for i, j := range m.waiting(number, revocable) {
				fast := m.fold.Job(j.ID)
				if fast.GangState() != gang.Whole {
					break
				}
				if fast.Spec.Shares() {
					continue
				}
				admits := func(need terms.Amounts) bool { return reading.Admitted(&gate, admission.GangOf(fast, need, 1)) }
				found, refused := m.idle(rooms, j, admits)
				if found == "" && i == 0 && !revocable && len(m.nominations) == 0 &&
					m.limits.Preemptions >= terms.DefaultLimits().Preemptions {
					found = m.starving(j, entitled, admits)
				}
				if found != "" {
					return found
				}
				if refused {
					break
				}
			}
		}
	}
	for _, j := range m.waiting(-1, false) {
		if found, _ := m.idle(rooms, j, func(terms.Amounts) bool { return true }); found != "" {
			return found
		}
	}
	return ""
}

// waiting returns the jobs of a pool that wait, in the order of their turns; those of no pool are daemons.
func (m *Model) waiting(number int, revocable bool) (all []*Job) {
	for _, j := range m.Jobs {
		spec := j.newest()
		own := m.poolNumber(spec.Name.Pool()) == number && spec.Revocable == revocable
		if spec.Type == terms.Daemon {
			own = number < 0
		}
		if own && slices.ContainsFunc(j.tasks, func(t *task) bool { return t.queued(false) || t.queued(true) }) {
			all = append(all, j)
		}
	}
	rank := func(j *Job) int {
		if m.fold.Job(j.ID).GangState() == gang.Broken {
			return -1
		}
		return terms.PriorityMax - int(j.newest().Priority)
	}
	slices.SortStableFunc(all, func(a, b *Job) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// idle names a task of a job of which something waits, is admitted, and has room; refused tells that some is not.
func (m *Model) idle(rooms []*room, j *Job, admits func(terms.Amounts) bool) (found string, refused bool) {
	j.each(func(s *seat) {
		spec := s.spec()
		if !s.waits() || found != "" || spec == nil || s.slot.task.asks() == 0 {
			return
		}
		if !admits(amounts.Of(spec)) {
			refused = true
			return
		}
		may := func(r *room) bool { return s.Preference != facts.OnlyNode || r.node.number == s.Node }
		if m.firstRoom(rooms, s.search(), may) != nil {
			found = fmt.Sprintf("%v waits although there is room", s.ref())
		}
	})
	return found, refused
}

// starving tells of an instance of a job that is admitted and waits, although a less important one of its pool, or one
// of a pool that holds more than it is entitled to, has the room that it needs.
func (m *Model) starving(j *Job, entitled []entitle.Entitlement, admits func(terms.Amounts) bool) (found string) {
	waits := m.firstOfTasks(j, admits)
	if len(waits) == 0 {
		return ""
	}
	for _, other := range m.Jobs {
		other.each(func(v *seat) {
			if !m.yields(v, j, entitled) {
				return
			}
			rooms := m.roomsWithout(func(one *seat) bool { return one == v })
			for _, s := range waits {
				if m.firstRoom(rooms, s.search(), func(r *room) bool { return r.node.number == v.Node }) != nil {
					found = fmt.Sprintf("%v waits, and %v could give way to it", s.ref(), v.ref())
				}
			}
		})
	}
	return found
}

// firstOfTasks returns the first plain instance that waits of each task of a job whose instances are admitted.
func (m *Model) firstOfTasks(j *Job, admits func(terms.Amounts) bool) (all []*seat) {
	j.each(func(s *seat) {
		spec, same := s.spec(), func(other *seat) bool { return other.slot.task == s.slot.task }
		if s.waits() && !s.special() && spec != nil && s.slot.task.asks() > 0 && reading.Plain(spec) &&
			!slices.ContainsFunc(all, same) && admits(amounts.Of(spec)) {
			all = append(all, s)
		}
	})
	return all
}

// yields tells whether an instance has to give way to a job: it is less important in the same pool, or its pool holds
// more than it is entitled to, by as much as the instance has of each resource. Gangs and revocable jobs have promises
// of their own.
func (m *Model) yields(v *seat, j *Job, entitled []entitle.Entitlement) bool {
	spec, own := v.job().newest(), j.newest()
	if v.Phase != facts.Running || spec.Type == terms.Daemon || spec.NonPreemptible() || spec.Revocable ||
		spec.HasGang() {
		return false
	}
	if spec.Name.Pool() == own.Name.Pool() {
		return spec.Priority < own.Priority
	}
	number := m.poolNumber(spec.Name.Pool())
	if number < 0 {
		return false
	}
	held := m.account(spec.Name.Pool()).Held.NonSlack
	for k, amount := range amounts.Of(v.spec()) {
		if amount > 0 && held[k]-entitled[number].NonSlack[k] < amount {
			return false
		}
	}
	return true
}
