// Package place answers "where does it go?": it gives nodes to the slots that wait, oldest job first.
//
// A task that was tried on all nodes is blocked, and is tried again only on pages of nodes that got more room since:
// nobody else can help it, so the result is that of trying all. Equal instances are placed together, so that the cost
// is that of the nodes they need and not of the nodes there are.
package place

import "starling/cluster"

// PlacementsMax bounds the placements of one entry; the rest goes on with the next.
const PlacementsMax = 1 << 16

// Visit is called for every slot that was given a node; it may be nil.
type Visit func(cluster.SlotRef)

// Waiting places what waits and fits. It returns false if it stopped at PlacementsMax, so that there may be more.
func Waiting(s *cluster.State, visit Visit) (finished bool) {
	left := uint32(PlacementsMax)
	grown := s.TakeGrown()
	all := make([]int, s.RoomPages())
	for page := range all {
		all[page] = page
	}
	finished = true
	for _, key := range s.Queued(len(grown) > 0) {
		pages := all
		if s.Blocked(key) {
			pages = grown
		}
		waits, more := false, false
		if key.IsSpecial() {
			placed, all := (&search{s: s, key: key, visit: visit}).special(pages, left)
			left -= placed
			waits, more = taskOf(s, key).SpecialWaits() > 0, !all
		} else {
			left -= newSearch(s, key, visit).among(pages, left)
			waits = taskOf(s, key).Waits() > 0
		}
		switch {
		case more:
			s.SetBlocked(key, false)
			finished = false
		case left == 0:
			s.SetBlocked(key, false)
			unblockRest(s)
			return false
		case waits && !s.Blocked(key):
			s.SetBlocked(key, true)
		}
	}
	return finished
}

func taskOf(s *cluster.State, key cluster.TaskKey) *cluster.Task {
	id, task := key.Split()
	return s.Job(id).Tasks[task]
}

// unblockRest lets every task try all nodes with the next entry: which nodes grew is forgotten with this one.
func unblockRest(s *cluster.State) {
	for _, key := range s.Queued(true) {
		if s.Blocked(key) {
			s.SetBlocked(key, false)
		}
	}
}

// search is the placing of one task.
type search struct {
	s     *cluster.State
	key   cluster.TaskKey
	spec  *cluster.TaskSpec
	visit Visit
	// verdicts remembers per class of nodes whether the constraints hold: 0 not asked, 1 yes, 2 no.
	verdicts []uint8
	// simple tells that only resources decide.
	simple bool
	// avoids tells that the node avoided is not to be taken.
	avoided cluster.NodeIndex
	avoids  bool
}

func newSearch(s *cluster.State, key cluster.TaskKey, visit Visit) *search {
	id, task := key.Split()
	j := s.Job(id)
	q := &search{s: s, key: key, spec: j.TaskSpecOf(task, j.Version), visit: visit}
	q.simple = len(q.spec.Constraints)+len(q.spec.Devices)+len(q.spec.Ports) == 0
	return q
}

func (q *search) task() *cluster.Task { return taskOf(q.s, q.key) }

// among places up to most instances on nodes of the given pages and returns how many it placed.
func (q *search) among(pages []int, most uint32) uint32 {
	want := min(q.task().Waits(), most)
	if q.spec.Placement == cluster.Spread {
		return q.spread(q.candidates(pages), want)
	}
	placed := uint32(0)
	for _, half := range q.halves() {
		for rest := pages; len(rest) > 0 && placed < want; {
			n, ok := q.tightest(rest[0], half)
			if !ok {
				rest = rest[1:]
				continue
			}
			placed += q.fill(n, want-placed)
		}
	}
	return placed
}

// halves returns where instances may go: nodes with devices are kept for those who need them, as long as others do.
func (q *search) halves() []cluster.Equipment {
	if len(q.spec.Devices) > 0 {
		return []cluster.Equipment{cluster.Equipped}
	}
	return []cluster.Equipment{cluster.Bare, cluster.Equipped}
}

