package share

import "slices"

// stay finds spots for the copies of all colocated jobs, so that those that run keep theirs, and those that come go
// where nobody runs as far as beside is set; nil if there is no way.
func (s *shift) stay(beside bool) [][]spot {
	if !slices.ContainsFunc(s.lines, func(l line) bool { return l.colocated }) {
		return make([][]spot, len(s.in.Jobs))
	}
	d := newDivision(s.in)
	var parties []*party
	for _, party := range d.parties {
		if party.job.Scheduler == TaskColocated {
			parties = append(parties, party)
		}
	}
	for i := range s.lines {
		for range s.lines[i].want {
			if !s.lines[i].colocated && !d.supply.take(s.lines[i].row) {
				return nil
			}
		}
	}
	for _, party := range parties {
		s.stayOn(d, party, s.plan.of(party.number))
	}
	if beside {
		s.comeBeside(d, parties)
	}
	all := make([][]spot, len(s.in.Jobs))
	for _, party := range parties {
		for party.total < s.plan.of(party.number) {
			if !d.addCopy(party) {
				return nil
			}
		}
		all[party.number] = party.spots
	}
	return all
}

// comeBeside adds copies on machines where nobody has to leave for them.
func (s *shift) comeBeside(d *division, parties []*party) {
	taken := make([]Peers, len(d.floor.machines))
	for i := range s.groups {
		for _, h := range s.groups[i].holds {
			if !s.lines[h.line].colocated {
				taken[s.in.Groups[i].Machine] += h.now
			}
		}
	}
	for _, party := range parties {
		size := Peers(party.size)
		for _, number := range d.floor.order {
			for d.floor.machines[number].free-taken[number] >= size && party.total < s.plan.of(party.number) &&
				d.fitCopy(party, number) {
				party.total += size
			}
		}
	}
}

// stayOn keeps the copies of a job that run, machine by machine, up to a total of peers.
func (s *shift) stayOn(d *division, party *party, total Peers) {
	// present lists, by machine, the stocks that each task has there.
	present := map[int][][]int{}
	var machines []int
	for i := range s.groups {
		number := s.in.Groups[i].Machine
		for _, h := range s.groups[i].holds {
			place := s.lines[h.line].place
			if place.Job != party.number {
				continue
			}
			if present[number] == nil {
				present[number] = make([][]int, len(party.portions))
				machines = append(machines, number)
			}
			stocks := &present[number][place.Task]
			*stocks = append(*stocks, slices.Repeat([]int{s.supply.groups[i]}, int(h.now))...)
		}
	}
	for _, whole := range []bool{true, false} {
		for _, number := range machines {
			for at := 0; party.total < total; at++ {
				stocks, missing, runs := copyAt(d, party, parts{number, present[number]}, at)
				if !runs || whole && missing {
					break
				}
				if (whole || missing) && d.occupy(party, number, stocks) {
					party.total += Peers(party.size)
				}
			}
		}
	}
}

// parts are what runs of a job on a machine: by task, the stocks of its peers.
type parts struct {
	machine int
	present [][]int
}

// copyAt returns the stocks of the peers that make up one of the copies that run on a machine, nil if there is no room
// for those of its peers that are missing; runs is false if none of it is there.
func copyAt(d *division, party *party, here parts, number int) (stocks []int, missing, runs bool) {
	rooms := slices.Clone(d.floor.machines[here.machine].rooms)
	s, present := d.supply, here.present
	for i := range party.portions {
		p := &party.portions[i]
		if p.row == none {
			continue
		}
		fits := func(stock int) bool { return slices.Contains(s.rows[p.row].fits, stock) }
		stays := number < len(present[i]) && fits(present[i][number])
		at := slices.IndexFunc(rooms, func(r room) bool {
			return fits(r.stock) && r.free > 0 && (!stays || r.stock == present[i][number])
		})
		runs, missing = runs || number < len(present[i]), missing || !stays
		if at < 0 {
			return nil, missing, runs
		}
		rooms[at].free--
		stocks = append(stocks, rooms[at].stock)
	}
	return stocks, missing, runs
}

// need is a spot that needs a peer of some group.
type need struct {
	spot
	line int
}

// assign gives the copies peers of groups: first those that are there now, then idle ones, then any.
func (s *shift) assign(spots [][]spot) {
	groups := map[spot][]int{}
	for i := range s.groups {
		at := spot{s.in.Groups[i].Machine, s.supply.groups[i]}
		groups[at] = append(groups[at], i)
	}
	needs := s.needs(spots)
	for _, room := range []func(g *holding, line int) Peers{(*holding).stays, s.idles, (*holding).any} {
		rest := needs[:0]
		for _, p := range needs {
			at := slices.IndexFunc(groups[p.spot], func(g int) bool { return room(&s.groups[g], p.line) > 0 })
			if at < 0 {
				rest = append(rest, p)
				continue
			}
			g := &s.groups[groups[p.spot][at]]
			g.keep(g.hold(p.line), 1)
		}
		needs = rest
	}
}

// needs tells which task each spot is for: a copy has one for each task that gets any.
func (s *shift) needs(spots [][]spot) (all []need) {
	for job := range spots {
		var lines []int
		for task := range s.plan.Peers[job] {
			if s.plan.Peers[job][task] > 0 {
				lines = append(lines, s.first[job]+task)
			}
		}
		for i, spot := range spots[job][:min(len(spots[job]), int(s.plan.of(job)))] {
			all = append(all, need{spot, lines[i%len(lines)]})
		}
	}
	return all
}

// stays returns how many peers of the line may stay, idles how many nobody has, any how many are not taken yet.
func (g *holding) stays(line int) Peers {
	at := slices.IndexFunc(g.holds, func(h hold) bool { return h.line == line })
	if at < 0 {
		return 0
	}
	return min(g.free, g.holds[at].now-g.holds[at].then)
}

func (s *shift) idles(g *holding, _ int) Peers {
	idle := g.free
	for _, h := range g.holds {
		if !s.lines[h.line].colocated {
			idle -= h.now
		}
	}
	return idle
}

func (g *holding) any(int) Peers { return g.free }
