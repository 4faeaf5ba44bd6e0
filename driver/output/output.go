// Package output keeps what tasks write.
//
// A stream is a row of segments, files named after the stream and the offset of their first byte. The writer only
// ever appends to the last, begins a new one when it is full, and deletes the oldest when there are too many. Nothing
// is renamed and no segment changes once a later one exists; so a reader needs no agreement with the writer, which is
// another process, and a follower can neither miss nor repeat a byte while it keeps up. One that does not skips what
// was deleted meanwhile.
//
//	stdout.00000000000000000000   stdout.00000000000010485760   stdout.00000000000020971520
//	└──────── complete ────────┘  └──────── complete ────────┘  └─────── growing ─────────┘
package output

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds say how much of a stream is kept.
type Bounds struct {
	// SegmentBytes is the size at which a segment is full.
	SegmentBytes int64
	// Segments is how many are kept, the growing one included.
	Segments int
}

// DefaultBounds keep between 20 and 30 MiB of a stream.
func DefaultBounds() Bounds { return Bounds{SegmentBytes: 10 << 20, Segments: 3} }

// segmentName is the file that holds a stream from an offset on; names sort like offsets.
func segmentName(stream string, start int64) string { return fmt.Sprintf("%s.%020d", stream, start) }

// segmentStart is the offset at which the segment of that name begins, if it is one of the stream.
func segmentStart(name, stream string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, stream+".")
	if !ok || len(digits) != 20 {
		return 0, false
	}
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, err == nil
}

// IsSegment tells whether a file of that name is a segment of one of the streams.
func IsSegment(name string, streams ...string) bool {
	return slices.ContainsFunc(streams, func(stream string) bool {
		_, ok := segmentStart(name, stream)
		return ok
	})
}

// segments are the offsets at which the kept segments of a stream begin, ascending.
func segments(folder fs.FS, stream string) ([]int64, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("list the segments of %s: %w", stream, err)
	}
	var starts []int64
	for _, entry := range entries {
		if start, ok := segmentStart(path.Base(entry.Name()), stream); ok {
			starts = append(starts, start)
		}
	}
	slices.Sort(starts)
	return starts, nil
}
