package share

// transport changes what lines have, by stock, until each has what it wants and the fewest have come: the cheapest
// flow, along the shortest path for each line that lacks some. The first paths are one step long: from a line that has
// too many, or from the idle.
func (s *shift) transport() {
	spare := make([][]int, len(s.idle))
	for i := range s.lines {
		for _, a := range s.lines[i].amounts {
			if s.lines[i].spares() > 0 {
				spare[a.stock] = append(spare[a.stock], i)
			}
		}
	}
	for i := range s.lines {
		s.relieve(&s.lines[i], spare)
	}
	for i := range s.lines {
		s.hire(&s.lines[i])
	}
	for i := range s.lines {
		for l := &s.lines[i]; !l.colocated && l.lacks() > 0 && s.detour(i); {
		}
	}
	for i := range s.lines {
		l := &s.lines[i]
		for j := range l.amounts {
			l.come(l.amounts[j].stock, -min(l.spares(), l.amounts[j].then))
		}
	}
}

// relieve gives a line what others have too many of. Spare lists, by stock, who may have.
func (s *shift) relieve(l *line, spare [][]int) {
	if l.colocated || l.lacks() == 0 {
		return
	}
	for _, c := range s.supply.rows[l.row].fits {
		for ; len(spare[c]) > 0; spare[c] = spare[c][1:] {
			from := &s.lines[spare[c][0]]
			from.come(c, -l.come(c, min(l.lacks(), from.spares(), from.of(c).then)))
			if l.lacks() == 0 {
				return
			}
		}
	}
}

// hire gives a line what is idle.
func (s *shift) hire(l *line) {
	if l.colocated {
		return
	}
	for _, c := range s.supply.rows[l.row].fits {
		if hired := min(l.lacks(), s.idle[c]); hired > 0 {
			s.idle[c] -= l.come(c, hired)
		}
	}
}

// come adds peers of a stock.
func (l *line) come(c int, peers Peers) Peers {
	if peers != 0 {
		l.of(c).then += peers
		l.has += peers
	}
	return peers
}

// joins and quits return what it costs to have one peer more or one fewer of a stock, and for how many that holds.
func (a *amount) joins() (cost int, most Peers) {
	if a.then < a.now {
		return 0, a.now - a.then
	}
	return 1, boundless
}

func (a *amount) quits() (cost int, most Peers) {
	if a.then > a.now {
		return -1, a.then - a.now
	}
	return 0, a.then
}

// step is how a stock is reached at a cost: a line enters it, and leaves the stock from for it.
type step struct{ cost, line, from int }

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
		_, most := s.lines[source].of(end).quits()
		peers = min(peers, s.lines[source].spares(), most)
	}
	for c := end; c != none; c = steps[c].from {
		q := &s.lines[steps[c].line]
		_, most := q.of(c).joins()
		peers = min(peers, most)
		if from := steps[c].from; from != none {
			_, most = q.of(from).quits()
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

// cheapest returns the stock in which the cheapest way ends, and the line that has peers of it to spare, none if they
// are idle.
func (s *shift) cheapest(steps []step) (end, source int) {
	best := far
	end, source = none, none
	for i := range s.lines {
		if s.lines[i].spares() == 0 {
			continue
		}
		for _, a := range s.lines[i].amounts {
			if cost, most := a.quits(); most > 0 && steps[a.stock].cost < far && steps[a.stock].cost+cost < best {
				best, end, source = steps[a.stock].cost+cost, a.stock, i
			}
		}
	}
	for c := range steps {
		if s.idle[c] > 0 && steps[c].cost < best {
			best, end, source = steps[c].cost, c, none
		}
	}
	return end, source
}

// search returns the cheapest way of a line into each stock.
func (s *shift) search(number int) []step {
	steps := make([]step, len(s.idle))
	for c := range steps {
		steps[c] = step{far, none, none}
	}
	s.enter(steps, step{0, number, none})
	for changed := true; changed; {
		changed = false
		// exits has, for each row, the line that leaves a stock at the least cost.
		exits := make([]step, s.supply.claims)
		for r := range exits {
			exits[r].cost = far
		}
		for i := range s.lines {
			if i == number {
				continue
			}
			exit := s.exit(steps, i)
			changed = s.back(steps, exit) || changed
			if best := &exits[s.lines[i].row]; exit.cost < best.cost {
				*best = exit
			}
		}
		for _, exit := range exits {
			if exit.cost < far {
				changed = s.enter(steps, exit) || changed
			}
		}
	}
	return steps
}

// exit returns the cheapest way in which a line can make room.
func (s *shift) exit(steps []step, number int) step {
	exit := step{far, number, none}
	for _, a := range s.lines[number].amounts {
		if cost, most := a.quits(); most > 0 && steps[a.stock].cost < far && steps[a.stock].cost+cost < exit.cost {
			exit.cost, exit.from = steps[a.stock].cost+cost, a.stock
		}
	}
	return exit
}

// enter lets a line into the stocks that it fits, and tells whether that is a better way to any.
func (s *shift) enter(steps []step, exit step) (better bool) {
	for _, c := range s.supply.rows[s.lines[exit.line].row].fits {
		if exit.cost+1 < steps[c].cost {
			steps[c], better = step{exit.cost + 1, exit.line, exit.from}, true
		}
	}
	return s.back(steps, exit) || better
}

// back lets a line into stocks in which it was, which is no move.
func (s *shift) back(steps []step, exit step) (better bool) {
	for _, a := range s.lines[exit.line].amounts {
		if cost, _ := a.joins(); cost == 0 && exit.cost < steps[a.stock].cost {
			steps[a.stock], better = step{exit.cost, exit.line, exit.from}, true
		}
	}
	return better
}
