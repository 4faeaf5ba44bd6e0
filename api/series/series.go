// Package series tells what pools used and might use, from moment to moment of the past. What it has computed of a
// moment it keeps for all who ask, within a bound: of each index the past is folded once.
package series

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/schedule/entitle/explanation"
	"starling/terms"
	"starling/terms/pool"
)

const (
	// pointsDefault and pointsMax bound the points of an answer.
	pointsDefault, pointsMax = 100, 200
	// bytesMax bounds what is kept of moments: 200 of them with 300 pools, or fewer with more.
	bytesMax = 8 << 20
	// foldMax is how long a question may fold.
	foldMax = 2 * time.Second
)

// Archive is the past of a peer. Errors with a method Refusal tell that it does not have what is asked for.
type Archive interface {
	// At returns the value at an index, as a copy of the caller's own.
	At(ctx context.Context, index terms.Index) (*cluster.State, error)
	// Oldest returns the oldest index from which all entries up to another are there.
	Oldest(ctx context.Context, to terms.Index) (terms.Index, error)
	// Generation is another one when what was read before may be of another journal.
	Generation() int64
}

// Charts answers for one peer. It is safe for concurrent use.
type Charts struct {
	state   func(ctx context.Context, least uint64) (*cluster.State, error)
	archive func() Archive
	// folding is held by the question that folds: what it has found, others need not.
	folding chan struct{}

	mutex sync.Mutex
	kept  map[terms.Index]*moment
	// order has the indexes of what is kept, the oldest answer first; bytes is how large all is.
	order []terms.Index
	bytes int
	// generation is that of the archive of which all of it is.
	generation int64
}

// New returns charts of the values of a peer; archive returns nil if it keeps none.
func New(state func(ctx context.Context, least uint64) (*cluster.State, error), archive func() Archive) *Charts {
	return &Charts{state: state, archive: archive, folding: make(chan struct{}, 1), kept: map[terms.Index]*moment{}}
}

// Series tells what a pool, or the whole cluster, used and might use.
func (c *Charts) Series(ctx context.Context, request *starlingv1.SeriesRequest) (*starlingv1.SeriesResponse, error) {
	kind, points, err := asked(request)
	if err != nil {
		return nil, err
	}
	now, err := c.state(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.SeriesResponse{Index: uint64(now.Index), Time: wire.Timestamp(now.Time)}
	answer.Oldest = answer.Index
	add := func(m *moment) {
		if point := m.point(terms.PoolPath(request.GetPool()), kind); point != nil {
			answer.Points = append(answer.Points, point)
		}
	}
	to := terms.Index(request.GetTo())
	if to == 0 || to > now.Index {
		to = now.Index
	}
	if archive := c.archive(); archive != nil {
		c.forgetOthers(archive.Generation())
		oldest, err := archive.Oldest(ctx, now.Index)
		if err != nil {
			return nil, fmt.Errorf("find the oldest index: %w", err)
		}
		answer.Oldest = uint64(oldest)
		from := max(terms.Index(request.GetFrom()), oldest, 1)
		if answer.More, err = c.walk(ctx, archive, grid(from, to, points-1), add); err != nil {
			return nil, err
		}
	}
	if to == now.Index && !answer.More {
		add(momentOf(now))
	}
	return answer, nil
}

// asked reads what kind is asked for, and how many points.
func asked(request *starlingv1.SeriesRequest) (kind terms.Kind, points int, err error) {
	for ; request.GetKind() != "" && kind < terms.AmountCount && kind.String() != request.GetKind(); kind++ {
	}
	points = int(request.GetPoints())
	if points == 0 {
		points = pointsDefault
	}
	switch {
	case kind == terms.AmountCount:
		err = &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf("kind must be of cpu, memory, disk, gpu, peers, is %q",
			request.GetKind())}
	case points > pointsMax:
		err = &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf("points must be at most %d, is %d", pointsMax, points)}
	}
	return kind, points, err
}

// grid returns at most so many indexes from one up to before another: the multiples of a power of two, so that whoever
// asks a little later asks for the same.
func grid(from, to terms.Index, most int) (all []terms.Index) {
	step := terms.Index(1)
	for most > 0 && to > from && (to-from)/step >= terms.Index(most) {
		step *= 2
	}
	for at := (from + step - 1) / step * step; at < to && len(all) < most; at += step {
		all = append(all, at)
	}
	return all
}

