package explain

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule"
	"starling/schedule/explain/wording"
	"starling/schedule/preempt"
	"starling/terms"
)

// yielding is what becomes of those who have the room that waiting work needs.
type yielding struct {
	// told were told to give way, and have not ended. Their room is kept, as nomination says; if that is a backfill
	// reservation, nothing was told.
	told       []held
	slots      []facts.SlotRef
	nomination facts.Nomination
	// next would give way, from a time on if that is known.
	next []schedule.Yielding
	at   terms.Time
	// protected are those who do not give way, by what protects them.
	protected [protectionCount]flock
	// priority is one with which others would give way, 0 if there is none.
	priority uint32
}

// protection is what keeps an instance from having to give way.
type protection uint8

const (
	ofMachine protection = iota
	notPreemptible
	unentitled
	withinEntitlement
	notRevocable
	important
	wholeGang
	useless
	protectionCount
)

// text says a protection behind "do not give way: ".
func (p *queueForecast) text(why protection) string {
	switch why {
	case ofMachine:
		return "daemons belong to their machines"
	case notPreemptible:
		return "not preemptible"
	case unentitled:
		return fmt.Sprintf("pool %s is not entitled to more", p.path)
	case withinEntitlement:
		return "of a pool within its entitlement"
	case notRevocable:
		return "not revocable, as this job is"
	case important:
		return fmt.Sprintf("of pool %s too, with the same priority or a higher one", p.path)
	case wholeGang:
		return "their whole gang would have to go, and that would not be enough"
	}
	return "their room would not be enough, or not where it is needed"
}

// flock is a number of instances, by job.
type flock struct {
	count int
	jobs  []terms.JobID
	each  []int
}

// add counts instances of a job. Those of one job come together.
func (f *flock) add(id terms.JobID, count int) {
	if count == 0 {
		return
	}
	if n := len(f.jobs); n == 0 || f.jobs[n-1] != id {
		f.jobs, f.each = append(f.jobs, id), append(f.each, 0)
	}
	f.count += count
	f.each[len(f.each)-1] += count
}

// yields finds out who gives way to the work, or why nobody does.
func (p *queueForecast) yields() *yielding {
	y := &yielding{}
	y.nomination, _ = p.e.s.NominationOf(p.e.job.ID)
	if len(y.nomination.Seats) > 0 && !y.nomination.Backfill {
		y.note(p.e)
		return y
	}
	if p.fixed() || p.e.task.Unsuited {
		return y // it could not run with what others give
	}
	if next, ok := p.Yielding(p.e.job.Spec.Priority); ok {
		y.next = next
		if h, starving := p.e.s.StarvingOf(p.Number); starving && !h.Failed {
			y.at = h.At
		}
		return y
	}
	y.protect(p)
	y.priority = p.urgent()
	return y
}

// fixed tells whether the work is beyond a bound that nobody who gives way can raise.
func (p *queueForecast) fixed() bool {
	return slices.ContainsFunc(p.bounds, func(b bound) bool { return b.by == byReservation || b.by == byControllers })
}

// note lists those who were told to give way where room is kept for the job.
func (y *yielding) note(e *explainer) {
	nodes := make([]facts.NodeIndex, 0, len(y.nomination.Seats))
	for _, seat := range y.nomination.Seats {
		nodes = append(nodes, seat.Node)
	}
	slices.Sort(nodes)
	for _, n := range slices.Compact(nodes) {
		for _, r := range e.s.Node(n).Held {
			if slot, _ := e.s.SlotAt(r); slot.Phase == facts.Stopping && slot.Cause == facts.ByPreemption {
				y.told, y.slots = append(y.told, held{r.Index, slot}), append(y.slots, r)
			}
		}
	}
}

// protect finds out for all that runs why it does not give way.
func (y *yielding) protect(p *queueForecast) {
	in := p.Contest()
	p.e.s.EachJob(func(j *workload.Job) bool {
		running := 0
		for _, t := range j.Tasks {
			running += int(t.Live() - t.Counts[facts.Stopping] - t.Secondary[facts.Stopping])
		}
		switch {
		case j.ID == p.e.job.ID:
		case j.Spec.Type == terms.Daemon:
			y.protected[ofMachine].add(j.ID, running)
		case j.Spec.NonPreemptible():
			y.protected[notPreemptible].add(j.ID, running)
		}
		return true
	})
	for i := range in.Victims {
		if v := &in.Victims[i]; v.Slot.Job != p.e.job.ID {
			y.protected[p.protection(in, v)].add(v.Slot.Job, 1)
		}
	}
}

