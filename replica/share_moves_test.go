package replica

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
)

// checkMoves checks that no more gave way than the shares force.
func (c *sharedPool) checkMoves() {
	if len(c.pools) > 1 || c.strained {
		return
	}
	colocated := false
	for _, id := range c.s.Sharers() {
		colocated = colocated || c.s.Job(id).Spec.TaskScheduler == terms.TaskColocated
	}
	stayed := map[terms.SlotName]terms.NodeName{}
	now := c.running()
	for name, node := range c.at {
		if now[name] == node || slices.Contains(c.yielded, name) {
			stayed[name] = node
		}
	}
	if colocated {
		c.checkNeedless(stayed)
		return
	}
	c.seen.compared++
	forced := len(stayed) - c.keep(stayed)
	c.seen.forced += forced
	if len(c.yielded) > forced {
		c.say("%d gave way, %v, the shares force %d", len(c.yielded), c.yielded, forced)
	}
}

// keep returns how many of those who run can stay at most when all shares are met: a flow from tasks to nodes of the
// greatest worth, where who stays is worth one. Each path adds one instance.
func (c *sharedPool) keep(at map[terms.SlotName]terms.NodeName) (kept int) {
	var f flow
	nodes := c.s.Nodes()
	for n := range facts.NodeIndex(nodes) {
		node := c.s.Node(n)
		count := 0
		if node.Offer != nil && c.s.Eligible(n) {
			count = int(node.Offer.Devices[0].Count)
		}
		f.edge(2+int(n), 1, max(count, len(node.Held), here(at, node.Name)), 0)
	}
	next := 2 + nodes
	for _, id := range c.s.Sharers() {
		j := c.s.Job(id)
		for task, t := range j.Tasks {
			share, _ := t.Share()
			f.edge(0, next, int(share), 0)
			for n := range facts.NodeIndex(nodes) {
				node, stays := c.s.Node(n), 0
				if node.Offer == nil || !suits(node, j.TaskSpecOf(task, j.Version)) {
					continue
				}
				for name, where := range at {
					if where == node.Name && name.Job == j.Name() && name.Task == t.Name {
						stays++
					}
				}
				f.edge(next, 2+int(n), stays, 1)
				f.edge(next, 2+int(n), int(share), 0)
			}
			next++
		}
	}
	return f.worth(next)
}

func here(at map[terms.SlotName]terms.NodeName, node terms.NodeName) (count int) {
	for _, where := range at {
		if where == node {
			count++
		}
	}
	return count
}

// flow is a network from 0 to 1. Edge i+1 goes back along edge i, for even i.
type flow struct{ edges []edge }

type edge struct{ from, to, room, worth int }

func (f *flow) edge(from, to, room, worth int) {
	f.edges = append(f.edges, edge{from, to, room, worth}, edge{to, from, 0, -worth})
}

// worth returns the greatest worth of a greatest flow.
func (f *flow) worth(vertices int) (worth int) {
	const none = -1 << 30
	for {
		best, by := make([]int, vertices), make([]int, vertices)
		for v := range best {
			best[v] = none
		}
		best[0] = 0
		for range vertices {
			for i, e := range f.edges {
				if e.room > 0 && best[e.from] != none && best[e.from]+e.worth > best[e.to] {
					best[e.to], by[e.to] = best[e.from]+e.worth, i
				}
			}
		}
		if best[1] == none {
			return worth
		}
		worth += best[1]
		for v := 1; v != 0; v = f.edges[by[v]].from {
			f.edges[by[v]].room--
			f.edges[by[v]^1].room++
		}
	}
}

// checkNeedless checks that nobody gave way if no share fell and all that comes has room beside what runs.
func (c *sharedPool) checkNeedless(at map[terms.SlotName]terms.NodeName) {
	now := c.sharesNow()
	for key, share := range c.shares {
		if later, there := now[key]; there && later < share {
			return
		}
	}
	b := &beside{c: c, at: at, room: map[terms.NodeName]int{}}
	for n := range facts.NodeIndex(c.s.Nodes()) {
		if node := c.s.Node(n); c.s.Eligible(n) {
			b.nodes = append(b.nodes, node.Name)
			b.room[node.Name] = int(node.Offer.Devices[0].Count) - here(at, node.Name)
		}
	}
	fits := true
	for _, copies := range []bool{true, false} {
		for _, id := range c.s.Sharers() {
			if j := c.s.Job(id); copies == (j.Spec.TaskScheduler == terms.TaskColocated) {
				fits = fits && b.add(j, copies)
			}
		}
	}
	if !fits {
		return
	}
	if c.seen.beside++; len(c.yielded) > 0 {
		c.say("%v gave way, although no share fell and there was room", c.yielded)
	}
}

// beside is what has room beside those who run, each taking the first room that there is.
type beside struct {
	c     *sharedPool
	at    map[terms.SlotName]terms.NodeName
	nodes []terms.NodeName
	room  map[terms.NodeName]int
}

// add takes room for what lacks of a job's shares; it returns false if there is too little.
func (b *beside) add(j *workload.Job, copies bool) bool {
	lacks, on := make([]int, len(j.Tasks)), map[terms.NodeName][]int{}
	for task, t := range j.Tasks {
		share, _ := t.Share()
		lacks[task] = int(share)
		for name, node := range b.at {
			if name.Job == j.Name() && name.Task == t.Name {
				if on[node] == nil {
					on[node] = make([]int, len(j.Tasks))
				}
				on[node][task]++
				lacks[task]--
			}
		}
	}
	if slices.Min(lacks) < 0 {
		return false
	}
	if copies {
		return b.addCopies(j, lacks, on)
	}
	for task := range lacks {
		for _, name := range b.nodes {
			if suits(b.c.s.NodeOf(name), j.TaskSpecOf(task, j.Version)) {
				come := min(lacks[task], b.room[name])
				b.room[name] -= come
				lacks[task] -= come
			}
		}
	}
	return slices.Max(lacks) == 0
}

// addCopies makes the copies whole of which a part runs, and adds others.
func (b *beside) addCopies(j *workload.Job, lacks []int, on map[terms.NodeName][]int) bool {
	var open []int
	for task, t := range j.Tasks {
		if share, _ := t.Share(); share > 0 {
			open = append(open, task)
		}
	}
	for name, counts := range on {
		for _, task := range open {
			b.room[name] -= slices.Max(counts) - counts[task]
			lacks[task] -= slices.Max(counts) - counts[task]
		}
		if b.room[name] < 0 {
			return false
		}
	}
	for _, name := range b.nodes {
		suited := !slices.ContainsFunc(open,
			func(task int) bool { return !suits(b.c.s.NodeOf(name), j.TaskSpecOf(task, j.Version)) })
		for suited && slices.Max(lacks) > 0 && b.room[name] >= len(open) {
			b.room[name] -= len(open)
			for _, task := range open {
				lacks[task]--
			}
		}
	}
	return slices.Max(lacks) == 0 && slices.Min(lacks) >= 0
}
