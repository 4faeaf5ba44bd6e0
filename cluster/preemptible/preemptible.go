// Package preemptible tells where instances are that could be preempted, and what comes free where others stop already:
// so that what looks for room reads the few nodes that come into question and not all.
package preemptible

import (
	"slices"

	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/cluster/tree"
	"starling/cluster/vector"
	"starling/terms"
	"starling/terms/fingerprint"
	"starling/terms/rules"
)

// Class is what instances have in common that are preempted for the same.
type Class struct {
	Pool      tree.ID
	Revocable bool
	Priority  uint32
}

// ClassOf returns the class of what runs of a job in a version; ok is false for what is not preemptible.
func ClassOf(pool tree.ID, spec *terms.Job) (c Class, ok bool) {
	c = Class{pool, spec.Revocable, min(spec.Priority, terms.PriorityMax)}
	return c, !spec.NonPreemptible() && spec.Type != terms.Daemon
}

// key orders classes by pool, revocability and priority.
func (c Class) key() uint64 {
	return uint64(c.Pool)<<9 | fingerprint.Bit(c.Revocable)<<8 | uint64(c.Priority)
}

// Stage is how far an instance is. Those that are less far are preempted first.
type Stage uint8

const (
	// BackingOff holds its room and waits for its next start.
	BackingOff Stage = iota
	// Ordered has a node that did not report it yet.
	Ordered
	// Running has been started.
	Running
)

// StageOf returns the stage of what is in a phase; ok is false if it cannot be preempted.
func StageOf(phase facts.Phase) (stage Stage, ok bool) {
	switch phase {
	case facts.BackingOff:
		return BackingOff, true
	case facts.Assigned:
		return Ordered, true
	case facts.Running:
		return Running, true
	}
	return 0, false
}

// Leaves tells whether what is in a slot was told to stop, and leaves its room to others: not to what takes its place.
func Leaves(slot *facts.Slot, in rules.Number) bool {
	return slot.Phase == facts.Stopping && (in < rules.Successors || !slot.Cause.Succeeds())
}

// Least bounds the instances of a class on a page of nodes: none of them is preempted before this one would be. The
// zero Least is that of no instances.
type Least struct {
	Stage Stage
	Since terms.Time
	Slot  facts.SlotRef
}

// before tells whether an instance is preempted before another of its class: what is less far, what started later, the
// higher slot.
func (l *Least) before(other *Least) bool {
	switch {
	case l.Stage != other.Stage:
		return l.Stage < other.Stage
	case l.Since != other.Since:
		return l.Since > other.Since
	}
	return l.Slot.Compare(other.Slot) > 0
}

// Index counts what could be preempted by class, and bounds it by page. Copies share rows until either changes them.
type Index struct {
	classes btree.Map[uint64, *row]
	// nodes and pools have what is held by those that leave it to others.
	nodes btree.Map[facts.NodeIndex, terms.Amounts]
	pools btree.Map[tree.ID, terms.Work]
}

// row is a class: how many instances hold room, and by page a bound of those that could be preempted.
type row struct {
	Class
	epoch *vector.Epoch
	count uint32
	least vector.Of[Least]
}

// Copy returns a copy; like that of a tree, it marks the index.
func (x *Index) Copy() Index { return Index{*x.classes.Copy(), *x.nodes.Copy(), *x.pools.Copy()} }

// edit returns the row of a class for changing in an epoch.
func (x *Index) edit(e *vector.Epoch, c Class) *row {
	r, ok := x.classes.Get(c.key())
	switch {
	case !ok:
		r = &row{Class: c, epoch: e}
	case r.epoch != e:
		clone := *r
		clone.epoch = e
		r = &clone
	default:
		return r
	}
	x.classes.Set(c.key(), r)
	return r
}

// Count counts instances of a class that hold room, or no more.
func (x *Index) Count(e *vector.Epoch, c Class, times int64) {
	r := x.edit(e, c)
	facts.Assert(int64(r.count)+times >= 0, "no fewer than none run at a priority")
	if r.count = uint32(int64(r.count) + times); r.count == 0 {
		x.classes.Delete(c.key())
	}
}

// Note lowers the bound of a page to an instance on a node; the class must be counted.
func (x *Index) Note(e *vector.Epoch, c Class, n facts.NodeIndex, l Least) {
	r, page := x.edit(e, c), int(n)/vector.PageRows
	facts.Assert(r.count > 0, "what could be preempted is counted")
	if r.least.Len() <= page {
		r.least.Resize(e, page+1)
	}
	if old := r.least.At(page); old.Slot.Job == 0 || l.before(&old) {
		r.least.Set(e, page, l)
	}
}

