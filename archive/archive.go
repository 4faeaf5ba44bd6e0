package archive

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"starling/cluster"
	"starling/journal"
	"starling/terms"
	"starling/terms/rules"
)

// Config is what an archive is made of.
type Config struct {
	// Dir is its folder, of nothing else.
	Dir string
	// BytesMax bounds the size of all segments, Age how far behind the newest entry a segment may end; 0 is no bound.
	// Those that have yet to reach the store may take as much again, or be some few, however old they are.
	BytesMax int64
	Age      time.Duration
	// Store is where segments are kept beyond this machine, too.
	Store Store
	// Knows is the newest version of the rules by which this program folds.
	Knows rules.Number
	Log   *slog.Logger

	// create makes a file, and retry is how long the archive pauses after an error; tests have others.
	create             func(path string) (file, error)
	retry, carryWithin time.Duration
}

// Limits of segments, and of what waits to be written.
const (
	// segmentRecords and segmentBytes are how many records, and how many bytes of them, a segment should have: more if
	// its snapshot is larger than they, up to segmentRecordsMax.
	segmentRecords    = 4096
	segmentRecordsMax = 32768
	segmentBytes      = 16 << 20
	// queueBytesMax bounds what waits to be written; a disk that is slower than that leaves a hole.
	queueBytesMax = 64 << 20
	// retryAfter is how long the archive pauses after an error.
	retryAfter = 30 * time.Second
	// syncEvery is the least time between two writes to the disk.
	syncEvery = 200 * time.Millisecond
	// suffix ends the names of segments; unfinished is behind it while one has no snapshot yet.
	suffix, unfinished = ".segment", ".new"
	// asideDir keeps what was of another journal.
	asideDir = "aside"
)

// file is what a segment is written to.
type file interface {
	Write([]byte) (int, error)
	Sync() error
	Truncate(int64) error
	Close() error
}

// segment is what is known of a segment without reading it.
type segment struct {
	path       string
	begin, end Moment
	// bytes are all that it takes, value those of them up to its first record.
	bytes, value int64
	// sealed tells that it has its end, stored that it lies in the store, where path is its name, carried that the store
	// has what this one has.
	sealed, stored, carried bool
	// damage is why nothing behind its end can be read, if that is another reason than that nothing follows.
	damage error
}

// Archive is the archive of a peer. It is safe for concurrent use.
type Archive struct {
	config Config
	// wake lets the writer look, hurry lets it do so at once.
	wake, hurry chan struct{}
	ended       chan struct{}
	// sealed lets look who carries segments to the store, until that is cancelled; carried tells that it has ended.
	sealed  chan struct{}
	cancel  context.CancelFunc
	carried sync.WaitGroup
	// fetching has a place for one who fetches from there; fetched are the names of what was, the latest at the end.
	fetching chan struct{}
	fetched  []string
	// strange tells of segments of the store, by their names, whether they are of another history than this peer's.
	strange map[string]bool
	// reading has a place for one who folds.
	reading chan struct{}
	kept    kept
	// generation counts how often all was put aside.
	generation atomic.Int64

	mutex    sync.Mutex
	segments []segment
	queue    []item
	waiting  int
	// last is the newest moment that is written or waits to be, known tells that there is one.
	last  Moment
	known bool
	// other tells that what was kept was of another past.
	other bool
	// passed is the newest index that was folded while it paused.
	passed terms.Index
	// digests are those after the entries of the last segment from first on, to know the journal again.
	digests []uint64
	first   terms.Index
	// records and bytes are those of the segment that is written, room those that it may have.
	records, bytes, room int
	// broken tells that the next entry begins a segment.
	broken bool
	// paused is why nothing is kept, "" if it is, and until when it is not tried again; unstored is why nothing reaches
	// the store.
	paused, unstored string
	// dropped counts the segments that were deleted before they reached the store.
	dropped int
	until   time.Time
	flushed []chan struct{}
	closing bool
}

// item waits to be written: a record, or the value with which a segment begins.
type item struct {
	data   []byte
	moment Moment
	value  *cluster.Frozen
	// aside tells that all that was kept before is of another journal.
	aside bool
}

// Open opens the archive in a folder, which it makes if there is none, and cuts off what a crash has torn.
func Open(config Config) (*Archive, error) {
	config.retry, config.carryWithin = cmp.Or(config.retry, retryAfter), cmp.Or(config.carryWithin, carryWithin)
	if config.create == nil {
		config.create = func(path string) (file, error) {
			return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
		}
	}
	if err := os.MkdirAll(config.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("make the archive: %w", err)
	}
	a := &Archive{config: config, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		ended:   make(chan struct{}),
		strange: map[string]bool{}, sealed: make(chan struct{}, 1), fetching: make(chan struct{}, 1),
		reading: make(chan struct{}, 1), room: config.segmentBytes()}
	if err := os.RemoveAll(filepath.Join(config.Dir, fetchedDir)); err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	if err := a.find(); err != nil {
		return nil, fmt.Errorf("open the archive in %s: %w", config.Dir, err)
	}
	w := &writer{archive: a}
	if err := w.resume(); err != nil {
		return nil, fmt.Errorf("open the archive in %s: %w", config.Dir, err)
	}
	go w.run()
	if config.Store.Depot != nil {
		ctx, cancel := context.WithCancel(context.Background())
		a.cancel = cancel
		a.carried.Go(func() { a.carry(ctx) })
	}
	return a, nil
}

