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
		d.evenly(d.jobs)
	case JobPercentage:
		sharing, others := d.parts()
		d.distribute(d.admitAll(sharing), shortest)
		d.evenly(others)
	case JobPriority:
		slices.SortStableFunc(d.jobs, func(a, b *jobShare) int { return cmp.Compare(b.job.Priority, a.job.Priority) })
		d.oneByOne()
	default:
		d.oneByOne()
	}
	return d
}

// division is the pool while it is divided.
type division struct {
	in        *Input
	capacity  *capacity
	inventory *inventory
	jobs      []*jobShare
	// left is how many peers may still be given.
	left Peers
}

// jobShare is what one job gets.
type jobShare struct {
	job    *Job
	number int
	// tasks are what its tasks get; those that have none of it have a row of none.
	tasks []taskShare
	// open are the tasks that may grow.
	open queue[*taskShare]
	// total is what the job has, least what it needs to run, most what it may have.
	total, least, most Peers
	// quota is its part of all peers, in whole ones.
	quota Peers
	// machine is the first, in the order of the inventory, that may have room for another copy. copyPeers has size
	// peers for each copy; copies counts them by machine where that is bounded.
	machine   int
	size      int
	copyPeers []copyPeer
	copies    []Peers
}

// taskShare is what one task gets.
type taskShare struct {
	row                int
	count, least, most Peers
	part               BasisPoints
	number             int
}

func newDivision(in *Input) *division {
	d := &division{in: in, capacity: newCapacity(in)}
	d.inventory = newInventory(in, d.capacity)
	d.left = max(d.capacity.free-max(in.Spare, 0), 0)
	for i := range in.Jobs {
		if j := d.shareOf(i); j != nil {
			d.jobs = append(d.jobs, j)
		}
	}
	return d
}

// shareOf returns what is to be known of a job, or nil if it takes no peers. A job that can never have what it needs
// has no use for its part, but the part is its own still: the others get what it does not use.
func (d *division) shareOf(number int) *jobShare {
	job := &d.in.Jobs[number]
	j := &jobShare{job: job, number: number, tasks: make([]taskShare, len(job.Tasks)), most: boundless}
	if job.Saturation > 0 {
		j.most = job.Saturation
	}
	never := false
	for i := range job.Tasks {
		t, p := &job.Tasks[i], &j.tasks[i]
		p.row, p.number, p.part = none, i, t.Part
		if !t.takes() {
			continue
		}
		p.row = d.capacity.require(t.Tags)
		p.least, p.most = job.needs(t)
		never = never || p.least > p.most
		j.least = min(j.least+p.least, boundless)
		if p.least < p.most {
			j.open.items = append(j.open.items, p)
		}
	}
	switch {
	case job.Scheduler == TaskColocated:
		j.boundColocated()
	case j.least == 0 && len(j.open.items) > 0:
		j.least = 1
	}
	if j.least == 0 {
		return nil
	}
	if never || j.least > j.most {
		j.least = boundless
	}
	return j
}

// boundColocated bounds a colocated job by what all its tasks can have alike.
func (j *jobShare) boundColocated() {
	least, most := Peers(0), boundless
	for i := range j.tasks {
		if p := &j.tasks[i]; p.row != none {
			least, most = max(least, p.least), min(most, p.most)
			j.size++
		}
	}
	j.least = min(least*Peers(j.size), boundless)
	if least > most {
		j.least = boundless
	}
	j.most = min(j.most, most*Peers(max(j.size, 1)))
	j.copies = make([]Peers, len(j.job.Copies))
}

// oneByOne gives each job what it can use before it looks at the next.
func (d *division) oneByOne() {
	for i := range d.jobs {
		d.evenly(d.jobs[i : i+1])
	}
}

// admitAll gives the jobs, in order, the least that they can do with, and returns those that have it.
func (d *division) admitAll(jobs []*jobShare) (admitted []*jobShare) {
	for _, j := range jobs {
		if j.least <= d.left && d.admit(j) {
			d.left -= j.total
			admitted = append(admitted, j)
		}
	}
	return admitted
}

// evenly lets the job with the fewest peers have the next one, until none can use more.
func (d *division) evenly(jobs []*jobShare) {
	admitted := d.admitAll(jobs)
	d.raise(admitted)
	d.distribute(admitted, fewest)
}

// raise lets all jobs that have fewer peers than some number have so many, or what they can use: as many as there are
// for all. So it comes when they go to the job with the fewest one by one. It needs jobs of one task that may grow, and
// peers that are alike to all of them.
func (d *division) raise(admitted []*jobShare) {
	if len(d.capacity.classes) != 1 || slices.ContainsFunc(admitted, func(j *jobShare) bool {
		return j.job.Scheduler == TaskColocated || len(j.open.items) > 1
	}) {
		return
	}
	const mostBits = 31
	level := Peers(0)
	for bit := mostBits; bit >= 0; bit-- {
		taken := Peers(0)
		for _, j := range admitted {
			taken += d.lacks(j, level|1<<bit)
		}
		if taken <= d.left {
			level |= 1 << bit
		}
	}
	for _, j := range admitted {
		if more := d.lacks(j, level); more > 0 {
			p := j.open.items[0]
			d.capacity.takeAlike(p.row, more)
			p.count += more
			j.total += more
			d.left -= more
		}
	}
}

