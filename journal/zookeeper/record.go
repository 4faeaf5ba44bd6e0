package zookeeper

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// partBytes bounds the payload that one node holds. A request may have no more than a megabyte with all its parts
// (jute.maxbuffer), and a chunk of a snapshot is as large.
const partBytes = 512 << 10

// formatNow begins every record.
const formatNow = 1

// stored is a record as its node holds it: with the payload, or with the names of the nodes that hold that.
type stored struct {
	journal.Record
	parts  uint64 // how many, 0 if the payload is here
	digest [8]byte
}

// newStored divides a payload that is too large for one node.
func newStored(r journal.Record) stored {
	s := stored{Record: r}
	if len(r.Payload) > partBytes {
		s.parts = uint64(len(r.Payload)+partBytes-1) / partBytes
		sum := sha256.Sum256(r.Payload)
		copy(s.digest[:], sum[:])
	}
	return s
}

// encode returns format, writer, sequence number and the number of parts, then the payload or the digest of it.
func (s *stored) encode() []byte {
	rest := s.Payload
	if s.parts > 0 {
		rest = s.digest[:]
	}
	data := make([]byte, 0, 1+3*binary.MaxVarintLen64+len(s.Writer)+len(rest))
	data = append(data, formatNow)
	data = binary.AppendUvarint(data, uint64(len(s.Writer)))
	data = append(data, s.Writer...)
	data = binary.AppendUvarint(data, s.Seq)
	data = binary.AppendUvarint(data, s.parts)
	return append(data, rest...)
}

// decodeStored reads what encode wrote. The payload is a part of data.
func decodeStored(data []byte) (stored, error) {
	var s stored
	if len(data) == 0 || data[0] != formatNow {
		return s, fmt.Errorf("a record is not in format %d: %w", formatNow, errDamaged)
	}
	data = data[1:]
	number := func() uint64 {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			data = nil
			return 0
		}
		data = data[size:]
		return n
	}
	if n := number(); n <= uint64(len(data)) {
		s.Writer, data = string(data[:n]), data[n:]
	}
	s.Seq, s.parts = number(), number()
	switch {
	case s.Writer == "" || data == nil:
		return s, fmt.Errorf("a record is cut off: %w", errDamaged)
	case s.parts > 0 && len(data) != len(s.digest), s.parts > journal.PayloadBytesMax/partBytes+1:
		return s, fmt.Errorf("record %s/%d has wrong parts: %w", s.Writer, s.Seq, errDamaged)
	case s.parts > 0:
		copy(s.digest[:], data)
	default:
		s.Payload = data
	}
	return s, nil
}

// part names the node of one part. It is of this record with this payload alone, so that nothing is ever overwritten by
// something else.
func (s *stored) part(p paths, shard uint64, number uint64) string {
	return fmt.Sprintf("%s/%s.%016x.%x.%d", p.parts(shard), escaped(s.Writer), s.Seq, s.digest, number)
}

// putParts keeps the parts of a payload in a shard. They belong to nothing until the record is there; if it never comes
// they go with the shard.
func (j *Journal) putParts(ctx context.Context, s *stored, shard uint64) error {
	for number := range s.parts {
		part := s.Payload[number*partBytes : min((number+1)*partBytes, uint64(len(s.Payload)))]
		_, err := ask(ctx, j, func(c *zk.Conn) (string, error) {
			return c.Create(s.part(j.paths, shard, number), part, zk.FlagPersistent, j.acl)
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// readRecord reads the record of a node, with all its parts.
func (j *Journal) readRecord(c *zk.Conn, shard uint64, sequence int) (journal.Record, error) {
	data, _, err := c.Get(j.paths.record(shard, sequence))
	if err != nil {
		return journal.Record{}, err
	}
	s, err := decodeStored(data)
	if err != nil {
		return journal.Record{}, err
	}
	for number := range s.parts {
		part, _, err := c.Get(s.part(j.paths, shard, number))
		if err != nil {
			return journal.Record{}, err
		}
		s.Payload = append(s.Payload, part...)
	}
	if sum := sha256.Sum256(s.Payload); s.parts > 0 && [8]byte(sum[:8]) != s.digest {
		return journal.Record{}, fmt.Errorf("record %s/%d has another payload than it had: %w", s.Writer, s.Seq, errDamaged)
	}
	return s.Record, nil
}
