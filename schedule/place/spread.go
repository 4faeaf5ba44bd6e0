package place

import (
	"starling/cluster"
	"starling/cluster/division"
	"starling/cluster/facts"
	"starling/terms"
)

// candidate is a node that the task fits, with its rank: the lowest class is first, in it the one on which the fewest
// devices become stranded, and of those the lowest score.
type candidate struct {
	node     facts.NodeIndex
	class    uint64
	stranded int64
	score    int64
}

func (c *candidate) before(other *candidate) bool {
	switch {
	case c.class != other.class:
		return c.class < other.class
	case c.stranded != other.stranded:
		return c.stranded < other.stranded
	case c.score != other.score:
		return c.score < other.score
	}
	return c.node < other.node
}

// group is a heap of the candidates with one value of the attribute that the task is spread over.
type group struct {
	// instances of the task run there.
	instances uint32
	nodes     []candidate
	// rest are the pages of nodes with its value, of which those from next on have not been looked at for the purpose
	// at an order.
	rest        []division.Page
	next, order int
}

// load looks at further nodes until some fit, if none of those it has does.
func (g *group) load(q *Search) {
	if len(g.nodes) > 0 {
		return
	}
	purposes := q.purposes()
	for ; len(g.nodes) == 0 && g.order < len(purposes); g.next++ {
		if g.next == len(g.rest) {
			g.next = -1
			g.order++
			continue
		}
		page := g.rest[g.next]
		q.s.EachRoomOf(page, purposes[g.order], &q.Spec.Resources, func(n facts.NodeIndex) {
			q.s.Visit(1)
			if q.simple || q.able(n) {
				c := candidate{node: n, class: uint64(g.order)<<32 + uint64(page.Page)}
				q.rank(&c)
				g.nodes = append(g.nodes, c)
			}
		})
	}
	heapify(g.nodes)
}

// before is the order in which groups are filled: fewest instances, then the best candidate.
func (g *group) before(other *group) bool {
	if g.instances != other.instances {
		return g.instances < other.instances
	}
	return g.nodes[0].before(&other.nodes[0])
}

// ranks tells whether candidates are ranked among all nodes, not page by page.
func (q *Search) ranks() bool {
	return q.Spec.Placement != terms.Pack || q.Spec.SpreadOver != ""
}

// ranked places up to want instances one by one on the node that comes first, and returns how many it placed.
func (q *Search) ranked(pages []int, want uint32) uint32 {
	groups := q.groups(pages)
	placed := uint32(0)
	for placed < want && len(groups) > 0 {
		g := &groups[0]
		first := &g.nodes[0]
		changes := q.minds || q.spot != nil
		if !changes || q.able(first.node) {
			placed += q.fill(first.node, 1)
			g.instances++
			if q.Spec.Placement == terms.Spread {
				first.class += instanceRank
			}
		}
		if changes && !q.able(first.node) || q.times(first.node, 1) == 0 {
			g.nodes[0] = g.nodes[len(g.nodes)-1]
			g.nodes = g.nodes[:len(g.nodes)-1]
		} else {
			q.rank(first)
		}
		sink(g.nodes, 0)
		if g.load(q); len(g.nodes) == 0 {
			groups[0] = groups[len(groups)-1]
			groups = groups[:len(groups)-1]
		}
		sink(groups, 0)
	}
	return placed
}

// first returns the node that comes first for one instance.
func (q *Search) first(pages []int) (n facts.NodeIndex, found bool) {
	groups := q.groups(pages)
	if len(groups) == 0 {
		return 0, false
	}
	return groups[0].nodes[0].node, true
}

// groups returns a heap of the heaps of all nodes of the pages that the task fits.
func (q *Search) groups(pages []int) []group {
	if q.Spec.SpreadOver == "" {
		if nodes := q.candidates(pages); len(nodes) > 0 {
			heapify(nodes)
			return []group{{nodes: nodes}}
		}
		return nil
	}
	if q.Spec.Placement == terms.Pack && len(pages) == q.s.RoomPages() {
		return q.values()
	}
	var groups []group
	numbers := map[string]int{}
	for _, c := range q.candidates(pages) {
		value, _ := q.s.Node(c.node).Offer.Attribute(q.Spec.SpreadOver)
		number, known := numbers[value]
		if !known {
			number = len(groups)
			numbers[value] = number
			groups = append(groups, group{instances: q.s.OwnInstancesWithin(q.key, q.Spec.SpreadOver, value)})
		}
		groups[number].nodes = append(groups[number].nodes, c)
	}
	for i := range groups {
		heapify(groups[i].nodes)
	}
	heapify(groups)
	return groups
}

