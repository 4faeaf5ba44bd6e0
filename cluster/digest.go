package cluster

import (
	"math/bits"

	"starling/terms"
	"starling/terms/constraint"
)

// The digest of a State is the sum of the hashes of its rows, so that a change of one row costs two hashes. It tells
// peers that differ by accident apart; it is no protection against intent.

// The tags keep rows of different tables apart.
const (
	tagMember uint64 = iota + 1
	tagWatched
	tagAttempt
	tagSlot
	tagJob
	tagTask
	tagNode
	tagRequest
	tagState
	tagAttempts
	tagPatience
	tagPools
)

// Odd constants with no pattern (digits of pi), as multiplicative hashing wants them.
const (
	mix1 = 0x243f6a8885a308d3
	mix2 = 0x13198a2e03707345
)

func mix(h, word uint64) uint64 {
	high, low := bits.Mul64(h^word^mix1, mix2|1)
	return high ^ low ^ bits.RotateLeft64(word, 23)
}

func hashWords(tag uint64, words ...uint64) uint64 {
	h := mix(tag, uint64(len(words)))
	for _, w := range words {
		h = mix(h, w)
	}
	return mix(h, mix2)
}

func hashText(tag uint64, texts ...string) uint64 {
	h := mix(tag, uint64(len(texts)))
	for _, text := range texts {
		h = mix(h, uint64(len(text)))
		for len(text) >= 8 {
			word := uint64(0)
			for i := range 8 {
				word = word<<8 | uint64(text[i])
			}
			h = mix(h, word)
			text = text[8:]
		}
		word := uint64(0)
		for i := range len(text) {
			word = word<<8 | uint64(text[i])
		}
		h = mix(h, word)
	}
	return mix(h, mix2)
}

func (a Attempt) hash(p terms.PeerID) uint64 {
	return hashWords(tagAttempt, hashText(tagAttempt, string(p), string(a.Observer)), uint64(a.Number), uint64(a.Phase), uint64(a.Began), uint64(a.BeganAt))
}

func (s *Slot) hash(r SlotRef) uint64 {
	if *s == (Slot{}) {
		return 0
	}
	h := mix(mix(tagSlot, uint64(r.Job)<<32|uint64(r.Index)), uint64(r.Task)|uint64(r.Seat)<<16|uint64(s.Health)<<24|uint64(s.Wish)<<32|uint64(s.Cause)<<40)
	h = mix(h, uint64(s.Order))
	h = mix(h, uint64(s.Deadline))
	h = mix(h, uint64(s.Since))
	h = mix(h, uint64(s.Node)<<32|uint64(s.Version))
	return mix(h, uint64(s.Failures)<<32|uint64(uint32(s.ExitCode))^uint64(s.Phase)<<56^uint64(s.Ended)<<48)
}

// hash covers the job's row; its tasks are counted on their own.
func (j *Job) hash() uint64 {
	h := hashWords(tagJob, uint64(j.ID), uint64(j.Version), uint64(j.Submitted), uint64(j.Changed), uint64(j.SubmittedAt), bit(j.Stop),
		uint64(j.Finished), uint64(j.FinishedAt), j.Update.hash(), uint64(j.updateDeadline))
	if j.Roster != (Roster{}) {
		h = mix(h, hashWords(tagJob, uint64(j.Roster.Version), j.Roster.Sum))
	}
	for _, name := range j.Awaits {
		h = mix(h, hashText(tagJob, string(name)))
	}
	if j.Suspended {
		h = mix(h, tagJob)
	}
	for i := range j.versions {
		v := &j.versions[i]
		h = mix(h, hashWords(tagJob, uint64(v.Number)<<32|uint64(v.Of), uint64(v.Kind)<<8|uint64(v.Outcome), uint64(v.Index), uint64(v.At), v.hash))
		if v.Task != "" {
			h = mix(h, hashText(tagJob, string(v.Task)))
		}
	}
	return h
}