// lacks returns how many peers a job of one open task takes to have so many, or as many as it can use.
func (d *division) lacks(j *jobShare, level Peers) Peers {
	if len(j.open.items) == 0 || len(d.capacity.rows[j.open.items[0].row].fits) == 0 {
		return 0
	}
	p := j.open.items[0]
	return max(0, min(level-j.total, j.most-j.total, p.most-p.count))
}

// distribute gives one unit at a time to the job in front, until none can use more.
func (d *division) distribute(admitted []*jobShare, less func(a, b *jobShare) bool) {
	for q := newQueue(admitted, less); len(q.items) > 0; {
		j := q.items[0]
		before := j.total
		if !d.grow(j) {
			q.pop()
			continue
		}
		d.left -= j.total - before
		q.sink(0)
	}
}

// admit gives a job the least it can do with, or nothing.
func (d *division) admit(j *jobShare) bool {
	if j.job.Scheduler == TaskColocated {
		for j.total < j.least {
			if !d.addCopy(j) {
				d.takeBack(j)
				return false
			}
		}
		return true
	}
	for i := range j.tasks {
		for p := &j.tasks[i]; p.count < p.least; p.count++ {
			if !d.capacity.take(p.row) {
				d.takeBack(j)
				return false
			}
			j.total++
		}
	}
	before := map[TaskScheduler]func(a, b *taskShare) bool{TaskGreedy: first, TaskPercentage: behind}[j.job.Scheduler]
	if before == nil {
		before = lighter
	}
	j.open = newQueue(j.open.items, before)
	return j.total > 0 || d.grow(j)
}

// takeBack takes back what a job has that cannot be covered.
func (d *division) takeBack(j *jobShare) {
	d.releaseCopies(j)
	for i := range j.tasks {
		p := &j.tasks[i]
		for ; p.count > 0; p.count-- {
			if j.job.Scheduler != TaskColocated {
				d.capacity.release(p.row)
			}
		}
	}
	j.total = 0
}

// grow gives a job one unit more: a peer, or a copy.
func (d *division) grow(j *jobShare) bool {
	if j.job.Scheduler == TaskColocated {
		return d.addCopy(j)
	}
	if j.total >= j.most || d.left == 0 {
		return false
	}
	for len(j.open.items) > 0 {
		p := j.open.items[0]
		if p.count < p.most && d.capacity.take(p.row) {
			p.count++
			j.total++
			j.open.sink(0)
			return true
		}
		j.open.pop()
	}
	return false
}

// fewest puts the job with the fewest peers in front, then the oldest.
func fewest(a, b *jobShare) bool {
	return cmp.Or(cmp.Compare(a.total, b.total), cmp.Compare(a.number, b.number)) < 0
}

// shortest puts the job in front that lacks the most of its quota, then the one that has the least for its part.
func shortest(a, b *jobShare) bool {
	if lacks, other := max(a.quota-a.total, 0), max(b.quota-b.total, 0); lacks != other {
		return lacks > other
	}
	return cmp.Or(rounded(a.total, a.job.Part, b.total, b.job.Part),
		cmp.Compare(b.job.Part, a.job.Part), cmp.Compare(a.number, b.number)) < 0
}

// lighter puts the task with the fewest peers in front, then the first.
func lighter(a, b *taskShare) bool {
	return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.number, b.number)) < 0
}

// first puts the first task in front.
func first(a, b *taskShare) bool { return a.number < b.number }

// behind puts the task in front that has the least for its part, then the first.
func behind(a, b *taskShare) bool {
	return cmp.Or(rounded(a.count, a.part, b.count, b.part), cmp.Compare(a.number, b.number)) < 0
}

// rounded compares which would have less for its part with half a peer more: so which is next when parts are rounded to
// the nearest. Those without a part are last, by what they have.
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
// no job's part stays out of the division.
func (d *division) parts() (sharing, others []*jobShare) {
	slices.SortStableFunc(d.jobs, func(a, b *jobShare) int { return cmp.Compare(b.job.Part, a.job.Part) })
	stated, within := BasisPoints(0), 0
	for _, j := range d.jobs {
		if j.job.Part <= 0 || j.job.Part > whole-stated {
			break
		}
		stated += j.job.Part
		within++
	}
	sharing, others = d.jobs[:within], d.jobs[within:]
	all := d.left
	d.left = all * Peers(stated) / Peers(whole)
	rest := d.left
	rests := slices.Clone(sharing)
	for _, j := range sharing {
		j.quota = all * Peers(j.job.Part) / Peers(whole)
		rest -= j.quota
	}
	slices.SortStableFunc(rests, func(a, b *jobShare) int {
		return cmp.Compare(all*Peers(b.job.Part)%Peers(whole), all*Peers(a.job.Part)%Peers(whole))
	})
	for _, j := range rests[:rest] {
		j.quota++
	}
	return sharing, others
}

// plan returns the result.
func (d *division) plan() Plan {
	p := Plan{Peers: make([][]Peers, len(d.in.Jobs))}
	for i := range p.Peers {
		p.Peers[i] = make([]Peers, len(d.in.Jobs[i].Tasks))
	}
	for _, j := range d.jobs {
		for i := range j.tasks {
			p.Peers[j.number][i] = j.tasks[i].count
		}
	}
	return p
}

// copyPeers returns, by job, where the copies of colocated jobs have room. What runs may stay elsewhere.
func (d *division) copyPeers() [][]copyPeer {
	all := make([][]copyPeer, len(d.in.Jobs))
	for _, j := range d.jobs {
		all[j.number] = j.copyPeers
	}
	return all
}