// values returns a heap of groups, one for each value of the attribute that the task is spread over. When packing,
// pages come one after the other, so that only the first with room has to be looked at.
func (q *Search) values() []group {
	division := q.s.EnsureDivision(q.Spec.SpreadOver)
	groups := make([]group, 0, len(division.Values))
	for i, value := range division.Values {
		g := group{rest: division.Pages[i]}
		if g.load(q); len(g.nodes) > 0 {
			g.instances = q.s.OwnInstancesWithin(q.key, q.Spec.SpreadOver, value)
			groups = append(groups, g)
		}
	}
	heapify(groups)
	return groups
}

// candidates returns every node of the pages that the task fits.
func (q *Search) candidates(pages []int) []candidate {
	var nodes []facts.NodeIndex
	var ends []int
	for _, kept := range q.purposes() {
		for _, page := range pages {
			for fitting := q.fitting(page, kept); fitting != 0; fitting &= fitting - 1 {
				if n := nodeOf(page, fitting); q.simple || q.able(n) {
					nodes = append(nodes, n)
				}
			}
		}
		ends = append(ends, len(nodes))
	}
	q.s.Visit(len(nodes))
	heap := make([]candidate, len(nodes))
	order := uint64(0)
	if q.Spec.Placement == terms.Spread {
		q.countOwn(pages)
	}
	if q.Spec.Placement == terms.Defragment && q.Gaps == nil {
		q.Gaps = &Gaps{known: q.s.CopyShapes()}
	}
	for i, n := range nodes {
		for i == ends[order] {
			order++
		}
		heap[i].node = n
		if q.Spec.Placement == terms.Spread {
			heap[i].class = uint64(q.ownOn(n))*instanceRank + order
		} else {
			heap[i].class = order<<32 + uint64(n)/cluster.NodesPerPage
		}
		if q.Spec.Placement == terms.Defragment {
			heap[i].class = order
		}
		q.rank(&heap[i])
	}
	return heap
}

// instanceRank is what one instance more counts in the class of a spread's candidate, above what the node is kept for.
const instanceRank = 1 << 8

// rank gives a candidate its score.
func (q *Search) rank(c *candidate) {
	if q.Spec.Placement == terms.Spread {
		c.score = q.used(c.node)
		return
	}
	c.score = q.left(c.node)
	if q.Spec.Placement == terms.Defragment {
		stranded, useless := q.Gaps.growth(q.s.Node(c.node), q.Spec, q.s.Free(c.node))
		c.stranded = stranded
		c.score += useless * leftMax
	}
}

// leftMax is above what left returns.
const leftMax = 1 << 12

// countOwn makes ready to tell how many instances of the task each node of the pages runs. If the pages are few, as
// they are when a blocked task is tried again, each node is counted when it is asked for.
func (q *Search) countOwn(pages []int) {
	if q.own != nil {
		return
	}
	q.own = make([]uint32, q.s.Nodes())
	if len(pages) < q.s.RoomPages() {
		return
	}
	for n := range q.own {
		q.own[n] = 1
	}
	id, task := q.key.Split()
	q.s.EachSlot(id, task, func(_ facts.SlotRef, slot facts.Slot) bool {
		q.s.Visit(1)
		if slot.Phase.Holds() {
			q.own[slot.Node]++
		}
		return true
	})
}

// ownOn returns how many instances of the task a node runs.
func (q *Search) ownOn(n facts.NodeIndex) uint32 {
	if q.own[n] == 0 {
		id, task := q.key.Split()
		held := q.s.Node(n).Held
		q.s.Visit(len(held))
		q.own[n] = 1
		for _, r := range held {
			if r.Job == id && int(r.Task) == task {
				q.own[n]++
			}
		}
	}
	return q.own[n] - 1
}

// addOwn notes that a node runs more instances of the task.
func (q *Search) addOwn(n facts.NodeIndex, count uint32) {
	if q.own != nil && q.own[n] > 0 {
		q.own[n] += count
	}
}

// used returns how much of a node's processor and memory is taken, in 1024ths of each, together.
func (q *Search) used(n facts.NodeIndex) int64 {
	free, offer := q.s.Free(n), q.s.Node(n).Offer
	used := int64(0)
	for _, k := range [...]terms.Kind{terms.CPU, terms.Memory} {
		used += (offer.Capacity[k] - free[k]) / (offer.Capacity[k]>>10 + 1)
	}
	return used
}

// ordered is what a heap holds.
type ordered[T any] interface {
	*T
	before(*T) bool
}

func heapify[T any, P ordered[T]](heap []T) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink[T, P](heap, i)
	}
}

// sink restores the heap after element i changed for the worse.
func sink[T any, P ordered[T]](heap []T, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if P(&heap[child]).before(&heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}
