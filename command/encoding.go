package command

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"starling/terms"
	"starling/terms/codec"
	"starling/terms/rules"
)

// format is the first byte of every entry. It is followed by the number of the rules that the entry needs, and the last
// four bytes are the checksum of all before them: in this format, and in all that will be.
const format = 2

// formatPreRelease was written before the first release.
const formatPreRelease = 1

const checksumBytes = 4

// ErrPreRelease tells that an entry is of the format of programs before the first release.
var ErrPreRelease = errors.New("entry has format 1, which was written before the first release")

// Encode returns the entry's bytes; Decode of them gives an equal entry.
func Encode(e *Entry) []byte {
	c := &codec.Coder{Writing: true, Data: []byte{format}}
	need := e.Rules
	if need == 0 {
		need = Needs(e.Commands)
	}
	codec.Integer(c, &need, math.MaxUint32)
	header(c, e)
	count := uint64(len(e.Commands))
	c.Number(&count, CommandsMax)
	for _, one := range e.Commands {
		frame(c, one)
	}
	return binary.LittleEndian.AppendUint32(c.Data, checksum(c.Data))
}

// Needs returns the lowest number of the rules that have all of the commands.
func Needs(commands []Command) rules.Number {
	need := rules.First
	for _, one := range commands {
		need = max(need, formOf(one).since(), formOf(Plain(one)).since())
	}
	return need
}

// frame writes one command: its kind, its version, the length of its body, and that.
func frame(c *codec.Coder, one Command) {
	f := formOf(one)
	codec.Integer(c, &f.kind, math.MaxUint16)
	codec.Integer(c, &f.version, math.MaxUint16)
	begin := len(c.Data)
	f.code(c, one)
	length := binary.AppendUvarint(nil, uint64(len(c.Data)-begin))
	c.Data = slices.Insert(c.Data, begin, length...)
}

// checksum lets damage be told from what a newer program wrote.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// Size returns how many bytes a command takes in an entry.
func Size(one Command) int {
	c := &codec.Coder{Writing: true}
	frame(c, one)
	return len(c.Data)
}

// Decode returns the entry with these bytes as a value takes it that has these rules. It never panics, and what it
// returns is a matter of the bytes and the rules, whatever else this program knows:
//
//   - An error, for an entry that all peers drop: it is damaged, not of the form that Encode writes, or it needs newer
//     rules. What such an entry holds is not looked at.
//   - An entry. A command that the rules do not have, or with a body that cannot be read, is Unreadable in it.
func Decode(data []byte, in rules.Number) (*Entry, error) {
	if len(data) <= checksumBytes || len(data) > EntryBytesMax {
		return nil, fmt.Errorf("entry has %d bytes, must have %d to %d", len(data), checksumBytes+1, EntryBytesMax)
	}
	e := &Entry{Bytes: uint32(len(data))}
	data, sum := data[:len(data)-checksumBytes], binary.LittleEndian.Uint32(data[len(data)-checksumBytes:])
	switch {
	case sum != checksum(data):
		return nil, errors.New("entry is damaged: its checksum does not match")
	case data[0] == formatPreRelease:
		return nil, ErrPreRelease
	case data[0] != format:
		return nil, fmt.Errorf("entry has format %d, which version %d of the rules does not have", data[0], in)
	}
	c := &codec.Coder{Data: data[1:], In: in}
	codec.Integer(c, &e.Rules, math.MaxUint32)
	switch {
	case c.Failure == "" && e.Rules < rules.First:
		c.Fail("needs version %d of the rules: they begin with %d", e.Rules, rules.First)
	case c.Failure == "" && e.Rules > in:
		c.Fail("needs version %d of the rules, which are at %d: raise them first, see \"starling rules\"", e.Rules, in)
	}
	header(c, e)
	count := uint64(0)
	c.Number(&count, CommandsMax)
	for range count {
		one := decodeCommand(c)
		if c.Failure != "" {
			break
		}
		e.Commands = append(e.Commands, one)
	}
	if c.Failure == "" && len(c.Data) > 0 {
		c.Fail("has %d bytes too many", len(c.Data))
	}
	if c.Failure != "" {
		return nil, fmt.Errorf("entry %s", c.Failure)
	}
	return e, nil
}

func header(c *codec.Coder, e *Entry) {
	codec.Text(c, &e.Writer, terms.PeerIDBytesMax)
	codec.Integer(c, &e.Seq, math.MaxUint64)
	codec.Integer(c, &e.Time, math.MaxInt64>>8)
	codec.Integer(c, &e.Cause, math.MaxInt64)
}

// decodeCommand reads one command with its frame. It fails for a frame that leads beyond the entry; a body is a matter
// of its own.
func decodeCommand(c *codec.Coder) Command {
	f, length := form{}, uint64(0)
	codec.Integer(c, &f.kind, math.MaxUint16)
	codec.Integer(c, &f.version, math.MaxUint16)
	c.Number(&length, EntryBytesMax)
	if c.Failure == "" && length > uint64(len(c.Data)) {
		c.Fail("ends within a command")
	}
	if c.Failure != "" {
		return nil
	}
	body, rest := c.Data[:length], c.Data[length:]
	defer func() { c.Data, c.Failure = rest, "" }()
	one := blank(f)
	if since := f.since(); one == nil || since > c.In {
		return f.unreadable(body, fmt.Sprintf("a command of kind %d, version %d, is not known under version %d of the rules: "+
			"if it is one of a newer program, raise them first, see \"starling rules\"", f.kind, f.version, c.In))
	}
	c.Data = body
	f.code(c, one)
	switch least := formOf(one); {
	case c.Failure != "":
	case len(c.Data) > 0:
		c.Fail("has %d bytes too many", len(c.Data))
	case least != f:
		c.Fail("is written in version %d, must be in version %d, which has all of its fields", f.version, least.version)
	}
	if c.Failure != "" {
		return f.unreadable(body, f.kind.String()+" "+c.Failure)
	}
	return one
}
