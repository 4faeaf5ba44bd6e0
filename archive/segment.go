package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"starling/cluster"
	"starling/cluster/snapshot"
	"starling/journal"
	"starling/terms"
	"starling/terms/rules"
)

// A segment is the magic, the format, and then frames: the length of the body and the checksum of kind and body, 4
// bytes each, the kind, and the body. The first frame is the snapshot; one that is whole has an end behind its records.
const (
	magic            = "starling archive"
	format      byte = 1
	headerBytes      = len(magic) + 1
	frameBytes       = 4 + 4 + 1

	kindSnapshot byte = 1
	kindRecord   byte = 2
	kindEnd      byte = 3

	// bodyBytesMax bounds a frame: a snapshot is one.
	bodyBytesMax = 1 << 31
	// momentBytes is what each body begins with.
	momentBytes = 3 * 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Moment is an index of the value, with its time and digest there.
type Moment struct {
	Index  terms.Index
	Time   terms.Time
	Digest uint64
}

// momentOf returns the present one of a value.
func momentOf(s *cluster.State) Moment { return Moment{s.Index, s.Time, s.Digest()} }

// Entry is a record of a segment.
type Entry struct {
	// Moment is that after the record.
	Moment
	Record journal.Record
}

// frame appends a frame.
func frame(to []byte, kind byte, moment Moment, rest ...[]byte) []byte {
	length := momentBytes
	for _, part := range rest {
		length += len(part)
	}
	start := len(to)
	to = binary.LittleEndian.AppendUint32(to, uint32(length))
	to = append(to, 0, 0, 0, 0, kind)
	to = binary.LittleEndian.AppendUint64(to, uint64(moment.Index))
	to = binary.LittleEndian.AppendUint64(to, uint64(moment.Time))
	to = binary.LittleEndian.AppendUint64(to, moment.Digest)
	for _, part := range rest {
		to = append(to, part...)
	}
	binary.LittleEndian.PutUint32(to[start+4:], crc32.Checksum(to[start+8:], castagnoli))
	return to
}

// begin returns how a segment begins that goes on from a value.
func begin(s *cluster.State) []byte {
	data := append([]byte(magic), format)
	return frame(data, kindSnapshot, momentOf(s), snapshot.Encode(s.Facts()))
}

// recordFrame appends a record.
func recordFrame(to []byte, moment Moment, r *journal.Record) []byte {
	head := binary.AppendUvarint(nil, r.Seq)
	head = binary.AppendUvarint(head, uint64(len(r.Writer)))
	return frame(to, kindRecord, moment, head, []byte(r.Writer), r.Payload)
}

// Errors of what is read.
var (
	// ErrForeign is returned for what is no segment at all.
	ErrForeign = errors.New("this was not written by starling")
	// ErrNewer is returned for what a newer program has written.
	ErrNewer = errors.New("this was written by a newer version of starling: use that one")
	// ErrTorn is returned where a segment ends without its end: it is being written, or was cut off.
	ErrTorn = errors.New("it is cut off")
	// ErrOpen is the ErrTorn of a segment that stops behind a whole frame.
	ErrOpen = fmt.Errorf("%w between two entries", ErrTorn)
	// ErrLonger is returned where something follows the end.
	ErrLonger = errors.New("something follows its end")
	// ErrDamaged is returned where a checksum is wrong.
	ErrDamaged = errors.New("it is damaged")
)

// IsSegment tells whether a file has the name of a segment of an archive, which has no end while its peer writes to it.
func IsSegment(path string) bool { return strings.HasSuffix(path, suffix) }

// Reader reads one segment.
type Reader struct {
	from *bufio.Reader
	// Whole is how many bytes were read up to the end of the last frame.
	Whole int64
	// Begin is the moment of the snapshot, Last that of what was read last.
	Begin, Last Moment
	value       []byte
}

// NewReader reads how a segment begins.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{from: bufio.NewReaderSize(from, 1<<16)}
	head := make([]byte, headerBytes)
	switch _, err := io.ReadFull(r.from, head); {
	case err == nil && string(head[:len(magic)]) != magic:
		return nil, ErrForeign
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w before anything", ErrTorn)
	case err != nil:
		return nil, err
	case head[len(magic)] > format:
		return nil, ErrNewer
	case head[len(magic)] != format:
		return nil, ErrForeign
	}
	r.Whole = int64(headerBytes)
	kind, moment, body, err := r.frame()
	if errors.Is(err, io.EOF) {
		err = ErrTorn
	}
	if err != nil {
		return nil, err
	}
	if kind != kindSnapshot {
		return nil, fmt.Errorf("%w: it has no snapshot", ErrDamaged)
	}
	r.Begin, r.Last, r.value = moment, moment, body
	return r, nil
}

