package facts

import (
	"starling/cluster/retries"
	"starling/cluster/tree"
	"starling/terms"
	"starling/terms/fingerprint"
)

// The digest of a value is the sum of the hashes of its rows, so that a change of one row costs two hashes. It tells
// peers that differ by accident apart; it is no protection against intent.

// The tags keep rows of different tables apart.
const (
	tagSlot uint64 = iota + 4
	tagJob
	tagTask
	tagNode
	tagRequest
	tagState
	tagAttempts
	tagSoftSince
	tagPools
	tagBlocked
	tagShared
	tagSnapshots
	tagVolumes
)

// Hash covers a seat; of one that was never used it is 0.
func (s *Slot) Hash(r SlotRef) uint64 {
	if *s == (Slot{}) {
		return 0
	}
	h := mix(mix(tagSlot, uint64(r.Job)<<32|uint64(r.Index)),
		uint64(r.Task)|uint64(r.Seat)<<16|uint64(s.Health)<<24|uint64(s.Preference)<<32|uint64(s.Cause)<<40)
	h = mix(h, uint64(s.Order))
	h = mix(h, uint64(s.Deadline))
	h = mix(h, uint64(s.Since))
	h = mix(h, uint64(s.Node)<<32|uint64(s.Version))
	return mix(h, uint64(s.Failures)<<32|uint64(uint32(s.ExitCode))^uint64(s.Phase)<<56^uint64(s.Ended)<<48)
}

// Hash covers the job's row; its tasks are counted on their own.
func (j *Job) Hash() uint64 {
	h := hashWords(tagJob, uint64(j.ID), uint64(j.Version), uint64(j.Submitted), uint64(j.Changed), uint64(j.SubmittedAt),
		bit(j.Stop),
		uint64(j.Finished), uint64(j.FinishedAt), j.Update.Hash(), uint64(j.UpdateDeadline), uint64(j.Pool)<<32^j.GangTried)
	if j.Roster != (Roster{}) {
		h = mix(h, hashWords(tagJob, uint64(j.Roster.Version), j.Roster.Sum))
	}
	for _, name := range j.Awaits {
		h = mix(h, hashText(tagJob, string(name)))
	}
	if j.Suspended {
		h = mix(h, tagJob)
	}
	if j.PolicyState != (PolicyState{}) {
		h = mix(h, j.PolicyState.Hash())
	}
	for i := range j.Versions {
		v := &j.Versions[i]
		h = mix(h, hashWords(tagJob, uint64(v.Number)<<32|uint64(v.Of), uint64(v.Kind)<<8|uint64(v.Outcome), uint64(v.Index),
			uint64(v.At), v.SpecHash))
		if v.Task != "" {
			h = mix(h, hashText(tagJob, string(v.Task)))
		}
	}
	return h
}

// NameHash is that of a task's name.
func NameHash(name terms.TaskName) uint64 { return hashText(tagTask, string(name)) }

// Hash covers the task's row with so many slots; they are counted on their own. Name and failure are the hashes of
// those, which are kept because they cost the most.
func (t *Task) Hash(key TaskKey, slots int, name, failure uint64) uint64 {
	return hashWords(tagTask, uint64(key), name, uint64(t.Desired)<<32|uint64(t.Fresh),
		uint64(slots)<<32|uint64(t.ShareBound), failure, t.Preemption.Hash(),
		uint64(t.Restarts)<<2|bit(t.Completion.Followed)<<1|bit(t.Restarting), uint64(t.Completion.Due), t.Seal.Hash(),
		t.Most.Hash()) + bit(t.Unsuited)*hashWords(tagTask, uint64(key))
}

// Hash is that of a seal, 0 for none.
func (s *Seal) Hash() uint64 {
	if *s == (Seal{}) {
		return 0
	}
	return hashWords(tagJob, uint64(s.Index)<<32|uint64(s.Count), uint64(s.Order), uint64(s.Entry))
}

// Hash is that of a failure.
func (f *Failure) Hash() uint64 {
	return hashWords(tagJob, uint64(f.Index), uint64(f.Order), uint64(f.At), uint64(f.Ended), uint64(uint32(f.ExitCode)),
		hashText(tagJob, f.Detail))
}

// Hash is that of a preemption, 0 for none.
func (p *Preemption) Hash() uint64 {
	if p.Entry == 0 {
		return 0
	}
	return hashWords(tagJob, uint64(p.Index), uint64(p.Entry), uint64(p.At), uint64(p.Rule),
		hashText(tagJob, string(p.By)))
}