// walk visits what was at some indexes; more is true if the time was up before.
func (c *Charts) walk(ctx context.Context, archive Archive, all []terms.Index,
	visit func(*moment)) (more bool, err error) {
	within, cancel := context.WithTimeout(ctx, foldMax)
	defer cancel()
	for _, index := range all {
		m := c.known(index)
		if m == nil {
			if m, err = c.find(within, archive, index); err != nil {
				if ctx.Err() == nil && within.Err() != nil {
					return true, nil
				}
				return false, err
			}
		}
		if m != nil {
			visit(m)
		}
	}
	return false, nil
}

// find folds up to an index, nil if the archive does not have it.
func (c *Charts) find(ctx context.Context, archive Archive, index terms.Index) (*moment, error) {
	select {
	case c.folding <- struct{}{}:
		defer func() { <-c.folding }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m := c.known(index); m != nil {
		return m, nil
	}
	generation := archive.Generation()
	state, err := archive.At(ctx, index)
	var hole interface{ Refusal() facts.Refusal }
	if errors.As(err, &hole) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := momentOf(state)
	c.forgetOthers(archive.Generation())
	c.keep(m, generation)
	return m, nil
}

// forgetOthers forgets what is kept of another journal.
func (c *Charts) forgetOthers(generation int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.generation != generation {
		c.kept, c.order, c.bytes, c.generation = map[terms.Index]*moment{}, nil, 0, generation
	}
}

func (c *Charts) known(index terms.Index) *moment {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.kept[index]
}

// keep keeps a moment of a generation, and forgets others where that is too much.
func (c *Charts) keep(m *moment, generation int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if generation != c.generation {
		return
	}
	c.kept[m.index] = m
	c.order = append(c.order, m.index)
	c.bytes += m.size()
	for c.bytes > bytesMax && len(c.order) > 1 {
		c.bytes -= c.kept[c.order[0]].size()
		delete(c.kept, c.order[0])
		c.order = c.order[1:]
	}
}

// moment is what the pools used and might use at an index.
type moment struct {
	index    terms.Index
	time     terms.Time
	capacity terms.Amounts
	// whole is what all pools use together.
	whole [terms.AmountCount]use
	// uses are those of the pools, by their paths.
	uses map[terms.PoolPath]*[terms.AmountCount]use
}

// use is how much of a kind is held, asked for beside that, and entitled to.
type use struct{ held, asked, entitled int64 }

// poolBytes is about what a moment keeps of a pool, its path included.
const poolBytes = 24*int(terms.AmountCount) + 80

func (m *moment) size() int { return 512 + poolBytes*len(m.uses) }

func momentOf(s *cluster.State) *moment {
	m := &moment{index: s.Index, time: s.Time, capacity: s.Capacity(), uses: map[terms.PoolPath]*[terms.AmountCount]use{}}
	all, pools := explanation.Of(s), s.Pools()
	for i := range pools {
		uses := &[terms.AmountCount]use{}
		parent, _ := pool.Split(pools[i].Path)
		for k := range terms.AmountCount {
			u := all.Use(i, k)
			uses[k] = use{u.Held, u.Asked, u.Entitled}
			if parent == "" {
				m.whole[k].held += u.Held
				m.whole[k].asked += u.Asked
			}
		}
		m.uses[pools[i].Path] = uses
	}
	for k := range terms.AmountCount {
		m.whole[k].entitled = m.capacity[k]
	}
	return m
}

// point tells of a pool, or of all if the path is empty; nil if there was no such pool, or nothing yet.
func (m *moment) point(path terms.PoolPath, k terms.Kind) *starlingv1.SeriesPoint {
	if m.time == 0 {
		return nil
	}
	u := m.whole[k]
	if path != "" {
		uses := m.uses[path]
		if uses == nil {
			return nil
		}
		u = uses[k]
	}
	return &starlingv1.SeriesPoint{Index: uint64(m.index), Time: wire.Timestamp(m.time), Capacity: m.capacity[k],
		Allocated: u.held, Demand: u.asked, Entitlement: u.entitled}
}
