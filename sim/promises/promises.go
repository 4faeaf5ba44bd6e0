// Package promises checks by the value alone whether the system keeps its word to users: after each entry that healthy
// instances stay, that pools and gangs keep to their rules and that each job has its turn; and at rest that updates
// and drains have come to an end.
package promises

import (
	"fmt"
	"maps"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/plugin/roster"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// Fail takes a promise that was broken, in words.
type Fail func(format string, args ...any)

// Told returns by what an allocation was told to end with the last entry, the first time; NoCause if it was not.
type Told func(r facts.SlotRef, order terms.Index) facts.Cause

// Watch remembers what is needed to see in an entry whether the system kept its word.
type Watch struct {
	fail Fail
	told Told
	// drains is how many nodes this entry drained: of two drains of a node the first may have had no deadline.
	drains int
	// drained is how the nodes were drained before the entry.
	drained map[facts.NodeIndex]facts.Drain
	// desired is how many instances each task was to have after the entry before.
	desired map[facts.TaskKey]uint32
	sharing sharing
	// unready are the allocations that are not ready any more, as their nodes say.
	unready map[terms.AllocationID]bool
	// unasked is the last entry before which nobody asked whether nodes could run what waits.
	unasked terms.Index
	// away are the peers that were away with notice after the entry before.
	away map[facts.NodeIndex]absence
	// kept is what was held and kept after the entry before.
	kept kept
}

// New returns a watch that has seen no entry.
func New(fail Fail, told Told) *Watch {
	return &Watch{fail: fail, told: told, sharing: sharing{fail: fail}, unready: map[terms.AllocationID]bool{}}
}

// Entry looks at the value after an entry; told must know of it.
func (p *Watch) Entry(s *cluster.State, folded *report.Folded) {
	p.drains = 0
	for i := range folded.Outcome.Results {
		if _, drains := command.Plain(folded.Entry.Commands[i]).(*command.DrainNode); drains {
			p.drains++
		}
	}
	p.checkHealth(s)
	p.checkReady(s, folded)
	p.keepsAway(s, folded)
	p.checkUnsuited(s)
	p.checkStatic(s)
	p.drained = map[facts.NodeIndex]facts.Drain{}
	for _, n := range s.Draining() {
		p.drained[n] = s.Node(n).Drain
	}
	p.sharing.check(s, folded.Outcome.Effects)
}

// checkReady checks that nobody is told to find an instance that is not ready any more, and that it does not count as
// healthy, before its node says that it is ready.
func (p *Watch) checkReady(s *cluster.State, folded *report.Folded) {
	if folded.Entry == nil {
		return
	}
	for i := range folded.Outcome.Effects {
		if e := &folded.Outcome.Effects[i]; e.Kind == report.Unready {
			p.unready[terms.AllocationID{Slot: e.Slot, Order: e.Order}] = true
		}
	}
	for _, one := range folded.Entry.Commands {
		news, _ := command.Plain(one).(*command.ReportTasks)
		for i := 0; news != nil && i < len(news.Reports); i++ {
			if r := &news.Reports[i]; (r.Ready || r.Ended != facts.NotEnded) && s.Job(r.Slot.Job) != nil {
				maps.DeleteFunc(p.unready, func(id terms.AllocationID, _ bool) bool { return id.Order == r.Order })
			}
		}
	}
	for id := range p.unready {
		p.checkUntold(s, id)
	}
}

// checkUntold checks that nobody is told of an allocation that is not ready.
func (p *Watch) checkUntold(s *cluster.State, id terms.AllocationID) {
	j := s.JobOf(id.Slot.Job)
	if j == nil || j.TaskIndex(id.Slot.Task) < 0 {
		delete(p.unready, id)
		return
	}
	r := facts.SlotRef{Job: j.ID, Task: uint16(j.TaskIndex(id.Slot.Task)), Index: id.Slot.Index}
	_, slot, ok := s.SeatOf(r, id.Order)
	if member, _ := roster.MemberAt(s, j, r); ok && (member.Order == id.Order || slot.Health.Ready()) {
		p.fail("%s is %s, and found at node %d, although it is not ready any more", id, slot.Health, slot.Node)
	}
}

// checkHealth checks that an update or a drain took no healthy instance away when that leaves fewer than promised: as
// many as desired, less a batch and those that an update may lose. What the entry asks for in addition counts since the
// next.
func (p *Watch) checkHealth(s *cluster.State) {
	before := p.desired
	p.desired = map[facts.TaskKey]uint32{}
	s.EachJob(func(j *workload.Job) bool {
		for task, t := range j.Tasks {
			key, wanted := facts.KeyOf(j.ID, task), t.Desired
			p.desired[key] = wanted
			if had, ok := before[key]; ok {
				wanted = min(wanted, had)
			}
			batch, broken := uint32(0), false
			s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
				if most, taken := p.takes(s, j, r, &slot); taken {
					batch, broken = max(batch, most), true
				}
				return true
			})
			want := wanted - min(wanted, mayBeIll(s, j, task, batch))
			if well := healthySlots(s, j, task); broken && well < want {
				p.fail("%s.%s has %d healthy instances since some were stopped, promised are %d: %d desired, new %v, old %v, %+v",
					j.Name(), t.Name, well, want, t.Desired, t.New, t.Old, j.Spec.Update)
			}
		}
		return true
	})
}

