package watch

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/replica"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/pool"
)

// change is one thing before and after an entry; either may be nil.
type change struct{ was, is *thing }

// entry is what an entry changed.
type entry struct {
	index   terms.Index
	time    terms.Time
	changes []change
}

// folding is a value that entries are folded into, one by one.
type folding struct {
	state  *cluster.State
	before cluster.Frozen
	edited []terms.JobID
}

func newFolding(s *cluster.State) *folding {
	f := &folding{state: s, before: s.Freeze()}
	s.TraceJobs(&f.edited)
	return f
}

// fold folds the next entry, and returns what it changed; ok is false if that does not lead to the value to which it
// led where it was folded before.
func (f *folding) fold(folded *report.Folded) (e entry, ok bool) {
	if folded.Index != f.state.Index+1 {
		return e, false
	}
	f.edited = f.edited[:0]
	if folded.Entry == nil {
		replica.Skip(f.state, folded.Index, folded.Bytes, folded.Outcome.Dropped)
	} else {
		replica.Apply(f.state, folded.Index, folded.Entry, false)
	}
	d := differences{was: f.before.Copy(), is: f.state}
	d.find(f.edited)
	f.before = f.state.Freeze()
	return entry{f.state.Index, f.state.Time, d.changes}, f.state.Digest() == folded.Digest
}

// differences lists what differs between two values, of which one is the other with changes.
type differences struct {
	was, is *cluster.State
	changes []change
	// rows are the seats that may differ, found the slots that may be found elsewhere or not at all.
	rows, found []facts.SlotRef
	// without tells that instances and endpoints are not asked for.
	without bool
}

// find lists all of it: each kind after the other, each in its own order. Jobs that were not edited do not differ.
func (d *differences) find(edited []terms.JobID) {
	if d.was.PoolsVersion() != d.is.PoolsVersion() {
		d.pools()
	}
	d.is.EachNodeSince(d.was, d.node)
	d.jobs(edited)
}

// between lists what differs between any two values of one journal, whichever is older. What both have in common is not
// looked at where one of them was made of the other.
func between(was, is *cluster.State, q *query) []change {
	d := differences{was: was, is: is, without: !q.kinds[kindInstance] && !q.kinds[kindEndpoint]}
	if was.PoolsVersion() != is.PoolsVersion() {
		d.pools()
	}
	for n := range facts.NodeIndex(max(was.Nodes(), is.Nodes())) {
		if both := min(was.Nodes(), is.Nodes()); int(n) >= both || was.Node(n) != is.Node(n) {
			d.node(n)
		}
	}
	var edited []terms.JobID
	for _, s := range []*cluster.State{was, is} {
		s.EachJob(func(j *workload.Job) bool {
			if was.Job(j.ID) != is.Job(j.ID) {
				edited = append(edited, j.ID)
			}
			return true
		})
	}
	d.jobs(edited)
	return d.changes
}

// jobs lists what differs of jobs that may.
func (d *differences) jobs(edited []terms.JobID) {
	slices.Sort(edited)
	edited = slices.Compact(edited)
	for _, id := range edited {
		if was, is := d.was.Job(id), d.is.Job(id); was != is {
			d.add(job(was), job(is))
			if !d.without {
				d.seats(was, is)
			}
		}
	}
	for _, id := range edited {
		d.add(update(d.was.Job(id)), update(d.is.Job(id)))
	}
	slices.SortFunc(d.rows, facts.SlotRef.Compare)
	for _, r := range slices.Compact(d.rows) {
		d.add(instance(d.was, r), instance(d.is, r))
		r.Seat = facts.MainSeat
		d.found = append(d.found, r)
	}
	slices.SortFunc(d.found, facts.SlotRef.Compare)
	for _, r := range slices.Compact(d.found) {
		d.add(endpoint(d.was, r), endpoint(d.is, r))
	}
}

// add notes a change, if it is one.
func (d *differences) add(was, is *thing) {
	switch {
	case was == nil && is == nil:
	case was != nil && is != nil && was.name == is.name && proto.Equal(was.told, is.told):
	default:
		d.changes = append(d.changes, change{was, is})
	}
}

func (d *differences) pools() {
	before, after := pool.Tree(d.was.Pools()), pool.Tree(d.is.Pools())
	for i := range before {
		at, stays := after.Find(before[i].Path)
		if !stays {
			d.add(poolThing(&before[i]), nil)
			continue
		}
		d.add(poolThing(&before[i]), poolThing(&after[at]))
	}
	for i := range after {
		if _, old := before.Find(after[i].Path); !old {
			d.add(nil, poolThing(&after[i]))
		}
	}
}

func (d *differences) node(n facts.NodeIndex) {
	was, is := node(d.was, n), node(d.is, n)
	d.add(was, is)
	if was != nil && is != nil && was.told.GetNode().GetAddress() != is.told.GetNode().GetAddress() {
		d.found = append(append(d.found, d.was.Node(n).Held...), d.is.Node(n).Held...)
		for i := range d.found {
			d.found[i].Seat = facts.MainSeat
		}
	}
}

// seats notes the seats of a job that may differ, and the slots that are wanted or not any more.
func (d *differences) seats(was, is *workload.Job) {
	sameVersions := was != nil && is != nil && was.Version == is.Version && len(was.Versions) == len(is.Versions)
	for number := range max(tasks(was), tasks(is)) {
		old, next := taskOf(was, number), taskOf(is, number)
		if old == next && sameVersions {
			continue
		}
		r := facts.SlotRef{Job: idOf(was, is), Task: uint16(number)}
		for _, task := range []*workload.Task{old, next} {
			task.EachSecondary(r.Job, number, func(r facts.SlotRef, _ facts.Slot) bool {
				d.rows = append(d.rows, r)
				return true
			})
		}
		if both := min(old.Slots.Len(), next.Slots.Len()); sameVersions {
			next.Slots.EachSince(&old.Slots, func(i int) {
				if i >= both || old.Slots.At(i) != next.Slots.At(i) {
					r.Index = uint32(i)
					d.rows = append(d.rows, r)
				}
			})
		} else { // labels may be others
			for r.Index = 0; int(r.Index) < max(old.Slots.Len(), next.Slots.Len()); r.Index++ {
				d.rows = append(d.rows, r)
			}
		}
		for r.Index = min(old.Desired, next.Desired); r.Index < max(old.Desired, next.Desired); r.Index++ {
			d.found = append(d.found, r)
		}
	}
}

func tasks(j *workload.Job) int {
	if j == nil {
		return 0
	}
	return len(j.Tasks)
}

// taskOf returns a task of a job, one without slots if there is none.
func taskOf(j *workload.Job, number int) *workload.Task {
	if number >= tasks(j) {
		return &workload.Task{}
	}
	return j.Tasks[number]
}

func idOf(was, is *workload.Job) terms.JobID {
	if is == nil {
		return was.ID
	}
	return is.ID
}