// segmentBytes returns how many bytes of records a segment should have: few enough that old ones can go one by one.
func (c *Config) segmentBytes() int { return int(min(segmentBytes, max(c.BytesMax/8, 1<<16))) }

// find lists the segments of the folder. One that cannot be read is passed over, and told.
func (a *Archive) find() error {
	entries, err := os.ReadDir(a.config.Dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix+unfinished) {
			err = errors.Join(err, os.Remove(filepath.Join(a.config.Dir, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	a.segments, err = segmentsIn(a.config.Dir, func(path string, err error) error {
		a.config.Log.Error("a segment of the archive is passed over", "file", path, "error", err)
		return nil
	})
	return err
}

// segmentsIn lists the segments of a folder in their order. Bad decides about one that cannot be read.
func segmentsIn(dir string, bad func(path string, err error) error) (all []segment, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		s, err := look(path)
		if err == nil {
			all = append(all, s)
		} else if err = bad(path, err); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(x, y segment) int { return cmp.Compare(x.begin.Index, y.begin.Index) })
	return all, nil
}

// OpenPast opens a past only to be read, as it lies there: the folder of an archive, or one file of Export or of such a
// folder. A peer may write to it meanwhile; what it has added since then is not seen.
func OpenPast(path string, knows rules.Number) (*Archive, error) {
	a := &Archive{config: Config{Dir: path, Knows: knows}, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		ended: make(chan struct{}), reading: make(chan struct{}, 1)}
	close(a.ended)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		a.segments, err = segmentsIn(path, func(path string, err error) error { return fmt.Errorf("%s: %w", path, err) })
		if err == nil && len(a.segments) == 0 {
			err = ErrForeign
		}
	default:
		a.segments = make([]segment, 1)
		a.segments[0], err = look(path)
	}
	return a, err
}

// Damage is where the past can be read no further, though more follows; nil if it can be read to its end.
func (a *Archive) Damage() error {
	for _, s := range a.local() {
		if s.damage != nil {
			return s.damage
		}
	}
	return nil
}

// Whole tells of a file whether it begins and ends as it was written: an error if not. What lies between is not read.
func Whole(path string) error {
	s, err := look(path)
	switch {
	case err != nil:
		return err
	case s.damage != nil:
		return ErrDamaged
	case !s.sealed:
		return ErrTorn
	}
	return nil
}

// look reads how a segment begins and ends: all of it only if it has no end.
func look(path string) (segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return segment{}, err
	}
	defer f.Close()
	s := segment{path: path}
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	s.bytes = info.Size()
	head := make([]byte, headerBytes+frameBytes+momentBytes)
	if _, err := f.ReadAt(head, 0); err != nil || string(head[:len(magic)]) != magic {
		return s, ErrForeign
	}
	if head[len(magic)] > format {
		return s, ErrNewer
	}
	s.begin = momentIn(head[headerBytes+frameBytes:])
	s.value = int64(headerBytes+frameBytes) + int64(binary.LittleEndian.Uint32(head[headerBytes:]))
	tail := make([]byte, frameBytes+momentBytes)
	if _, err := f.ReadAt(tail, s.bytes-int64(len(tail))); err != nil {
		return s, err
	}
	s.end = momentIn(tail[frameBytes:])
	s.sealed = string(frame(nil, kindEnd, s.end)) == string(tail)
	if s.sealed {
		return s, nil
	}
	r, err := NewReader(f)
	for err == nil {
		s.end, s.bytes = r.Last, r.Whole
		_, err = r.Next()
	}
	if r == nil {
		return s, err
	}
	if errors.Is(err, ErrDamaged) {
		s.damage = fmt.Errorf("%s: %w after entry %d", path, err, s.end.Index)
	}
	return s, nil
}

// Restored tells that the value is one that stands for all records up to its index, and no record led to it here. It
// takes the place of one that turned out to be wrong, with which what was kept before ends, unless that is nil.
func (a *Archive) Restored(s, wrong *cluster.State) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case wrong != nil:
		a.begin(wrong)
		a.putAside(s, "the value of this peer was wrong")
	case a.known && s.Index <= a.last.Index:
		a.compare(s)
	default:
		a.begin(s)
	}
}

