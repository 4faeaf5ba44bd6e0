package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cluster/facts"
	"starling/replica"
	"starling/terms"
)

// TailJournal reads the entries that the peer remembers, in words.
func (s *server) TailJournal(
	ctx context.Context, request *starlingv1.TailJournalRequest,
	stream *connect.ServerStream[starlingv1.TailJournalResponse],
) error {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return err
	}
	if err := stream.Send(nil); err != nil { // the head, so that who follows knows that he is heard
		return err
	}
	from := max(terms.Index(request.GetFrom()), 1)
	if last := terms.Index(request.GetLast()); request.GetFrom() == 0 && last > 0 && state.Index > last {
		from = state.Index - last + 1
	}
	first := true
	visit := func(entry *replica.Folded) error {
		if first && entry.Index > from {
			if err := stream.Send(&starlingv1.TailJournalResponse{Index: uint64(entry.Index),
				OldestIndex: uint64(entry.Index)}); err != nil {
				return err
			}
		}
		first = false
		return stream.Send(&starlingv1.TailJournalResponse{Index: uint64(entry.Index), Entry: entryMessage(entry)})
	}
	if request.GetFollow() {
		return s.backend.Follow(ctx, from, visit)
	}
	return s.remembered(ctx, from, state.Index, visit)
}

// remembered visits the entries from the index on to end, as far as they are remembered. The peer must have folded end:
// so this does not wait for new ones.
func (s *server) remembered(ctx context.Context, from, end terms.Index, visit func(*replica.Folded) error) error {
	if from > end {
		return nil
	}
	done := errors.New("all seen")
	err := s.backend.Follow(ctx, from, func(entry *replica.Folded) error {
		if entry.Index <= end {
			if err := visit(entry); err != nil {
				return err
			}
		}
		if entry.Index >= end {
			return done
		}
		return nil
	})
	if errors.Is(err, done) {
		return nil
	}
	return err
}

func entryMessage(f *replica.Folded) *starlingv1.JournalEntry {
	m := &starlingv1.JournalEntry{
		Index: uint64(f.Index), Dropped: f.Outcome.Dropped, Digest: digestText(f.Digest), Bytes: uint32(f.Bytes),
	}
	for i := range f.Outcome.Effects {
		m.Effects = append(m.Effects, effectMessage(&f.Outcome.Effects[i]))
	}
	if f.Entry == nil {
		return m
	}
	m.Time, m.Writer, m.Seq, m.Cause = timestamp(f.Entry.Time), string(f.Entry.Writer), f.Entry.Seq, uint64(f.Entry.Cause)
	for i, c := range f.Entry.Commands {
		one := &starlingv1.CommandWords{Kind: c.Kind().String(), Text: words.Command(c)}
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

func effectMessage(e *replica.Effect) *starlingv1.EffectWords {
	m := &starlingv1.EffectWords{
		Kind: e.Kind.String(), Text: words.Effect(e), Job: string(e.Slot.Job), Node: string(e.Node), Peer: string(e.Peer),
	}
	if e.Slot.Task != "" {
		m.Allocation = terms.AllocationID{Slot: e.Slot, Order: e.Order}.String()
	}
	return m
}