// takes tells whether this entry took a healthy instance away of the system's own accord, and how many may be without
// health then. What was told to stop for one reason may be given another one in the same entry; the first is why it was
// taken.
func (p *Watch) takes(s *cluster.State, j *workload.Job, r facts.SlotRef, slot *facts.Slot) (batch uint32,
	taken bool) {
	if j.Suspended || slot.Phase != facts.Stopping || r.Seat != facts.MainSeat || slot.Health != facts.Healthy ||
		j.Spec.Type == terms.Batch || r.Index >= j.Tasks[r.Task].Desired {
		return 0, false
	}
	size := j.Spec.Update.BatchSize
	switch p.told(r, slot.Order) {
	case facts.ByUpdate:
		// A canary that is well takes a place before it is empty.
		r.Seat = facts.CanarySeat
		canary, _ := s.SlotAt(r)
		instead := canary.Phase == facts.Running && canary.Health == facts.Healthy
		return size, size > 0 && !instead
	case facts.ByDrain:
		return max(size, 1), p.withinDrain(s, slot.Node) && j.Spec.Type != terms.Daemon &&
			(size > 0 || !j.Update.State.Rolls())
	}
	return 0, false
}

// withinDrain tells whether the deadline of a node's drain is still to come, and no other had passed with the entry.
func (p *Watch) withinDrain(s *cluster.State, n facts.NodeIndex) bool {
	before := p.drained[n]
	return s.Node(n).Drain.Deadline != 0 && p.drains < 2 && !(before.On && before.Deadline <= s.Time)
}

// mayBeIll returns how many instances of a task need not be well. What the version before had lost counts still in the
// entry that ends its update.
func mayBeIll(s *cluster.State, j *workload.Job, task int, batch uint32) uint32 {
	t := j.Tasks[task]
	if j.Changed == s.Index {
		return batch + min(t.Desired, j.Spec.Update.FailuresMax)
	}
	return batch + min(t.New[facts.Unhealthy], j.Spec.Update.FailuresMax)
}

// healthySlots counts the wanted slots of which some seat is well, those of a daemon whose node cannot have it, and
// those that give way to others, to which nothing is promised.
func healthySlots(s *cluster.State, j *workload.Job, task int) uint32 {
	count, t := uint32(0), j.Tasks[task]
	for index := range t.Desired {
		for _, seat := range []facts.Seat{facts.MainSeat, facts.CanarySeat, facts.UnknownSeat} {
			slot, ok := s.SlotAt(facts.SlotRef{Job: j.ID, Task: uint16(task), Index: index, Seat: seat})
			gives := slot.Phase == facts.Stopping && slot.Cause == facts.ByPreemption
			if ok && ((slot.Phase == facts.Running || gives) && slot.Health == facts.Healthy ||
				slot.Phase == facts.Succeeded || slot.Phase == facts.Stopped) {
				count++
				break
			}
		}
	}
	return count
}

// eachSlot visits the allocations of all seats of a job, task by task.
func eachSlot(s *cluster.State, j *workload.Job, visit func(r facts.SlotRef, slot *facts.Slot)) {
	for task := range j.Tasks {
		s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
			visit(r, &slot)
			return true
		})
	}
}

// atRest is what the seats of a job show at rest.
type atRest struct {
	// waits tells that something waits for room, ill that something runs and is not healthy.
	waits, ill bool
	canaries   int
	// empty is a wanted slot that is empty without a reason.
	empty string
}

func restOf(s *cluster.State, j *workload.Job) (r atRest) {
	r.waits = slices.ContainsFunc(j.Tasks, func(t *workload.Task) bool { return t.Waits() > 0 })
	eachSlot(s, j, func(ref facts.SlotRef, slot *facts.Slot) {
		r.waits = r.waits || slot.Phase == facts.Waiting
		r.ill = r.ill || slot.Phase == facts.Running && slot.Health != facts.Healthy
		switch {
		case ref.Seat == facts.CanarySeat:
			r.canaries++
		case ref.Seat == facts.MainSeat && slot.Phase == facts.Stopped &&
			ref.Index < j.Tasks[ref.Task].Desired && j.Spec.Type != terms.Daemon:
			r.empty = s.NameOf(ref).String()
		}
	})
	return r
}

