package cluster

import (
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/tree"
	"starling/cluster/workload"
	"starling/terms"
)

// Audit makes the index anew from the facts, and returns a line for each difference to the one that is kept, and for
// each rule that the facts break. It takes time proportional to the value.
func (s *State) Audit() []string {
	a := &audit{kept: s}
	if a.rules(); len(a.found) > 0 {
		return a.found // there is no index of such facts
	}
	a.anew = Rebuild(a.kept.Facts())
	a.found = append(a.found, s.Membership.Audit()...)
	a.totals()
	for n := range facts.NodeIndex(s.Nodes()) {
		a.node(a.kept.Node(n), a.anew.Node(n))
	}
	s.EachJob(func(j *workload.Job) bool {
		a.job(j, a.anew.Job(j.ID))
		return true
	})
	a.affinity()
	return a.found
}

// audit compares the index that is kept with one made anew.
type audit struct {
	kept, anew *State
	found      []string
}

func (a *audit) say(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

// same notes two values that differ.
func same[T comparable](a *audit, what string, kept, anew T) {
	if kept != anew {
		a.say("%s: kept is %+v, made anew it is %+v", what, kept, anew)
	}
}

// sameAll notes two lists that differ.
func sameAll[T comparable](a *audit, what string, kept, anew []T) {
	if !slices.Equal(kept, anew) {
		a.say("%s: kept is %+v, made anew it is %+v", what, kept, anew)
	}
}

// sameMap notes two tables that differ.
func sameMap[K, V comparable](a *audit, what string, kept, anew facts.Table[K, V]) {
	sameAll(a, what, facts.RowsOf(kept), facts.RowsOf(anew))
}

// rules checks what holds of what is given to slots: each has what its version asks for, and nothing is given twice.
func (a *audit) rules() {
	a.kept.EachJob(func(j *workload.Job) bool {
		for task := range j.Tasks {
			a.kept.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
				if slot.Phase.Holds() {
					a.given(j, r, &slot)
				}
				return true
			})
		}
		if (len(j.Spec.Plugins) > 0) != (j.Roster != facts.Roster{}) {
			a.say("job %s has %d plugins and the roster %+v", j.Name(), len(j.Spec.Plugins), j.Roster)
		}
		return true
	})
	for n := range facts.NodeIndex(a.kept.Nodes()) {
		node := a.kept.Node(n)
		for i := 1; i < len(node.Ports); i++ {
			if node.Ports[i-1].Number >= node.Ports[i].Number {
				a.say("node %s gave port %d twice", node.Name, node.Ports[i].Number)
			}
		}
		for _, u := range node.Devices {
			node.EachDeviceInUse(u.Kind, func(number uint32, used terms.Millidevices) {
				if number == u.Number && used > terms.WholeDevice {
					a.say("node %s gave %d thousandths of %s %d", node.Name, used, u.Kind, number)
				}
			})
		}
	}
}

// given checks that an instance has the ports and devices that its version asks for.
func (a *audit) given(j *workload.Job, r facts.SlotRef, slot *facts.Slot) {
	spec := j.TaskSpecOf(int(r.Task), slot.Version)
	if spec == nil {
		a.say("slot %s runs version %d, which is not kept", a.kept.NameOf(r), slot.Version)
		return
	}
	ports, given, wanted := 0, terms.Millidevices(0), terms.Millidevices(0)
	for _, u := range a.kept.Node(slot.Node).Ports {
		if u.Slot == r {
			ports++
		}
	}
	for _, u := range a.kept.Node(slot.Node).Devices {
		if u.Slot == r {
			given += u.Amount
		}
	}
	for _, q := range spec.Devices {
		wanted += q.Amount
	}
	if given != wanted {
		a.say("slot %s has %d thousandths of devices, wants %d", a.kept.NameOf(r), given, wanted)
	}
	if ports != len(spec.Ports) {
		a.say("slot %s has %d ports, wants %d", a.kept.NameOf(r), ports, len(spec.Ports))
	}
}

