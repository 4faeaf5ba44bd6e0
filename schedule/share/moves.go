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
func settle(in *Input, plan *Plan, running []Running) *shift {
	s := newShift(in, plan, running)
	spots := s.stay(true)
	if spots == nil {
		spots = s.stay(false)
	}
	if spots == nil {
		spots = divide(in).spots()
	}
	s.assign(spots)
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

// shift is the pool while it goes from what runs to the counts.
type shift struct {
	in     *Input
	plan   *Plan
	supply *supply
	lines  []line
	// first is the number of the first line of each job.
	first  []int
	groups []holding
	// idle is how many peers of each stock hold nothing, or will.
	idle []Peers
}

// line is what one task has now, as far as it may keep it, and what it will have, by stock.
type line struct {
	place     Place
	row       int
	colocated bool
	want, has Peers
	// amounts are in order of stocks; a stock of which the line has nothing has none.
	amounts []amount
}

type amount struct {
	stock     int
	now, then Peers
}

// of returns what the line has of a stock, for change.
func (l *line) of(stock int) *amount {
	at, known := slices.BinarySearchFunc(l.amounts, stock, func(a amount, c int) int { return a.stock - c })
	if !known {
		l.amounts = slices.Insert(l.amounts, at, amount{stock: stock})
	}
	return &l.amounts[at]
}

// lacks and spares return how many peers the line needs, and how many it has too many.
func (l *line) lacks() Peers  { return max(l.want-l.has, 0) }
func (l *line) spares() Peers { return max(l.has-l.want, 0) }

// holding is what one group has: for each line that it serves, how many peers are there now, and how many will be.
type holding struct {
	// free is how many peers will serve nobody.
	free  Peers
	holds []hold
}

type hold struct {
	line      int
	now, then Peers
}

func newShift(in *Input, plan *Plan, running []Running) *shift {
	s := &shift{in: in, plan: plan, supply: newSupply(in), groups: make([]holding, len(in.Groups))}
	for i := range in.Jobs {
		s.first = append(s.first, len(s.lines))
		for j := range in.Jobs[i].Tasks {
			s.lines = append(s.lines, line{
				place: Place{i, j}, row: s.supply.require(in.Jobs[i].Tasks[j].Tags), want: plan.Peers[i][j],
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

// evict decides who stays where he is, of those that are not colocated: as many as the group has beside the copies,
// those first that their tasks can use. Then it counts by stock.
func (s *shift) evict() {
	s.idle = make([]Peers, len(s.supply.stocks))
	kept := make([]Peers, len(s.lines))
	for _, spare := range []bool{false, true} {
		for i := range s.groups {
			g, c := &s.groups[i], s.supply.groups[i]
			for j := range g.holds {
				h := &g.holds[j]
				l := &s.lines[h.line]
				if l.colocated || !slices.Contains(s.supply.rows[l.row].fits, c) {
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
		s.idle[s.supply.groups[i]] += s.groups[i].free
	}
}

// leave takes from the groups, the last ones first, whom their stocks do not keep.
func (s *shift) leave() {
	for i := len(s.groups) - 1; i >= 0; i-- {
		g, c := &s.groups[i], s.supply.groups[i]
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

// arrive gives lines the peers that their stocks promise: those that have to move anyway, and then, if idle is set,
// any.
func (s *shift) arrive(idle bool) {
	// waiting lists the lines that have still to come to a stock.
	waiting := make([][]int, len(s.supply.stocks))
	for i := range s.lines {
		for _, a := range s.lines[i].amounts {
			if a.then > a.now {
				waiting[a.stock] = append(waiting[a.stock], i)
			}
		}
	}
	for i := range s.groups {
		g, c := &s.groups[i], s.supply.groups[i]
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

// pair joins those who leave with those who are needed, in one group.
func (s *shift) pair(number int, g *holding) (moves []Move) {
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
