package replica

import (
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/command"
	"starling/replica/limits"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// raiseRules lets the fold go on by the next version of the rules if the programs of all members know it. The entry
// itself is folded by the old one to its end, so that a program that knows no other has the value of all up to here,
// and stops.
func (f *fold) raiseRules(c *command.RaiseRules) report.Result {
	if r := f.member(); r.Refused() {
		return r
	}
	if c.Version == f.s.Rules {
		return report.Result{} // a repetition
	}
	if c.Version != f.s.Rules+1 {
		return refused(facts.Conflict, "the rules have version %d, the next is %d, not %d", f.s.Rules, f.s.Rules+1,
			c.Version)
	}
	if all := reaction.Behind(f.s, c.Version); len(all) > 0 {
		return refused(facts.Conflict,
			"%d of %d members do not know version %d of the rules (%s): install a newer program there first",
			len(all), f.s.Members(), c.Version, report.Names(all))
	}
	f.raised = c.Version
	return report.Result{}
}

// changePools changes the tree of resource pools, if the result keeps to the rules and no pool with jobs goes.
func (f *fold) changePools(c *command.ChangePools) report.Result {
	return f.once(c.RequestID, func() report.Result {
		changed, refusal := limits.Pools(f.s, c)
		if !refusal.Refused() {
			f.s.SetPools(changed)
		}
		return refusal
	})
}

// vouch takes a member's word for a snapshot.
func (f *fold) vouch(c *command.VouchSnapshot) report.Result {
	if r := f.member(); r.Refused() {
		return r
	}
	why := snapshot.Vouch(&f.s.Snapshots, facts.Vouch{Peer: f.entry.Writer, Snapshot: c.Snapshot}, f.s.Members())
	if why != "" {
		return refused(facts.Conflict, "%s", why)
	}
	return report.Result{}
}

// vouches tells whether all that the entry did was to vouch for a snapshot: that is no reason for the next.
func (f *fold) vouches() bool {
	for i, r := range f.outcome.Results {
		if f.entry.Commands[i].Kind() != command.KindVouchSnapshot || r.Refused() {
			return false
		}
	}
	return len(f.outcome.Results) > 0
}

// timeNow is the value's time at the entry: the highest that any told. Under rules.Next each entry lets it pass, so
// that the digests of programs that fold by other rules differ at once.
func (f *fold) timeNow() terms.Time {
	least := f.s.Time
	if f.s.Rules >= rules.Next {
		least++
	}
	return max(least, f.entry.Time)
}

// passTime lets the value's time pass.
func (f *fold) passTime(c *command.PassTime) report.Result {
	return f.once(c.RequestID, func() report.Result {
		f.s.Time += terms.Time(c.Millis)
		return report.Result{}
	})
}
