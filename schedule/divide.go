package schedule

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/preemptible"
	"starling/cluster/workload"
	"starling/schedule/entitle"
	"starling/schedule/place"
	"starling/schedule/preempt"
	"starling/schedule/share"
	"starling/terms"
	"starling/terms/rules"
)

// sharing is a pool with jobs that share its virtual peers.
type sharing struct {
	share.Pool
	// in is what the shares depend on.
	in *share.Input
	// divided tells that the shares are up to date, bounded that node groups may have bounded until now where instances
	// go.
	divided, bounded bool
}

// key is the fingerprint of all that the shares depend on, and in the last bit whether there are node groups.
func (x *sharing) key(s *cluster.State) uint64 {
	key := x.Fingerprint(s, x.in) &^ 1
	if x.NodeGroups != nil {
		key |= 1
	}
	return key
}

// divide divides the virtual peers that each pool is entitled to among its jobs that are run by such, before anything
// is placed: counts come first. What runs beyond them gives way, and what runs where others have to.
func (p *pass) divide() {
	p.eachSharing(func(x *sharing) {
		if !x.divided {
			if x.NodeGroups != nil {
				x.NodeGroups.Bound(x.in)
			}
			p.setShares(x.Jobs, share.Counts(x.in))
			p.s.SetShared(x.Number, x.key(p.s))
		}
		if x.NodeGroups == nil {
			p.unbind(x)
			p.level(x.Jobs)
		} else {
			p.grouped = append(p.grouped, x)
		}
	})
}

// divideAgain lets the next entry divide again if what was placed has changed what the shares depend on.
func (p *pass) divideAgain() {
	p.eachSharing(func(x *sharing) {
		if !x.divided {
			p.s.MarkPlacementDirty()
		}
	})
}

// eachSharing visits the pools with jobs that share.
func (p *pass) eachSharing(visit func(*sharing)) {
	sharers, m := p.s.Sharers(), p.memory
	if len(sharers) == 0 {
		m.groups = nil
		return
	}
	entitled := entitle.Entitlements(entitle.Of(p.s))
	byPool := make([][]terms.JobID, len(entitled))
	for len(m.groups) < len(entitled) {
		m.groups = append(m.groups, nil)
	}
	for _, id := range sharers {
		number := p.s.PoolOf(p.s.Job(id))
		byPool[number] = append(byPool[number], id)
	}
	for number, jobs := range byPool {
		last := m.groups[number]
		m.groups[number] = nil
		if peers := entitled[number].NonSlack[terms.VirtualPeers] / int64(terms.WholeDevice); len(jobs) > 0 {
			x := &sharing{Pool: share.Pool{Number: number, Jobs: jobs, Entitled: share.Peers(peers),
				NodeGroups: share.NewNodeGroups(p.s, jobs, p.fits, last)}}
			m.groups[number] = x.NodeGroups
			x.in = share.Of(p.s, &x.Pool)
			key, known := p.s.SharedBy(number)
			x.divided, x.bounded = known && key == x.key(p.s), !known || key&1 != 0
			visit(x)
		}
	}
}

func (p *pass) setShares(jobs []terms.JobID, plan share.Plan) {
	for i, id := range jobs {
		for at, task := range p.s.Job(id).Order() {
			p.s.SetShare(id, task, uint32(plan.Peers[i][at]))
		}
	}
}

// unbind lets all nodes be tried for what waits of a pool in which it does not matter any more where virtual peers are.
func (p *pass) unbind(x *sharing) {
	for _, id := range x.Jobs {
		for _, task := range p.s.Job(id).Order() {
			if key := facts.KeyOf(id, task); x.bounded && p.s.Job(id).Tasks[task].Asks() > 0 {
				p.s.SetBlocked(key, false)
				p.s.SetBlocked(key.Special(), false)
			}
		}
	}
}

// level tells those to give way that run beyond the shares of their tasks.
func (p *pass) level(jobs []terms.JobID) {
	if p.evict == nil {
		return
	}
	for _, id := range jobs {
		for _, task := range p.s.Job(id).Order() {
			t := p.s.Job(id).Tasks[task]
			if share, _ := t.Share(); beyond(t) {
				count, victims := p.runs(id, task, func(facts.NodeIndex) bool { return true })
				p.yield(victims, count-min(count, share), jobs)
			}
		}
	}
}

// beyond tells whether more of a task runs, and was not told to stop, than its share.
func beyond(t *workload.Task) bool {
	share, _ := t.Share()
	return t.Live()-t.Counts[facts.Stopping]-t.Secondary[facts.Stopping] > share
}

// fits returns what tells whether a node could run a task as far as the machine goes.
func (p *pass) fits(key facts.TaskKey) func(facts.NodeIndex) bool {
	return place.NewSearch(p.s, key, nil).Suits
}

