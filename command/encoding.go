package command

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"starling/terms"
)

// encodingVersion is the first byte of every entry.
const encodingVersion = 1

const checksumBytes = 4

const peerBytesMax = terms.NameBytesMax + 12

// Encode returns the entry's bytes; Decode of them gives an equal entry.
func Encode(e *Entry) []byte {
	c := &coder{writing: true, data: []byte{encodingVersion}}
	header(c, e)
	count := uint64(len(e.Commands))
	c.number(&count, CommandsMax)
	for _, one := range e.Commands {
		c.data = append(c.data, byte(one.Kind()))
		one.code(c)
	}
	return binary.LittleEndian.AppendUint32(c.data, checksum(c.data))
}

// checksum lets damage be told from what a newer program wrote.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// Size returns how many bytes a command takes in an entry.
func Size(one Command) int {
	c := &coder{writing: true}
	one.code(c)
	return len(c.data) + 1
}

// Decode returns the entry with these bytes. It refuses everything that Encode does not write; it never panics.
func Decode(data []byte) (*Entry, error) {
	if len(data) <= checksumBytes || len(data) > EntryBytesMax {
		return nil, fmt.Errorf("entry has %d bytes, must have %d to %d", len(data), checksumBytes+1, EntryBytesMax)
	}
	data, sum := data[:len(data)-checksumBytes], binary.LittleEndian.Uint32(data[len(data)-checksumBytes:])
	if sum != checksum(data) {
		return nil, errors.New("entry is damaged: its checksum does not match")
	}
	if data[0] != encodingVersion {
		return nil, fmt.Errorf("entry has encoding version %d, this program knows %d: run a newer one", data[0], encodingVersion)
	}
	c := &coder{data: data[1:]}
	e := &Entry{}
	header(c, e)
	count := uint64(0)
	c.number(&count, CommandsMax)
	for range count {
		if one := decodeCommand(c); one != nil {
			e.Commands = append(e.Commands, one)
		}
		if c.failure != "" {
			break
		}
	}
	if c.failure == "" && len(c.data) > 0 {
		c.fail("has %d bytes too many", len(c.data))
	}
	if c.failure != "" {
		return nil, fmt.Errorf("entry %s", c.failure)
	}
	return e, nil
}

func header(c *coder, e *Entry) {
	text(c, &e.Writer, peerBytesMax)
	integer(c, &e.Seq, math.MaxUint64)
	integer(c, &e.Time, math.MaxInt64>>8)
	integer(c, &e.Cause, math.MaxInt64)
}

func decodeCommand(c *coder) Command {
	kind := uint64(0)
	c.number(&kind, 127)
	if c.failure != "" {
		return nil
	}
	one := blank(Kind(kind))
	if one == nil {
		c.fail("holds a command of kind %d, which this program does not know: run a newer one", kind)
		return nil
	}
	one.code(c)
	return one
}

// blank returns an empty command of the kind to decode into, nil for a kind that is not known.
func blank(k Kind) Command {
	switch k {
	case KindPrepareJoin:
		return &PrepareJoin{}
	case KindNotifyJoin:
		return &NotifyJoin{}
	case KindAcceptJoin:
		return &AcceptJoin{}
	case KindAbortJoin:
		return &AbortJoin{}
	case KindLeave:
		return &Leave{}
	case KindVolunteer:
		return &Volunteer{}
	case KindSubmitJob:
		return &SubmitJob{}
	case KindKillJob:
		return &KillJob{}
	case KindReportTasks:
		return &ReportTasks{}
	case KindTellTime:
		return &TellTime{}
	case KindRaiseRules:
		return &RaiseRules{}
	case KindSteerUpdate:
		return &SteerUpdate{}
	case KindRevertJob:
		return &RevertJob{}
	case KindRestartJob:
		return &RestartJob{}
	case KindSuspendJob:
		return &SuspendJob{}
	case KindSealTask:
		return &SealTask{}
	case KindEndAllocation:
		return &EndAllocation{}
	case KindDrainNode:
		return &DrainNode{}
	case KindChangePools:
		return &ChangePools{}
	}
	return nil
}