// hash covers the task's row; its slots are counted in its digest.
func (t *Task) hash(id terms.JobID, task int) uint64 {
	return hashWords(tagTask, uint64(KeyOf(id, task)), t.nameHash, uint64(t.Desired)<<32|uint64(t.Fresh), uint64(t.Slots.Len()), t.failureHash, t.Preemption.hash())
}

func (f *Failure) hash() uint64 {
	return hashWords(tagJob, uint64(f.Index), uint64(f.Order), uint64(f.At), uint64(f.Ended), uint64(uint32(f.ExitCode)), hashText(tagJob, f.Detail))
}

func (p *Preemption) hash() uint64 {
	if p.Entry == 0 {
		return 0
	}
	return hashWords(tagJob, uint64(p.Index), uint64(p.Entry), uint64(p.At), uint64(p.Rule), hashText(tagJob, string(p.By)))
}

func hashJob(s *terms.Job) uint64 {
	h := hashText(tagJob, string(s.Name))
	h = mix(mix(h, uint64(s.Type)), hashUpdatePolicy(&s.Update))
	h = mix(h, hashWords(tagJob, uint64(s.Priority)<<32|uint64(s.MinAvailable), bit(s.NonPreemptible), bit(s.Revocable), bit(s.Controller),
		bit(s.KillOnPreempt)))
	for _, name := range s.After {
		h = mix(h, hashText(tagJob, string(name)))
	}
	for _, q := range s.Plugins {
		h = mix(h, hashText(tagJob, q.Name))
		for _, a := range q.Arguments {
			h = mix(h, hashText(tagJob, a.Name, a.Value))
		}
	}
	for i := range s.Tasks {
		h = mix(h, hashTask(&s.Tasks[i]))
	}
	return h
}

func hashTask(t *terms.Task) uint64 {
	h := hashText(tagJob, string(t.Name), t.WorkDir, t.User)
	h = mix(h, hashText(tagJob, t.Command...))
	for _, name := range t.After {
		h = mix(h, hashText(tagJob, string(name)))
	}
	for _, e := range t.Env {
		h = mix(h, hashText(tagJob, e.Name, e.Value))
	}
	for _, d := range t.Devices {
		h = mix(h, mix(hashText(tagJob, d.Kind)^uint64(d.Amount), hashText(tagJob, d.Models...)))
	}
	for _, p := range t.Ports {
		h = mix(h, hashText(tagJob, p.Name)^uint64(p.Number))
	}
	for i := range t.Constraints {
		h = mix(h, hashConstraint(&t.Constraints[i]))
	}
	h = mix(h, hashPolicies(t))
	for _, l := range t.Labels {
		h = mix(h, hashText(tagJob, l.Name, l.Value))
	}
	h = mix(hashText(tagJob, t.SpreadOver)^uint64(t.PerNodeMax), h)
	return mix(h, hashWords(tagJob, uint64(t.Instances), uint64(t.MinAvailable)<<32|uint64(t.MaxRunning), uint64(t.MaxRunMillis), uint64(t.Resources[terms.CPU]), uint64(t.Resources[terms.Memory]), uint64(t.Resources[terms.Disk]),
		uint64(t.Placement), uint64(t.Restart.AttemptsMax), uint64(t.Restart.DelayMillis), uint64(t.Restart.DelayMaxMillis),
		uint64(t.Restart.ResetMillis), uint64(t.StopGraceMillis), uint64(t.OnMembersChange)))
}

func hashConstraint(c *constraint.Constraint) uint64 {
	h := hashWords(tagJob, hashText(tagJob, c.Attribute, c.Label, c.Within), hashText(tagJob, c.Values...), uint64(c.Operator),
		uint64(c.Count), bit(c.Soft), uint64(c.PatienceMillis), uint64(len(c.All)))
	for i := range c.All {
		h = mix(h, hashConstraint(&c.All[i]))
	}
	for i := range c.Any {
		h = mix(h, hashConstraint(&c.Any[i]))
	}
	return h
}

