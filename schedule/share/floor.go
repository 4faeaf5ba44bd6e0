package share

import (
	"cmp"
	"slices"
)

// floor is the machines, for jobs whose tasks go together.
type floor struct {
	machines []machine
	// order has the smallest machines first: what is left on them is of the least use to others.
	order []int
}

// machine has room for copies, by stock. Peers that are not colocated are counted by stock only, not by machine.
type machine struct {
	free  Peers
	rooms []room
}

type room struct {
	stock int
	free  Peers
}

// spot is a peer of a copy.
type spot struct{ machine, stock int }

// newFloor returns the machines, none if no job needs them.
func newFloor(in *Input, s *supply) *floor {
	f := &floor{}
	if !slices.ContainsFunc(in.Jobs, func(j Job) bool { return j.Scheduler == TaskColocated }) {
		return f
	}
	for i := range in.Groups {
		g := &in.Groups[i]
		for len(f.machines) <= g.Machine {
			f.order = append(f.order, len(f.machines))
			f.machines = append(f.machines, machine{})
		}
		m := &f.machines[g.Machine]
		m.add(s.groups[i], max(g.Peers, 0))
	}
	for i := range f.machines {
		slices.SortStableFunc(f.machines[i].rooms, func(a, b room) int { return cmp.Compare(a.stock, b.stock) })
	}
	slices.SortStableFunc(f.order, func(a, b int) int { return cmp.Compare(f.machines[a].free, f.machines[b].free) })
	return f
}

func (m *machine) add(stock int, peers Peers) {
	at := slices.IndexFunc(m.rooms, func(r room) bool { return r.stock == stock })
	if at < 0 {
		at = len(m.rooms)
		m.rooms = append(m.rooms, room{stock: stock})
	}
	m.rooms[at].free += peers
	m.free += peers
}

// addCopy gives a colocated job a peer for each of its tasks, all on one machine. A machine that had no room once never
// has any later, so each job goes through the machines once.
func (d *division) addCopy(who *party) bool {
	size := Peers(who.size)
	if who.total+size > who.most || size > d.left {
		return false
	}
	for ; who.machine < len(d.floor.order); who.machine++ {
		if d.fitCopy(who, d.floor.order[who.machine]) {
			for i := range who.portions {
				if p := &who.portions[i]; p.row != none {
					p.count++
				}
			}
			who.total += size
			return true
		}
	}
	return false
}

// fitCopy takes a copy's peers on a machine, if all others find theirs without them.
func (d *division) fitCopy(who *party, number int) bool {
	m := &d.floor.machines[number]
	return m.free >= Peers(who.size) && d.occupy(who, number, d.supply.match(who.portions, m.rooms))
}

// occupy takes a copy's peers on a machine, one of each of the stocks.
func (d *division) occupy(who *party, number int, stocks []int) bool {
	bounded := number < len(who.copies)
	if len(stocks) == 0 || bounded && who.copies[number] >= who.job.Copies[number] {
		return false
	}
	for i, c := range stocks {
		if !d.supply.take(d.supply.firstStock + c) {
			for _, taken := range stocks[:i] {
				d.supply.release(d.supply.firstStock + taken)
			}
			return false
		}
	}
	for _, c := range stocks {
		d.floor.machines[number].add(c, -1)
		who.spots = append(who.spots, spot{number, c})
	}
	if bounded {
		who.copies[number]++
	}
	return true
}

// match finds a room for each task, those that fit least else first, and returns their stocks; none if there is no way.
func (s *supply) match(portions []portion, rooms []room) []int {
	if len(rooms) == 1 {
		return s.matchOne(portions, rooms[0].stock)
	}
	local, stocks := supply{firstStock: len(portions)}, make([]int, 0, len(portions))
	for _, r := range rooms {
		local.stocks = append(local.stocks, stock{peers: r.free})
		local.free += r.free
	}
	local.paths = newPaths(len(rooms))
	for i := range portions {
		if portions[i].row == none {
			continue
		}
		own := row{taken: make([]Peers, len(rooms))}
		for at, r := range rooms {
			if slices.Contains(s.rows[portions[i].row].fits, r.stock) {
				own.fits = append(own.fits, at)
			}
		}
		local.rows = append(local.rows, own)
		if !local.take(len(local.rows) - 1) {
			return nil
		}
	}
	for i := range local.rows {
		stocks = append(stocks, rooms[slices.Index(local.rows[i].taken, 1)].stock)
	}
	return stocks
}

// matchOne is match where there is one room.
func (s *supply) matchOne(portions []portion, stock int) (stocks []int) {
	for i := range portions {
		if row := portions[i].row; row != none && !slices.Contains(s.rows[row].fits, stock) {
			return nil
		} else if row != none {
			stocks = append(stocks, stock)
		}
	}
	return stocks
}

// vacate gives back the spots of a job.
func (d *division) vacate(who *party) {
	for _, spot := range who.spots {
		d.supply.release(d.supply.firstStock + spot.stock)
		d.floor.machines[spot.machine].add(spot.stock, 1)
	}
	who.spots = nil
	clear(who.copies)
}