// Hash covers the node's row. Offer is the hash of what it offers, which is kept because it costs the most.
func (n *Node) Hash(index NodeIndex, offer uint64) uint64 {
	h := hashText(tagNode, string(n.Name), string(n.Peer))
	h = mix(h, uint64(index)<<32|uint64(n.Departed))
	for _, s := range n.Sessions {
		h = mix(mix(h, uint64(s.Incarnation)), s.Seq)
	}
	h = mix(h, uint64(n.PortNext)|bit(n.Drain.On)<<16)
	h = mix(h, uint64(n.Drain.Deadline))
	h = mix(h, offer)
	for _, p := range n.Ports {
		h = mix(h, hashWords(tagNode, hashText(tagNode, p.Name), uint64(p.Number), uint64(p.Slot.Job), uint64(p.Slot.Index),
			uint64(p.Slot.Task)))
	}
	for _, d := range n.Devices {
		h = mix(h, hashWords(tagNode, hashText(tagNode, d.Kind), uint64(d.Number)<<32|uint64(d.Amount), uint64(d.Slot.Job),
			uint64(d.Slot.Index), uint64(d.Slot.Task)))
	}
	return h
}

func mix(h, word uint64) uint64 { return fingerprint.Mix(h, word) }

func hashWords(tag uint64, words ...uint64) uint64 { return fingerprint.Words(tag, words...) }

func hashText(tag uint64, texts ...string) uint64 { return fingerprint.Text(tag, texts...) }

func bit(b bool) uint64 { return fingerprint.Bit(b) }

// SoftSinceHash is what the wait of a task with soft constraints adds to the digest.
func SoftSinceHash(key TaskKey, since terms.Time) uint64 {
	return hashWords(tagSoftSince, uint64(key), uint64(since))
}

// SharedHash is what the fingerprint from which a pool was divided adds to the digest.
func SharedHash(id tree.ID, fingerprint uint64) uint64 {
	return hashWords(tagShared, uint64(id), fingerprint)
}

// BlockedHash is what an entry of a task adds to the digest, in which all nodes were tried or not.
func BlockedHash(entry TaskKey, blocked bool) uint64 {
	return bit(blocked) * hashWords(tagBlocked, uint64(entry))
}

// Hash is the digest of a value whose rows have such a sum of hashes, and whose ring and pools such hashes.
func (f *Head) Hash(rows, ring, pools uint64) uint64 {
	h := hashWords(tagState, rows, ring, uint64(f.Index), uint64(f.Time), uint64(f.Rules), uint64(f.LastJob),
		f.RequestNext, bit(f.Unfinished)|bit(f.PlacementDirty)<<1|bit(f.PreemptionDirty)<<2, f.Holds, pools)
	for _, n := range f.DirtyNodes {
		h = mix(h, uint64(n))
	}
	if snapshots := f.Snapshots.Hash(); snapshots != 0 {
		h = mix(h, snapshots)
	}
	return h
}

// Hash is that of the record of an update.
func (u *Update) Hash() uint64 {
	return hashWords(tagJob, uint64(u.State)<<16|uint64(u.Before)<<8|bit(u.Tried)<<1|bit(u.Promoted),
		uint64(u.From)<<32|uint64(u.To), uint64(u.Began),
		uint64(u.BeganAt), uint64(u.ProgressAt), uint64(u.EndedAt), uint64(u.LookedAt), hashText(tagJob, u.Reason))
}

// Hash covers what policies made of a job.
func (f *PolicyState) Hash() uint64 {
	d := &f.Last
	h := hashWords(tagJob, uint64(f.Outcome)<<32|uint64(f.Restarts), uint64(d.Entry), uint64(d.At),
		uint64(d.Action)<<8|uint64(d.Event),
		bit(d.OfJob)<<1|bit(d.Spent), uint64(d.Task)<<32|uint64(d.Index), uint64(d.Order),
		uint64(d.Ended)<<32|uint64(uint32(d.ExitCode)))
	if d.Before != "" {
		h = mix(h, hashText(tagJob, string(d.Before)))
	}
	return h
}

// Hash covers the outcome of a request.
func (r Request) Hash(id string) uint64 {
	return mix(hashText(tagRequest, id, string(r.Job), r.Refusal.Reason), uint64(r.Index)<<8|uint64(r.Refusal.Code))
}

// Hash covers what is kept for a job.
func (c *Nomination) Hash(id terms.JobID) uint64 {
	h := hashWords(tagPools, uint64(id), bit(c.Backfill))
	for _, seat := range c.Seats {
		h = mix(h, hashWords(tagPools, uint64(seat.Task)<<32|uint64(seat.Node), uint64(seat.Count)))
		for _, need := range seat.Need {
			h = mix(h, uint64(need))
		}
	}
	for _, r := range c.Leaving {
		h = mix(h, hashWords(tagPools, uint64(r.Job), uint64(r.Task)<<32|uint64(r.Index), uint64(r.Seat)))
	}
	return h
}

// Hash covers that a pool starves.
func (h *Starving) Hash(id tree.ID) uint64 {
	return hashWords(tagPools, uint64(id)<<1|bit(h.Failed), uint64(h.At))
}

// AttemptsHash is what the looks of a slot for another node add to the digest.
func AttemptsHash(r SlotRef, all retries.Attempts) uint64 {
	if all.Made == 0 {
		return 0
	}
	return all.Mix(hashWords(tagAttempts, uint64(r.Job)<<32|uint64(r.Index), uint64(r.Task)))
}