// Folded takes a record that was folded last, with what came of it. It never waits. The value is only read before it
// returns.
func (a *Archive) Folded(r journal.Record, s *cluster.State) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case a.closing:
	case a.known && s.Index <= a.last.Index:
		a.compare(s)
	case a.paused != "" && time.Now().Before(a.until):
		a.broken, a.passed = true, s.Index
	case !a.known || a.broken || s.Index != a.last.Index+1:
		a.begin(s)
	case a.waiting > queueBytesMax:
		a.pause("the disk is too slow for what is folded")
	default:
		moment := momentOf(s)
		data := recordFrame(nil, moment, &r)
		a.put(item{data: data, moment: moment})
		a.records++
		a.bytes += len(data)
		a.digests = append(a.digests, moment.Digest)
		// The same index for all peers, so that their segments are soon the same.
		common := s.Index%segmentRecords == 0 && a.bytes >= a.room/16
		if a.records >= segmentRecordsMax || a.bytes >= a.room || common {
			a.begin(s)
		}
	}
}

// begin lets a segment begin with a value.
func (a *Archive) begin(s *cluster.State) {
	value := s.Freeze()
	a.records, a.bytes, a.broken, a.paused = 0, 0, false, ""
	a.first, a.digests = s.Index, []uint64{s.Digest()}
	a.put(item{moment: momentOf(s), value: &value})
}

func (a *Archive) put(one item) {
	a.queue = append(a.queue, one)
	a.waiting += len(one.data)
	a.last, a.known = one.moment, true
	rouse(a.wake)
}

// rouse lets look who waits for the channel.
func rouse(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// compare holds a value that is folded again against what is kept of its index. If that is another, all that is kept is
// of another journal, or was folded by a program that does so differently: it is put aside.
func (a *Archive) compare(s *cluster.State) {
	digest, known := a.digestAt(s.Index)
	if !known || digest == s.Digest() {
		return
	}
	a.other = true
	a.putAside(s, "the archive is of another journal, or another program has folded it")
}

// putAside puts aside what was kept, and begins with a value.
func (a *Archive) putAside(s *cluster.State, why string) {
	a.config.Log.Error("the archive is put aside: \"starling journal bisect\" of its folder tells which entry parts it from others",
		"folder", filepath.Join(a.config.Dir, asideDir), "reason", why, "index", s.Index)
	a.put(item{aside: true, moment: momentOf(s)})
	a.begin(s)
}

// OtherPast tells whether what this machine has folded before it started goes, or went, beyond a journal of which all
// was folded up to an entry: that has lost its end since. What it has in place of that is another past.
func (a *Archive) OtherPast(read terms.Index) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.other || a.known && a.last.Index > read
}

// digestAt returns the digest that is kept of an index, if it is at hand.
func (a *Archive) digestAt(index terms.Index) (uint64, bool) {
	if index >= a.first && index-a.first < terms.Index(len(a.digests)) {
		return a.digests[index-a.first], true
	}
	for i := range a.segments {
		for _, m := range []Moment{a.segments[i].begin, a.segments[i].end} {
			if m.Index == index {
				return m.Digest, true
			}
		}
	}
	return 0, false
}

// pause keeps nothing for a while: what is folded meanwhile will be missing. The mutex is held.
func (a *Archive) pause(why string) {
	if a.paused == "" {
		a.config.Log.Error("the archive pauses; what is folded meanwhile will be missing in it", "dir", a.config.Dir,
			"reason", why)
	}
	a.paused, a.until, a.broken = why, time.Now().Add(a.config.retry), true
}

// Warning tells what is wrong with the archive now, "" if nothing is.
func (a *Archive) Warning() string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case a.paused == "" && a.unstored == "" && a.dropped > 0:
		return fmt.Sprintf("%d segments of the archive were deleted before they reached the store since the agent started: give "+
			"it more room with archive.bytes", a.dropped)
	case a.paused == "":
		return a.unstored
	}
	return fmt.Sprintf("the archive in %s pauses, and what is folded meanwhile will be missing in it: %s", a.config.Dir,
		a.paused)
}

// Close writes what waits and ends the archive.
func (a *Archive) Close() {
	a.mutex.Lock()
	a.closing = true
	a.mutex.Unlock()
	rouse(a.wake)
	rouse(a.hurry)
	<-a.ended
	if a.cancel != nil {
		a.cancel()
		a.carried.Wait()
	}
}

// flush waits until all is written that was kept before.
func (a *Archive) flush() {
	done := make(chan struct{})
	a.mutex.Lock()
	a.flushed = append(a.flushed, done)
	a.mutex.Unlock()
	rouse(a.wake)
	rouse(a.hurry)
	select {
	case <-done:
	case <-a.ended:
	}
}