// fill gives a node as many instances as it takes, at most most.
func (q *search) fill(n cluster.NodeIndex, most uint32) uint32 {
	count := q.times(n, most)
	q.s.Assign(q.key, n, count, q.visit)
	return count
}

// tightest returns the node of a half page that the task fits and leaves the least room on.
func (q *search) tightest(page int, half cluster.Equipment) (best cluster.NodeIndex, found bool) {
	bestScore := int64(0)
	q.s.EachRoom(page, half, &q.spec.Resources, func(n cluster.NodeIndex, free *cluster.Resources) bool {
		if !q.simple && !q.able(n) {
			return true
		}
		score := q.left(n, free)
		if !found || score < bestScore {
			best, bestScore, found = n, score, true
		}
		return true
	})
	return best, found
}

// left is what a node would have left after one instance: 1024ths of its processor and of its memory, together.
func (q *search) left(n cluster.NodeIndex, free *cluster.Resources) int64 {
	offer := q.s.Node(n).Offer
	score := int64(0)
	for _, k := range [...]cluster.Kind{cluster.CPU, cluster.Memory} {
		if offer.Capacity[k] > 0 {
			score += (free[k] - q.spec.Resources[k]) / (offer.Capacity[k]>>10 + 1)
		}
	}
	return score
}

// fits tells whether one instance can go to the node.
func (q *search) fits(n cluster.NodeIndex) bool {
	free := q.s.Free(n)
	return q.s.Eligible(n) && q.spec.Resources.Fits(&free) && q.able(n)
}

// able tells whether a node with enough resources can run an instance as far as constraints, devices and ports go.
func (q *search) able(n cluster.NodeIndex) bool {
	node := q.s.Node(n)
	return (!q.avoids || n != q.avoided) && q.allowed(node) && q.requests(node, 1) > 0
}

// allowed tells whether the constraints hold, asked once per class of nodes.
func (q *search) allowed(node *cluster.Node) bool {
	if len(q.spec.Constraints) == 0 {
		return true
	}
	if q.verdicts == nil {
		q.verdicts = make([]uint8, q.s.Classes())
	}
	verdict := &q.verdicts[node.Class]
	if *verdict == 0 {
		*verdict = 2
		if Allowed(q.spec, node) {
			*verdict = 1
		}
	}
	return *verdict == 1
}

// times returns how many instances the node takes, at most most.
func (q *search) times(n cluster.NodeIndex, most uint32) uint32 {
	free := q.s.Free(n)
	most = q.spec.Resources.Times(&free, most)
	if q.simple {
		return most
	}
	return q.requests(q.s.Node(n), most)
}

// requests returns for how many instances the node has devices and ports, at most most.
func (q *search) requests(node *cluster.Node, most uint32) uint32 {
	for i := range q.spec.Devices {
		most = node.DeviceTimes(&q.spec.Devices[i], most)
	}
	chosen := 0
	for _, p := range q.spec.Ports {
		switch {
		case p.Number == 0:
			chosen++
		case node.PortUsed(p.Number):
			return 0
		default:
			most = min(most, 1)
		}
	}
	if chosen == 0 {
		return most
	}
	free := node.PortsFree()
	for _, p := range q.spec.Ports {
		if p.Number != 0 && p.Number >= node.Offer.PortFirst && p.Number <= node.Offer.PortLast {
			free--
		}
	}
	return min(most, uint32(max(free, 0)/chosen))
}

// Fits tells whether one instance of a task can go to a node now.
func Fits(s *cluster.State, spec *cluster.TaskSpec, n cluster.NodeIndex) bool {
	q := &search{s: s, spec: spec}
	return q.fits(n)
}

// Allowed tells whether the constraints of a task hold on a node that offers something.
func Allowed(spec *cluster.TaskSpec, node *cluster.Node) bool {
	for i := range spec.Constraints {
		if !spec.Constraints[i].Matches(node.Offer) {
			return false
		}
	}
	return true
}
