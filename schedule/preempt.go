package schedule

import (
	"cmp"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/preemptible"
	"starling/cluster/workload"
	"starling/schedule/admission"
	"starling/schedule/place"
	"starling/schedule/preempt"
	"starling/terms"
	"starling/terms/constraint"
)

// head is work that waits although its pool is entitled to room for it, or has less important work.
type head struct {
	job terms.JobID
	// key is the queue entry of single instances of which at most most may run; 0 is the gang of the job.
	key  facts.TaskKey
	most uint32
	// entitled tells that the pool has room for it; kept is what the pool keeps for work before it.
	entitled bool
	kept     terms.Amounts
}

// starving is what is known of those that wait although they are entitled to room, or more important than what has it.
type starving struct {
	evict Evict
	// heads are they, by pool in the order of their turns.
	heads [][]head
	// dropped tells that something kept was given back, or given up.
	dropped bool
	// retrying are the jobs for whose sake it was given up in this round: they may try again with the next.
	retrying []terms.JobID
	// plans is how often it may still be looked for what gives way.
	plans int
	// candidates are what could; nil if it has to be looked at anew.
	candidates *candidates
}

// starve notes that work waits for machines, or for room that less important work of its pool has. What is kept for
// it already is on its way. Revocable work takes what is left: nothing gives way to it, or is kept for it.
func (p *queuePass) starve(h head, gang *admission.Gang) {
	if p.daemons() || p.evict == nil || p.underWay || gang.Revocable ||
		len(p.heads[p.number]) == int(p.s.Limits.Preemptions) ||
		p.seeksCompany(&h) {
		return
	}
	if !h.entitled {
		// Only what might be awaited is looked at: the turns of the others may be passed over.
		class := terms.ClassOf(false, gang.NonPreemptible, gang.Controller)
		lowest, ok := p.s.LowestPriority(p.number, false)
		if !ok || p.looks == 0 || p.admission.Awaits(class) || lowest >= p.s.Job(h.job).Spec.Priority ||
			!p.admission.FitsWithin(class, &gang.Need) {
			return
		}
	}
	h.kept = p.admission.Kept()
	p.heads[p.number] = append(p.heads[p.number], h)
}

// refusedHead returns work that is not admitted. It may be entitled to more than it gets, for another pool below the
// same limit still holds it; then so much of it may run.
func (p *queuePass) refusedHead(h head, gang *admission.Gang) head {
	if p.daemons() {
		return h
	}
	if entitled := p.admission.Entitled(gang); entitled > p.room(gang) {
		h.entitled, h.most = true, min(h.most, entitled)
	}
	return h
}

// seeksCompany tells whether work is to run where others do: what gives way may be just those.
func (p *pass) seeksCompany(h *head) (seeks bool) {
	j := p.s.Job(h.job)
	for _, task := range p.tasksOf(h) {
		spec := j.TaskSpecOf(task, j.Version)
		for i := range spec.Constraints {
			spec.Constraints[i].EachLeaf(func(leaf *constraint.Constraint) {
				seeks = seeks ||
					leaf.Label != "" && leaf.GainsByMore()
			})
		}
	}
	return seeks
}

// preempt lets others give way to the work that is entitled to their room, pool by pool, when its preemption delay is
// over; the pool that has waited longest comes first. Where nothing could give way it looks again only when something
// is different. It returns false if there is more to do.
func (p *pass) preempt() (finished bool) {
	finished = true
	moved := p.s.TakePreemptionDirty()
	for _, number := range p.byPreemptionDelay() {
		heads := p.heads[number]
		was, waited := p.s.StarvingOf(number)
		due := p.s.Time + terms.Time(p.s.Pools()[number].PreemptionDelayMillis)
		switch {
		case len(heads) == 0 && p.excess(number) == terms.Amounts{}:
			if waited {
				p.s.SetStarving(number, nil)
			}
		case !waited && due > p.s.Time:
			p.s.SetStarving(number, &facts.Starving{At: due})
		case was.Failed && !moved:
		case was.At > p.s.Time:
			p.s.SetStarving(number, &facts.Starving{At: was.At})
		case p.plans == 0:
			if finished = false; !waited {
				was.At = p.s.Time
			}
			p.s.SetStarving(number, &facts.Starving{At: was.At})
		default:
			more := p.preemptForPool(number, heads)
			next := &facts.Starving{At: max(due, p.s.Time+1), Failed: true}
			if more {
				next, finished = nil, false
			}
			p.s.SetStarving(number, next)
		}
	}
	return finished
}

