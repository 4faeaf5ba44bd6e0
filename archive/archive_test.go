package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/cluster"
	"starling/command"
	"starling/journal"
	"starling/replica/replay"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// history is a cluster of one that is submitted a job from time to time, with an entry a second.
type history struct {
	s       *cluster.State
	records []journal.Record
	// digests are those after each index.
	digests []uint64
}

func newHistory(name string, entries int) *history {
	h := &history{s: cluster.NewState(), digests: []uint64{cluster.NewState().Digest()}}
	self := terms.NewPeerID(terms.NodeName(name), 1)
	h.write(self, &command.PrepareJoin{Joiner: self, Attempt: 1})
	h.write(self, &command.Volunteer{Peer: self,
		Offer: terms.Offer{Capacity: terms.Resources{1 << 40, 1 << 40, 0}, Rules: 1}})
	for i := 2; i < entries; i++ {
		if i%20 != 2 {
			h.write(self, &command.TellTime{})
			continue
		}
		h.write(self, &command.SubmitJob{Spec: terms.Job{Name: terms.JobName(fmt.Sprint("j", i)), Type: terms.Batch,
			Tasks: []terms.Task{{Name: "t", Instances: 1, Command: []string{"run"}, Placement: terms.Pack,
				Resources: terms.Resources{1, 1, 0}}}}})
	}
	if entries > 2 && h.s.Jobs() == 0 {
		panic("no job was taken: the history is about nothing")
	}
	return h
}

func (h *history) write(self terms.PeerID, c command.Command) {
	e := &command.Entry{Rules: h.s.Rules, Writer: self, Seq: uint64(len(h.records) + 1), Cause: h.s.Index,
		Time: terms.Time(len(h.records)+1) * 1000, Commands: []command.Command{c}}
	r := journal.Record{Index: journal.Index(len(h.records) + 1), Writer: string(self), Seq: e.Seq,
		Payload: command.Encode(e)}
	folded := replay.Record(h.s, r.Payload, false)
	h.records, h.digests = append(h.records, r), append(h.digests, folded.Digest)
}

// play lets an archive see the history from one index to another.
func (h *history) play(a *Archive, from, to int) {
	s := h.at(from)
	a.Restored(s, nil)
	for _, r := range h.records[from:to] {
		replay.Record(s, r.Payload, false)
		a.Folded(r, s)
	}
}

func (h *history) at(index int) *cluster.State {
	s := cluster.NewState()
	for _, r := range h.records[:index] {
		replay.Record(s, r.Payload, false)
	}
	return s
}

func testConfig(t *testing.T) Config {
	return Config{Dir: filepath.Join(t.TempDir(), "archive"), BytesMax: 1 << 30, Knows: rules.Released,
		Log: slog.New(slog.DiscardHandler)}
}

func open(t *testing.T, c Config) *Archive {
	t.Helper()
	a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Span returns the oldest moment that can be reached and the newest; ok is false if there is none.
func (a *Archive) Span() (oldest, newest Moment, ok bool) {
	all := a.list()
	if len(all) == 0 {
		return oldest, newest, false
	}
	return all[0].begin, all[len(all)-1].end, true
}

// mustHave wants every index from one to another, with its digest.
func (h *history) mustHave(t *testing.T, a *Archive, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		s, err := a.At(context.Background(), terms.Index(i))
		if err != nil {
			t.Fatalf("at %d: %v", i, err)
		}
		if s.Digest() != h.digests[i] {
			t.Fatalf("at %d: digest %016x, want %016x", i, s.Digest(), h.digests[i])
		}
	}
}

// TestAnyIndexIsReached asks for each index of several segments, in an archive that was closed and opened again in the
// middle, and for the indexes of times.
func TestAnyIndexIsReached(t *testing.T) {
	h, c := newHistory("a", 1500), testConfig(t)
	c.BytesMax = 1 << 19
	a := open(t, c)
	h.play(a, 0, 300)
	a.Close()
	a = open(t, c)
	h.play(a, 0, 1500)
	defer a.Close()
	if all := a.list(); len(all) < 2 || !all[0].sealed {
		t.Fatalf("got %d segments, want several", len(all))
	}
	h.mustHave(t, a, 0, 1500)
	for i := 1; i <= 1500; i++ {
		for _, millis := range []int{0, 999} {
			got, err := a.IndexAt(t.Context(), time.UnixMilli(int64(i*1000+millis)), time.Now())
			if err != nil || got != terms.Index(i) {
				t.Fatalf("at %d s: index %d, %v", i, got, err)
			}
		}
	}
	folded := []report.Folded{}
	err := a.Walk(context.Background(), 100, 600, func(s *cluster.State, f *report.Folded) error {
		if s.Digest() != h.digests[f.Index] {
			t.Errorf("walking at %d: another digest", f.Index)
		}
		folded = append(folded, *f)
		return nil
	})
	if err != nil || len(folded) != 500 || folded[0].Index != 101 || folded[499].Index != 600 {
		t.Errorf("walked %d entries, %v", len(folded), err)
	}
}