// Value returns the value with which the segment begins, for a program that knows rules up to a number.
func (r *Reader) Value(knows rules.Number) (*cluster.State, error) {
	all, err := snapshot.Decode(r.value, knows)
	if err != nil {
		return nil, err
	}
	s := cluster.Rebuild(all)
	if momentOf(s) != r.Begin {
		return nil, fmt.Errorf("%w: its snapshot at %d has digest %016x, it should have %016x", ErrDamaged, r.Begin.Index,
			s.Digest(), r.Begin.Digest)
	}
	return s, nil
}

// Next returns the next record, or io.EOF at the end, ErrTorn where it stops without one, ErrOpen if that is behind a
// whole record, ErrLonger where it goes on.
func (r *Reader) Next() (Entry, error) {
	kind, moment, body, err := r.frame()
	switch {
	case errors.Is(err, io.EOF):
		return Entry{}, ErrOpen
	case err != nil:
		return Entry{}, err
	case kind == kindEnd && moment == r.Last:
		if _, err := r.from.Peek(1); err == nil {
			return Entry{}, ErrLonger
		}
		return Entry{}, io.EOF
	case kind != kindRecord || moment.Index != r.Last.Index+1:
		return Entry{}, fmt.Errorf("%w: entry %d is missing", ErrDamaged, r.Last.Index+1)
	}
	e := Entry{Moment: moment, Record: journal.Record{Index: journal.Index(moment.Index)}}
	seq, n := binary.Uvarint(body)
	if n <= 0 {
		return Entry{}, fmt.Errorf("%w: entry %d has no number", ErrDamaged, moment.Index)
	}
	length, m := binary.Uvarint(body[n:])
	if m <= 0 || length > uint64(len(body)-n-m) {
		return Entry{}, fmt.Errorf("%w: entry %d has no writer", ErrDamaged, moment.Index)
	}
	body = body[n+m:]
	e.Record.Seq, e.Record.Writer, e.Record.Payload = seq, string(body[:length]), body[length:]
	r.Last = moment
	return e, nil
}

// frame reads a frame; io.EOF tells that there is none.
func (r *Reader) frame() (kind byte, moment Moment, body []byte, err error) {
	head := make([]byte, frameBytes)
	if _, err = io.ReadFull(r.from, head); err != nil {
		return 0, moment, nil, torn(err)
	}
	length, sum := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if length < momentBytes || length > bodyBytesMax {
		return 0, moment, nil, ErrDamaged
	}
	// It is not taken for granted that the length is right: it is read in pieces.
	body, err = io.ReadAll(io.LimitReader(r.from, int64(length)))
	switch {
	case err != nil:
		return 0, moment, nil, err
	case len(body) < int(length) && wrongLength(head, body):
		return 0, moment, nil, ErrDamaged
	case len(body) < int(length):
		return 0, moment, nil, ErrTorn
	}
	kind = head[8]
	if sumOf(head, body) != sum {
		return 0, moment, nil, ErrDamaged
	}
	r.Whole += int64(frameBytes) + int64(length)
	return kind, momentIn(body), body[momentBytes:], nil
}

// wrongLength tells of a frame that is longer than what is left of the file whether its length was altered: the sum
// is right for what is left, or another whole frame follows.
func wrongLength(head, left []byte) bool {
	if sumOf(head, left) == binary.LittleEndian.Uint32(head[4:]) {
		return true
	}
	if len(left) < momentBytes {
		return false
	}
	own := momentIn(left).Index
	for at := momentBytes; at+frameBytes+momentBytes <= len(left); at++ {
		next, body := left[at:at+frameBytes], left[at+frameBytes:]
		length := binary.LittleEndian.Uint32(next)
		if next[8] != kindRecord && next[8] != kindEnd || length < momentBytes || int64(length) > int64(len(body)) {
			continue
		}
		// An entry that is far away is looked at no further, so that few checksums are computed.
		if index := momentIn(body).Index; index < own || index-own > segmentRecordsMax {
			continue
		}
		if sumOf(next, body[:length]) == binary.LittleEndian.Uint32(next[4:]) {
			return true
		}
	}
	return false
}

// sumOf returns the checksum of a frame.
func sumOf(head, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[8:], castagnoli), castagnoli, body)
}

// momentIn returns the moment with which a body begins.
func momentIn(body []byte) Moment {
	return Moment{terms.Index(binary.LittleEndian.Uint64(body)), terms.Time(binary.LittleEndian.Uint64(body[8:])),
		binary.LittleEndian.Uint64(body[16:])}
}

// torn tells an end between two frames from one within.
func torn(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTorn
	}
	return err
}
