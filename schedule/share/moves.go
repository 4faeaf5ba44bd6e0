package share

import "slices"

// Place is a task, by the numbers of the input; Nowhere is the place of idle peers.
type Place struct{ Job, Task int }

// Nowhere returns the place of idle peers.
func Nowhere() Place { return Place{none, none} }

// Running is a number of peers of one group that a task has now.
type Running struct {
	Group int
	Place Place
	Peers Peers
}

// Move is a number of peers of one group that go from one place to another.
type Move struct {
	Group    int
	From, To Place
	Peers    Peers
}

// Moves returns which peers leave which task, and where they go, for the counts to be met; by group, then by task.
// Peers that may stay do, and the others go the first way that is found: nearly always one with the fewest moves.
// Copies of a colocated job that run stay, too, unless that leaves no room for others: then all copies go where Counts
// found it.
//
// The plan is that of the input. What runs is of the jobs of the input: peers of a job that has ended are idle. No
// group runs more than its peers.
func Moves(in *Input, plan *Plan, running []Running) (all []Move) {
	s := settle(in, plan, running)
	for i := range s.groups {
		all = append(all, s.pair(i, &s.groups[i])...)
	}
	return all
}

// Settle returns what runs after the moves, by group, then by task. If there are not enough peers for the plan, which
// may be one for more than the input has, some tasks have fewer than that says.
func Settle(in *Input, plan *Plan, running []Running) (all []Running) {
	s := settle(in, plan, running)
	for i := range s.groups {
		for _, h := range s.groups[i].holds {
			if h.then > 0 {
				all = append(all, Running{i, s.lines[h.line].place, h.then})
			}
		}
	}
	return all
}

// settle lets peers come and go until the counts are met.
func settle(in *Input, plan *Plan, running []Running) *transition {
	s := newTransition(in, plan, running)
	copyPeers := s.stay(true)
	if copyPeers == nil {
		copyPeers = s.stay(false)
	}
	if copyPeers == nil {
		copyPeers = divide(in).copyPeers()
	}
	s.assign(copyPeers)
	s.evict()
	s.transport()
	s.leave()
	s.arrive(false)
	s.arrive(true)
	for i := range s.groups {
		s.groups[i].sort()
	}
	return s
}

// transition is the pool while it goes from what runs to the counts.
type transition struct {
	in       *Input
	plan     *Plan
	capacity *capacity
	lines    []line
	// first is the number of the first line of each job.
	first  []int
	groups []holding
	// idle is how many peers of each class hold nothing, or will.
	idle []Peers
}

// line is what one task has now, as far as it may keep it, and what it will have, by class.
type line struct {
	place     Place
	row       int
	colocated bool
	want, has Peers
	// amounts are in order of classes; a class of which the line has nothing has none.
	amounts []amount
}

type amount struct {
	class     int
	now, then Peers
}

// of returns what the line has of a class, for change.
func (l *line) of(class int) *amount {
	at, known := slices.BinarySearchFunc(l.amounts, class, func(a amount, c int) int { return a.class - c })
	if !known {
		l.amounts = slices.Insert(l.amounts, at, amount{class: class})
	}
	return &l.amounts[at]
}

// lacks and spares return how many peers the line needs, and how many it has too many.
func (l *line) lacks() Peers  { return max(l.want-l.has, 0) }
func (l *line) spares() Peers { return max(l.has-l.want, 0) }

// holding is what one group has: for each line that it serves, how many peers are there now, and how many will be.
type holding struct {
	// free is how many peers will serve no task.
	free  Peers
	holds []hold
}

type hold struct {
	line      int
	now, then Peers
}

func newTransition(in *Input, plan *Plan, running []Running) *transition {
	s := &transition{in: in, plan: plan, capacity: newCapacity(in), groups: make([]holding, len(in.Groups))}
	for i := range in.Jobs {
		s.first = append(s.first, len(s.lines))
		for j := range in.Jobs[i].Tasks {
			s.lines = append(s.lines, line{
				place: Place{i, j}, row: s.capacity.require(in.Jobs[i].Tasks[j].Tags), want: plan.Peers[i][j],
				colocated: in.Jobs[i].Scheduler == TaskColocated,
			})
		}
	}
	for i := range in.Groups {
		s.groups[i].free = max(in.Groups[i].Peers, 0)
	}
	for _, r := range running {
		h := s.groups[r.Group].hold(s.first[r.Place.Job] + r.Place.Task)
		h.now += r.Peers
	}
	for i := range s.groups {
		s.groups[i].sort()
	}
	return s
}

