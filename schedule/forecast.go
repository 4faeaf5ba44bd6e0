package schedule

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/workload"
	"starling/schedule/admission"
	"starling/schedule/entitle"
	"starling/schedule/place"
	"starling/schedule/preempt"
	"starling/schedule/share"
	"starling/terms"
)

// What people are told of work that waits. Everything here takes time in proportion to the cluster, and a value of its
// own.

// QueueForecast is what lies before waiting work of a job: what comes first in its pool, and what may give way to it.
type QueueForecast struct {
	pass  *pass
	head  head
	entry workload.QueueEntry
	job   *workload.Job
	// Pool is the pool of the job as admission sees it, Number its place in the tree.
	Pool   admission.Pool
	Number int
	// Unit is what is admitted together: the gang that nothing runs of, or one instance.
	Unit admission.Gang
}

// NewQueueForecast returns that of a queue entry of a task that waits in a pool; ok is false for others. It changes s.
func NewQueueForecast(s *cluster.State, key facts.TaskKey) (o *QueueForecast, ok bool) {
	id, task := key.Split()
	j := asks(s, id)
	number := s.PoolOf(j)
	if number < 0 || !s.Queued(key) {
		return nil, false
	}
	s.SetNomination(id, facts.Nomination{}) // what is kept for the job is free to it
	p := &pass{s: s, memory: new(memory), left: s.Limits.Placements, gaps: place.NewGaps(s),
		entitled: entitle.Entitlements(entitle.Of(s))}
	p.ancestorLimits = admission.AncestorLimitsOf(s, p.entitled, nil)
	p.heads = make([][]head, len(p.entitled))
	o = &QueueForecast{pass: p, job: j, Number: number,
		Pool: admission.PoolOf(s, number, &p.entitled[number], p.ancestorLimits.Of(number, j.Spec.Revocable))}
	o.entry, _ = s.NextInQueue(s.QueueStart(number), func(t workload.QueueEntry) bool { return t.Key == key })
	o.Unit = *admission.GangOf(j, o.entry.Need, 1)
	if o.head = (head{job: id}); j.GangState() < gang.Growing {
		o.head.key, o.head.most = key, j.Tasks[task].Asks()
	}
	gate := admission.New(&o.Pool)
	o.head.entitled = gate.Entitled(&o.Unit) > gate.Room(&o.Unit)
	return o, true
}

// asks returns a job whose tasks ask for room although no nodes could run them: so it is told of all that waits.
func asks(s *cluster.State, id terms.JobID) *workload.Job {
	for task := range s.Job(id).Tasks {
		s.SetUnsuited(id, task, false)
	}
	return s.Job(id)
}

// Queue is what waits in a pool, as work in it finds it.
type Queue struct {
	// Before are the jobs that come first, in their order; Jobs are all, with the one itself.
	Before []terms.JobID
	Jobs   int
	// First are those of them for which the pool keeps room.
	First []First
	// Room tells that the pool admits the work when its turn comes, Short of which kinds what is not kept is too
	// little.
	Room  bool
	Short []terms.Kind
}

// First is work for which a pool keeps room, of the kinds that it needs; Lacks are those of which it waits for more.
type First struct {
	Job          terms.JobID
	Needs, Lacks []terms.Kind
}

// Queue lets those before the work have their turns, as if no node had room for any. What is revocable comes after all
// else.
func (o *QueueForecast) Queue() *Queue {
	q := &Queue{}
	seen := map[terms.JobID]bool{o.job.ID: true}
	for _, revocable := range [...]bool{false, true} {
		t := &queuePass{pass: o.pass, number: o.Number, revocable: revocable, admission: admission.New(&o.Pool),
			looks: heldBackMax}
		o.eachEntry(revocable, func(next workload.QueueEntry) {
			id, _ := next.Key.Split()
			before := o.precedes(&next, revocable)
			if before && revocable == o.Unit.Revocable && t.wanted(next) && id != o.job.ID {
				o.let(t, next, q)
			}
			if before && !seen[id] {
				q.Before = append(q.Before, id)
			}
			seen[id] = true
		})
		if revocable == o.Unit.Revocable {
			q.Room, q.Short = t.admission.Room(&o.Unit) > 0, lacking(&t.admission, &o.Unit)
		}
	}
	q.Jobs = len(seen)
	return q
}

// eachEntry visits the queue entries of the pool, revocable or not, in their order.
func (o *QueueForecast) eachEntry(revocable bool, visit func(workload.QueueEntry)) {
	all := func(t workload.QueueEntry) bool { return (t.Class == terms.Revocable) == revocable }
	for at, ok := o.pass.s.NextInQueue(o.pass.s.QueueStart(o.Number), all); ok; at, ok = o.pass.s.NextInQueue(at, all) {
		visit(at)
	}
}

// precedes tells whether a queue entry that is revocable or not comes before the work.
func (o *QueueForecast) precedes(t *workload.QueueEntry, revocable bool) bool {
	if revocable != o.Unit.Revocable {
		return !revocable
	}
	return t.Before(&o.entry)
}