// totals compares what the index has of the whole value.
func (a *audit) totals() {
	kept, anew := a.kept, a.anew
	same(a, "the digest of the rows", kept.digest, anew.digest)
	sameAll(a, "the queue", kept.waiting.Items(), anew.waiting.Items())
	sameAll(a, "deadlines", kept.deadlines.Items(), anew.deadlines.Items())
	sameAll(a, "finished jobs", kept.finished.Items(), anew.finished.Items())
	same(a, "sums of finished jobs", kept.finished.Sums(), anew.finished.Sums())
	sameMap(a, "job names", &kept.jobNames, &anew.jobNames)
	sameAll(a, "daemons", kept.daemons.Keys(), anew.daemons.Keys())
	sameAll(a, "workflows", kept.workflows.Keys(), anew.workflows.Keys())
	sameAll(a, "sharers", kept.sharers.Keys(), anew.sharers.Keys())
	sameAll(a, "unsuited jobs", kept.doubts.Unsuited(), anew.doubts.Unsuited())
	sameAll(a, "followers", kept.followers.Items(), anew.followers.Items())
	sameAll(a, "drained nodes", kept.draining.Keys(), anew.draining.Keys())
	sameAll(a, "updates that lack room", slices.DeleteFunc(slices.Clone(kept.LackRoom), func(id terms.JobID) bool {
		return kept.Job(id) == nil || kept.Job(id).Update.LookedAt == 0
	}), anew.LackRoom)
	for id := range tree.ID(max(kept.accounts.Len(), anew.accounts.Len())) {
		same(a, fmt.Sprint("account ", id), kept.account(id), anew.account(id))
	}
	same(a, "what the nodes offer to pools and at all", [2]terms.Amounts{kept.offered, kept.volunteered},
		[2]terms.Amounts{anew.offered, anew.volunteered})
	same(a, "what jobs have wanted", kept.wants, anew.wants)
	kept.preemptible.Audit(&anew.preemptible, a.say)
}

func (a *audit) node(kept, anew *Node) {
	what := func(of string) string { return fmt.Sprintf("%s of node %s", of, kept.Name) }
	held := slices.SortedStableFunc(slices.Values(kept.Held), facts.SlotRef.Compare)
	sameAll(a, what("slots"), held, slices.SortedStableFunc(slices.Values(anew.Held), facts.SlotRef.Compare))
	same(a, what("free room"), a.kept.Free(kept.Index), a.anew.Free(anew.Index))
	same(a, what("eligibility"), a.kept.Eligible(kept.Index), a.anew.Eligible(anew.Index))
	same(a, what("held by services"), kept.lasting, anew.lasting)
	same(a, what("nominated"), kept.nominated, anew.nominated)
	same(a, what("given to pools"), kept.given, anew.given)
}

func (a *audit) job(kept, anew *workload.Job) {
	if kept.Wanted != anew.Wanted || kept.GangWas != anew.GangWas || kept.Spec != anew.Spec {
		a.say("job %s: kept is %+v, made anew it is %+v", kept.Name(), kept, anew)
	}
	for i, t := range kept.Tasks {
		what := fmt.Sprintf("task %s of job %s", t.Name, kept.Name())
		other := anew.Tasks[i]
		same(a, what, t.Counted(), other.Counted())
		left, right := t.Lists(), other.Lists()
		for k, name := range [...]string{"slots that wait of ", "particular waits of ", "outdated slots of ",
			"ill slots of "} {
			sameAll(a, name+what, left[k], right[k])
		}
	}
}

// affinity compares what is counted around nodes, and what waits for that to change.
func (a *audit) affinity() {
	sameAll(a, "counters", a.kept.counters.Keys(), a.anew.counters.Keys())
	sameAll(a, "wake-up conditions", a.kept.wakeUps.Keys(), a.anew.wakeUps.Keys())
	sameAll(a, "ends of soft constraints", a.kept.timeouts.Items(), a.anew.timeouts.Items())
	sameAll(a, "shapes", a.kept.shapes.Names(), a.anew.shapes.Names())
	a.kept.counters.Scan(func(name string, kept *counter) bool {
		anew, ok := a.anew.counters.Get(name)
		if ok && !kept.counts.Same(anew.counts, a.kept.valueOn) {
			a.say("counter %q differs from the slots", name)
		}
		if ok {
			sameAll(a, "who waits for more of "+name, kept.more.Keys(), anew.more.Keys())
			sameAll(a, "who waits for fewer of "+name, kept.fewer.Keys(), anew.fewer.Keys())
		}
		return true
	})
}
