package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	starlingv1 "starling/api/v1"
	"starling/api/watch"
	"starling/cluster"
	"starling/replica/replay"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// TestWatchTellsAll watches random histories: what a reader has gathered from the changes up to an entry must be what
// the value has after it, and each change must fit what was known before.
func TestWatchTellsAll(t *testing.T) {
	last := uint64(300)
	if testing.Short() {
		last = 60
	}
	for seed := uint64(1); seed <= last; seed++ {
		s, err := writeHistory(seed)
		if err != nil {
			t.Fatalf("history %d: %v", seed, err)
		}
		g := &gathered{history: &history{scribe: s}, known: map[string]*starlingv1.WatchResponse{}}
		g.history.value = cluster.NewStateWithin(s.limits)
		g.expected = g.history.value.Copy()
		err = watch.New(g.history).Watch(t.Context(), everything(), g.take)
		if errors.Is(err, errAllSeen) {
			err = g.compare(uint64(len(s.records)))
		}
		if err != nil {
			t.Errorf("history %d: %v", seed, err)
		}
	}
}

var errAllSeen = errors.New("all seen")

// everything is what an admin asks for.
func everything() *watch.Request {
	return &watch.Request{WatchRequest: &starlingv1.WatchRequest{}, Caller: trust.Identity{Kind: access.OfLocal,
		Role: access.Admin}}
}

// history is a peer that folds what was written.
type history struct {
	*scribe
	value *cluster.State
}

// State returns the value before the first entry.
func (h *history) State(context.Context, terms.Index) (*cluster.State, error) {
	return h.value.Copy(), nil
}

// Follow visits all entries.
func (h *history) Follow(_ context.Context, _ terms.Index, visit func(*report.Folded) error) error {
	for _, r := range h.records {
		folded := replay.Record(h.value, r.Payload, false)
		if err := visit(&folded); err != nil {
			return err
		}
	}
	return errAllSeen
}

// gathered is what a reader knows.
type gathered struct {
	history  *history
	expected *cluster.State
	known    map[string]*starlingv1.WatchResponse
}

// take notes a response. Before the first of an entry, all earlier entries are compared.
func (g *gathered) take(m *starlingv1.WatchResponse) error {
	switch m.GetType() {
	case "there":
		g.known[m.GetKind()+" "+m.GetName()] = m
		return nil
	case "synced":
		for uint64(g.expected.Index) < m.GetIndex() {
			replay.Record(g.expected, g.history.records[g.expected.Index].Payload, false)
		}
		return nil
	}
	if err := g.compare(m.GetIndex() - 1); err != nil {
		return err
	}
	key := m.GetKind() + " " + m.GetName()
	was := g.known[key]
	switch kind := m.GetType(); {
	case (was == nil) != (kind == "added"):
		return fmt.Errorf("entry %d: %s is %s out of turn", m.GetIndex(), key, kind)
	case was != nil && same(was, m) != (kind == "removed"):
		return fmt.Errorf("entry %d: %s is %s, and was known as %v", m.GetIndex(), key, m, was)
	case kind == "removed":
		delete(g.known, key)
	default:
		g.known[key] = m
	}
	return nil
}

// same tells whether two responses are about equal things.
func same(a, b *starlingv1.WatchResponse) bool {
	return proto.Equal(&starlingv1.WatchResponse{Object: a.Object}, &starlingv1.WatchResponse{Object: b.Object})
}

// compare holds what is known against the values after all entries up to one.
func (g *gathered) compare(index uint64) error {
	for uint64(g.expected.Index) < index {
		replay.Record(g.expected, g.history.records[g.expected.Index].Payload, false)
		found := 0
		err := watch.List(g.expected.Copy(), g.expected.Copy(), everything(), func(m *starlingv1.WatchResponse) error {
			if m.GetType() == "synced" {
				return nil
			}
			found++
			if known := g.known[m.GetKind()+" "+m.GetName()]; known == nil || !same(known, m) {
				return fmt.Errorf("entry %d: %v is there, and was told as %v", g.expected.Index, m, known)
			}
			return nil
		})
		if err == nil && found != len(g.known) {
			err = fmt.Errorf("entry %d: %d things are there, and %d were told", g.expected.Index, found, len(g.known))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
