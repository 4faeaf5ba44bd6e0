package model

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/schedule/portion"
	"starling/terms"
	"starling/terms/constraint"
)

// ground is where the virtual peers of a pool are, as its jobs mind.
type ground struct {
	m    *Model
	jobs []*Job
	// groups tells the nodes of each group.
	groups [][]*Node
	// in is what the counts depend on, plan the counts.
	in   *portion.Input
	plan *portion.Plan
}

// spots is how many more instances of a task may go to each group of nodes.
type spots map[*task]*spot

type spot struct {
	g    *ground
	more map[int]int
}

// left returns how many more instances of a task may go to a node.
func (s spots) left(t *task, n *Node) int {
	if s[t] == nil {
		return terms.InstancesMax
	}
	return s[t].more[s[t].g.of(n)]
}

func (s spots) take(t *task, n *Node, count int) {
	if s[t] != nil {
		s[t].more[s[t].g.of(n)] -= count
	}
}

func (s spots) copy() spots {
	all := spots{}
	for t, one := range s {
		all[t] = &spot{one.g, map[int]int{}}
		for group, count := range one.more {
			all[t].more[group] = count
		}
	}
	return all
}

// of returns the group of a node, -1 for none.
func (g *ground) of(n *Node) int {
	return slices.IndexFunc(g.groups, func(nodes []*Node) bool { return slices.Contains(nodes, n) })
}

// ground finds out where the peers are and adds that to what the counts depend on; nil if it does not matter.
func (m *Model) ground(jobs []*Job, in *portion.Input, peers portion.Peers) *ground {
	g := &ground{m: m, jobs: jobs, in: in}
	asks, together := asksOf(jobs)
	if !together && len(asks) == 0 {
		return nil
	}
	in.Groups = nil
	all := portion.Peers(0)
	for _, n := range m.Nodes {
		count := g.peers(n)
		if count == 0 {
			continue
		}
		var tags []string
		for i, t := range asks {
			if m.suited(n, t) {
				tags = append(tags, fmt.Sprint(i))
			}
		}
		at := slices.IndexFunc(in.Groups, func(one portion.Group) bool { return !together && slices.Equal(one.Tags, tags) })
		if at < 0 {
			at = len(in.Groups)
			in.Groups, g.groups = append(in.Groups, portion.Group{Machine: at, Tags: tags}), append(g.groups, nil)
		}
		in.Groups[at].Peers += count
		g.groups[at] = append(g.groups[at], n)
		all += count
	}
	in.Spare = max(all-peers, 0)
	for i, j := range jobs {
		for at, t := range j.ordered() {
			if number := slices.IndexFunc(asks, func(other *terms.Task) bool { return picky(t.spec(0)) && alike(t.spec(0), other) }); number >= 0 {
				in.Jobs[i].Tasks[at].Tags = []string{fmt.Sprint(number)}
			}
		}
		in.Jobs[i].Copies = g.copies(j, &in.Jobs[i])
	}
	return g
}

// asksOf returns tasks that ask for anything, one of each kind, and whether a job runs all its tasks on one machine.
func asksOf(jobs []*Job) (asks []*terms.Task, together bool) {
	for _, j := range jobs {
		together = together || j.newest().TaskScheduler == terms.TaskColocated
		for i := range j.newest().Tasks {
			if t := &j.newest().Tasks[i]; picky(t) && !slices.ContainsFunc(asks, func(other *terms.Task) bool { return alike(t, other) }) {
				asks = append(asks, t)
			}
		}
	}
	return asks, together
}

// picky tells whether a task asks anything of a machine that no other work could change.
func picky(t *terms.Task) bool {
	return len(t.Devices) > 1 || slices.ContainsFunc(t.Constraints, func(c constraint.Constraint) bool { return !c.Soft && !c.Social() })
}

// alike tells whether two tasks ask for the same.
func alike(a, b *terms.Task) bool {
	return slices.EqualFunc(a.Constraints, b.Constraints, constraint.Same) && slices.EqualFunc(a.Devices, b.Devices, terms.DeviceRequest.Equal)
}