// settle chooses on which machines the shares of a pool are used, with no more moves than they force: it tells those to
// give way that are where others must be, and bounds where the others may go.
func (p *pass) settle(x *sharing) {
	plan, unmet := share.Plan{Peers: make([][]share.Peers, len(x.Jobs))}, false
	if p.spots == nil {
		p.spots = place.Spots{}
	}
	for i, id := range x.Jobs {
		j := p.s.Job(id)
		for _, task := range j.Order() {
			t := j.Tasks[task]
			most, _ := t.Share()
			plan.Peers[i] = append(plan.Peers[i], share.Peers(most))
			unmet = unmet || t.Asks() > 0 || beyond(t)
			p.spots.Bound(facts.KeyOf(id, task), x.NodeGroups)
		}
	}
	if !unmet || p.s.Rules >= rules.SharesFollow && p.followed(x) {
		return
	}
	x.NodeGroups.Bound(x.in)
	come, leave := x.NodeGroups.Settle(x.in, &plan)
	for _, c := range come {
		id := x.Jobs[c.Place.Job]
		key := facts.KeyOf(id, p.s.Job(id).Order()[c.Place.Task])
		p.allow(key, c.Group, uint32(c.Peers))
	}
	for _, c := range leave {
		if id := x.Jobs[c.Place.Job]; p.evict != nil {
			on := func(n facts.NodeIndex) bool { return x.NodeGroups.Of(n) == c.Group }
			_, victims := p.runs(id, p.s.Job(id).Order()[c.Place.Task], on)
			p.yield(victims, uint32(c.Peers), x.Jobs)
			p.dropped = p.dropped || len(victims) > 0 // what comes may go elsewhere now
		}
	}
}

// followed lets what has ended be followed by the next of the same tasks, on the same nodes, if so all have their
// shares: nothing else has to be looked at. It tells whether it did.
func (p *pass) followed(x *sharing) bool {
	places := map[facts.TaskKey][]*place.Predecessor{}
	for i := range p.ended {
		key := facts.KeyOf(p.ended[i].Slot.Job, int(p.ended[i].Slot.Task))
		places[key] = append(places[key], &p.ended[i])
	}
	var asking []facts.TaskKey
	for _, id := range x.Jobs {
		for task, t := range p.s.Job(id).Tasks {
			key := facts.KeyOf(id, task)
			unfit := func(had *place.Predecessor) bool {
				return x.NodeGroups.Of(had.Node) < 0 || !place.NewSearch(p.s, key, nil).Follows(had)
			}
			if asks := int(t.Asks()); asks > len(places[key]) || beyond(t) {
				return false
			} else if asks > 0 {
				if places[key] = places[key][:asks]; slices.ContainsFunc(places[key], unfit) {
					return false
				}
				asking = append(asking, key)
			}
		}
	}
	for _, key := range asking {
		for _, had := range places[key] {
			p.allow(key, x.NodeGroups.Of(had.Node), 1)
		}
	}
	return true
}

// allow lets so many more of a task go to a group of nodes.
func (p *pass) allow(key facts.TaskKey, group int, count uint32) {
	p.spots.Allow(key, group, count)
	p.s.SetBlocked(key, false)
	p.s.SetBlocked(key.Special(), false)
}

// gainer returns the first job that is to have more than it has, or else the first.
func (p *pass) gainer(jobs []terms.JobID) terms.JobID {
	return jobs[max(slices.IndexFunc(jobs, p.gains), 0)]
}

// gains tells whether a task of a job is to have more than it has.
func (p *pass) gains(id terms.JobID) bool {
	return slices.ContainsFunc(p.s.Job(id).Tasks, func(t *workload.Task) bool {
		share, _ := t.Share()
		return t.Live() < share
	})
}

// runs returns how many instances of a task virtual peers run and were not told to stop, on some nodes, and those of
// them that could give way. What is of a version that such do not run is none of them.
func (p *pass) runs(id terms.JobID, task int, on func(facts.NodeIndex) bool) (count uint32,
	victims []preempt.Victim) {
	j := p.s.Job(id)
	p.s.EachSlot(id, task, func(r facts.SlotRef, slot facts.Slot) bool {
		if p.s.Visit(1); !slot.Phase.Holds() || slot.Phase == facts.Stopping || !j.SpecOf(slot.Version).Shares() ||
			!on(slot.Node) {
			return true
		}
		count++
		if stage, yields := preemptible.StageOf(slot.Phase); yields {
			one := terms.Amounts{terms.VirtualPeers: int64(terms.WholeDevice)}
			victims = append(victims, preempt.Victim{Slot: r, Need: one, Stage: stage, Since: slot.Since})
		}
		return true
	})
	return count, victims
}

// yield tells so many of the victims, all of one task, to give way to an instance of the jobs, in the order that
// preempt has.
func (p *pass) yield(victims []preempt.Victim, count uint32, jobs []terms.JobID) {
	over := terms.Amounts{terms.VirtualPeers: int64(count) * int64(terms.WholeDevice)}
	all := preempt.Shed(victims, terms.Amounts{}, over)
	slices.SortStableFunc(all, func(a, b int) int { return facts.BesideFirst(victims[a].Slot, victims[b].Slot) })
	for _, i := range all {
		r, to := victims[i].Slot, p.gainer(jobs)
		rule := preempt.ByShare
		switch {
		case !beyond(p.s.Job(r.Job).Tasks[r.Task]):
			rule = preempt.ByPlace
		case to == r.Job && p.gains(to):
			rule = preempt.ByTaskShare
		}
		p.evict(r, to, rule)
		p.s.MarkPlacementDirty()
	}
}