// TestStepBackIsNear moves back within two segments, by turns: some of the ways to what was asked for first is kept,
// and little is folded anew.
func TestStepBackIsNear(t *testing.T) {
	h, c := newHistory("a", 6000), testConfig(t)
	c.BytesMax = 1 << 20
	a := open(t, c)
	defer a.Close()
	h.play(a, 0, 6000)
	all := a.list()
	for back := terms.Index(0); back < 300; back += 7 {
		for _, s := range all[:2] {
			begin, newest := s.begin.Index, s.end.Index
			if newest < begin+10*wayLeast {
				t.Fatalf("the segment from %d ends with %d: it is too short", begin, newest)
			}
			index := newest - 1 - back
			near := a.kept.nearest(begin, index)
			if back > 0 && (near == nil || index-near.Index > 2*max(wayLeast, (newest-begin)/wayMax)) {
				t.Fatalf("no value shortly before %d is kept", index)
			}
			s, err := a.At(t.Context(), index)
			if err != nil || s.Digest() != h.digests[index] {
				t.Fatalf("index %d: the value differs, %v", index, err)
			}
		}
	}
}

// TestTornTail cuts the last segment off at every byte of its last records: what is whole is there, and it goes on.
func TestTornTail(t *testing.T) {
	h, c := newHistory("a", 12), testConfig(t)
	a := open(t, c)
	h.play(a, 0, 12)
	a.Close()
	path := a.segments[0].path
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := len(data) - 250; size <= len(data); size++ {
		if err := os.WriteFile(path, data[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		a := open(t, c)
		if _, newest, ok := a.Span(); !ok || newest.Index > 12 || size < len(data) && newest.Index == 12 {
			t.Fatalf("%d bytes hold up to %d", size, newest.Index)
		}
		h.play(a, 0, 12)
		h.mustHave(t, a, 0, 12)
		if len(a.list()) != 1 {
			t.Fatalf("%d bytes: a second segment", size)
		}
		a.Close()
	}
}

// TestAlteredBytes alters each byte of a segment: what comes of it is an error, or a value that there was.
func TestAlteredBytes(t *testing.T) {
	h, c := newHistory("a", 6), testConfig(t)
	a := open(t, c)
	h.play(a, 0, 6)
	a.Close()
	path := a.segments[0].path
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		altered := bytes.Clone(data)
		altered[at] ^= 0x41
		if err := os.WriteFile(path, altered, 0o600); err != nil {
			t.Fatal(err)
		}
		a := open(t, c)
		for i := range terms.Index(7) {
			s, err := a.At(context.Background(), i)
			if err == nil && s.Digest() != h.digests[i] {
				t.Fatalf("byte %d altered: index %d has another value", at, i)
			}
			if errors.Is(err, ErrDamaged) && !strings.Contains(err.Error(), "ask another peer") {
				t.Fatalf("byte %d altered: it does not say what to do: %v", at, err)
			}
		}
		a.Close()
	}
}

// TestHoles asks for what the peer did not fold, for what is older and for what is to come.
func TestHoles(t *testing.T) {
	h, c := newHistory("a", 40), testConfig(t)
	a := open(t, c)
	h.play(a, 5, 10)
	h.play(a, 20, 30)
	defer a.Close()
	h.mustHave(t, a, 5, 10)
	h.mustHave(t, a, 20, 30)
	for index, want := range map[terms.Index]string{
		4:  "the archive of this peer begins at index 5, of 1970-01-01T00:00:05Z: ask for a later one, or another peer",
		11: "missing the entries from 11 to 19, between 1970-01-01T00:00:10Z and 1970-01-01T00:00:20Z",
		19: "missing the entries from 11 to 19",
		31: "index 31 is in the future: the newest that this peer has folded is 30, of 1970-01-01T00:00:30Z",
	} {
		_, err := a.At(context.Background(), index)
		var missing *Missing
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) {
			t.Errorf("at %d: %v, want %s", index, err, want)
		}
	}
	for seconds, want := range map[int64]string{4: "begins at 1970-01-01T00:00:05Z, with index 5", 15: "missing the entries from 11",
		1 << 40: "is in the future"} {
		_, err := a.IndexAt(t.Context(), time.Unix(seconds, 0), time.Now())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at %d s: %v, want %s", seconds, err, want)
		}
	}
	if index, err := a.IndexAt(t.Context(), time.Now(), time.Now()); err != nil || index != 30 {
		t.Errorf("now: %d, %v", index, err)
	}
	nothing := func(*cluster.State, *report.Folded) error { return nil }
	if err := a.Walk(context.Background(), 8, 25, nothing); err == nil || !strings.Contains(err.Error(), "a hole") {
		t.Errorf("a walk over a hole: %v", err)
	}
	if oldest, err := a.Oldest(t.Context(), 30); err != nil || oldest != 20 {
		t.Errorf("the oldest before 30 is %d, %v", oldest, err)
	}
}