// suited tells whether a node could run a task if it ran nothing else.
func (m *Model) suited(n *Node, t *terms.Task) bool {
	r := &room{node: n}
	if r.exclusive() && !slices.ContainsFunc(t.Constraints, asksExclusive) {
		return false
	}
	for i := range t.Constraints {
		if c := &t.Constraints[i]; !c.Soft && !c.Social() && !holdsAt(nil, r, c) {
			return false
		}
	}
	return n.has(t, 1) > 0
}

// peers returns how many peers of a node count for the pool.
func (g *ground) peers(n *Node) portion.Peers {
	switch {
	case n.offer == nil:
		return 0
	case n.open():
		return max(portion.Peers(n.offers()[terms.VirtualPeers]/1000), g.held(n, false))
	}
	return g.held(n, false)
}

// held returns how many peers of a node run instances of the pool, with or without those that are told to stop.
func (g *ground) held(n *Node, stopping bool) (count portion.Peers) {
	for _, s := range g.m.on(n) {
		if s.shares() && slices.Contains(g.jobs, s.job()) && (stopping || s.Phase != cluster.Stopping) {
			count++
		}
	}
	return count
}

// copies bounds the copies of a colocated job by what the machines of the groups hold.
func (g *ground) copies(j *Job, job *portion.Job) (all []portion.Peers) {
	if job.Scheduler != portion.TaskColocated {
		return nil
	}
	for _, nodes := range g.groups {
		most := g.peers(nodes[0])
		for k := range nodes[0].offer.Capacity {
			need := int64(0)
			for at, t := range j.ordered() {
				if job.Tasks[at].State == portion.Open {
					need += t.spec(0).Resources[k]
				}
			}
			if need > 0 {
				most = min(most, portion.Peers(nodes[0].offer.Capacity[k]/need))
			}
		}
		all = append(all, most)
	}
	return all
}

// settleGrounds chooses anew where virtual peers are used.
func (p *placing) settleGrounds() {
	p.spots = spots{}
	for _, g := range p.grounds {
		p.dropped = g.settle(p.spots) || p.dropped
	}
	p.rooms = nil
}

// settle lets go who is where others have to be, and notes where more may go. It tells whether anybody has to leave.
func (g *ground) settle(where spots) (leaves bool) {
	unmet := false
	var tasks []*task
	for _, j := range g.jobs {
		for _, t := range j.ordered() {
			where[t] = &spot{g, map[int]int{}}
			tasks = append(tasks, t)
			live := 0
			t.each(func(s *seat) {
				if s.Phase.Holds() && s.Phase != cluster.Stopping {
					live++
				}
			})
			unmet = unmet || t.gets() > 0 || live > int(*t.share)
		}
	}
	return unmet && g.move(tasks, g.best(), where)
}

// best returns how many run on each group when the counts are met. If nobody has to go for it, those who come go where other
// work leaves them room, if that is possible; otherwise as far as it is.
func (g *ground) best() map[presence]portion.Peers {
	usable, all := *g.in, *g.in
	usable.Groups = nil
	var plain []int
	for i, one := range g.in.Groups {
		one.Peers = g.usable(g.groups[i])
		usable.Groups, plain = append(usable.Groups, one), append(plain, i)
	}
	order := slices.Concat(plain, plain)
	all.Groups = slices.Clone(usable.Groups)
	for i, one := range g.in.Groups {
		one.Peers -= usable.Groups[i].Peers
		all.Groups = append(all.Groups, one)
	}
	missing := portion.Peers(0)
	for i := range g.plan.Peers {
		for _, n := range g.plan.Peers[i] {
			missing += n
		}
	}
	after, better := g.after(&all, order), g.after(&usable, plain)
	for _, n := range better {
		missing -= n
	}
	if missing == 0 && !g.anyLeaves(after) && !g.anyLeaves(better) {
		return better
	}
	return after
}

// anyLeaves tells whether somebody runs where he is not to.
func (g *ground) anyLeaves(after map[presence]portion.Peers) bool {
	for at, n := range g.now() {
		if n > after[at] {
			return true
		}
	}
	return false
}

// presence is a task on a group of nodes.
type presence struct {
	t     *task
	group int
}

