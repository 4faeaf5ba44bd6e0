// Package digests remembers which digests the value of a peer had after its latest entries.
package digests

import "starling/terms"

// Max bounds the entries of which a digest is remembered.
const Max = 1 << 14

// Digests are those that the value had after the last Max entries, by index modulo that.
type Digests struct {
	all [Max]uint64
	// First and Last are the entries between which they are known.
	First, Last terms.Index
}

// Restart goes on behind entries that were not folded, with the digest after the last of them.
func (d *Digests) Restart(at terms.Index, digest uint64) {
	d.First = at
	d.Add(at, digest)
}

// Add takes the digest after the next entry.
func (d *Digests) Add(at terms.Index, digest uint64) { d.all[at%Max], d.Last = digest, at }

// knows tells whether the digest at an index is remembered.
func (d *Digests) knows(index terms.Index) bool {
	return index > 0 && index >= d.First && index <= d.Last && index+Max > d.Last
}

// Differs tells whether another digest than this is remembered of an index.
func (d *Digests) Differs(index terms.Index, digest uint64) bool {
	return d.knows(index) && d.all[index%Max] != digest
}