// TestAnotherJournal opens the archive of one journal with another: the old one is put aside.
func TestAnotherJournal(t *testing.T) {
	c := testConfig(t)
	a := open(t, c)
	newHistory("a", 30).play(a, 0, 30)
	a.Close()
	a = open(t, c)
	h := newHistory("b", 20)
	h.play(a, 0, 20)
	defer a.Close()
	h.mustHave(t, a, 1, 20)
	if aside, err := os.ReadDir(filepath.Join(c.Dir, asideDir)); err != nil || len(aside) != 1 {
		t.Errorf("aside: %v, %v", aside, err)
	}
	if a.Generation() != 1 {
		t.Errorf("the generation is %d, want 1", a.Generation())
	}
}

// TestRetention writes more than there is room for, and later than what is old.
func TestRetention(t *testing.T) {
	h := newHistory("a", 2500)
	for name, bounds := range map[string]struct {
		bytes int64
		age   time.Duration
	}{"bytes": {150 << 10, 0}, "age": {1 << 19, 1000 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t)
			c.BytesMax, c.Age = bounds.bytes, bounds.age
			a := open(t, c)
			for from := 0; from < 2500; from += 100 { // slow enough for the disk
				h.play(a, from, from+100)
				a.flush()
			}
			defer a.Close()
			oldest, newest, _ := a.Span()
			total := int64(0)
			for _, s := range a.list() {
				total += s.bytes
			}
			h.mustHave(t, a, int(oldest.Index), 2500)
			if newest.Index != 2500 || oldest.Index == 0 || total > 3*bounds.bytes {
				t.Errorf("it has %d bytes, from %d to %d", total, oldest.Index, newest.Index)
			}
			if age := newest.Time - oldest.Time; bounds.age > 0 && age > 2*terms.Time(bounds.age.Milliseconds()) {
				t.Errorf("it goes back %d ms", age)
			}
			files, err := os.ReadDir(c.Dir)
			if err != nil || len(files) != len(a.list()) {
				t.Errorf("%d files for %d segments, %v", len(files), len(a.list()), err)
			}
		})
	}
}

// disk is one that may be full.
type disk struct {
	mutex sync.Mutex
	full  bool
}

type diskFile struct {
	*os.File
	disk *disk
}

func (d *disk) create(path string) (file, error) {
	f, err := os.Create(path)
	return diskFile{f, d}, err
}

func (d *disk) fill(full bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.full = full
}

// Write takes half of what comes when the disk is full.
func (f diskFile) Write(data []byte) (int, error) {
	f.disk.mutex.Lock()
	defer f.disk.mutex.Unlock()
	if f.disk.full {
		n, _ := f.File.Write(data[:len(data)/2])
		return n, errors.New("no space left on device")
	}
	return f.File.Write(data)
}

// TestFullDisk fills the disk for a while: the archive pauses and says so, goes on later, and has a hole.
func TestFullDisk(t *testing.T) {
	h, c, d := newHistory("a", 60), testConfig(t), &disk{}
	c.create, c.retry = d.create, time.Nanosecond
	a := open(t, c)
	h.play(a, 0, 10)
	a.flush()
	d.fill(true)
	h.play(a, 10, 30)
	a.flush()
	if got := a.Warning(); !strings.Contains(got, "pauses") || !strings.Contains(got, "no space left on device") {
		t.Errorf("the warning is %q", got)
	}
	if _, err := a.At(t.Context(), 20); err == nil || !strings.Contains(err.Error(), "has paused at index 10, of ") {
		t.Errorf("of what was folded in the pause: %v", err)
	}
	if _, err := a.At(t.Context(), 31); err == nil || !strings.Contains(err.Error(), "index 31 is in the future") {
		t.Errorf("of the future: %v", err)
	}
	d.fill(false)
	s := h.at(30)
	for _, r := range h.records[30:60] {
		replay.Record(s, r.Payload, false)
		a.Folded(r, s)
	}
	h.mustHave(t, a, 0, 10)
	h.mustHave(t, a, 31, 60)
	if _, err := a.At(context.Background(), 20); err == nil || !strings.Contains(err.Error(), "from 11 to 30") {
		t.Errorf("in the hole: %v", err)
	}
	if got := a.Warning(); got != "" {
		t.Errorf("it still warns: %s", got)
	}
	a.Close()
	a = open(t, c)
	defer a.Close()
	h.mustHave(t, a, 0, 10)
	h.mustHave(t, a, 31, 60)
}

