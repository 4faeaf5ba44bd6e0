package portion

import "slices"

// transport changes what lines have, by stock, until each has what it wants and the fewest have come: the cheapest flow,
// along the shortest path for each line that lacks some. The first paths are one step long: from a line that has too
// many, or from the idle.
func (s *shift) transport() {
	for _, idle := range []bool{false, true} {
		next := make([]int, len(s.idle))
		for i := range s.lines {
			s.direct(&s.lines[i], next, idle)
		}
	}
	for i := range s.lines {
		for l := &s.lines[i]; !l.colocated && l.lacks() > 0 && s.detour(i); {
		}
	}
	for i := range s.lines {
		for l, c := &s.lines[i], 0; l.spares() > 0; c++ {
			l.come(c, -min(l.spares(), l.then[c]))
		}
	}
}

// direct gives a line what others have too many of, or what is idle.
func (s *shift) direct(l *line, next []int, idle bool) {
	if l.colocated {
		return
	}
	for _, c := range s.supply.rows[l.row].fits {
		if idle {
			s.idle[c] -= l.come(c, min(l.lacks(), s.idle[c]))
			continue
		}
		for ; l.lacks() > 0 && next[c] < len(s.lines); next[c]++ {
			from := &s.lines[next[c]]
			if from.colocated {
				continue
			}
			from.come(c, -l.come(c, min(l.lacks(), from.spares(), from.then[c])))
			if l.lacks() == 0 {
				break
			}
		}
	}
}

// come adds peers of a stock.
func (l *line) come(c int, peers Peers) Peers {
	l.then[c] += peers
	l.has += peers
	return peers
}

// joins and quits return what it costs to have one peer more or one fewer of a stock, and for how many that holds.
func (l *line) joins(c int) (cost int, most Peers) {
	if l.then[c] < l.now[c] {
		return 0, l.now[c] - l.then[c]
	}
	return 1, boundless
}

func (l *line) quits(c int) (cost int, most Peers) {
	if l.then[c] > l.now[c] {
		return -1, l.then[c] - l.now[c]
	}
	return 0, l.then[c]
}

// step is how a stock is reached at a cost: a line enters it, and leaves the stock from for it.
type step struct {
	cost, line, from int
}

// far is more than any path costs.
const far = 1 << 40

// detour lets a line have peers of a stock in which another line makes room by going to a third, and so on. It tells
// whether there is such a way.
func (s *shift) detour(number int) bool {
	steps := s.search(number)
	end, source := s.cheapest(steps)
	if end == none {
		return false
	}
	peers := s.lines[number].lacks()
	if source == none {
		peers = min(peers, s.idle[end])
	} else {
		_, most := s.lines[source].quits(end)
		peers = min(peers, s.lines[source].spares(), most)
	}
	for c := end; c != none; c = steps[c].from {
		q := &s.lines[steps[c].line]
		_, most := q.joins(c)
		peers = min(peers, most)
		if from := steps[c].from; from != none {
			_, most = q.quits(from)
			peers = min(peers, most)
		}
	}
	if source == none {
		s.idle[end] -= peers
	} else {
		s.lines[source].come(end, -peers)
	}
	for c := end; c != none; c = steps[c].from {
		q := &s.lines[steps[c].line]
		q.come(c, peers)
		if from := steps[c].from; from != none {
			q.come(from, -peers)
		}
	}
	return true
}

// cheapest returns the stock in which the cheapest way ends, and the line that has peers of it to spare, none if they are
// idle.
func (s *shift) cheapest(steps []step) (end, source int) {
	best := far
	end, source = none, none
	for c := range steps {
		if s.idle[c] > 0 && steps[c].cost < best {
			best, end, source = steps[c].cost, c, none
		}
		for i := range s.lines {
			q := &s.lines[i]
			if cost, _ := q.quits(c); q.spares() > 0 && q.then[c] > 0 && steps[c].cost+cost < best {
				best, end, source = steps[c].cost+cost, c, i
			}
		}
	}
	return end, source
}

// search returns the cheapest way of a line into each stock.
func (s *shift) search(number int) []step {
	steps := make([]step, len(s.idle))
	for c := range steps {
		steps[c] = step{far, none, none}
		if l := &s.lines[number]; slices.Contains(s.supply.rows[l.row].fits, c) {
			cost, _ := l.joins(c)
			steps[c] = step{cost, number, none}
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range s.lines {
			q := &s.lines[i]
			if q.colocated || i == number {
				continue
			}
			least, from := far, none
			for c := range steps {
				if cost, _ := q.quits(c); q.then[c] > 0 && steps[c].cost < far && steps[c].cost+cost < least {
					least, from = steps[c].cost+cost, c
				}
			}
			if from == none {
				continue
			}
			for _, c := range s.supply.rows[q.row].fits {
				if cost, _ := q.joins(c); c != from && least+cost < steps[c].cost {
					steps[c], changed = step{least + cost, i, from}, true
				}
			}
		}
	}
	return steps
}
