package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/cluster"
	"starling/replica/replay"
	"starling/terms"
	"starling/terms/rules"
)

// playWrong is play by a peer of which the value changes by itself before an entry. It returns the last value.
func (h *history) playWrong(a *Archive, from, to, wrongAt int) *cluster.State {
	s := h.at(from)
	a.Restored(s, nil)
	for i, r := range h.records[from:to] {
		if from+i+1 == wrongAt {
			s.LastJob++
		}
		replay.Record(s, r.Payload, false)
		a.Folded(r, s)
	}
	return s
}

// past opens what an archive keeps as it lies there, or what it has put aside.
func past(t *testing.T, a *Archive, folder string) *Archive {
	t.Helper()
	a.flush()
	p, err := OpenPast(filepath.Join(a.config.Dir, folder), rules.Released)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// archiveOf returns the archive of a new peer with small segments.
func archiveOf(t *testing.T) *Archive {
	t.Helper()
	c := testConfig(t)
	c.BytesMax = 1 << 19
	a := open(t, c)
	t.Cleanup(a.Close)
	return a
}

// wantParts wants a past to be wrong from entry 701 on, and the values of an index to tell so; 0 is any.
func (h *history) wantParts(t *testing.T, past, other *Archive, at terms.Index) {
	t.Helper()
	p, err := past.Bisect(t.Context(), other)
	if err != nil || p.Last != 700 || p.Index != 701 || p.Folded.Index != 701 || p.Altered || p.Wrong == nil {
		t.Fatalf("it parts at %+v, %v", p, err)
	}
	if p.Here != h.digests[701] || p.Right.Digest() != h.digests[p.Right.Index] || at != 0 && p.Right.Index != at {
		t.Errorf("here entry 701 leads to %016x, and later ones to index %d", p.Here, p.Right.Index)
	}
	if p.Wrong.Index != p.Right.Index || p.Wrong.LastJob != p.Right.LastJob+1 {
		t.Errorf("the values to compare are of index %d and %d", p.Right.Index, p.Wrong.Index)
	}
}

// TestBisect has a peer whose value was wrong from entry 701 on, until it took that of the journal: what it has put
// aside tells so by itself, and beside what another peer has.
func TestBisect(t *testing.T) {
	h := newHistory("a", 1500)
	right, rebuilt, still := archiveOf(t), archiveOf(t), archiveOf(t)
	h.play(right, 0, 1500)
	wrong := h.playWrong(rebuilt, 0, 900, 701)
	rebuilt.Restored(h.at(890), wrong)
	h.play(rebuilt, 890, 1500)
	h.playWrong(still, 300, 1500, 701)
	aside := past(t, rebuilt, asideDir)
	h.wantParts(t, aside, nil, 900)
	h.wantParts(t, aside, past(t, right, ""), 900)
	h.wantParts(t, past(t, right, ""), aside, 900)
	h.wantParts(t, past(t, still, ""), past(t, right, ""), 0)
	h.wantParts(t, past(t, still, ""), nil, 0)
	p, err := past(t, still, "").Bisect(t.Context(), aside)
	if err != nil || p.Index != 0 || p.First != 300 || p.Last != 900 {
		t.Errorf("two that are wrong alike: %+v, %v", p, err)
	}
	h.mustHave(t, rebuilt, 890, 1500)
	p, err = past(t, rebuilt, "").Bisect(t.Context(), past(t, right, ""))
	if err != nil || p.Index != 0 || p.Last != 1500 {
		t.Errorf("since it was rebuilt: %+v, %v", p, err)
	}
}

// TestBisectOtherEntries has two pasts with other entries, none in common, and ones that differ from the beginning.
func TestBisectOtherEntries(t *testing.T) {
	h := newHistory("a", 900)
	kept, lost, early, stranger := archiveOf(t), archiveOf(t), archiveOf(t), archiveOf(t)
	h.play(kept, 200, 900)
	h.fork(500, 700).play(lost, 0, 700)
	h.play(early, 0, 100)
	h.playWrong(stranger, 0, 900, 50)
	p, err := past(t, kept, "").Bisect(t.Context(), past(t, lost, ""))
	if err != nil || p.Index != 501 || !p.Altered || p.Right.Digest() != p.Other || p.Wrong.Digest() != p.Kept {
		t.Errorf("other entries: %+v, %v", p, err)
	}
	_, err = past(t, kept, "").Bisect(t.Context(), past(t, early, ""))
	if err == nil || !strings.Contains(err.Error(), "no index in common") {
		t.Errorf("nothing in common: %v", err)
	}
	p, err = past(t, stranger, "").Bisect(t.Context(), past(t, kept, ""))
	if err != nil || p.Index != 200 || p.First != 200 || p.Folded.Index != 0 {
		t.Errorf("different from the beginning: %+v, %v", p, err)
	}
	h.play(early, 300, 600)
	p, err = past(t, early, "").Bisect(t.Context(), past(t, stranger, ""))
	if err != nil || p.Last != 49 || p.Index != 50 {
		t.Errorf("with a hole: %+v, %v", p, err)
	}
}

// TestBisectDamaged alters a byte of a record in a segment that has its end, where no digest is looked up.
func TestBisectDamaged(t *testing.T) {
	h := newHistory("a", 1500)
	one, other := archiveOf(t), archiveOf(t)
	h.play(one, 0, 1500)
	h.play(other, 0, 1500)
	right, altered := past(t, one, ""), past(t, other, "")
	if len(altered.segments) < 2 || !altered.segments[0].sealed {
		t.Fatalf("%d segments", len(altered.segments))
	}
	s := altered.segments[0]
	data, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	data[s.bytes-200] ^= 1
	if err := os.WriteFile(s.path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pasts := range [][2]*Archive{{right, altered}, {altered, right}, {altered, nil}} {
		_, err := pasts[0].Bisect(t.Context(), pasts[1])
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "it is damaged after entry ") {
			t.Errorf("%v", err)
		}
	}
}
