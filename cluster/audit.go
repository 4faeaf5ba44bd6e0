package cluster

import (
	"fmt"
	"slices"

	"starling/cluster/census"
	"starling/cluster/retries"
	"starling/terms"
	"starling/terms/fingerprint"
)

// Audit recomputes everything in the value that is kept although it could be derived, and returns a line for each
// difference: room, counts, queues, deadlines, digest. It takes time proportional to the value.
func (s *State) Audit() []string {
	a := &audit{s: s, free: make([]terms.Resources, s.Nodes()), lasting: make([]terms.Resources, s.Nodes()), held: make([][]SlotRef, s.Nodes()), sum: s.auditRows(), accounts: make([]Account, len(s.pools.positions)),
		priorities: map[uint64]uint32{}}
	for n := range a.free {
		node := s.Node(NodeIndex(n))
		if node.Offer != nil {
			a.free[n] = node.Offer.Capacity
		}
		a.due(node.Drain.Deadline)
	}
	s.EachJob(func(j *Job) bool {
		a.job(j)
		return true
	})
	a.nodes()
	a.pools()
	a.headcounts()
	a.found = append(a.found, s.Membership.Audit()...)
	if a.turns != s.turns.Len() {
		a.say("%d lanes are queued, there are %d", s.turns.Len(), a.turns)
	}
	if a.deadlines != s.deadlines.Len() {
		a.say("%d deadlines are kept, there are %d", s.deadlines.Len(), a.deadlines)
	}
	if a.sum != s.digest {
		a.say("the digest of the rows is %016x, kept is %016x", a.sum, s.digest)
	}
	return a.found
}

type audit struct {
	s         *State
	found     []string
	free      []terms.Resources
	lasting   []terms.Resources
	held      [][]SlotRef
	sum       uint64
	deadlines int
	turns     int
	// priorities counts what runs and is preemptible.
	priorities map[uint64]uint32
	// accounts are what jobs hold and ask for, as counted anew.
	accounts []Account
	// wants is what the jobs that have not finished have wanted, volunteered what all nodes offer.
	wants       Wants
	volunteered terms.Amounts
}