// TestExport writes parts of an archive as files, and reads them.
func TestExport(t *testing.T) {
	h, c := newHistory("a", 300), testConfig(t)
	c.BytesMax = 1 << 19
	a := open(t, c)
	h.play(a, 0, 300)
	defer a.Close()
	for _, part := range [][2]terms.Index{{0, 300}, {7, 7}, {250, 300}, {20, 130}} {
		data := bytes.Buffer{}
		if err := a.Export(context.Background(), part[0], part[1], &data); err != nil {
			t.Fatal(err)
		}
		at, err := Replay(bytes.NewReader(data.Bytes()), rules.Released, 0, nil)
		if err != nil || at.Index != part[1] || at.Digest() != h.digests[part[1]] {
			t.Errorf("%v: %v", part, err)
		}
	}
}

// TestBadFiles reads files that are cut off, altered, foreign, and newer.
func TestBadFiles(t *testing.T) {
	h, c := newHistory("a", 30), testConfig(t)
	a := open(t, c)
	h.play(a, 0, 30)
	defer a.Close()
	out := bytes.Buffer{}
	if err := a.Export(context.Background(), 0, 30, &out); err != nil {
		t.Fatal(err)
	}
	data := out.Bytes()
	read := func(data []byte) error {
		_, err := Replay(bytes.NewReader(data), rules.Released, 0, nil)
		return err
	}
	between := 0
	for size := range data {
		err := read(data[:size])
		if !errors.Is(err, ErrTorn) {
			t.Fatalf("%d of %d bytes: %v", size, len(data), err)
		}
		if errors.Is(err, ErrOpen) {
			between++
		}
	}
	if between != 31 {
		t.Errorf("cut off between two entries at %d places, want 31", between)
	}
	for at := range data {
		altered := bytes.Clone(data)
		altered[at] ^= 1
		if read(altered) == nil {
			t.Fatalf("byte %d altered: nobody sees it", at)
		}
	}
	// Whatever is altered behind the snapshot, lengths included, was not cut off.
	for at := len(begin(h.at(0))); at < len(data); at++ {
		altered := bytes.Clone(data)
		altered[at] ^= 0x10
		if err := read(altered); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d of %d altered: %v", at, len(data), err)
		}
	}
	if err := read(append(bytes.Clone(data), '\n')); !errors.Is(err, ErrLonger) {
		t.Errorf("a byte behind the end: %v", err)
	}
	newer := bytes.Clone(data)
	newer[len(magic)]++
	if err := read(newer); !errors.Is(err, ErrNewer) {
		t.Errorf("newer: %v", err)
	}
	if err := read([]byte("{}, a file of something else, which is long enough")); !errors.Is(err, ErrForeign) {
		t.Errorf("foreign: %v", err)
	}
	// One that was altered with its checksum: the digest tells.
	lies := begin(h.at(3))
	moment := Moment{4, 4000, h.digests[4]}
	other := newHistory("a", 40).records[20]
	lies = frame(recordFrame(lies, moment, &other), kindEnd, moment)
	var differs *Differs
	if err := read(lies); !errors.As(err, &differs) || differs.Index != 4 {
		t.Errorf("another entry: %v", err)
	}
}

// FuzzReplay reads any bytes.
func FuzzReplay(f *testing.F) {
	h := newHistory("a", 6)
	data := begin(h.at(4))
	for i := 4; i < 6; i++ {
		data = recordFrame(data, Moment{terms.Index(i + 1), terms.Time(i+1) * 1000, h.digests[i+1]}, &h.records[i])
	}
	f.Add(data)
	f.Add(frame(slices.Clone(data), kindEnd, Moment{6, 6000, h.digests[6]}))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = Replay(io.Reader(bytes.NewReader(data)), rules.Released, 0, nil) // it must not panic
	})
}