// Forget takes the bounds of a page away, for its instances to be noted anew.
func (x *Index) Forget(e *vector.Epoch, page int) {
	var some []Class
	x.EachLeast(page, func(c Class, _ Least) { some = append(some, c) })
	for _, c := range some {
		x.edit(e, c).least.Set(e, page, Least{})
	}
}

// EachLeast visits the bounds of a page.
func (x *Index) EachLeast(page int, visit func(Class, Least)) {
	x.classes.Scan(func(_ uint64, r *row) bool {
		if page < r.least.Len() {
			if l := r.least.At(page); l.Slot.Job != 0 {
				visit(r.Class, l)
			}
		}
		return true
	})
}

// LowestPriority returns that of what could be preempted of a pool, revocable or not; ok is false if there is none.
func (x *Index) LowestPriority(pool tree.ID, revocable bool) (priority uint32, ok bool) {
	first := Class{Pool: pool, Revocable: revocable}
	x.classes.Ascend(first.key(), func(_ uint64, r *row) bool {
		priority, ok = r.Priority, r.Pool == pool && r.Revocable == revocable
		return false
	})
	return priority, ok
}

// ForgetStopping forgets what all hold that leave it to others.
func (x *Index) ForgetStopping() {
	x.nodes, x.pools = btree.Map[facts.NodeIndex, terms.Amounts]{}, btree.Map[tree.ID, terms.Work]{}
}

// Stop adds to what those hold, of a pool and on a node, that leave it to others.
func (x *Index) Stop(pool tree.ID, n facts.NodeIndex, more *terms.Work) {
	free, _ := x.nodes.Get(n)
	free.Add(&more.NonSlack, 1)
	if free.Add(&more.Slack, 1); free == (terms.Amounts{}) {
		x.nodes.Delete(n)
	} else {
		x.nodes.Set(n, free)
	}
	work, _ := x.pools.Get(pool)
	work.NonSlack.Add(&more.NonSlack, 1)
	work.Slack.Add(&more.Slack, 1)
	work.NonPreemptible.Add(&more.NonPreemptible, 1)
	if work.Controller.Add(&more.Controller, 1); work == (terms.Work{}) {
		x.pools.Delete(pool)
	} else {
		x.pools.Set(pool, work)
	}
}

// Stopping returns what those hold of a pool that leave it to others.
func (x *Index) Stopping(pool tree.ID) terms.Work {
	work, _ := x.pools.Get(pool)
	return work
}

// StoppingOn returns what those hold on a node that leave it to others.
func (x *Index) StoppingOn(n facts.NodeIndex) terms.Amounts {
	free, _ := x.nodes.Get(n)
	return free
}

// EachStopping visits, in order, the nodes of a page on which instances hold something that they leave to others.
func (x *Index) EachStopping(page int, visit func(facts.NodeIndex)) {
	x.nodes.Ascend(facts.NodeIndex(page*vector.PageRows), func(n facts.NodeIndex, _ terms.Amounts) bool {
		if int(n)/vector.PageRows != page {
			return false
		}
		visit(n)
		return true
	})
}

// Audit visits what is wrong of an index that was kept, when another was made anew: what is counted is equal, and no
// bound is tighter.
func (x *Index) Audit(anew *Index, say func(format string, args ...any)) {
	x.classes.Scan(func(key uint64, kept *row) bool {
		if other, _ := anew.classes.Get(key); other == nil || other.count != kept.count {
			say("class %+v: kept are %d that run, made anew it is %+v", kept.Class, kept.count, other)
		}
		return true
	})
	anew.classes.Scan(func(key uint64, r *row) bool {
		kept, ok := x.classes.Get(key)
		if !ok {
			say("class %+v: nothing is kept of %d that run", r.Class, r.count)
			return true
		}
		for page := range r.least.Len() {
			bound, least := Least{}, r.least.At(page)
			if page < kept.least.Len() {
				bound = kept.least.At(page)
			}
			if least.Slot.Job != 0 && (bound.Slot.Job == 0 || least.before(&bound)) {
				say("class %+v: on page %d %+v is bounded by %+v", r.Class, page, least, bound)
			}
		}
		return true
	})
	if kept, all := facts.RowsOf(&x.nodes), facts.RowsOf(&anew.nodes); !slices.Equal(kept, all) {
		say("what stops on nodes: kept is %+v, made anew it is %+v", kept, all)
	}
	if kept, all := facts.RowsOf(&x.pools), facts.RowsOf(&anew.pools); !slices.Equal(kept, all) {
		say("what stops in pools: kept is %+v, made anew it is %+v", kept, all)
	}
}
