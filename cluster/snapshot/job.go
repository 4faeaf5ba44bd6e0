package snapshot

import (
	"math"

	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/terms"
	"starling/terms/codec"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

func (s *specs) job(c *coder, j *facts.WholeJob) {
	codec.Integer(c, &j.ID, math.MaxUint32)
	codec.Uint32s(c, &j.Version)
	index(c, &j.Submitted, &j.Changed, &j.Finished)
	times(c, &j.SubmittedAt, &j.FinishedAt, &j.UpdateDeadline)
	codec.Flags(c, &j.Stop, &j.Suspended)
	codec.List(c, &j.Awaits, rowsMax, text[terms.JobName])
	policyState(c, &j.PolicyState)
	index(c, &j.Roster.Version)
	index(c, &j.Roster.Sum, &j.GangTried)
	update(c, &j.Update)
	codec.List(c, &j.Versions, rowsMax, s.version)
	codec.Integer(c, &j.Pool, math.MaxUint32)
	codec.List(c, &j.Tasks, rowsMax, s.task)
}

func (s *specs) version(c *coder, v *facts.JobVersion) {
	codec.Uint32s(c, &v.Number, &v.Of)
	codec.Integer(c, &v.Kind, uint64(facts.WentBack))
	codec.Integer(c, &v.Outcome, uint64(facts.UpdateStateCount)-1)
	text(c, &v.Task)
	index(c, &v.Index)
	times(c, &v.At)
	s.spec(c, v)
}

func policyState(c *coder, p *facts.PolicyState) {
	codec.Integer(c, &p.Outcome, uint64(facts.Completed))
	codec.Uint32s(c, &p.Restarts)
	a := &p.Last
	index(c, &a.Entry, &a.Order)
	times(c, &a.At)
	codec.Integer[lifecycle.Action](c, &a.Action, math.MaxUint8)
	codec.Integer[lifecycle.Event](c, &a.Event, math.MaxUint8)
	codec.Flags(c, &a.OfJob, &a.Spent)
	codec.Integer(c, &a.Task, math.MaxUint16)
	codec.Uint32s(c, &a.Index)
	codec.Integer(c, &a.Ended, uint64(facts.EndingCount)-1)
	c.Signed(&a.ExitCode)
	text(c, &a.Before)
}

func update(c *coder, u *facts.Update) {
	codec.Integer(c, &u.State, uint64(facts.UpdateStateCount)-1)
	codec.Integer(c, &u.Before, uint64(facts.UpdateStateCount)-1)
	codec.Flags(c, &u.Promoted, &u.Tried)
	codec.Uint32s(c, &u.From, &u.To)
	index(c, &u.Began, &u.LookedAt)
	times(c, &u.BeganAt, &u.ProgressAt, &u.EndedAt)
	text(c, &u.Reason)
}

func (s *specs) task(c *coder, t *facts.WholeTask) {
	text(c, &t.Name)
	codec.Uint32s(c, &t.Desired, &t.Fresh, &t.Restarts, &t.ShareBound)
	codec.Flags(c, &t.Restarting, &t.Blocked, &t.SpecialBlocked)
	if s.rules >= rules.Unsuited {
		codec.Flags(c, &t.Unsuited)
	}
	failure(c, &t.Failure)
	preemption(c, &t.Preemption)
	times(c, &t.Completion.Due)
	codec.Flags(c, &t.Completion.Followed)
	codec.Uint32s(c, &t.Seal.Index, &t.Seal.Count)
	index(c, &t.Seal.Order, &t.Seal.Entry)
	t.Most.Code(c)
	length := uint64(t.Length)
	c.Number(&length, math.MaxUint32)
	t.Length = int(length)
	codec.List(c, &t.Slots, rowsMax, slot)
	codec.List(c, &t.Secondary, rowsMax, func(c *coder, row *facts.Row[facts.SeatKey, facts.Slot]) {
		index(c, &row.Key)
		slot(c, &row.Value)
	})
	codec.List(c, &t.Attempts, rowsMax, func(c *coder, row *facts.Row[uint32, retries.Attempts]) {
		codec.Uint32s(c, &row.Key, &row.Value.Made)
		codec.List(c, &row.Value.Latest, rowsMax, func(c *coder, a *retries.Attempt) {
			times(c, &a.At)
			codec.Uint32s(c, &a.DelayMillis)
		})
	})
}

func failure(c *coder, f *facts.Failure) {
	codec.Uint32s(c, &f.Index)
	index(c, &f.Order)
	times(c, &f.At)
	codec.Integer(c, &f.Ended, uint64(facts.EndingCount)-1)
	c.Signed(&f.ExitCode)
	text(c, &f.Detail)
}

func preemption(c *coder, p *facts.Preemption) {
	codec.Uint32s(c, &p.Index)
	index(c, &p.Entry)
	times(c, &p.At)
	text(c, &p.By)
	codec.Integer(c, &p.Rule, math.MaxUint8)
}

// slot codes a seat. One that was never used is one byte.
func slot(c *coder, s *facts.Slot) {
	used := *s != facts.Slot{}
	if codec.Flags(c, &used); !used {
		return
	}
	index(c, &s.Order)
	times(c, &s.Deadline, &s.Since)
	node(c, &s.Node)
	codec.Uint32s(c, &s.Version, &s.Failures)
	c.Signed(&s.ExitCode)
	codec.Integer(c, &s.Phase, uint64(facts.PhaseCount)-1)
	codec.Integer(c, &s.Ended, uint64(facts.EndingCount)-1)
	codec.Integer(c, &s.Health, uint64(facts.HealthCount)-1)
	codec.Integer(c, &s.Preference, uint64(facts.OnlyNode))
	codec.Integer(c, &s.Cause, uint64(facts.ByRelease))
}
