package cluster

import (
	"starling/terms"
	"starling/terms/fingerprint"
)

// The digest of a State is the sum of the hashes of its rows, so that a change of one row costs two hashes. It tells
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
	tagPatience
	tagPools
	tagBlocked
	tagShared
)

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
		uint64(j.Finished), uint64(j.FinishedAt), j.Update.hash(), uint64(j.updateDeadline), uint64(j.pool)<<32^j.gangTried)
	if j.Roster != (Roster{}) {
		h = mix(h, hashWords(tagJob, uint64(j.Roster.Version), j.Roster.Sum))
	}
	for _, name := range j.Awaits {
		h = mix(h, hashText(tagJob, string(name)))
	}
	if j.Suspended {
		h = mix(h, tagJob)
	}
	if j.Fate != (Fate{}) {
		h = mix(h, j.Fate.hash())
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
	return hashWords(tagTask, uint64(KeyOf(id, task)), t.nameHash, uint64(t.Desired)<<32|uint64(t.Fresh), uint64(t.Slots.Len())<<32|uint64(t.share), t.failureHash, t.Preemption.hash(), uint64(t.Restarts)<<2|bit(t.Completion.Followed)<<1|bit(t.Restarting), uint64(t.Completion.Due), t.Seal.hash(), t.most.Hash())
}

func (s *Seal) hash() uint64 {
	if *s == (Seal{}) {
		return 0
	}
	return hashWords(tagJob, uint64(s.Index)<<32|uint64(s.Count), uint64(s.Order), uint64(s.Entry))
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

func mix(h, word uint64) uint64 { return fingerprint.Mix(h, word) }

func hashWords(tag uint64, words ...uint64) uint64 { return fingerprint.Words(tag, words...) }

func hashText(tag uint64, texts ...string) uint64 { return fingerprint.Text(tag, texts...) }

func bit(b bool) uint64 { return fingerprint.Bit(b) }
