package api

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	starlingv1 "starling/api/v1"
	"starling/cluster"
	"starling/command"
	"starling/terms"
)

// counting is an archive that notes what it is asked for.
type counting struct {
	whole
	asked      []terms.Index
	generation int64
}

func (c *counting) At(ctx context.Context, index terms.Index) (*cluster.State, error) {
	c.asked = append(c.asked, index)
	return c.whole.At(ctx, index)
}

func (c *counting) Oldest(context.Context, terms.Index) (terms.Index, error) { return 1, nil }

func (c *counting) Generation() int64 { return c.generation }

// charted is a peer with an archive that has run a job of which two instances had no room: before, and while it ran.
type charted struct {
	*testing.T
	*server
	past           *counting
	before, during terms.Index
}

func newCharted(t *testing.T) *charted {
	a, _ := pair()
	c := &charted{T: t, past: &counting{whole: whole{herd: a.herd}}, before: a.state.Index}
	a.archive = c.past
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 6, "b")}) // four of them have room
	c.during = a.state.Index
	a.add("a~1", &command.KillJob{Job: "web"})
	for range 4 {
		a.add("a~1", &command.SubmitJob{Spec: *jobOn("none", 0, "b")}) // it is refused
	}
	c.server = newServer(a, Options{Log: slog.New(slog.DiscardHandler)})
	return c
}

func (c *charted) series(request *starlingv1.SeriesRequest) *starlingv1.SeriesResponse {
	c.Helper()
	answer, err := c.Series(within(c.T), request)
	if err != nil {
		c.Fatal(err)
	}
	return answer
}

// at returns what is told of an index: capacity, allocated, demand and entitlement.
func at(answer *starlingv1.SeriesResponse, index terms.Index) (told [4]int64) {
	for _, p := range answer.GetPoints() {
		if p.GetIndex() == uint64(index) {
			told = [4]int64{p.GetCapacity(), p.GetAllocated(), p.GetDemand(), p.GetEntitlement()}
		}
	}
	return told
}

// TestSeries reads what was used before a job and while it ran with others waiting; what was computed once is not
// computed again, for another pool neither.
func TestSeries(t *testing.T) {
	c := newCharted(t)
	all := c.series(&starlingv1.SeriesRequest{})
	if all.GetOldest() != 1 || all.GetMore() || len(all.GetPoints()) != int(all.GetIndex()) {
		t.Errorf("got %v", all)
	}
	if got, want := at(all, c.before), [4]int64{8000, 0, 0, 8000}; got != want {
		t.Errorf("before: got %v, want %v", got, want)
	}
	if got, want := at(all, c.during), [4]int64{8000, 4000, 2000, 8000}; got != want {
		t.Errorf("during: got %v, want %v", got, want)
	}
	folded := len(c.past.asked)
	inPool := c.series(&starlingv1.SeriesRequest{Pool: "default", Kind: "memory"})
	if got, want := at(inPool, c.during), [4]int64{16 << 30, 4 << 20, 2 << 20, 16 << 30}; got != want {
		t.Errorf("of the pool: got %v, want %v", got, want)
	}
	few := c.series(&starlingv1.SeriesRequest{Points: 4, From: 2}).GetPoints()
	if len(few) < 2 || len(few) > 4 || few[len(few)-1].GetIndex() != all.GetIndex() {
		t.Errorf("at most four: %v", few)
	}
	if slices.Sort(c.past.asked); len(c.past.asked) != folded || len(slices.Compact(c.past.asked)) != folded {
		t.Errorf("folded %v, after %d times", c.past.asked, folded)
	}
	c.past.generation++
	c.past.asked = nil
	if c.series(&starlingv1.SeriesRequest{}); len(c.past.asked) != folded {
		t.Errorf("of another journal: folded %v, want %d times", c.past.asked, folded)
	}
}

// TestSeriesOfNothing asks for what cannot be told.
func TestSeriesOfNothing(t *testing.T) {
	c := newCharted(t)
	if none := c.series(&starlingv1.SeriesRequest{Pool: "none"}); len(none.GetPoints()) > 0 {
		t.Errorf("of no pool: %v", none)
	}
	for want, request := range map[string]*starlingv1.SeriesRequest{
		"kind must be of cpu, memory": {Kind: "luck"}, "points must be at most 200": {Points: 201},
	} {
		if _, err := c.Series(within(t), request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	c.backend.(*peer).archive = nil
	if only := c.series(&starlingv1.SeriesRequest{}); len(only.GetPoints()) != 1 {
		t.Errorf("without an archive: %v", only)
	}
}
