package share

import "slices"

// stay finds peers for the copies of all colocated jobs, so that those that run keep theirs, and those that come go
// where nothing else runs as far as beside is set; nil if there is no way.
func (s *transition) stay(beside bool) [][]copyPeer {
	if !slices.ContainsFunc(s.lines, func(l line) bool { return l.colocated }) {
		return make([][]copyPeer, len(s.in.Jobs))
	}
	d := newDivision(s.in)
	var jobs []*jobShare
	for _, j := range d.jobs {
		if j.job.Scheduler == TaskColocated {
			jobs = append(jobs, j)
		}
	}
	for i := range s.lines {
		for range s.lines[i].want {
			if !s.lines[i].colocated && !d.capacity.take(s.lines[i].row) {
				return nil
			}
		}
	}
	for _, j := range jobs {
		s.stayOn(d, j, s.plan.of(j.number))
	}
	if beside {
		s.comeBeside(d, jobs)
	}
	all := make([][]copyPeer, len(s.in.Jobs))
	for _, j := range jobs {
		for j.total < s.plan.of(j.number) {
			if !d.addCopy(j) {
				return nil
			}
		}
		all[j.number] = j.copyPeers
	}
	return all
}

// comeBeside adds copies on machines where no peer has to leave for them.
func (s *transition) comeBeside(d *division, jobs []*jobShare) {
	taken := make([]Peers, len(d.inventory.machines))
	for i := range s.groups {
		for _, h := range s.groups[i].holds {
			if !s.lines[h.line].colocated {
				taken[s.in.Groups[i].Machine] += h.now
			}
		}
	}
	for _, j := range jobs {
		size := Peers(j.size)
		for _, number := range d.inventory.order {
			for d.inventory.machines[number].free-taken[number] >= size && j.total < s.plan.of(j.number) &&
				d.fitCopy(j, number) {
				j.total += size
			}
		}
	}
}

// stayOn keeps the copies of a job that run, machine by machine, up to a total of peers.
func (s *transition) stayOn(d *division, j *jobShare, total Peers) {
	// present lists, by machine, the classes that each task has there.
	present := map[int][][]int{}
	var machines []int
	for i := range s.groups {
		number := s.in.Groups[i].Machine
		for _, h := range s.groups[i].holds {
			place := s.lines[h.line].place
			if place.Job != j.number {
				continue
			}
			if present[number] == nil {
				present[number] = make([][]int, len(j.tasks))
				machines = append(machines, number)
			}
			classes := &present[number][place.Task]
			*classes = append(*classes, slices.Repeat([]int{s.capacity.groups[i]}, int(h.now))...)
		}
	}
	for _, whole := range []bool{true, false} {
		for _, number := range machines {
			for at := 0; j.total < total; at++ {
				classes, missing, runs := copyAt(d, j, parts{number, present[number]}, at)
				if !runs || whole && missing {
					break
				}
				if (whole || missing) && d.takeCopy(j, number, classes) {
					j.total += Peers(j.size)
				}
			}
		}
	}
}

// parts are what runs of a job on a machine: by task, the classes of its peers.
type parts struct {
	machine int
	present [][]int
}

// copyAt returns the classes of the peers that make up one of the copies that run on a machine, nil if there is no room
// for those of its peers that are missing; runs is false if none of it is there.
func copyAt(d *division, j *jobShare, here parts, number int) (classes []int, missing, runs bool) {
	byClass := slices.Clone(d.inventory.machines[here.machine].byClass)
	s, present := d.capacity, here.present
	for i := range j.tasks {
		p := &j.tasks[i]
		if p.row == none {
			continue
		}
		fits := func(class int) bool { return slices.Contains(s.rows[p.row].fits, class) }
		stays := number < len(present[i]) && fits(present[i][number])
		at := slices.IndexFunc(byClass, func(r freePeers) bool {
			return fits(r.class) && r.free > 0 && (!stays || r.class == present[i][number])
		})
		runs, missing = runs || number < len(present[i]), missing || !stays
		if at < 0 {
			return nil, missing, runs
		}
		byClass[at].free--
		classes = append(classes, byClass[at].class)
	}
	return classes, missing, runs
}

// need is a copyPeer that needs a peer of some group.
type need struct {
	copyPeer
	line int
}

// assign gives the copies peers of groups: first those that are there now, then idle ones, then any.
func (s *transition) assign(copyPeers [][]copyPeer) {
	groups := map[copyPeer][]int{}
	for i := range s.groups {
		at := copyPeer{s.in.Groups[i].Machine, s.capacity.groups[i]}
		groups[at] = append(groups[at], i)
	}
	needs := s.needs(copyPeers)
	for _, room := range []func(g *holding, line int) Peers{(*holding).stays, s.idles, (*holding).any} {
		rest := needs[:0]
		for _, p := range needs {
			at := slices.IndexFunc(groups[p.copyPeer], func(g int) bool { return room(&s.groups[g], p.line) > 0 })
			if at < 0 {
				rest = append(rest, p)
				continue
			}
			g := &s.groups[groups[p.copyPeer][at]]
			g.keep(g.hold(p.line), 1)
		}
		needs = rest
	}
}

// needs tells which task each copyPeer is for: a copy has one for each task that gets any.
func (s *transition) needs(copyPeers [][]copyPeer) (all []need) {
	for job := range copyPeers {
		var lines []int
		for task := range s.plan.Peers[job] {
			if s.plan.Peers[job][task] > 0 {
				lines = append(lines, s.first[job]+task)
			}
		}
		for i, copyPeer := range copyPeers[job][:min(len(copyPeers[job]), int(s.plan.of(job)))] {
			all = append(all, need{copyPeer, lines[i%len(lines)]})
		}
	}
	return all
}

// stays returns how many peers of the line may stay, idles how many no task has, any how many are not taken yet.
func (g *holding) stays(line int) Peers {
	at := slices.IndexFunc(g.holds, func(h hold) bool { return h.line == line })
	if at < 0 {
		return 0
	}
	return min(g.free, g.holds[at].now-g.holds[at].then)
}

func (s *transition) idles(g *holding, _ int) Peers {
	idle := g.free
	for _, h := range g.holds {
		if !s.lines[h.line].colocated {
			idle -= h.now
		}
	}
	return idle
}

func (g *holding) any(int) Peers { return g.free }
