package facts

import "starling/terms"

// Volumes are a set of volumes of which slots do not say all: their slot is not there, has them from an earlier job, or
// began anew with them.
type Volumes struct {
	// User is the job whose slot has them, or will if it has that again; 0 for none: its job is forgotten.
	User terms.JobID
	// Node has them. It has no meaning while they are Empty: no allocation was ordered with them.
	Node  NodeIndex
	Empty bool
	// Order is that of the last allocation before they came to be kept here, or the entry with which they began anew.
	Order terms.Index
	// Since is when they came to be kept here, Until when they go; 0 is when somebody removes them.
	Since, Until terms.Time
}

// Hash is what a set of volumes adds to the digest.
func (v *Volumes) Hash(set terms.VolumeSet) uint64 {
	h := hashWords(tagVolumes, hashText(tagVolumes, string(set.Slot.Job), string(set.Slot.Task)),
		uint64(set.Slot.Index)<<32|uint64(set.Job), uint64(v.User)<<32|uint64(v.Node), bit(v.Empty), uint64(v.Order),
		uint64(v.Since))
	if v.Until != 0 { // the digests of what older programs know stay as they were
		h = hashWords(tagVolumes, h, uint64(v.Until))
	}
	return h
}
