package model

import (
	"strings"

	"starling/cluster"
	"starling/schedule/preempt"
	"starling/terms"
)

// ceiling returns how much more a pool may hold below the limits of those above it.
func (m *Model) ceiling(number int, revocable bool) (room terms.Amounts) {
	for k := range room {
		room[k] = terms.Unlimited
	}
	for above := range m.pools {
		if above == number || !below(m.pools[number].Path, m.pools[above].Path) {
			continue
		}
		left := m.leftBelow(above, func(*seat) bool { return true })
		for k := range room {
			if !revocable || k != int(terms.CPU) {
				room[k] = min(room[k], left[k])
			}
		}
	}
	return room
}

// below tells whether a pool is another or below it.
func below(path, other terms.PoolPath) bool {
	return path == other || strings.HasPrefix(string(path), string(other)+"/")
}

// leftBelow returns how much more may be held in and below a pool than what the seats hold that count.
func (m *Model) leftBelow(number int, counts func(*seat) bool) (left terms.Amounts) {
	for k := range left {
		left[k] = m.pools[number].Quotas[k].Limit
	}
	for _, j := range m.Jobs {
		if j.newest().Type == terms.Daemon || !below(j.newest().Name.Pool(), m.pools[number].Path) {
			continue
		}
		j.each(func(s *seat) {
			if !s.Phase.Holds() || !counts(s) {
				return
			}
			for k, amount := range amountsOf(s.spec()) {
				if !j.newest().Revocable || k != int(terms.CPU) {
					left[k] -= amount
				}
			}
		})
	}
	return left
}

// lower bounds the room of the pool by the limits of those above it, the nearest first. Who is entitled to more gets it
// from those below that limit.
func (m *Model) lower(in *preempt.Input, h head) {
	need := terms.Amounts{}
	for _, want := range in.Wants {
		for k := range need {
			need[k] += want.Need[k] * int64(want.Count)
		}
	}
	room := in.Room
	for above := in.Pool - 1; above >= 0; above-- {
		if !below(m.pools[in.Pool].Path, m.pools[above].Path) {
			continue
		}
		left, short := m.unclaimed(above), false
		for k := range left {
			short = short || need[k] > 0 && left[k] < need[k]
			room[k] = min(room[k], left[k])
		}
		if short && h.entitled {
			in.Room, in.Circle = left, preempt.Circle{First: above, End: above + 1}
			for in.Circle.End < len(m.pools) && below(m.pools[in.Circle.End].Path, m.pools[above].Path) {
				in.Circle.End++
			}
			return
		}
	}
	in.Room = room
}

// unclaimed returns how much more may be held in and below a pool when all have stopped that were told to, beside what is
// kept for those to whom somebody gives way.
func (m *Model) unclaimed(number int) terms.Amounts {
	left := m.leftBelow(number, func(s *seat) bool { return s.Phase != cluster.Stopping })
	for _, c := range m.claims {
		for _, one := range c.Seats {
			for k, amount := range one.Need {
				if at := m.poolOf(c.job); !c.Patient && at >= 0 && below(m.pools[at].Path, m.pools[number].Path) {
					left[k] -= amount * int64(one.Count)
				}
			}
		}
	}
	return left
}