// triesAll tells whether an update tries all outdated instances of a task when it looks for room: there are few enough,
// and its batch is not under way already.
func triesAll(s *cluster.State, j *workload.Job, t *workload.Task) bool {
	batch, old := j.Spec.Update.BatchSize,
		t.Old[facts.Starting]+t.Old[facts.Ready]+t.Old[facts.Healthy]+t.Old[facts.Unhealthy]
	return old <= s.Limits.Trials && (batch == 0 || t.New[facts.Starting]+t.New[facts.Ready] < batch)
}

// checkLacks checks of an update that lacks room that no instance could be replaced on its own machine as far as
// resources go, where nothing else is asked and all are tried; it tells whether any is left.
func (p *Watch) checkLacks(s *cluster.State, j *workload.Job) (left bool) {
	for task, t := range j.Tasks {
		spec, untried := j.TaskSpecOf(task, j.Version), !triesAll(s, j, t)
		t.EachOutdated(false, 0, func(index uint32) bool {
			if !j.Update.State.Rolls() || j.Update.LookedAt == 0 {
				return false
			}
			slot := t.Slots.At(int(index))
			if left = true; untried || spec == nil || slot.Phase != facts.Running || !s.Eligible(slot.Node) {
				return true
			}
			free := s.Free(slot.Node)
			for k, amount := range j.TaskSpecOf(task, slot.Version).Resources {
				free[k] += amount
			}
			simple := len(spec.Constraints)+len(spec.Devices)+len(spec.Ports) == 0 && spec.PerNodeMax == 0 && j.Spec.Within == ""
			if simple && !s.Node(slot.Node).Offer.Exclusive() && spec.Resources.Fits(&free) {
				p.fail("the update of %s lacks room, but %s could be replaced where it is", j.Name(), t.Name)
			}
			return true
		})
	}
	return left
}

// Rest checks that at rest every update has ended that waits neither for room, nor for health, nor for its
// user, and that nothing is left of those that have; that no wanted slot is empty without a reason, and drained nodes
// are empty. Nobody has slack that its node does not offer.
func (p *Watch) Rest(s *cluster.State) {
	s.EachJob(func(j *workload.Job) bool {
		r, u := restOf(s, j), &j.Update
		r.waits = r.waits || p.checkLacks(s, j)
		if u.State.Rolls() && !r.waits && !r.ill && (u.Promoted || j.Spec.Update.AutoPromote) {
			p.fail("the update of %s to version %d does not end: %+v%s", j.Name(), u.To, *u, standings(j))
		}
		if u.State.Final() && r.canaries > 0 && !j.Stop {
			p.fail("the update of %s to version %d has ended and left %d canaries%s", j.Name(), u.To, r.canaries, standings(j))
		}
		if r.empty != "" && !j.Stop {
			p.fail("%s is empty without a reason", r.empty)
		}
		return true
	})
	p.checkSlack(s)
	for _, n := range s.Draining() {
		for _, r := range s.Node(n).Held {
			// What is unknown keeps its room there until its timeout.
			if slot, _ := s.SlotAt(r); slot.Phase != facts.Unknown {
				p.fail("%s is drained and still has %s", s.Node(n).Name, s.NameOf(r))
			}
		}
	}
}

// checkSlack checks that nothing on a node that lives has slack which it does not offer.
func (p *Watch) checkSlack(s *cluster.State) {
	for n := range facts.NodeIndex(s.Nodes()) {
		for _, use := range s.Node(n).Devices {
			if s.Rules >= rules.Slack && s.IsMember(s.Node(n).Peer) && use.Kind == terms.Slack &&
				use.Number >= s.Node(n).DeviceOf(terms.Slack).Count {
				p.fail("%s has slack of %s which that does not offer", s.NameOf(use.Slot), s.Node(n).Name)
			}
		}
	}
}

// standings tells how the tasks of a job stand for its update.
func standings(j *workload.Job) string {
	text := ""
	for _, t := range j.Tasks {
		text += fmt.Sprintf("; %s: %d of %d slots, new %v, old %v, canaries %v, phases %v", t.Name, t.Desired, t.Slots.Len(),
			t.New, t.Old, t.Canaries, t.Counts)
	}
	return text
}
