package sim

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/command"
	"starling/peer"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// snapshots is what the engine keeps of snapshots, and up to where the journal was trimmed. It draws from a source of
// its own, so that other seeds are what they were.
type snapshots struct {
	w      *World
	rng    *rand.Rand
	chunks map[chunkName][]byte
	// stands is the snapshot that stands for the records up to it.
	stands facts.Snapshot
	// known is the last that was confirmed, vouched who has vouched for what since.
	known   facts.Snapshot
	vouched map[terms.PeerID]facts.Snapshot
	// damaging is how many of a thousand chunks are altered while they are put.
	damaging            int
	confirmed, restores int
}

type chunkName struct {
	snapshot facts.Snapshot
	number   int
}

func newSnapshots(w *World) snapshots {
	s := snapshots{w: w, rng: rand.New(rand.NewPCG(w.seed, 0x5a5a)), chunks: map[chunkName][]byte{},
		vouched: map[terms.PeerID]facts.Snapshot{}}
	if s.rng.IntN(3) == 0 {
		s.damaging = s.rng.IntN(200)
	}
	return s
}

// read returns the chunks of a snapshot, one after the other; ok is false if one is missing.
func (s *snapshots) read(one facts.Snapshot) (data []byte, ok bool) {
	for number := range int(one.Chunks) {
		chunk, there := s.chunks[chunkName{one, number}]
		if !there {
			return nil, false
		}
		data = append(data, chunk...)
	}
	return data, true
}

// trimmed tells that the next record that the machine wants is there no more.
func (m *machine) trimmed() bool { return m.cursor < int(m.w.snapshots.stands.Index) }

// restore lets the machine go on from the snapshot that stands.
func (m *machine) restore() {
	s := &m.w.snapshots
	data, ok := s.read(s.stands)
	if !ok {
		m.w.fail("%s wants entry %d and cannot read the snapshot of entry %d", m.label, m.cursor+1, s.stands.Index)
		return
	}
	m.tell("goes on from the snapshot of entry %d, at entry %d", s.stands.Index, m.cursor)
	m.core.Restore(s.stands, data, m.own())
	if m.core.Halt() != nil {
		return
	}
	s.restores++
	m.cursor = int(s.stands.Index)
	if got := m.core.State().Digest(); got != m.w.digests[m.cursor-1] {
		m.w.fail("restored, %s has digest %016x at entry %d, others have %016x", m.label, got, m.cursor, m.w.digests[m.cursor-1])
	}
}

// snapshot does something for a snapshot, a step at a time; it ends wherever the process does.
func (m *machine) snapshot(work *peer.SnapshotWork) {
	s := &m.w.snapshots
	if work == nil {
		return
	}
	wait := func() int { return 1 + s.rng.IntN(30) }
	done := func(own facts.Snapshot, good bool) {
		m.core.SnapshotDone(work, own, good)
		m.wake()
	}
	if work.Duty == peer.TrimJournal {
		m.later(wait(), func() {
			cut := m.cutWrite || m.cutRead
			if !cut {
				s.trim(m, work.Snapshot)
			}
			m.later(wait()*20, func() { done(facts.Snapshot{}, !cut) })
		})
		return
	}
	own, chunks := work.Make()
	later := func() { m.later(1000, func() { done(facts.Snapshot{}, false) }) }
	check := func() {
		data, ok := s.read(own)
		if m.cutRead {
			later()
			return
		}
		done(own, ok && sha256.Sum256(data) == own.Sum)
	}
	var put func(number int)
	put = func(number int) {
		switch {
		case work.Duty == peer.CheckSnapshot || number == len(chunks):
			check()
		case m.cutWrite:
			later()
		default:
			s.put(own, number, chunks[number])
			m.later(wait(), func() { put(number + 1) })
		}
	}
	m.later(wait(), func() { put(0) })
}

// put keeps a chunk that is not there, or what becomes of it on the way.
func (s *snapshots) put(one facts.Snapshot, number int, chunk []byte) {
	if there, ok := s.chunks[chunkName{one, number}]; ok && bytes.Equal(there, chunk) {
		return
	}
	if !s.w.calm && s.rng.IntN(1000) < s.damaging {
		chunk = bytes.Clone(chunk)
		if chunk[s.rng.IntN(len(chunk))] ^= 1; s.rng.IntN(2) == 0 {
			chunk = chunk[:s.rng.IntN(len(chunk))]
		}
	}
	s.chunks[chunkName{one, number}] = chunk
}

// trim does what an engine does: the records go, and with them what tells that they are there already.
func (s *snapshots) trim(m *machine, one facts.Snapshot) {
	if _, ok := s.read(one); !ok || one.Index <= s.stands.Index {
		if one.Index > s.stands.Index {
			s.w.fail("%s trims up to entry %d, and not all chunks are there", m.label, one.Index)
		}
		return
	}
	m.tell("trims up to entry %d", one.Index)
	for _, r := range s.w.records[s.stands.Index:one.Index] {
		delete(s.w.landed, recordName{r.Writer, r.Seq})
	}
	s.stands = one
	for name := range s.chunks {
		if name.snapshot.Index < one.Index {
			delete(s.chunks, name)
		}
	}
}

// check checks that what was confirmed is the value, for which enough members have vouched.
func (s *snapshots) check(v *cluster.State, folded *report.Folded) {
	if int(folded.Index) <= len(s.w.digests) {
		return
	}
	if folded.Outcome.Dropped == "" {
		for i, c := range folded.Entry.Commands {
			if c, ok := c.(*command.VouchSnapshot); ok && !folded.Outcome.Results[i].Refused() {
				s.vouched[folded.Entry.Writer] = c.Snapshot
			}
		}
	}
	now := v.Snapshots.Confirmed
	if now == s.known {
		return
	}
	s.known = now
	s.confirmed++
	voices := 0
	for _, one := range s.vouched {
		if one == now {
			voices++
		}
	}
	if voices < min(snapshot.VouchesMin, v.Members()) {
		s.w.fail("the snapshot of entry %d is confirmed by %d of %d members", now.Index, voices, v.Members())
	}
	data, ok := s.read(now)
	all, err := snapshot.Decode(data, rules.Next)
	if !ok || err != nil || sha256.Sum256(data) != now.Sum ||
		cluster.Rebuild(all).Digest() != s.w.digests[now.Index-1] || now.Digest != s.w.digests[now.Index-1] {
		s.w.fail("the snapshot of entry %d is confirmed, and is not the value: %v", now.Index, err)
	}
}

// rest checks that the journal is bounded: a snapshot comes in the end, whatever befell those before it.
func (s *snapshots) rest(v *cluster.State) {
	n := &v.Snapshots
	if s.stands != n.Confirmed {
		s.w.fail("the snapshot of entry %d is confirmed, the journal is trimmed up to entry %d", n.Confirmed.Index, s.stands.Index)
	}
	if most := 5 * v.Limits.SnapshotEntries; n.Entries > most {
		s.w.fail("%d entries came since a snapshot was due, at most %d may", n.Entries, most)
	}
}
