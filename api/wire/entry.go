package wire

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

// Timestamp returns nil for the time 0, which means that it is not known.
func Timestamp(t terms.Time) *timestamppb.Timestamp {
	if t == 0 {
		return nil
	}
	return timestamppb.New(time.UnixMilli(int64(t)))
}

// JSON writes a message with all fields that are told, zeroes included, so that programs find them.
func JSON(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(m)
}

// Digest writes a digest as 16 hexadecimal digits.
func Digest(digest uint64) string { return fmt.Sprintf("%016x", digest) }

// Entry returns the message of an entry with what it did, in words.
func Entry(f *report.Folded) *starlingv1.JournalEntry {
	m := &starlingv1.JournalEntry{
		Index: uint64(f.Index), Dropped: f.Outcome.Dropped, Digest: Digest(f.Digest), Bytes: uint32(f.Bytes),
	}
	for i := range f.Outcome.Effects {
		m.Effects = append(m.Effects, effectMessage(&f.Outcome.Effects[i]))
	}
	if f.Entry == nil {
		return m
	}
	m.Time, m.Writer, m.Seq, m.Cause = Timestamp(f.Entry.Time), string(f.Entry.Writer), f.Entry.Seq, uint64(f.Entry.Cause)
	for i, c := range f.Entry.Commands {
		one := &starlingv1.CommandWords{Kind: c.Kind().String(), Text: words.Command(c)}
		if as, ok := c.(*command.As); ok {
			one.By = as.Subject.Name
		}
		if i < len(f.Outcome.Results) {
			result := f.Outcome.Results[i]
			one.Job = string(result.Job)
			if result.Refusal.Code != facts.OK {
				one.RefusalCode, one.Refusal = result.Refusal.Code.String(), result.Refusal.Reason
			}
		}
		m.Commands = append(m.Commands, one)
	}
	return m
}

func effectMessage(e *report.Effect) *starlingv1.EffectWords {
	m := &starlingv1.EffectWords{
		Kind: e.Kind.String(), Text: words.Effect(e), Job: string(e.Slot.Job), Node: string(e.Node), Peer: string(e.Peer),
	}
	if e.Slot.Task != "" {
		m.Allocation = terms.AllocationID{Slot: e.Slot, Order: e.Order}.String()
	}
	return m
}
