package share

import (
	"cmp"
	"slices"
)

// Counts returns how many peers each task gets.
func Counts(in *Input) Plan { return divide(in).plan() }

// divide gives the peers to the jobs.
func divide(in *Input) *division {
	d := newDivision(in)
	switch in.Scheduler {
	case JobRoundRobin:
		d.evenly(d.parties)
	case JobPercentage:
		sharing, others := d.parts()
		d.hand(d.admitAll(sharing), shortest)
		d.evenly(others)
	case JobPriority:
		slices.SortStableFunc(d.parties, func(a, b *party) int { return cmp.Compare(b.job.Priority, a.job.Priority) })
		d.oneByOne()
	default:
		d.oneByOne()
	}
	return d
}

// division is the pool while it is divided.
type division struct {
	in      *Input
	supply  *supply
	floor   *floor
	parties []*party
	// left is how many peers may still be given.
	left Peers
}

// party is what one job gets.
type party struct {
	job    *Job
	number int
	// portions are what its tasks get; those that have none of it have a row of none.
	portions []portion
	// open are the portions that may grow.
	open queue[*portion]
	// total is what the job has, least what it needs to run, most what it may have.
	total, least, most Peers
	// quota is its part of all peers, in whole ones.
	quota Peers
	// machine is the first, in the order of the floor, that may have room for another copy. spots has size peers for
	// each copy; copies counts them by machine where that is bounded.
	machine int
	size    int
	spots   []spot
	copies  []Peers
}

// portion is what one task gets.
type portion struct {
	row                int
	count, least, most Peers
	part               BasisPoints
	number             int
}

func newDivision(in *Input) *division {
	d := &division{in: in, supply: newSupply(in)}
	d.floor = newFloor(in, d.supply)
	d.left = max(d.supply.free-max(in.Spare, 0), 0)
	for i := range in.Jobs {
		if who := d.party(i); who != nil {
			d.parties = append(d.parties, who)
		}
	}
	return d
}

// party returns what is to be known of a job, or nil if it takes no peers. A job that can never have what it needs has
// no use for its part, but the part is its own still: the others get what it does not use.
func (d *division) party(number int) *party {
	job := &d.in.Jobs[number]
	who := &party{job: job, number: number, portions: make([]portion, len(job.Tasks)), most: boundless}
	if job.Saturation > 0 {
		who.most = job.Saturation
	}
	never := false
	for i := range job.Tasks {
		t, p := &job.Tasks[i], &who.portions[i]
		p.row, p.number, p.part = none, i, t.Part
		if !t.takes() {
			continue
		}
		p.row = d.supply.require(t.Tags)
		p.least, p.most = job.needs(t)
		never = never || p.least > p.most
		who.least = min(who.least+p.least, boundless)
		if p.least < p.most {
			who.open.items = append(who.open.items, p)
		}
	}
	switch {
	case job.Scheduler == TaskColocated:
		who.gather()
	case who.least == 0 && len(who.open.items) > 0:
		who.least = 1
	}
	if who.least == 0 {
		return nil
	}
	if never || who.least > who.most {
		who.least = boundless
	}
	return who
}

// gather bounds a colocated job by what all its tasks can have alike.
func (who *party) gather() {
	least, most := Peers(0), boundless
	for i := range who.portions {
		if p := &who.portions[i]; p.row != none {
			least, most = max(least, p.least), min(most, p.most)
			who.size++
		}
	}
	who.least = min(least*Peers(who.size), boundless)
	if least > most {
		who.least = boundless
	}
	who.most = min(who.most, most*Peers(max(who.size, 1)))
	who.copies = make([]Peers, len(who.job.Copies))
}

// oneByOne gives each job what it can use before it looks at the next.
func (d *division) oneByOne() {
	for i := range d.parties {
		d.evenly(d.parties[i : i+1])
	}
}

// admitAll gives the jobs, in order, the least that they can do with, and returns those that have it.
func (d *division) admitAll(parties []*party) (admitted []*party) {
	for _, who := range parties {
		if who.least <= d.left && d.admit(who) {
			d.left -= who.total
			admitted = append(admitted, who)
		}
	}
	return admitted
}

// evenly lets the job with the fewest peers have the next one, until nobody can use more.
func (d *division) evenly(parties []*party) {
	admitted := d.admitAll(parties)
	d.raise(admitted)
	d.hand(admitted, fewest)
}

// raise lets all jobs that have fewer peers than some number have so many, or what they can use: as many as there are
// for all. So it comes when they go to the job with the fewest one by one. It needs jobs of one task that may grow, and
// peers that are alike to all of them.
func (d *division) raise(admitted []*party) {
	if len(d.supply.stocks) != 1 || slices.ContainsFunc(admitted, func(who *party) bool {
		return who.job.Scheduler == TaskColocated || len(who.open.items) > 1
	}) {
		return
	}
	const mostBits = 31
	level := Peers(0)
	for bit := mostBits; bit >= 0; bit-- {
		taken := Peers(0)
		for _, who := range admitted {
			taken += d.lacks(who, level|1<<bit)
		}
		if taken <= d.left {
			level |= 1 << bit
		}
	}
	for _, who := range admitted {
		if more := d.lacks(who, level); more > 0 {
			p := who.open.items[0]
			d.supply.takeAlike(p.row, more)
			p.count += more
			who.total += more
			d.left -= more
		}
	}
}

// lacks returns how many peers a job of one open task takes to have so many, or as many as it can use.
func (d *division) lacks(who *party, level Peers) Peers {
	if len(who.open.items) == 0 || len(d.supply.rows[who.open.items[0].row].fits) == 0 {
		return 0
	}
	p := who.open.items[0]
	return max(0, min(level-who.total, who.most-who.total, p.most-p.count))
}

