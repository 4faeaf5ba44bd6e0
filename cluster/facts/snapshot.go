package facts

import (
	"encoding/binary"
	"math"

	"starling/terms"
	"starling/terms/codec"
)

// Snapshot names a snapshot: that of the value after an entry.
type Snapshot struct {
	// Index is that of the entry, 0 for no snapshot; Digest is that of the value.
	Index  terms.Index
	Digest uint64
	// Chunks is how many chunks it has, Sum the SHA-256 of them all.
	Chunks uint32
	Sum    [32]byte
}

// Code writes or reads the name.
func (s *Snapshot) Code(c *codec.Coder) {
	codec.Integer(c, &s.Index, math.MaxUint64)
	codec.Integer(c, &s.Digest, math.MaxUint64)
	codec.Uint32s(c, &s.Chunks)
	for i := 0; i < len(s.Sum); i += 8 {
		word := binary.BigEndian.Uint64(s.Sum[i:])
		codec.Integer(c, &word, math.MaxUint64)
		binary.BigEndian.PutUint64(s.Sum[i:], word)
	}
}

// Snapshots is what the value knows of snapshots of itself. One is due after so many entries or bytes. Members that had
// the value of that entry, and have found its chunks kept with the journal, vouch for it. When enough do, it is
// confirmed, and the journal may be trimmed up to it.
type Snapshots struct {
	// Entries and Bytes count what the journal got since one was due last, without entries that only vouch.
	Entries uint32
	Bytes   uint64
	// Due is the entry of which one is to be taken, 0 for none, since DueAt.
	Due   terms.Index
	DueAt terms.Time
	// Vouches are those for the one that is due, or for what some took for it.
	Vouches []Vouch
	// Confirmed is the last that was confirmed; By vouched for it first, and trims the journal.
	Confirmed Snapshot
	By        terms.PeerID
}

// Vouch is a member's word for a snapshot.
type Vouch struct {
	Peer     terms.PeerID
	Snapshot Snapshot
}

// Hash covers all of it; it is 0 as long as there is nothing.
func (n *Snapshots) Hash() uint64 {
	if n.Entries == 0 && n.Due == 0 && n.Confirmed.Index == 0 {
		return 0
	}
	h := hashWords(tagSnapshots, uint64(n.Entries), n.Bytes, uint64(n.Due), uint64(n.DueAt), n.Confirmed.hash())
	h = mix(h, hashText(tagSnapshots, string(n.By)))
	for _, v := range n.Vouches {
		h = mix(mix(h, hashText(tagSnapshots, string(v.Peer))), v.Snapshot.hash())
	}
	return h
}

func (s *Snapshot) hash() uint64 {
	return hashText(tagSnapshots, string(s.Sum[:])) ^ hashWords(tagSnapshots, uint64(s.Index), s.Digest, uint64(s.Chunks))
}