// let serves one entry of the queue, and notes if room is kept for it.
func (o *QueueForecast) let(t *queuePass, entry workload.QueueEntry, q *Queue) {
	id, _ := entry.Key.Split()
	unit, kept := admission.GangOf(o.pass.s.Job(id), entry.Need, 1), t.admission.Awaits(entry.Class)
	first := First{Job: id, Lacks: lacking(&t.admission, unit)}
	t.serve(entry)
	if !kept && t.admission.Awaits(entry.Class) {
		for k, need := range unit.Need {
			if need > 0 {
				first.Needs = append(first.Needs, terms.Kind(k))
			}
		}
		q.First = append(q.First, first)
	}
}

// lacking returns the kinds of which the pool has too little for work now.
func lacking(a *admission.Admission, g *admission.Gang) (kinds []terms.Kind) {
	for k, need := range g.Need {
		one := terms.Amounts{}
		one[k] = need
		if !a.Fits(terms.ClassOf(g.Revocable, g.NonPreemptible, g.Controller), &one, a.Passes(g.RunsAtMost)) {
			kinds = append(kinds, terms.Kind(k))
		}
	}
	return kinds
}

// GangRoom is the room that nodes have now for the missing members of a gang.
type GangRoom struct {
	// Members are missing, Fit of them have room together. Uniform tells that all are of one task.
	Members, Fit uint32
	Uniform      bool
	// Attribute is what the members are to have in common, "" for nothing; Value the one where most have room.
	Attribute, Value string
}

// RoomOfGang returns the room for the gang of a job. It changes s.
func RoomOfGang(s *cluster.State, j *workload.Job) GangRoom {
	s.SetNomination(j.ID, facts.Nomination{})
	j = asks(s, j.ID)
	p := &pass{s: s, memory: new(memory), left: s.Limits.Placements, gaps: place.NewGaps(s),
		all: make([]int, s.RoomPages())}
	for page := range p.all {
		p.all[page] = page
	}
	r := GangRoom{Members: j.MissingAny(), Attribute: place.TogetherBy(j)}
	tasks := 0
	for task := range j.Tasks {
		r.Members += j.Missing(task)
		if j.Missing(task) > 0 || j.MissingAny() > 0 {
			tasks++
		}
	}
	r.Uniform = tasks == 1
	var d *place.Domain
	if r.Attribute != "" {
		d = (&queuePass{pass: p}).roomiest(j)
	}
	if d != nil {
		r.Value = d.Value
	}
	m := &members{queuePass: &queuePass{pass: p}, job: j.ID, domain: d, nomination: &facts.Nomination{},
		trial: trial{s: s}}
	beyond := j.MissingAny()
	for task := range j.Tasks {
		r.Fit += m.place(task, j.Missing(task))
	}
	for task := range j.Tasks {
		some := m.more(task, beyond, nil)
		r.Fit, beyond = r.Fit+some, beyond-some
	}
	return r
}

// roomiest returns the domain with room for the most members of a gang; nil if there is none.
func (p *queuePass) roomiest(j *workload.Job) (best *place.Domain) {
	most := int64(-1)
	for _, r := range p.rooms(j, false) {
		if members := r.members(j); members > most {
			best, most = r.Domain, members
		}
	}
	return best
}

// Contest is what could give way to the work, those of one job together.
func (o *QueueForecast) Contest() *preempt.Input {
	in := o.pass.input(o.Number, &o.head)
	o.pass.readAll(in)
	in.Victims = slices.SortedStableFunc(slices.Values(in.Victims),
		func(a, b preempt.Victim) int { return a.Slot.Compare(b.Slot) })
	return in
}

// Yielding is an instance that gives way to the work, by a rule.
type Yielding struct {
	Slot facts.SlotRef
	Rule preempt.Rule
}

// Yielding returns what would give way to the work if its job had a priority; ok is false if nothing lets it run.
func (o *QueueForecast) Yielding(priority uint32) (all []Yielding, ok bool) {
	in := o.Contest()
	in.Priority, in.Victims = priority, slices.Clone(in.Victims)
	for i := range in.Victims {
		if v := &in.Victims[i]; v.Slot.Job == o.job.ID {
			v.Priority = priority
		}
	}
	plan, ok := o.pass.choose(&o.head, in)
	for _, chosen := range plan.Victims {
		all = append(all, Yielding{in.Victims[chosen.Victim].Slot, chosen.Rule})
	}
	return all, ok
}

// Division is how a pool divides its virtual peers: the pool, and what the counts are made of.
type Division struct {
	share.Pool
	In *share.Input
}

// DivisionOf returns how the pool of a job divides its virtual peers; ok is false for a job that they do not run.
func DivisionOf(s *cluster.State, id terms.JobID) (d *Division, ok bool) {
	(&pass{s: s, memory: new(memory)}).eachSharing(func(x *sharing) {
		if _, own := slices.BinarySearch(x.Jobs, id); own {
			d, ok = &Division{x.Pool, x.in}, true
		}
	})
	if ok && d.NodeGroups != nil {
		d.NodeGroups.Bound(d.In)
	}
	return d, ok
}