// hold returns the record of a line, a new one if there is none.
func (g *holding) hold(line int) *hold {
	at := slices.IndexFunc(g.holds, func(h hold) bool { return h.line == line })
	if at < 0 {
		at = len(g.holds)
		g.holds = append(g.holds, hold{line: line})
	}
	return &g.holds[at]
}

func (g *holding) sort() {
	slices.SortStableFunc(g.holds, func(a, b hold) int { return a.line - b.line })
}

// keep gives a line peers of the group.
func (g *holding) keep(h *hold, peers Peers) {
	h.then += peers
	g.free -= peers
}

// evict decides what stays where it is, of what is not colocated: as many as the group has beside the copies,
// those first that their tasks can use. Then it counts by class.
func (s *transition) evict() {
	s.idle = make([]Peers, len(s.capacity.classes))
	kept := make([]Peers, len(s.lines))
	for _, spare := range []bool{false, true} {
		for i := range s.groups {
			g, c := &s.groups[i], s.capacity.groups[i]
			for j := range g.holds {
				h := &g.holds[j]
				l := &s.lines[h.line]
				if l.colocated || !slices.Contains(s.capacity.rows[l.row].fits, c) {
					continue
				}
				most := h.now - h.then
				if !spare {
					most = min(most, l.want-kept[h.line])
				}
				stays := min(most, g.free)
				g.keep(h, stays)
				kept[h.line] += stays
				if stays > 0 {
					a := l.of(c)
					a.now += stays
					a.then += stays
					l.has += stays
				}
			}
		}
	}
	for i := range s.groups {
		s.idle[s.capacity.groups[i]] += s.groups[i].free
	}
}

// leave takes from the groups, the last ones first, what their classes do not keep.
func (s *transition) leave() {
	for i := len(s.groups) - 1; i >= 0; i-- {
		g, c := &s.groups[i], s.capacity.groups[i]
		for j := range g.holds {
			h := &g.holds[j]
			if l := &s.lines[h.line]; !l.colocated && h.then > 0 {
				a := l.of(c)
				leaves := min(max(a.now-a.then, 0), h.then)
				g.keep(h, -leaves)
				a.now -= leaves
			}
		}
	}
}

// arrive gives lines the peers that their classes promise: those that have to move anyway, and then, if idle is set,
// any.
func (s *transition) arrive(idle bool) {
	// waiting lists the lines that have still to come to a class.
	waiting := make([][]int, len(s.capacity.classes))
	for i := range s.lines {
		for _, a := range s.lines[i].amounts {
			if a.then > a.now {
				waiting[a.class] = append(waiting[a.class], i)
			}
		}
	}
	for i := range s.groups {
		g, c := &s.groups[i], s.capacity.groups[i]
		room := g.free
		if !idle {
			room = min(room, g.leaving())
		}
		for room > 0 && len(waiting[c]) > 0 {
			a := s.lines[waiting[c][0]].of(c)
			comes := min(room, a.then-a.now)
			g.keep(g.hold(waiting[c][0]), comes)
			a.now += comes
			room -= comes
			if a.then == a.now {
				waiting[c] = waiting[c][1:]
			}
		}
	}
}

// leaving returns how many peers leave their task and have no other yet.
func (g *holding) leaving() Peers {
	leave, come := Peers(0), Peers(0)
	for _, h := range g.holds {
		leave += max(h.now-h.then, 0)
		come += max(h.then-h.now, 0)
	}
	return max(leave-come, 0)
}

// pair joins what leaves with what is needed, in one group.
func (s *transition) pair(number int, g *holding) (moves []Move) {
	from, to := []hold{}, []hold{}
	for _, h := range g.holds {
		if h.now > h.then {
			from = append(from, h)
		} else if h.then > h.now {
			to = append(to, h)
		}
	}
	for len(from) > 0 || len(to) > 0 {
		m := Move{Group: number, From: Nowhere(), To: Nowhere(), Peers: boundless}
		if len(from) > 0 {
			m.From, m.Peers = s.lines[from[0].line].place, from[0].now-from[0].then
		}
		if len(to) > 0 {
			m.To, m.Peers = s.lines[to[0].line].place, min(m.Peers, to[0].then-to[0].now)
		}
		if len(from) > 0 {
			from[0].now -= m.Peers
			if from[0].now == from[0].then {
				from = from[1:]
			}
		}
		if len(to) > 0 {
			to[0].now += m.Peers
			if to[0].now == to[0].then {
				to = to[1:]
			}
		}
		moves = append(moves, m)
	}
	return moves
}
