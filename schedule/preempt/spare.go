package preempt

import (
	"slices"

	"starling/terms"
)

// looksMax bounds the search for other seats: beyond it a victim goes although others could have moved together.
const looksMax = 1 << 20

// spares tells how many more instances would find room on the nodes that have to do with the plan.
type spares struct {
	counted bool
	// totals and cursors are by want: nothing is left before a cursor.
	totals  []int64
	cursors []int
	looks   int
	moves   []move
}

// move takes an instance from one seat to another.
type move struct {
	want     int
	from, to int32
}

const nowhere = -1

// count begins to keep the totals.
func (s *spares) count(c *choice) {
	s.counted = true
	s.totals, s.cursors = make([]int64, len(c.in.Wants)), make([]int, len(c.in.Wants))
	for _, at := range c.touched {
		s.enter(c, &c.nodes[at])
	}
}

// leave is called before a node changes, enter afterwards.
func (s *spares) leave(c *choice, n *node) {
	if s.counted {
		for want := range s.totals {
			s.totals[want] -= c.more(n, want)
		}
	}
}

func (s *spares) enter(c *choice, n *node) {
	if s.counted {
		for want := range s.totals {
			more := c.more(n, want)
			if s.totals[want] += more; more > 0 {
				s.cursors[want] = min(s.cursors[want], int(n.rank))
			}
		}
	}
}

// more returns how many more instances of a want a node can run.
func (c *choice) more(n *node, want int) int64 {
	need := &c.in.Wants[want].Need
	if !fits(need, &n.free) {
		return 0
	}
	return int64(need.Times(&n.free, c.seatsLeft(n, want)))
}

// spare keeps those, most valuable first, without which what is wanted can run as well. What came later may have made
// those that were chosen first superfluous.
func (c *choice) spare() {
	if len(c.singles)+len(c.broken) == 0 {
		return
	}
	c.spares.count(c)
	slices.SortStableFunc(c.broken, c.compareGangs)
	slices.Reverse(c.broken)
	c.broken = slices.DeleteFunc(c.broken, func(id int32) bool {
		along := slices.Clone(c.gangs[id].along)
		c.mend(id)
		if c.stands(along) {
			return true
		}
		c.breakUp(id)
		return false
	})
	c.sort(c.singles)
	slices.Reverse(c.singles)
	c.singles = slices.DeleteFunc(c.singles, func(i int32) bool {
		if id := c.in.Victims[i].Gang; id != NoGang && c.gangs[id].broken {
			return true
		}
		c.keep(i)
		if c.stands([]int32{i}) {
			return true
		}
		c.end(i)
		return false
	})
}

// stands tells whether what is wanted can run although some victims stay; it moves seats for that.
func (c *choice) stands(kept []int32) bool {
	if c.lacking() != (terms.Amounts{}) {
		return false
	}
	s := &c.spares
	s.moves = s.moves[:0]
	possible := true
	for _, i := range kept {
		if c.sites[i] >= 0 {
			c.displace(c.sites[i])
		}
	}
	for want, total := range s.totals {
		for _, m := range s.moves {
			if m.want == want {
				total--
			}
		}
		possible = possible && total >= 0
	}
	for at := range s.moves {
		possible = possible && c.resit(&s.moves[at])
	}
	if possible {
		return true
	}
	for _, m := range slices.Backward(s.moves) {
		if m.to != nowhere {
			c.sit(m.to, m.want, -1)
		}
		c.sit(m.from, m.want, 1)
	}
	return false
}

// displace takes instances off a node until those that are left have room.
func (c *choice) displace(at int32) {
	n := &c.nodes[at]
	for want := len(n.seats) - 1; want >= 0; want-- {
		for n.seats[want] > 0 && !fits(&terms.Amounts{}, &n.free) {
			c.sit(at, want, -1)
			c.spares.moves = append(c.spares.moves, move{want: want, from: at, to: nowhere})
		}
	}
}

// resit finds another seat for an instance.
func (c *choice) resit(m *move) bool {
	s := &c.spares
	for ; s.cursors[m.want] < len(c.touched) && s.looks < looksMax; s.looks++ {
		at := c.touched[s.cursors[m.want]]
		if c.more(&c.nodes[at], m.want) > 0 {
			m.to = at
			c.sit(at, m.want, 1)
			return true
		}
		s.cursors[m.want]++
	}
	return false
}
