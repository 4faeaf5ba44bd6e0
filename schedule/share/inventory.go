package share

import (
	"cmp"
	"slices"
)

// inventory is the machines, for jobs whose tasks go together.
type inventory struct {
	machines []machine
	// order has the smallest machines first: what is left on them is of the least use to others.
	order []int
}

// machine has room for copies, by class. Peers that are not colocated are counted by class only, not by machine.
type machine struct {
	free    Peers
	byClass []freePeers
}

// freePeers are the peers of a class that are free on a machine.
type freePeers struct {
	class int
	free  Peers
}

// copyPeer is a peer of a copy.
type copyPeer struct{ machine, class int }

// newInventory returns the machines, none if no job needs them.
func newInventory(in *Input, s *capacity) *inventory {
	f := &inventory{}
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
		slices.SortStableFunc(f.machines[i].byClass, func(a, b freePeers) int { return cmp.Compare(a.class, b.class) })
	}
	slices.SortStableFunc(f.order, func(a, b int) int { return cmp.Compare(f.machines[a].free, f.machines[b].free) })
	return f
}

func (m *machine) add(class int, peers Peers) {
	at := slices.IndexFunc(m.byClass, func(r freePeers) bool { return r.class == class })
	if at < 0 {
		at = len(m.byClass)
		m.byClass = append(m.byClass, freePeers{class: class})
	}
	m.byClass[at].free += peers
	m.free += peers
}

// addCopy gives a colocated job a peer for each of its tasks, all on one machine. A machine that had no room once never
// has any later, so each job goes through the machines once.
func (d *division) addCopy(j *jobShare) bool {
	size := Peers(j.size)
	if j.total+size > j.most || size > d.left {
		return false
	}
	for ; j.machine < len(d.inventory.order); j.machine++ {
		if d.fitCopy(j, d.inventory.order[j.machine]) {
			for i := range j.tasks {
				if p := &j.tasks[i]; p.row != none {
					p.count++
				}
			}
			j.total += size
			return true
		}
	}
	return false
}

// fitCopy takes a copy's peers on a machine, if all others find theirs without them.
func (d *division) fitCopy(j *jobShare, number int) bool {
	m := &d.inventory.machines[number]
	return m.free >= Peers(j.size) && d.takeCopy(j, number, d.capacity.match(j.tasks, m.byClass))
}

// takeCopy takes a copy's peers on a machine, one of each of the classes.
func (d *division) takeCopy(j *jobShare, number int, classes []int) bool {
	bounded := number < len(j.copies)
	if len(classes) == 0 || bounded && j.copies[number] >= j.job.Copies[number] {
		return false
	}
	for i, c := range classes {
		if !d.capacity.take(d.capacity.firstClass + c) {
			for _, taken := range classes[:i] {
				d.capacity.release(d.capacity.firstClass + taken)
			}
			return false
		}
	}
	for _, c := range classes {
		d.inventory.machines[number].add(c, -1)
		j.copyPeers = append(j.copyPeers, copyPeer{number, c})
	}
	if bounded {
		j.copies[number]++
	}
	return true
}

// match finds a class for each task, those that fit least else first, and returns them; none if there is no way.
func (s *capacity) match(tasks []taskShare, byClass []freePeers) []int {
	if len(byClass) == 1 {
		return s.matchOne(tasks, byClass[0].class)
	}
	local, classes := capacity{firstClass: len(tasks)}, make([]int, 0, len(tasks))
	for _, r := range byClass {
		local.classes = append(local.classes, class{peers: r.free})
		local.free += r.free
	}
	local.paths = newPaths(len(byClass))
	for i := range tasks {
		if tasks[i].row == none {
			continue
		}
		own := row{taken: make([]Peers, len(byClass))}
		for at, r := range byClass {
			if slices.Contains(s.rows[tasks[i].row].fits, r.class) {
				own.fits = append(own.fits, at)
			}
		}
		local.rows = append(local.rows, own)
		if !local.take(len(local.rows) - 1) {
			return nil
		}
	}
	for i := range local.rows {
		classes = append(classes, byClass[slices.Index(local.rows[i].taken, 1)].class)
	}
	return classes
}

// matchOne is match where there is one room.
func (s *capacity) matchOne(tasks []taskShare, class int) (classes []int) {
	for i := range tasks {
		if row := tasks[i].row; row != none && !slices.Contains(s.rows[row].fits, class) {
			return nil
		} else if row != none {
			classes = append(classes, class)
		}
	}
	return classes
}

// releaseCopies gives back the peers of the copies of a job.
func (d *division) releaseCopies(j *jobShare) {
	for _, copyPeer := range j.copyPeers {
		d.capacity.release(d.capacity.firstClass + copyPeer.class)
		d.inventory.machines[copyPeer.machine].add(copyPeer.class, 1)
	}
	j.copyPeers = nil
	clear(j.copies)
}
