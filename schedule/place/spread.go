package place

import "starling/cluster"

// candidate is a node that the task fits, in the heap of a spread.
type candidate struct {
	node cluster.NodeIndex
	// instances of the task that it runs, and 1024ths of its processor and memory in use.
	instances uint32
	// spared tells that it has devices that the task does not need.
	spared bool
	used   int64
}

// before is the order in which a spread fills: fewest instances of the task, then nodes whose devices nobody could miss,
// then least used, then lowest number.
func (c *candidate) before(other *candidate) bool {
	switch {
	case c.instances != other.instances:
		return c.instances < other.instances
	case c.spared != other.spared:
		return other.spared
	case c.used != other.used:
		return c.used < other.used
	}
	return c.node < other.node
}

// candidates returns every node of the pages that the task fits.
func (q *search) candidates(pages []int) []cluster.NodeIndex {
	var nodes []cluster.NodeIndex
	for _, page := range pages {
		for _, half := range q.halves() {
			q.s.EachRoom(page, half, &q.spec.Resources, func(n cluster.NodeIndex, _ *cluster.Resources) bool {
				if q.simple || q.able(n) {
					nodes = append(nodes, n)
				}
				return true
			})
		}
	}
	return nodes
}

// first returns the node that comes first for one instance.
func (q *search) first(nodes []cluster.NodeIndex) (n cluster.NodeIndex, found bool) {
	heap := q.heap(nodes)
	if len(heap) == 0 {
		return 0, false
	}
	return heap[0].node, true
}

func (q *search) heap(nodes []cluster.NodeIndex) []candidate {
	counts := q.counts()
	heap := make([]candidate, len(nodes))
	for i, n := range nodes {
		heap[i] = candidate{node: n, instances: counts[n], spared: q.spares(n), used: q.used(n)}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	return heap
}

// spread places want instances one by one on the node that comes first, and returns how many it placed.
func (q *search) spread(nodes []cluster.NodeIndex, want uint32) uint32 {
	heap := q.heap(nodes)
	placed := uint32(0)
	for placed < want && len(heap) > 0 {
		first := &heap[0]
		placed += q.fill(first.node, 1)
		if q.times(first.node, 1) == 0 {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		} else {
			first.instances++
			first.used = q.used(first.node)
		}
		sink(heap, 0)
	}
	return placed
}

// counts returns how many instances of the task each node runs.
func (q *search) counts() []uint32 {
	counts := make([]uint32, q.s.Nodes())
	id, task := q.key.Split()
	q.s.EachSlot(id, task, func(_ cluster.SlotRef, slot cluster.Slot) bool {
		if slot.Phase.Holds() {
			counts[slot.Node]++
		}
		return true
	})
	return counts
}

// spares tells whether the node has devices that the task does not need.
func (q *search) spares(n cluster.NodeIndex) bool {
	return len(q.spec.Devices) == 0 && len(q.s.Node(n).Offer.Devices) > 0
}

// used returns how much of a node's processor and memory is taken, in 1024ths of each, together.
func (q *search) used(n cluster.NodeIndex) int64 {
	free, offer := q.s.Free(n), q.s.Node(n).Offer
	used := int64(0)
	for _, k := range [...]cluster.Kind{cluster.CPU, cluster.Memory} {
		used += (offer.Capacity[k] - free[k]) / (offer.Capacity[k]>>10 + 1)
	}
	return used
}

// sink restores the heap after element i changed for the worse.
func sink(heap []candidate, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if heap[child].before(&heap[least]) {
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
