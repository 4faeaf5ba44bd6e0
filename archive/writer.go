package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"starling/terms"
)

// writer is the only one that writes to the folder, in a goroutine of its own.
type writer struct {
	archive *Archive
	// open is the file of the last segment, nil if none is written to; path is where it is, bytes how much of it is good,
	// end the moment of its last record.
	open  file
	path  string
	bytes int64
	end   Moment
	begin Moment
}

// resume goes on with the last segment, behind what is whole of it.
func (w *writer) resume() error {
	a := w.archive
	if len(a.segments) == 0 {
		return nil
	}
	last := &a.segments[len(a.segments)-1]
	a.last, a.known = last.end, true
	if last.sealed {
		a.broken = true
		a.first, a.digests = last.end.Index, []uint64{last.end.Digest}
		return nil
	}
	f, err := os.OpenFile(last.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if err := f.Truncate(last.bytes); err != nil {
		f.Close()
		return err
	}
	w.open, w.path, w.bytes, w.begin, w.end = f, last.path, last.bytes, last.begin, last.end
	a.records, a.bytes = int(last.end.Index-last.begin.Index), int(last.bytes-last.value)
	a.room = max(a.room, int(last.value))
	return a.recall(last)
}

// recall reads the digests of a segment.
func (a *Archive) recall(s *segment) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := NewReader(f)
	if err != nil {
		return err
	}
	a.first = r.Begin.Index
	for err == nil {
		a.digests = append(a.digests, r.Last.Digest)
		_, err = r.Next()
	}
	return nil
}

// run writes what comes until the archive is closed.
func (w *writer) run() {
	a := w.archive
	defer close(a.ended)
	for {
		<-a.wake
		a.mutex.Lock()
		queue, flushed, closing := a.queue, a.flushed, a.closing
		a.queue, a.flushed, a.waiting = nil, nil, 0
		a.mutex.Unlock()
		if err := w.write(queue); err != nil {
			w.fail(err)
		}
		for _, done := range flushed {
			close(done)
		}
		if closing {
			if w.open != nil {
				_ = w.open.Close() // all was synced
			}
			return
		}
		select {
		case <-a.hurry:
		case <-time.After(syncEvery):
		}
	}
}

// write writes and syncs.
func (w *writer) write(queue []item) error {
	var data []byte
	for i := range queue {
		one := &queue[i]
		switch {
		case one.aside:
			if err := w.flush(&data); err != nil {
				return err
			}
			w.drop()
			if err := w.archive.moveAside(); err != nil {
				return err
			}
		case one.value != nil:
			if err := w.flush(&data); err != nil {
				return err
			}
			if err := w.next(one); err != nil {
				return err
			}
		default:
			data = append(data, one.data...)
			w.end = one.moment
		}
	}
	return w.flush(&data)
}

// flush brings data to the disk.
func (w *writer) flush(data *[]byte) error {
	if len(*data) == 0 || w.open == nil {
		return nil
	}
	if _, err := w.open.Write(*data); err != nil {
		return err
	}
	if err := w.open.Sync(); err != nil {
		return err
	}
	w.bytes += int64(len(*data))
	*data = nil
	w.tell(false)
	return nil
}

// tell lets readers see how far the last segment is.
func (w *writer) tell(sealed bool) {
	a := w.archive
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := segment{path: w.path, begin: w.begin, end: w.end, bytes: w.bytes, sealed: sealed}
	if at := slices.IndexFunc(a.segments, func(s segment) bool { return s.path == w.path }); at >= 0 {
		a.segments[at] = now
	} else {
		a.segments = append(a.segments, now)
	}
	if sealed {
		rouse(a.sealed)
	}
}

// next seals the segment that is written to, and begins another.
func (w *writer) next(one *item) error {
	if w.open != nil {
		tail := frame(nil, kindEnd, w.end)
		if _, err := w.open.Write(tail); err != nil {
			return err
		}
		if err := w.open.Sync(); err != nil {
			return err
		}
		w.bytes += int64(len(tail))
		w.tell(true)
		w.drop()
	}
	value := one.value.Copy()
	path := filepath.Join(w.archive.config.Dir, fmt.Sprintf("%020d%s", uint64(value.Index), suffix))
	f, err := w.archive.config.create(path + unfinished)
	if err != nil {
		return err
	}
	w.open, w.path, w.bytes, w.begin, w.end = f, path, 0, momentOf(value), momentOf(value)
	data := begin(value)
	w.archive.resize(len(data))
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return err
	}
	w.bytes = int64(len(data))
	w.tell(false)
	w.archive.retain()
	return syncFolder(w.archive.config.Dir)
}

// resize lets segments have at least as many bytes of records as their snapshots have, so that an archive is at most
// about twice its records.
func (a *Archive) resize(snapshot int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.room = max(a.config.segmentBytes(), snapshot)
}

// drop ends writing to a file.
func (w *writer) drop() {
	if w.open != nil {
		_ = w.open.Close() // what counts of it was synced
		w.open = nil
	}
}

// fail gives up what could not be written, and pauses.
func (w *writer) fail(err error) {
	if w.open != nil {
		_ = w.open.Truncate(w.bytes) // what is left counts for nobody: it is cut off when the archive is opened
		w.drop()
	}
	_ = os.Remove(w.path + unfinished) // it is removed when the archive is opened, if not now
	a := w.archive
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.queue, a.waiting = nil, 0
	a.passed = max(a.passed, a.last.Index)
	a.known = len(a.segments) > 0
	a.last, a.digests = Moment{}, nil
	if a.known {
		a.last = a.segments[len(a.segments)-1].end
		a.first, a.digests = a.last.Index, []uint64{a.last.Digest}
	}
	a.pause(err.Error())
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// retain deletes the oldest segments that are too old, or too much. The last one stays.
func (a *Archive) retain() {
	a.mutex.Lock()
	var gone []segment
	bytes := int64(0)
	for i := range a.segments {
		bytes += a.segments[i].bytes
	}
	oldest := terms.Time(0)
	if a.config.Age > 0 {
		oldest = max(a.last.Time-terms.Time(a.config.Age.Milliseconds()), 0)
	}
	for len(a.segments) > 1 && (bytes > a.config.BytesMax || a.segments[0].end.Time < oldest) {
		if a.config.Store.Depot != nil && !a.segments[0].carried &&
			(bytes <= 2*a.config.BytesMax || len(a.segments) <= waitMax) {
			break
		}
		if oldest := &a.segments[0]; a.config.Store.Depot != nil && !oldest.carried {
			a.config.Log.Error("a segment of the archive was deleted for want of room before it reached the store",
				"from", oldest.begin.Index, "to", oldest.end.Index)
			a.dropped++
		}
		gone, bytes = append(gone, a.segments[0]), bytes-a.segments[0].bytes
		a.segments = slices.Clone(a.segments[1:])
	}
	a.mutex.Unlock()
	for _, s := range gone {
		if err := os.Remove(s.path); err != nil {
			a.config.Log.Warn("an old segment of the archive could not be deleted", "file", s.path, "error", err)
		}
	}
}

// moveAside moves all segments into a folder of their own, in place of what was put there before.
func (a *Archive) moveAside() error {
	aside := filepath.Join(a.config.Dir, asideDir)
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Mkdir(aside, 0o750); err != nil {
		return err
	}
	a.mutex.Lock()
	all := a.segments
	a.segments = nil
	a.mutex.Unlock()
	a.kept.forget()
	a.generation.Add(1)
	for _, s := range all {
		if err := os.Rename(s.path, filepath.Join(aside, filepath.Base(s.path))); err != nil {
			return err
		}
	}
	return nil
}
