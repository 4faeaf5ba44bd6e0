package output

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Writer appends to a stream. It is for one goroutine.
type Writer struct {
	folder, stream string
	bounds         Bounds

	file   *os.File
	start  int64   // offset of the open segment
	offset int64   // offset of the next byte
	kept   []int64 // all segments, the open one last
	lost   int64   // bytes not written since the last that was
}

// NewWriter returns a writer of a new stream in the folder.
func NewWriter(folder, stream string, bounds Bounds) *Writer {
	return &Writer{folder: folder, stream: stream, bounds: bounds}
}

// Write appends p. It never fails, for a task must not block or die because its output finds no room: what cannot be
// written is dropped, and a line in the stream says so as soon as there is room again.
func (w *Writer) Write(p []byte) (int, error) {
	if w.lost > 0 {
		note := fmt.Sprintf("\n[%d bytes of output could not be written and were dropped]\n", w.lost)
		if w.append([]byte(note)) == nil {
			w.lost = 0
		}
	}
	for rest := p; len(rest) > 0; {
		part := rest
		if room := w.bounds.SegmentBytes - (w.offset - w.start); w.file != nil && int64(len(part)) > room {
			part = rest[:room]
		} else if int64(len(part)) > w.bounds.SegmentBytes {
			part = rest[:w.bounds.SegmentBytes]
		}
		if w.append(part) != nil {
			w.lost += int64(len(part))
		}
		rest = rest[len(part):]
	}
	return len(p), nil
}

// The least and the most that is copied at once. Most tasks write little.
const (
	pieceMin = 1 << 10
	pieceMax = 32 << 10
)

// Copy appends all that can be read.
func (w *Writer) Copy(from io.Reader) {
	piece := make([]byte, pieceMin)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			_, _ = w.Write(piece[:n])
		}
		if err != nil {
			return
		}
		if n == len(piece) && n < pieceMax {
			piece = make([]byte, 2*n)
		}
	}
}

// append writes to the open segment, after beginning a new one if that is full.
func (w *Writer) append(p []byte) error {
	if w.file == nil || w.offset-w.start >= w.bounds.SegmentBytes {
		if err := w.rotate(); err != nil {
			return err
		}
	}
	n, err := w.file.Write(p)
	w.offset += int64(n)
	return err
}

// rotate begins a new segment and deletes the oldest beyond the bounds.
func (w *Writer) rotate() error {
	file, err := os.OpenFile(filepath.Join(w.folder, segmentName(w.stream, w.offset)),
		os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if w.file != nil {
		w.file.Close()
	}
	w.file, w.start = file, w.offset
	w.kept = append(w.kept, w.start)
	for len(w.kept) > w.bounds.Segments {
		os.Remove(filepath.Join(w.folder, segmentName(w.stream, w.kept[0])))
		w.kept = w.kept[1:]
	}
	return nil
}

// Close ends the stream.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	return w.file.Close()
}