// byPreemptionDelay returns the numbers of the pools, those first whose preemption delay ended or ends first.
func (p *pass) byPreemptionDelay() []int {
	numbers := make([]int, len(p.heads))
	for i := range numbers {
		numbers[i] = i
	}
	slices.SortStableFunc(numbers, func(a, b int) int {
		first, _ := p.s.StarvingOf(a)
		second, _ := p.s.StarvingOf(b)
		return cmp.Compare(first.At, second.At)
	})
	return numbers
}

// preemptForPool looks for what gives way to those that wait in a pool, one after the other, and tells whether there
// may be more to be found. For the first to which nothing gives way nodes are kept as they empty by themselves.
func (p *pass) preemptForPool(number int, heads []head) (more bool) {
	p.shed(number)
	for i := range heads {
		if p.plans == 0 {
			return true
		}
		p.plans--
		h := &heads[i]
		switch nomination, nominated := p.s.NominationOf(h.job); {
		case nominated && !nomination.Backfill: // for another task of the job
		case p.lacksNodes(h):
		case p.giveWay(number, h):
			more = i == int(p.s.Limits.Preemptions)-1
		case h.entitled && !p.keeps(number):
			p.keep(number, h)
		}
	}
	return more
}

// excess returns what revocable work of a pool holds of its entitlement although other work of the pool needs that.
func (p *pass) excess(number int) (over terms.Amounts) {
	account := p.s.Account(number)
	for k := range over {
		if account.Asking > account.AskingRevocable && !terms.Kind(k).Overcommitted() {
			over[k] = max(account.Held.Slack[k]-p.entitled[number].Slack[k], 0)
		}
	}
	return over
}

// shed tells revocable work of a pool to stop that holds what other work of the pool is entitled to.
func (p *pass) shed(number int) {
	over := p.excess(number)
	if over == (terms.Amounts{}) {
		return
	}
	firm := func(t workload.QueueEntry) bool { return t.Class != terms.Revocable }
	first, _ := p.s.NextInQueue(p.s.QueueStart(number), firm)
	id, _ := first.Key.Split()
	var own []preempt.Victim
	c := p.look().revocable(number)
	for i := range c.victims {
		if v := &c.victims[i]; v.Pool == number && v.Revocable {
			own = append(own, *v)
		}
	}
	stopping := p.s.StoppingIn(number)
	for k := range over {
		over[k] = max(over[k]-stopping.Slack[k], 0)
	}
	var all []preempt.Chosen
	for _, i := range preempt.Shed(own, over, terms.Amounts{}) {
		all = append(all, preempt.Chosen{Victim: i, Rule: preempt.ByRevocable})
	}
	if len(all) > 0 {
		p.evictAll(own, all, id)
	}
}

// evictAll tells those of the victims to give way that were chosen.
func (p *pass) evictAll(victims []preempt.Victim, all []preempt.Chosen, to terms.JobID) {
	slices.SortStableFunc(all, func(a, b preempt.Chosen) int {
		return facts.BesideFirst(victims[a.Victim].Slot, victims[b.Victim].Slot)
	})
	for _, chosen := range all {
		p.evict(victims[chosen.Victim].Slot, to, chosen.Rule)
	}
	p.s.MarkPlacementDirty()
	p.candidates = nil
}

// giveWay tells those to stop that have to give way to the head, and nominates the job for the room.
func (p *pass) giveWay(number int, h *head) bool {
	kept, lifted := p.lift(h.job)
	if lifted {
		p.candidates = nil
	}
	in := p.input(number, h)
	plan, ok := p.inDomain(h, in, func(in *preempt.Input) (preempt.Plan, bool) { return p.choose(h, in) })
	nomination := facts.Nomination{Seats: p.seats(h, in, plan.Seats)}
	// Where there is room as it is and nothing leaves, something else is in the way.
	if !ok || len(plan.Victims) == 0 && !p.awaits(&nomination) {
		if lifted {
			p.s.SetNomination(h.job, kept)
			p.candidates = nil
		}
		return false
	}
	for _, chosen := range plan.Victims {
		nomination.Leaving = append(nomination.Leaving, in.Victims[chosen.Victim].Slot)
	}
	p.s.SetNomination(h.job, nomination)
	p.evictAll(in.Victims, plan.Victims, h.job)
	return true
}