// hand gives one unit at a time to the job in front, until nobody can use more.
func (d *division) hand(admitted []*party, less func(a, b *party) bool) {
	for q := newQueue(admitted, less); len(q.items) > 0; {
		who := q.items[0]
		before := who.total
		if !d.grow(who) {
			q.pop()
			continue
		}
		d.left -= who.total - before
		q.sink(0)
	}
}

// admit gives a job the least it can do with, or nothing.
func (d *division) admit(who *party) bool {
	if who.job.Scheduler == TaskColocated {
		for who.total < who.least {
			if !d.addCopy(who) {
				d.dismiss(who)
				return false
			}
		}
		return true
	}
	for i := range who.portions {
		for p := &who.portions[i]; p.count < p.least; p.count++ {
			if !d.supply.take(p.row) {
				d.dismiss(who)
				return false
			}
			who.total++
		}
	}
	before := map[TaskScheduler]func(a, b *portion) bool{TaskGreedy: first, TaskPercentage: behind}[who.job.Scheduler]
	if before == nil {
		before = lighter
	}
	who.open = newQueue(who.open.items, before)
	return who.total > 0 || d.grow(who)
}

// dismiss takes back what a job has that cannot be covered.
func (d *division) dismiss(who *party) {
	d.vacate(who)
	for i := range who.portions {
		p := &who.portions[i]
		for ; p.count > 0; p.count-- {
			if who.job.Scheduler != TaskColocated {
				d.supply.release(p.row)
			}
		}
	}
	who.total = 0
}

// grow gives a job one unit more: a peer, or a copy.
func (d *division) grow(who *party) bool {
	if who.job.Scheduler == TaskColocated {
		return d.addCopy(who)
	}
	if who.total >= who.most || d.left == 0 {
		return false
	}
	for len(who.open.items) > 0 {
		p := who.open.items[0]
		if p.count < p.most && d.supply.take(p.row) {
			p.count++
			who.total++
			who.open.sink(0)
			return true
		}
		who.open.pop()
	}
	return false
}

// fewest puts the job with the fewest peers in front, then the oldest.
func fewest(a, b *party) bool {
	return cmp.Or(cmp.Compare(a.total, b.total), cmp.Compare(a.number, b.number)) < 0
}

// shortest puts the job in front that lacks the most of its quota, then the one that has the least for its part.
func shortest(a, b *party) bool {
	if lacks, other := max(a.quota-a.total, 0), max(b.quota-b.total, 0); lacks != other {
		return lacks > other
	}
	return cmp.Or(rounded(a.total, a.job.Part, b.total, b.job.Part),
		cmp.Compare(b.job.Part, a.job.Part), cmp.Compare(a.number, b.number)) < 0
}

// lighter puts the task with the fewest peers in front, then the first.
func lighter(a, b *portion) bool {
	return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.number, b.number)) < 0
}

// first puts the first task in front.
func first(a, b *portion) bool { return a.number < b.number }

// behind puts the task in front that has the least for its part, then the first.
func behind(a, b *portion) bool {
	return cmp.Or(rounded(a.count, a.part, b.count, b.part), cmp.Compare(a.number, b.number)) < 0
}

// rounded compares who would have less for its part with half a peer more: so who is next when parts are rounded to the
// nearest. Those without a part are last, by what they have.
func rounded(count Peers, part BasisPoints, other Peers, otherPart BasisPoints) int {
	switch {
	case part <= 0 && otherPart <= 0:
		return cmp.Compare(count, other)
	case part <= 0 || otherPart <= 0:
		return cmp.Compare(otherPart, part)
	}
	return cmp.Compare((2*count+1)*Peers(otherPart), (2*other+1)*Peers(part))
}

// parts returns the jobs whose parts are within the whole, largest first, with their quotas, and the others. What is
// nobody's part stays out of the division.
func (d *division) parts() (sharing, others []*party) {
	slices.SortStableFunc(d.parties, func(a, b *party) int { return cmp.Compare(b.job.Part, a.job.Part) })
	stated, within := BasisPoints(0), 0
	for _, who := range d.parties {
		if who.job.Part <= 0 || who.job.Part > whole-stated {
			break
		}
		stated += who.job.Part
		within++
	}
	sharing, others = d.parties[:within], d.parties[within:]
	all := d.left
	d.left = all * Peers(stated) / Peers(whole)
	rest := d.left
	rests := slices.Clone(sharing)
	for _, who := range sharing {
		who.quota = all * Peers(who.job.Part) / Peers(whole)
		rest -= who.quota
	}
	slices.SortStableFunc(rests, func(a, b *party) int {
		return cmp.Compare(all*Peers(b.job.Part)%Peers(whole), all*Peers(a.job.Part)%Peers(whole))
	})
	for _, who := range rests[:rest] {
		who.quota++
	}
	return sharing, others
}

// plan returns the result.
func (d *division) plan() Plan {
	p := Plan{Peers: make([][]Peers, len(d.in.Jobs))}
	for i := range p.Peers {
		p.Peers[i] = make([]Peers, len(d.in.Jobs[i].Tasks))
	}
	for _, who := range d.parties {
		for i := range who.portions {
			p.Peers[who.number][i] = who.portions[i].count
		}
	}
	return p
}

// spots returns, by job, where the copies of colocated jobs have room. What runs may stay elsewhere.
func (d *division) spots() [][]spot {
	all := make([][]spot, len(d.in.Jobs))
	for _, who := range d.parties {
		all[who.number] = who.spots
	}
	return all
}