// now returns how many of each task run on each group.
func (g *ground) now() map[presence]portion.Peers {
	all := map[presence]portion.Peers{}
	for _, j := range g.jobs {
		for _, t := range j.ordered() {
			t.each(func(s *seat) {
				group := g.of(g.m.Nodes[s.Node])
				if s.shares() && s.Phase != cluster.Stopping && group >= 0 {
					all[presence{t, group}]++
				}
			})
		}
	}
	return all
}

// expected returns what runs on each group, and that for which others leave it, as far as the plan wants it and the group has peers.
func (g *ground) expected(in *portion.Input) map[presence]portion.Peers {
	all := g.now()
	sum := func(counts func(presence) bool) (n portion.Peers) {
		for at, peers := range all {
			if counts(at) {
				n += peers
			}
		}
		return n
	}
	for i, j := range g.jobs {
		c := g.m.claimsOf(j.ID)
		if c == nil || c.Patient {
			continue
		}
		for _, one := range c.Seats {
			group := g.of(g.m.Nodes[one.Node])
			at := slices.IndexFunc(j.ordered(), func(t *task) bool { return t.number == one.Task })
			if group < 0 || at < 0 {
				continue
			}
			t := j.ordered()[at]
			wanted := g.plan.Peers[i][at] - sum(func(other presence) bool { return other.t == t })
			left := in.Groups[group].Peers - sum(func(other presence) bool { return other.group == group })
			all[presence{t, group}] += max(min(portion.Peers(one.Count), wanted, left), 0)
		}
	}
	return all
}

// after returns how many run on each group when the plan is met, for groups that are listed in an order, some of them in two parts.
func (g *ground) after(in *portion.Input, order []int) map[presence]portion.Peers {
	var running []portion.Running
	now := g.expected(in)
	for i, j := range g.jobs {
		for at, t := range j.ordered() {
			for position, group := range order[:len(g.groups)] {
				if n := now[presence{t, group}]; n > 0 {
					running = append(running, portion.Running{Group: position, Place: portion.Place{Job: i, Task: at}, Peers: n})
				}
			}
		}
	}
	all := map[presence]portion.Peers{}
	for _, r := range portion.Settle(in, g.plan, running) {
		all[presence{g.jobs[r.Place.Job].ordered()[r.Place.Task], order[r.Group]}] += r.Peers
	}
	return all
}

// move lets those go who are too many on a group, and notes where more may come. It tells whether anybody goes.
func (g *ground) move(tasks []*task, after map[presence]portion.Peers, where spots) (goes bool) {
	now := g.now()
	for _, t := range tasks {
		for group := range g.groups {
			more := int(after[presence{t, group}] - now[presence{t, group}])
			if more > 0 {
				where[t].more[group] = more
			}
			if more < 0 {
				all, _ := t.yielding(func(s *seat) bool { return g.of(g.m.Nodes[s.Node]) == group })
				all = all[:min(len(all), -more)]
				goes = goes || len(all) > 0
				g.m.evict(all)
			}
		}
	}
	return goes
}

// usable returns how many peers of nodes work for the pool, or could as far as other work leaves them room.
func (g *ground) usable(nodes []*Node) (sum portion.Peers) {
	for _, n := range nodes {
		all := g.peers(n)
		if !n.open() {
			sum += all
			continue
		}
		free := n.offers()
		for _, s := range g.m.on(n) {
			for k, amount := range amountsOf(s.spec()) {
				free[k] -= amount
			}
		}
		for _, c := range g.m.claims {
			for _, one := range c.Seats {
				own := slices.ContainsFunc(g.jobs, func(j *Job) bool { return j.ID == c.job })
				for k, amount := range one.Need {
					if one.Node == n.number && !own {
						free[k] -= amount * int64(one.Count)
					}
				}
			}
		}
		more := all
		for k := range free {
			least := int64(terms.Unlimited)
			for _, j := range g.jobs {
				for _, t := range j.ordered() {
					least = min(least, amountsOf(t.spec(0))[k])
				}
			}
			if least > 0 {
				more = min(more, portion.Peers(max(free[k], 0)/least))
			}
		}
		sum += min(all, g.held(n, true)+more)
	}
	return sum
}