// keeps tells whether nodes are kept for work of a pool as they empty by themselves.
func (p *pass) keeps(number int) bool {
	for _, id := range p.s.NominatedJobs() {
		if nomination, _ := p.s.NominationOf(id); nomination.Backfill && p.s.PoolOf(p.s.Job(id)) == number {
			return true
		}
	}
	return false
}

// keep nominates nodes for work to which nothing gives way: those where the least has to end by itself.
func (p *pass) keep(number int, h *head) {
	in := p.input(number, h)
	in.Revocable, in.Over, in.Subtree = false, nil, preempt.Subtree{}
	for k := range in.Room {
		in.Room[k] = terms.Unlimited
	}
	if in.Partial {
		in.Wants[0].Count = 1
	}
	p.readAll(in)
	in.Victims, in.Gangs = p.candidates.ending(), nil
	if plan, ok := p.inDomain(h, in, preempt.Choose); ok && len(plan.Victims) > 0 {
		p.s.SetNomination(h.job, facts.Nomination{Backfill: true, Seats: p.seats(h, in, plan.Seats)})
		p.s.MarkPlacementDirty()
		p.candidates = nil
	}
}

// seats returns what is to be kept for the seats of a plan.
func (p *pass) seats(h *head, in *preempt.Input, seats []preempt.Seat) (nominated []facts.NominatedSeat) {
	tasks := p.tasksOf(h)
	for _, seat := range seats {
		nominated = append(nominated, facts.NominatedSeat{Task: tasks[seat.Want], Node: seat.Node, Count: seat.Count,
			Need: in.Wants[seat.Want].Need})
	}
	return nominated
}