func (a *audit) say(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

// auditRows sums the hashes of the rows that are not slots.
func (s *State) auditRows() uint64 {
	sum := fingerprint.Limits(&s.Limits)
	for n := range s.Nodes() {
		sum += s.Node(NodeIndex(n)).hash()
	}
	s.jobs.Scan(func(_ terms.JobID, j *Job) bool {
		sum += j.hash()
		return true
	})
	s.patience.Scan(func(key TaskKey, since terms.Time) bool {
		sum += hashWords(tagPatience, uint64(key), uint64(since))
		return true
	})
	s.claims.Scan(func(id terms.JobID, c Claims) bool {
		sum += c.hash(id)
		return true
	})
	s.hungers.Scan(func(id PoolID, h Hunger) bool {
		sum += h.hash(id)
		return true
	})
	s.requests.Scan(func(id string, r Request) bool {
		sum += r.hash(id)
		return true
	})
	return sum
}

// due counts a deadline, if it is one.
func (a *audit) due(at terms.Time) {
	if at != 0 {
		a.deadlines++
	}
}

func (a *audit) update(j *Job) {
	a.due(j.updateDeadline)
	if j.Update.LookedAt != 0 && !slices.Contains(a.s.LackRoom, j.ID) {
		a.say("job %s lacks room and is not to look for it again", j.Name())
	}
}

func (a *audit) job(j *Job) {
	a.update(j)
	if (len(j.Spec.Plugins) > 0) != (j.Roster != Roster{}) {
		a.say("job %s has %d plugins and the roster %+v", j.Name(), len(j.Spec.Plugins), j.Roster)
	}
	a.wanted(j)
	for i, t := range j.Tasks {
		sum := taskSum{}
		for index := range t.Slots.Len() {
			slot := t.Slots.At(index)
			r := SlotRef{Job: j.ID, Task: uint16(i), Index: uint32(index)}
			sum.counts[slot.Phase]++
			sum.main(j, t, r, &slot)
			a.seat(j, r, &slot, &sum)
		}
		t.EachBeside(j.ID, i, func(r SlotRef, slot Slot) bool {
			sum.beside[slot.Phase]++
			if r.Seat == CanarySeat {
				sum.canaries[slot.trial()]++
			}
			a.seat(j, r, &slot, &sum)
			return true
		})
		if t.rare != nil {
			t.rare.attempts.Scan(func(index uint32, all retries.Attempts) bool {
				sum.digest += hashAttempts(SlotRef{Job: j.ID, Task: uint16(i), Index: index}, all)
				return true
			})
		}
		a.sum += sum.digest + t.hash(j.ID, i)
		if kept := keptSum(t); sum != kept {
			a.say("task %s of job %s counts %+v, kept is %+v", t.Name, j.Name(), sum, kept)
		}
		a.due(t.Completion.Due)
		a.asked(j, t, j.TaskSpecOf(i, j.Version), &sum)
		asks := t.asks(j.TaskSpecOf(i, j.Version)) > 0 && !j.Idle(i)
		if j.graph != nil && t.complete != j.Complete(i) {
			a.say("task %s of job %s is complete: %v, kept is %v", t.Name, j.Name(), j.Complete(i), t.complete)
		}
		a.queued(j, t.turn, asks && sum.waits > 0)
		a.queued(j, t.specialTurn, asks && sum.special > 0)
	}
}

// wanted counts what a job has wanted.
func (a *audit) wanted(j *Job) {
	all := make([]most, len(j.Tasks))
	for i, t := range j.Tasks {
		all[i] = t.most
	}
	if want := sumOf(all, j.Spec.Type); want != j.wants {
		a.say("job %s has wanted %+v, kept is %+v", j.Name(), want, j.wants)
	}
	if j.Finished == 0 {
		a.accounts[j.pool].Jobs++
		a.accounts[j.account()].Wants.Add(&j.wants, 1)
		a.wants.Add(&j.wants, 1)
	}
}

// asked counts what the waiting instances of a task ask for.
func (a *audit) asked(j *Job, t *Task, spec *terms.Task, sum *taskSum) {
	if spec == nil || j.Idle(j.TaskIndex(t.Name)) {
		return
	}
	waits, need := int64(sum.waits+sum.special), spec.Amounts()
	if spec.MaxRunning > 0 {
		waits = min(waits, max(int64(spec.MaxRunning)-int64(sum.live), 0))
	}
	a.accounts[j.account()].asks(j.Spec, &need, waits)
}

// claims compares what of a node is kept for others with what is kept for each.
func (a *audit) claims(node *Node) {
	sum := terms.Amounts{}
	for _, id := range a.s.ClaimingJobs() {
		all, _ := a.s.ClaimsOf(id)
		for _, seat := range all.Seats {
			if seat.Node != node.Index {
				continue
			}
			for k := range sum {
				sum[k] += seat.Need[k] * int64(seat.Count)
			}
		}
	}
	if sum != node.claimed {
		a.say("of node %s %v is claimed, kept is %v", node.Name, sum, node.claimed)
	}
}

// pools compares the accounts, and what nodes offer together, with what is counted anew.
func (a *audit) pools() {
	for id, want := range a.accounts {
		if got := a.s.account(PoolID(id)); got != want {
			a.say("account %d is %+v, kept is %+v", id, want, got)
		}
	}
	count := 0
	a.s.priorities.Scan(func(key uint64, kept uint32) bool {
		if count++; a.priorities[key] != kept {
			a.say("%d run at priority %x, kept is %d", a.priorities[key], key, kept)
		}
		return true
	})
	if count != len(a.priorities) {
		a.say("%d priorities run, kept are %d", len(a.priorities), count)
	}
	offered := terms.Amounts{}
	for n := range a.free {
		if offer := a.s.Node(NodeIndex(n)).Offer; offer != nil {
			for k, amount := range offer.Amounts() {
				a.volunteered[k] += amount
			}
		}
		for k, amount := range a.s.givenBy(a.s.Node(NodeIndex(n))) {
			offered[k] += amount
		}
	}
	if a.wants != a.s.wants || a.volunteered != a.s.volunteered {
		a.say("jobs have wanted %+v, nodes offer %v, kept is %+v and %v", a.wants, a.volunteered, a.s.wants, a.s.volunteered)
	}
	if offered != a.s.offered {
		a.say("the nodes offer %v, kept is %v", offered, a.s.offered)
	}
}

// queued checks one lane of a task in the queue.
func (a *audit) queued(j *Job, turn Turn, waits bool) {
	queued := turn.Key != 0
	if queued {
		a.turns++
		kept, found := a.s.turns.Get(turn)
		if !found || kept != turn || turn.Rank != j.unit(j.GangState()).rank || turn.pool != j.account() {
			a.say("job %s has its turn at %+v, kept is %+v", j.Name(), turn, kept)
		}
	}
	if queued != waits {
		a.say("job %s waits: %v, but queued is %v", j.Name(), waits, queued)
	}
}

// taskSum is what is kept of the slots of a task together.
type taskSum struct {
	counts, beside                [PhaseCount]uint32
	newest, old, canaries         [HealthCount]uint32
	waits, special, outdated, ill uint32
	live                          uint32
	digest                        uint64
}

func keptSum(t *Task) taskSum {
	kept := taskSum{
		counts: t.Counts, beside: t.Beside, newest: t.New, old: t.Old, canaries: t.Canaries, waits: t.Waits(),
		special: uint32(t.SpecialWaits()), live: t.Live(), digest: t.digest,
	}
	t.EachOutdated(func(uint32) bool {
		kept.outdated++
		return true
	})
	t.EachIll(func(uint32) bool {
		kept.ill++
		return true
	})
	return kept
}

// main counts a main seat.
func (u *taskSum) main(j *Job, t *Task, r SlotRef, slot *Slot) {
	if r.Index >= t.Desired {
		return
	}
	if slot.Phase == Waiting && !slot.special() {
		u.waits++
	}
	if newest, health := j.Standing(slot); newest {
		u.newest[health]++
	} else {
		u.old[health]++
		u.outdated++
		if health != Healthy && !j.MayLive(r, slot) {
			u.ill++
		}
	}
}

// seat counts what all seats have in common.
func (a *audit) seat(j *Job, r SlotRef, slot *Slot, sum *taskSum) {
	sum.digest += slot.hash(r)
	if slot.Phase == Waiting && slot.special() && r.Index < j.Tasks[r.Task].Desired {
		sum.special++
	}
	a.due(slot.Deadline)
	if slot.Phase.Holds() {
		sum.live++
		a.take(j, r, slot)
	}
}

func (a *audit) take(j *Job, r SlotRef, slot *Slot) {
	spec := j.TaskSpecOf(int(r.Task), slot.Version)
	if spec == nil {
		a.say("slot %s runs version %d, which is not kept", a.s.NameOf(r), slot.Version)
		return
	}
	need := spec.Amounts()
	if !j.Spec.NonPreemptible() && j.Spec.Type != terms.Daemon {
		a.priorities[priorityKey(j.pool, j.Spec.Revocable, min(j.Spec.Priority, terms.PriorityMax))]++
	}
	a.accounts[j.account()].Held.Add(j.Spec, &need, 1)
	if j.Spec.Type != terms.Batch {
		a.accounts[j.account()].Lasting.Add(j.Spec, &need, 1)
	}
	if j.Spec.Type != terms.Batch {
		a.lasting[slot.Node] = a.lasting[slot.Node].Plus(spec.Resources)
	}
	a.free[slot.Node] = a.free[slot.Node].Minus(spec.Resources)
	a.held[slot.Node] = append(a.held[slot.Node], r)
	ports := 0
	for _, u := range a.s.Node(slot.Node).Ports {
		if u.Slot == r {
			ports++
		}
	}
	given, wanted := terms.Millidevices(0), terms.Millidevices(0)
	for _, u := range a.s.Node(slot.Node).Devices {
		if u.Slot == r {
			given += u.Amount
		}
	}
	for _, q := range spec.Devices {
		wanted += q.Amount
	}
	if given != wanted {
		a.say("slot %s has %d thousandths of devices, wants %d", a.s.NameOf(r), given, wanted)
	}
	if ports != len(spec.Ports) {
		a.say("slot %s has %d ports, wants %d", a.s.NameOf(r), ports, len(spec.Ports))
	}
}

func (a *audit) nodes() {
	for n := range a.free {
		node := a.s.Node(NodeIndex(n))
		if a.s.draining.Contains(node.Index) != node.Drain.On {
			a.say("node %s is drained: %v, kept is that it is not", node.Name, node.Drain.On)
		}
		held := slices.Clone(node.Held)
		slices.SortStableFunc(held, SlotRef.Compare)
		slices.SortStableFunc(a.held[n], SlotRef.Compare)
		if !slices.Equal(held, a.held[n]) {
			a.say("node %s holds %v, kept is %v", node.Name, a.held[n], held)
		}
		if a.free[n] != a.s.Unheld(node.Index) {
			a.say("node %s has %v free, kept is %v", node.Name, a.free[n], a.s.Unheld(node.Index))
		}
		a.claims(node)
		if a.lasting[n] != node.lasting {
			a.say("services hold %v of node %s, kept is %v", a.lasting[n], node.Name, node.lasting)
		}
		if a.s.Eligible(node.Index) != (node.Offer != nil && !node.Drain.On) {
			a.say("node %s takes work: %v, but its offer is %v", node.Name, a.s.Eligible(node.Index), node.Offer)
		}
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

// headcounts counts instances anew, by node and by the attributes that are counted.
func (a *audit) headcounts() {
	counts := map[string]*census.Census[NodeIndex]{}
	a.s.headcounts.Scan(func(heads string, h *headcount) bool {
		counts[heads] = census.New[NodeIndex]()
		if h.census.Empty() && h.more.Len()+h.fewer.Len() == 0 {
			a.say("a headcount of nothing is kept: %q", heads)
		}
		return true
	})
	for n := range a.held {
		for _, r := range a.held[n] {
			slot, _ := a.s.SlotAt(r)
			eachHeads(a.s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version), r, func(heads string) {
				if counts[heads] == nil {
					a.say("slot %s is not in headcount %q", a.s.NameOf(r), heads)
					return
				}
				counts[heads].Add(NodeIndex(n), 1, func(string) string { return "" })
			})
		}
	}
	a.s.headcounts.Scan(func(heads string, h *headcount) bool {
		if !h.census.Same(counts[heads], a.s.valueOn) {
			a.say("headcount %q differs from the slots", heads)
		}
		return true
	})
}