func (n *Node) hash() uint64 {
	h := hashText(tagNode, string(n.Name), string(n.Peer))
	h = mix(h, uint64(n.Index)<<32|uint64(n.Departed))
	for _, s := range n.Sessions {
		h = mix(mix(h, uint64(s.Incarnation)), s.Seq)
	}
	h = mix(h, uint64(n.PortNext)|bit(n.Drain.On)<<16)
	h = mix(h, uint64(n.Drain.Deadline))
	h = mix(h, n.offerHash)
	for _, p := range n.Ports {
		h = mix(h, hashWords(tagNode, hashText(tagNode, p.Name), uint64(p.Number), uint64(p.Slot.Job), uint64(p.Slot.Index), uint64(p.Slot.Task)))
	}
	for _, d := range n.Devices {
		h = mix(h, hashWords(tagNode, hashText(tagNode, d.Kind), uint64(d.Number)<<32|uint64(d.Amount), uint64(d.Slot.Job), uint64(d.Slot.Index), uint64(d.Slot.Task)))
	}
	return h
}

func hashOffer(o *terms.Offer) uint64 {
	h := hashText(tagNode, o.Address)
	h = mix(h, hashWords(tagNode, uint64(o.Capacity[terms.CPU]), uint64(o.Capacity[terms.Memory]), uint64(o.Capacity[terms.Disk]),
		uint64(o.PortFirst), uint64(o.PortLast), uint64(o.Rules)))
	for _, a := range o.Attributes {
		h = mix(h, hashText(tagNode, a.Name, a.Value))
	}
	for _, d := range o.Devices {
		h = mix(h, hashText(tagNode, d.Kind, d.Model)^uint64(d.Count))
	}
	return h
}

func hashPolicies(t *terms.Task) uint64 {
	h := hashWords(tagJob, uint64(t.Reschedule.AttemptsMax), uint64(t.Reschedule.IntervalMillis), uint64(t.Reschedule.DelayMillis),
		uint64(t.Reschedule.DelayMaxMillis), uint64(t.Reschedule.Growth), uint64(t.Disconnect.LostAfterMillis), bit(t.Disconnect.Wait),
		uint64(t.Disconnect.Keep), uint64(t.Disconnect.StopAfterMillis))
	for i := range t.Checks {
		c := &t.Checks[i]
		h = mix(mix(h, hashText(tagJob, c.Port, c.Path)), hashText(tagJob, c.Command...))
		h = mix(h, hashWords(tagJob, uint64(c.Kind), uint64(c.IntervalMillis), uint64(c.TimeoutMillis), uint64(c.FailuresMax)))
	}
	for _, v := range t.Volumes {
		h = mix(h, hashText(tagJob, v.Name))
	}
	return h
}

func hashUpdatePolicy(u *terms.UpdatePolicy) uint64 {
	return hashWords(tagJob, uint64(u.BatchSize), uint64(u.Canaries), bit(u.AutoPromote), uint64(u.MinHealthyMillis),
		uint64(u.HealthyDeadlineMillis), uint64(u.ProgressDeadlineMillis), uint64(u.AttemptsMax), uint64(u.FailuresMax), bit(u.Rollback),
		bit(u.StartPaused), bit(u.SameNode))
}

func hashPool(s *terms.Pool) uint64 {
	h := hashText(tagPools, append([]string{string(s.Path)}, s.Owners...)...)
	for _, q := range s.Quotas {
		h = mix(h, hashWords(tagPools, uint64(q.Reservation), uint64(q.Limit), uint64(q.Share), bit(q.Static)))
	}
	return mix(h, hashWords(tagPools, uint64(s.ControllerLimit), uint64(s.SlackLimit), uint64(s.PatienceMillis)))
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
