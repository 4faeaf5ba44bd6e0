package schedule

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/schedule/place"
	"starling/schedule/preempt"
	"starling/terms/rules"
)

// short is a queue entry of a daemon of which instances found no room on nodes of some pages.
type short struct {
	key   facts.TaskKey
	pages []int
}

// lacksRoom notes that nodes of some pages had no room for instances of a daemon.
func (p *pass) lacksRoom(key facts.TaskKey, pages []int) {
	at := slices.IndexFunc(p.shorts, func(other short) bool { return other.key == key })
	if at < 0 {
		at, p.shorts = len(p.shorts), append(p.shorts, short{key: key})
	}
	p.shorts[at].pages = united(p.shorts[at].pages, pages)
}

// preemptForDaemons preempts on the nodes where instances of daemons wait for room: a daemon belongs to its node, and
// what is preemptible can run elsewhere. It returns false if there is more to do.
func (p *pass) preemptForDaemons() (finished bool) {
	slices.SortStableFunc(p.shorts, func(a, b short) int {
		return cmp.Or(cmp.Compare(p.s.Job(jobOf(b.key)).Spec.Priority, p.s.Job(jobOf(a.key)).Spec.Priority),
			cmp.Compare(a.key, b.key))
	})
	for _, one := range p.shorts {
		id, task := one.key.Split()
		var waiting []facts.NodeIndex
		taskOf(p.s, one.key).EachSpecial(id, task, func(_ facts.SlotRef, slot facts.Slot) bool {
			_, tried := slices.BinarySearch(one.pages, int(slot.Node)/cluster.NodesPerPage)
			if tried && slot.Preference == facts.OnlyNode && slot.Version == 0 {
				waiting = append(waiting, slot.Node)
			}
			return true
		})
		for _, n := range waiting {
			if p.left == 0 {
				return false
			}
			if p.preemptForDaemon(one.key, n) {
				p.left--
			}
		}
	}
	return true
}

// preemptForDaemon preempts on a node until an instance of a daemon has room there, and keeps the room; it returns
// false if nothing could give way for that, or something stops there already: when that has ended, the daemon has its
// turn first.
func (p *pass) preemptForDaemon(key facts.TaskKey, n facts.NodeIndex) bool {
	id, task := key.Split()
	nomination, _ := p.s.NominationOf(id)
	coming, here := uint32(0), false
	for _, seat := range nomination.Seats {
		if seat.Task == task {
			coming, here = coming+seat.Count, here || seat.Node == n
		}
	}
	if !p.s.Eligible(n) || slices.ContainsFunc(p.s.Node(n).Held, p.leaves) || here || coming >= taskOf(p.s, key).Asks() {
		return false
	}
	if !place.NewSearch(p.s, key, nil).HasPorts(n) {
		return false // what is kept for it are amounts: a port that comes free is any job's
	}
	h, in := &head{job: id, key: key, most: 1}, p.daemonInput(n)
	p.addWants(in, h)
	p.s.Visit(len(in.Victims))
	fits := func(plan *preempt.Plan) bool {
		p.s.Visit(len(in.Victims))
		return len(p.unfit(h, in, plan)) == 0
	}
	if !p.minds(h) {
		fits = nil
	}
	plan, amounts := preempt.OnNode(in, fits), preempt.OnNode(in, nil)
	if len(plan.Victims) == 0 || fits != nil && p.s.Rules >= rules.Volumes && !fits(&amounts) {
		return false // what is kept are amounts: what leaves for a share of one device, or for a rule, would be back at once
	}
	nomination.Seats = slices.Concat(nomination.Seats, p.seats(h, in, plan.Seats))
	nomination.Leaving = slices.Clone(nomination.Leaving)
	for _, chosen := range plan.Victims {
		nomination.Leaving = append(nomination.Leaving, in.Victims[chosen.Victim].Slot)
	}
	p.s.SetNomination(id, nomination)
	p.evictAll(in.Victims, plan.Victims, id)
	return true
}

// daemonInput says what could give way on a node to a daemon: whatever is preemptible there, of any pool. Members of a
// gang that run elsewhere go with it.
func (p *pass) daemonInput(n facts.NodeIndex) *preempt.Input {
	c := &candidates{s: p.s}
	for _, r := range p.s.Node(n).Held {
		j := p.s.Job(r.Job)
		slot, _ := p.s.SlotAt(r)
		switch v, yields := victimOf(p.s, j, r, &slot); {
		case !yields || j.Spec.NonPreemptible():
		case j.HasGang():
			c.readGang(j)
		default:
			c.add(j, v)
		}
	}
	return &preempt.Input{Nodes: []preempt.Node{{Index: n, Free: p.s.FreeAmounts(n)}}, Victims: c.victims, Gangs: c.gangs}
}