// tasksOf returns the task of each want.
func (p *pass) tasksOf(h *head) (tasks []int) {
	if h.key != 0 {
		_, task := h.key.Split()
		return []int{task}
	}
	j := p.s.Job(h.job)
	counts, _ := p.membersOf(j)
	for task, count := range counts {
		if count > 0 {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// membersOf returns how many instances of each task a gang needs, and how many more no nodes could have.
func (p *pass) membersOf(j *workload.Job) (counts []uint32, left uint32) {
	if j.MissingAny() > 0 {
		return membersIn(j, searchesOf(p.s, j), func(q *place.Search, most uint32) uint32 { return q.Could(nil, most, true) })
	}
	for task := range j.Tasks {
		counts = append(counts, j.Missing(task))
	}
	return counts, 0
}

// lacksNodes tells whether no nodes could have all members that a gang needs, or some of them wait for a particular
// one: nothing is preempted or kept for less, nor elsewhere.
func (p *pass) lacksNodes(h *head) bool {
	if h.key != 0 {
		return false
	}
	j, free := p.s.Job(h.job), uint32(0)
	_, left := p.membersOf(j)
	for task, t := range j.Tasks {
		if t.Waits() < j.Missing(task) {
			return true
		}
		free += t.Waits() - j.Missing(task)
	}
	return left > 0 || free < j.MissingAny()
}

// lift gives the room that is kept for a job back for a moment, so that the job may take it.
func (p *pass) lift(id terms.JobID) (nomination facts.Nomination, lifted bool) {
	if nomination, lifted = p.s.NominationOf(id); lifted {
		p.s.SetNomination(id, facts.Nomination{})
	}
	return nomination, lifted
}

// findNominated lists the jobs of the pool to which others give way.
func (p *queuePass) findNominated() {
	for _, id := range p.s.NominatedJobs() {
		j := p.s.Job(id)
		if nomination, _ := p.s.NominationOf(id); j != nil && !nomination.Backfill && p.s.PoolOf(j) == p.number &&
			j.Spec.Revocable == p.revocable {
			p.nominated = append(p.nominated, id)
		}
	}
}

// hold keeps what is kept for a job in its pool as well, from those behind it. Otherwise one of them is admitted
// into what the first that gave way has freed, and all did so in vain.
func (p *queuePass) hold(id terms.JobID) {
	nomination, ok := p.s.NominationOf(id)
	if !ok || nomination.Backfill || p.daemons() {
		return
	}
	p.holding = append(p.holding, id)
	for _, seat := range nomination.Seats {
		p.admission.Take(admission.GangOf(p.s.Job(id), seat.Need, 1), seat.Count)
	}
}

// release gives a job back what was kept for it.
func (p *queuePass) release(j *workload.Job, nomination facts.Nomination) {
	at := slices.Index(p.holding, j.ID)
	if at < 0 {
		return
	}
	p.holding = slices.Delete(p.holding, at, at+1)
	for _, seat := range nomination.Seats {
		p.admission.Give(admission.GangOf(j, seat.Need, 1), seat.Count)
	}
}

// runsOn counts the instances of a job on the nodes of some seats.
func (p *pass) runsOn(id terms.JobID, seats []facts.NominatedSeat) []uint32 {
	counts := make([]uint32, len(seats))
	for i, seat := range seats {
		p.s.Visit(len(p.s.Node(seat.Node).Held))
		for _, r := range p.s.Node(seat.Node).Held {
			if r.Job == id && int(r.Task) == seat.Task {
				counts[i]++
			}
		}
	}
	return counts
}

// restore keeps again what a job did not take, if it may still come free. What it has taken, or does not need, is no
// kept any more. Before is how many of its instances ran on the nodes before it could.
func (p *pass) restore(id terms.JobID, nomination facts.Nomination, before []uint32) {
	left := slices.Clone(nomination.Seats)
	for i, now := range p.runsOn(id, left) {
		left[i].Count -= min(left[i].Count, now-min(now, before[i]))
	}
	kept := p.trimmed(id, facts.Nomination{Backfill: nomination.Backfill, Seats: left, Leaving: nomination.Leaving})
	// What has come free is kept until the last has left, those of the pool too that leave for other jobs of it: a gang
	// needs all of it, and what the pool may hold goes to the first.
	if !nomination.Backfill && !p.awaits(&nomination) && !p.othersAwait(id) && !p.retries(id, kept.Seats) {
		kept = facts.Nomination{}
	}
	if len(kept.Seats) == 0 {
		p.handOver(id, nomination.Leaving)
	}
	p.s.SetNomination(id, kept)
	p.dropped = p.dropped || !slices.Equal(kept.Seats, nomination.Seats)
	pages := p.s.TakeDirtyPages()
	p.grown, p.regrown = united(p.grown, pages), united(p.regrown, pages)
}

// beside returns the other jobs of the same pool to which others give way.
func (p *pass) beside(id terms.JobID) []terms.JobID {
	number := p.s.PoolOf(p.s.Job(id))
	return slices.DeleteFunc(slices.Clone(p.s.NominatedJobs()), func(other terms.JobID) bool {
		nomination, _ := p.s.NominationOf(other)
		return other == id || nomination.Backfill || p.s.PoolOf(p.s.Job(other)) != number
	})
}

// othersAwait tells whether anything has still to leave for another job of the same pool.
func (p *pass) othersAwait(id terms.JobID) bool {
	return slices.ContainsFunc(p.beside(id), func(other terms.JobID) bool {
		nomination, _ := p.s.NominationOf(other)
		return p.awaits(&nomination)
	})
}

// handOver notes that what has still to leave for a job leaves for the next one of the pool: the job has what it
// wanted.
func (p *pass) handOver(id terms.JobID, leaving []facts.SlotRef) {
	others := p.beside(id)
	if len(others) == 0 {
		return
	}
	nomination, _ := p.s.NominationOf(others[0])
	before := len(nomination.Leaving)
	nomination.Leaving = slices.Clone(nomination.Leaving)
	for _, r := range leaving {
		if p.leaves(r) && !slices.Contains(nomination.Leaving, r) {
			nomination.Leaving = append(nomination.Leaving, r)
		}
	}
	if len(nomination.Leaving) > before {
		p.s.SetNomination(others[0], nomination)
	}
}

// retries tells whether a job is to try again with the next round to take what was freed for it: what was kept there
// for others without preemption is given up. That is so for all queue entries of the job, which follow each other.
func (p *pass) retries(id terms.JobID, seats []facts.NominatedSeat) bool {
	if p.dropBackfill(seats) {
		p.retrying = append(p.retrying, id)
	}
	return slices.Contains(p.retrying, id)
}

// dropBackfill gives up what is kept on some nodes for work for which nothing was stopped, and tells whether that was
// anything: it counts on room that comes free later, and may not have what was freed for others.
func (p *pass) dropBackfill(seats []facts.NominatedSeat) (dropped bool) {
	for _, id := range p.s.NominatedJobs() {
		nomination, _ := p.s.NominationOf(id)
		if nomination.Backfill && slices.ContainsFunc(nomination.Seats, func(seat facts.NominatedSeat) bool {
			return slices.ContainsFunc(seats, func(other facts.NominatedSeat) bool { return other.Node == seat.Node })
		}) {
			p.s.SetNomination(id, facts.Nomination{})
			p.dropped, dropped = true, true
		}
	}
	return dropped
}

func united(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// trimmed returns what of the nomination of a job it still waits for and may have. What is kept for it where others
// were told to stop is no more than is there: others of its tasks may have taken that, what stopped may start there
// again, and the node may offer less.
func (p *pass) trimmed(id terms.JobID, nomination facts.Nomination) (kept facts.Nomination) {
	j := p.s.Job(id)
	if j == nil {
		return kept
	}
	left := make([]uint32, len(j.Tasks))
	for task, t := range j.Tasks {
		left[task] = t.Asks()
	}
	kept.Backfill, kept.Leaving = nomination.Backfill, nomination.Leaving
	for _, seat := range nomination.Seats {
		if seat.Count = min(seat.Count, left[seat.Task]); !nomination.Backfill && p.s.Eligible(seat.Node) {
			seat.Count = min(seat.Count, p.backed(id, &seat, kept.Seats))
		}
		if seat.Count == 0 || !p.s.Eligible(seat.Node) {
			continue
		}
		left[seat.Task] -= seat.Count
		kept.Seats = append(kept.Seats, seat)
	}
	if nomination.Backfill && len(kept.Seats) < len(nomination.Seats) {
		return facts.Nomination{} // elsewhere there may be room sooner
	}
	return kept
}

// backed returns how many instances have room on the node of a nominated seat of a job beside some of its seats, and
// those of others to which something gives way, when all have stopped that were told to.
func (p *pass) backed(id terms.JobID, of *facts.NominatedSeat, own []facts.NominatedSeat) uint32 {
	node := p.s.Node(of.Node)
	free, nominated := p.s.FreeAmounts(of.Node), node.Nominated()
	for k := range free {
		free[k] += nominated[k]
	}
	p.s.Visit(len(node.Held))
	for _, r := range node.Held {
		if slot, _ := p.s.SlotAt(r); preemptible.Leaves(&slot, p.s.Rules) {
			need := p.s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version).Amounts()
			free.Add(&need, 1)
		}
	}
	promised := own
	for _, other := range p.s.NominatedJobs() {
		if nomination, _ := p.s.NominationOf(other); other != id && !nomination.Backfill {
			promised = slices.Concat(promised, nomination.Seats)
		}
	}
	for i := range promised {
		if seat := &promised[i]; seat.Node == of.Node {
			free.Add(&seat.Need, -int64(seat.Count))
		}
	}
	return of.Need.Times(&free, of.Count)
}

// awaits tells whether anything has still to leave, from the nodes that are kept or elsewhere for the sake of the pool.
func (p *pass) awaits(c *facts.Nomination) bool {
	return slices.ContainsFunc(c.Leaving, p.leaves) || slices.ContainsFunc(c.Seats, func(seat facts.NominatedSeat) bool {
		return slices.ContainsFunc(p.s.Node(seat.Node).Held, p.leaves)
	})
}

// leaves tells whether an instance was told to stop, has not yet, and leaves its room to others.
func (p *pass) leaves(r facts.SlotRef) bool {
	p.s.Visit(1)
	slot, ok := p.s.SlotAt(r)
	return ok && preemptible.Leaves(&slot, p.s.Rules)
}

// trimNominations gives back what nothing waits for any more, or can have: of two for which too much is kept the later
// job loses it.
func (p *pass) trimNominations() {
	for _, id := range slices.Backward(slices.Clone(p.s.NominatedJobs())) {
		nomination, _ := p.s.NominationOf(id)
		p.s.Visit(len(nomination.Seats))
		if kept := p.trimmed(id, nomination); !slices.Equal(kept.Seats, nomination.Seats) {
			p.s.SetNomination(id, kept)
		}
	}
}
