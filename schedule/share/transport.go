package share

import "slices"

// transport changes what lines have, by class, until each has what it wants. What a line lacks comes from a line that
// has too many, or from the idle, and only if there is none from a line that goes to another class for it: so what may
// stay does, although of all ways this is not always the one with the fewest moves.
func (s *transition) transport() {
	spare := make([][]int, len(s.idle))
	for i := range s.lines {
		for _, a := range s.lines[i].amounts {
			if s.lines[i].spares() > 0 {
				spare[a.class] = append(spare[a.class], i)
			}
		}
	}
	for i := range s.lines {
		s.takeSpare(&s.lines[i], spare)
	}
	for i := range s.lines {
		s.takeIdle(&s.lines[i])
	}
	for i := range s.lines {
		l := &s.lines[i]
		for j := range l.amounts {
			s.idle[l.amounts[j].class] -= l.come(l.amounts[j].class, -min(l.spares(), l.amounts[j].then))
		}
	}
	if slices.ContainsFunc(s.lines, func(l line) bool { return !l.colocated && l.lacks() > 0 }) {
		s.exchange()
	}
}

// takeSpare gives a line what others have too many of. Spare lists, by class, which may have some.
func (s *transition) takeSpare(l *line, spare [][]int) {
	if l.colocated || l.lacks() == 0 {
		return
	}
	for _, c := range s.capacity.rows[l.row].fits {
		for ; len(spare[c]) > 0; spare[c] = spare[c][1:] {
			from := &s.lines[spare[c][0]]
			from.come(c, -l.come(c, min(l.lacks(), from.spares(), from.of(c).then)))
			if l.lacks() == 0 {
				return
			}
		}
	}
}

// takeIdle gives a line what is idle.
func (s *transition) takeIdle(l *line) {
	if l.colocated {
		return
	}
	for _, c := range s.capacity.rows[l.row].fits {
		if hired := min(l.lacks(), s.idle[c]); hired > 0 {
			s.idle[c] -= l.come(c, hired)
		}
	}
}

// come adds peers of a class.
func (l *line) come(c int, peers Peers) Peers {
	if peers != 0 {
		l.of(c).then += peers
		l.has += peers
	}
	return peers
}

// exchange lets lines that lack peers have those of classes in which others make room by going elsewhere.
func (s *transition) exchange() {
	x := capacity{classes: make([]class, len(s.idle)), rows: make([]row, len(s.lines)), paths: newPaths(len(s.idle))}
	for c, idle := range s.idle {
		x.classes[c].peers, x.free = idle, x.free+idle
	}
	for i := range s.lines {
		l, r := &s.lines[i], &x.rows[i]
		if r.taken = make([]Peers, len(s.idle)); l.colocated {
			continue
		}
		r.fits, r.total = s.capacity.rows[l.row].fits, l.has
		for _, a := range l.amounts {
			r.taken[a.class] = a.then
			x.classes[a.class].peers += a.then
			x.classes[a.class].taken += a.then
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
