package model

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/schedule/preempt"
	"starling/terms"
)

// feedDaemons preempts on the nodes where instances of daemons wait for room, and keeps the room for them. It tells whether it
// reached the end.
func (p *placing) feedDaemons() bool {
	jobs := slices.DeleteFunc(slices.Clone(p.m.Jobs), func(j *Job) bool { return j.newest().Type != terms.Daemon })
	slices.SortStableFunc(jobs, func(a, b *Job) int { return cmp.Compare(b.newest().Priority, a.newest().Priority) })
	for _, j := range jobs {
		for _, t := range j.tasks {
			for _, s := range t.waiting(true) {
				if s.Wish != cluster.OnlyNode || s.Version != 0 || !t.queued(true) {
					continue
				}
				if p.left() == 0 {
					return false
				}
				p.feedDaemon(t, p.m.Nodes[s.Node])
			}
		}
	}
	return true
}

// feedDaemon preempts on a node until an instance of a task has room there, unless something stops there already.
func (p *placing) feedDaemon(t *task, n *Node) {
	coming, here, kept := uint32(0), false, cluster.Claims{}
	if c := p.m.claimsOf(t.job.ID); c != nil {
		kept = c.Claims
	}
	for _, one := range kept.Seats {
		if one.Task == t.number {
			coming, here = coming+one.Count, here || one.Node == n.number
		}
	}
	leaves := slices.ContainsFunc(p.m.on(n), func(s *seat) bool { return s.Phase == cluster.Stopping })
	if !n.open() || leaves || here || coming >= t.asks() {
		return
	}
	if _, ok := p.m.roomWithout(n, func(*seat) bool { return false }).choosePorts(&terms.Job{}, t.spec(0)); !ok {
		return
	}
	h, c := head{job: t.job, t: t, most: 1}, p.m.look()
	in := p.daemonInput(h, c, n)
	plan := preempt.OnNode(in, func(plan *preempt.Plan) bool { return len(p.unfit(h, c, plan)) == 0 })
	if len(plan.Victims) == 0 {
		return
	}
	var all []*seat
	kept.Seats, kept.Leaving = slices.Clone(kept.Seats), slices.Clone(kept.Leaving)
	for _, v := range plan.Victims {
		kept.Leaving, all = append(kept.Leaving, in.Victims[v.Victim].Slot), append(all, c.seats[v.Victim])
	}
	p.claim(h, in, plan.Seats, kept)
	p.m.evict(all)
	p.spent++
}

// daemonInput says who could give way on a node: whatever is preemptible there, and the gangs that it belongs to.
func (p *placing) daemonInput(h head, c *candidates, n *Node) *preempt.Input {
	in, rooms := &preempt.Input{Victims: c.victims, Gangs: c.gangs}, p.m.rooms()
	for _, one := range c.nodes {
		if one.Index == n.number {
			in.Nodes = append(in.Nodes, one)
		}
	}
	in.Wants = []preempt.Want{{Need: amountsOf(h.t.spec(0)), Count: 1, Most: func(at cluster.NodeIndex) uint32 {
		return p.mostBy(rooms, h.t, rooms[at])
	}}}
	return in
}
