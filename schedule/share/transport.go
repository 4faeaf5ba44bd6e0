package share

import "slices"

// transport changes what lines have, by stock, until each has what it wants. What a line lacks comes from a line that
// has too many, or from the idle, and only if there is none from a line that goes to another stock for it: so what may
// stay does, although of all ways this is not always the one with the fewest moves.
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
		l := &s.lines[i]
		for j := range l.amounts {
			s.idle[l.amounts[j].stock] -= l.come(l.amounts[j].stock, -min(l.spares(), l.amounts[j].then))
		}
	}
	if slices.ContainsFunc(s.lines, func(l line) bool { return !l.colocated && l.lacks() > 0 }) {
		s.exchange()
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

// exchange lets lines that lack peers have those of stocks in which others make room by going elsewhere.
func (s *shift) exchange() {
	x := supply{stocks: make([]stock, len(s.idle)), rows: make([]row, len(s.lines)), paths: newPaths(len(s.idle))}
	for c, idle := range s.idle {
		x.stocks[c].peers, x.free = idle, x.free+idle
	}
	for i := range s.lines {
		l, r := &s.lines[i], &x.rows[i]
		if r.taken = make([]Peers, len(s.idle)); l.colocated {
			continue
		}
		r.fits, r.total = s.supply.rows[l.row].fits, l.has
		for _, a := range l.amounts {
			r.taken[a.stock] = a.then
			x.stocks[a.stock].peers += a.then
			x.stocks[a.stock].taken += a.then
		}
	}
	for i := range s.lines {
		for l := &s.lines[i]; !l.colocated && l.lacks() > 0 && x.take(i); {
			l.has++
		}
	}
	for i := range s.lines {
		for c, taken := range x.rows[i].taken {
			if l := &s.lines[i]; !l.colocated && (taken > 0 || len(l.amounts) > 0) {
				l.of(c).then = taken
			}
		}
	}
}