// protection says why a preemptible instance does not give way.
func (p *queueForecast) protection(in *preempt.Input, v *preempt.Victim) protection {
	own := v.Pool == in.Pool && v.Revocable == in.Revocable
	switch {
	case in.Revocable && !v.Revocable:
		return notRevocable
	case own && v.Priority >= in.Priority:
		return important
	case !own && v.Revocable == in.Revocable && !p.lends(in, v.Pool):
		return withinEntitlement
	case !own && !p.queue.Room:
		return unentitled
	case v.Gang != preempt.NoGang && in.Gangs[v.Gang].Surplus[v.Slot.Task] == 0:
		return wholeGang
	}
	return useless
}

// lends tells whether another pool holds more than it is entitled to, of a kind that is needed.
func (p *queueForecast) lends(in *preempt.Input, pool int) bool {
	for k, over := range in.Over[pool] {
		if over > 0 && p.Unit.Need[k] > 0 {
			return true
		}
	}
	return false
}

// urgent returns the lowest priority with which others would give way to the work, 0 if there is none.
func (p *queueForecast) urgent() uint32 {
	in, mine := p.Contest(), p.e.job.Spec.Priority
	var levels []uint32
	for i := range in.Victims {
		v := &in.Victims[i]
		own := v.Pool == in.Pool && v.Revocable == in.Revocable && v.Slot.Job != p.e.job.ID
		if own && v.Priority >= mine && v.Priority < terms.PriorityMax {
			levels = append(levels, v.Priority+1)
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	at, _ := slices.BinarySearchFunc(levels, true, func(level uint32, _ bool) int {
		if _, ok := p.Yielding(level); ok {
			return 1
		}
		return -1
	})
	if at == len(levels) {
		return 0
	}
	return levels[at]
}

// contest says who gives way to the work, or why nobody does.
func (p *queueForecast) contest(c *diagnosis) []string {
	if p == nil {
		return nil
	}
	y := p.yielding
	all := y.kept(p.e)
	switch {
	case len(y.told) > 0:
		all = append(all, fmt.Sprintf("%s not ended yet after being told to give way at %s: %s",
			wording.Plural(len(y.told), "instance has", "instances have"), wording.Clock(earliest(y.told)),
			p.e.instances(y.slots)))
	case len(y.next) > 0:
		all = append(all, y.announce(p)...)
	case c.possible == 0 || p.e.task.Unsuited || c.onlyPorts() || c.able > 0 && p.reason() == "":
		return all // there is nothing that anybody could give
	case p.fixed():
		all = append(all, "nothing is asked to give way: that would not raise what bounds it")
	}
	for why := range protectionCount {
		f := &y.protected[why]
		if f.count == 0 {
			continue
		}
		var names []string
		others := 0
		for i, id := range f.jobs {
			if name := p.name(id); p.e.seen(name) {
				names = append(names, fmt.Sprintf("%s (%d)", name, f.each[i]))
			} else {
				others += f.each[i]
			}
		}
		if others > 0 {
			names = append(names, fmt.Sprintf("other pools (%d)", others))
		}
		all = append(all, fmt.Sprintf("%s not give way: %s: %s", wording.Plural(f.count, "instance does", "instances do"),
			p.text(why), wording.Some(names)))
	}
	return all
}

// kept says what is kept for the work already.
func (y *yielding) kept(e *explainer) []string {
	how := "kept for it as it comes free"
	if y.nomination.Backfill {
		how = "kept for it until enough has ended there"
	}
	return wording.Lines(y.nomination.Seats, "nodes", func(c facts.NominatedSeat) string {
		var parts []string
		for k, need := range c.Need {
			if need > 0 {
				parts = append(parts, wording.Amount(terms.Kind(k), need*int64(c.Count)))
			}
		}
		return fmt.Sprintf("%s: %s on %s", how, strings.Join(parts, ", "), e.s.Node(c.Node).Name)
	})
}

// announce says who will give way, by which rule, and when.
func (y *yielding) announce(p *queueForecast) (all []string) {
	when := "when its turn has come"
	if y.at > 0 {
		when = fmt.Sprintf("at %s, if nothing comes free until then (the preemption delay of pool %s is %s)", wording.Clock(y.at), p.path,
			wording.Duration(terms.Time(p.spec.PreemptionDelayMillis)))
	}
	for rule, why := range [...]string{
		preempt.ByRevocable: "revocable", preempt.ByEntitlement: "of a pool above its entitlement",
		preempt.ByPriority: "less important",
	} {
		var slots []facts.SlotRef
		for _, one := range y.next {
			if one.Rule == preempt.Rule(rule) {
				slots = append(slots, one.Slot)
			}
		}
		if len(slots) > 0 {
			all = append(all, fmt.Sprintf("%s to give way %s: %s: %s",
				wording.Plural(len(slots), "instance is", "instances are"), when, why, p.e.instances(slots)))
		}
	}
	return all
}
