package api

import (
	"context"
	"fmt"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/schedule/entitle/reckoning"
	"starling/terms"
	"starling/terms/pool"
)

// partsMax bounds the siblings that are told of a pool.
const partsMax = 1000

// ListPools lists one page of pools in the order of their tree. The token of a page is its first path.
func (s *server) ListPools(ctx context.Context,
	request *starlingv1.ListPoolsRequest) (*starlingv1.ListPoolsResponse, error) {
	size, err := pageSize(request.GetPageSize(), pageSizeDefault)
	if err != nil {
		return nil, err
	}
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	capacity := state.Capacity()
	tree := pool.Tree(state.Pools())
	answer := &starlingv1.ListPoolsResponse{
		Index: uint64(state.Index), Time: timestamp(state.Time), Version: state.PoolsVersion(),
		Warnings: wire.Problems(tree.Overcommitted(&capacity)),
	}
	for k, amount := range capacity {
		answer.Capacity = append(answer.Capacity, &starlingv1.Amount{Kind: terms.Kind(k).String(), Amount: amount})
	}
	b := poolsBook{state, reckoning.Of(state), jobsBelow(state)}
	first, _ := tree.Find(terms.PoolPath(request.GetPageToken()))
	for i := range tree[first:] {
		path := string(tree[first+i].Path)
		if !strings.HasPrefix(path, request.GetPrefix()) {
			continue
		}
		if len(answer.Pools) == size {
			answer.NextPageToken = path
			break
		}
		answer.Pools = append(answer.Pools, b.pool(first+i))
	}
	return answer, nil
}

// PoolStatus tells how a pool stands, and how its entitlement came about.
func (s *server) PoolStatus(ctx context.Context,
	request *starlingv1.PoolStatusRequest) (*starlingv1.PoolStatusResponse, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	tree := pool.Tree(state.Pools())
	path := terms.PoolPath(request.GetPath())
	number, found := tree.Find(path)
	switch {
	case path == "":
		return nil, invalid("the request", terms.Problem{Path: "path", Reason: "must not be empty"})
	case !found:
		return nil, &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: fmt.Sprintf(
			"there is no pool %q: `starling pool ls` lists them", path)}
	}
	b := poolsBook{state, reckoning.Of(state), jobsBelow(state)}
	answer := &starlingv1.PoolStatusResponse{Index: uint64(state.Index), Time: timestamp(state.Time), Pool: b.pool(number)}
	parent, _ := pool.Split(path)
	answer.Parent = string(parent)
	for k := range terms.AmountCount {
		if b.Matters(number, k) {
			answer.Reckonings = append(answer.Reckonings, b.reckoning(number, k))
		}
	}
	return answer, nil
}

// poolsBook is what is told of pools.
type poolsBook struct {
	state *cluster.State
	*reckoning.Book
	jobs []uint32
}

// jobsBelow returns how many jobs each pool has, with those of the pools below it.
func jobsBelow(state *cluster.State) []uint32 {
	parents := pool.Tree(state.Pools()).Parents()
	jobs := make([]uint32, len(parents))
	for i := len(parents) - 1; i >= 0; i-- {
		jobs[i] += state.Account(i).Jobs
		if parents[i] >= 0 {
			jobs[parents[i]] += jobs[i]
		}
	}
	return jobs
}

func (b *poolsBook) pool(number int) *starlingv1.Pool {
	m := &starlingv1.Pool{Spec: wire.Pool(&b.state.Pools()[number]), Leaf: b.Leaf(number), Jobs: b.jobs[number]}
	for k := range terms.AmountCount {
		u := b.Use(number, k)
		m.Uses = append(m.Uses, &starlingv1.PoolUse{
			Kind: k.String(), Allocated: u.Held, Demand: u.Asked, Entitlement: u.Entitled, Borrowed: u.Borrowed, Lent: u.Lent,
			SlackAllocated: u.SlackHeld, SlackDemand: u.SlackAsked, SlackEntitlement: u.SlackEntitled,
		})
	}
	return m
}

func (b *poolsBook) reckoning(number int, k terms.Kind) *starlingv1.Reckoning {
	m := &starlingv1.Reckoning{Kind: k.String(), Divided: b.Divided(number, k), Sentences: b.Sentences(number, k)}
	siblings := b.Siblings(number)
	for _, i := range siblings[:min(len(siblings), partsMax)] {
		t, q := b.Trace(i), b.state.Pools()[i].Quotas[k]
		part := &starlingv1.Part{
			Path: string(b.state.Pools()[i].Path), Reservation: q.Reservation, Share: q.Share, Asked: t.Asked[k],
			Claim:    t.Claim[k],
			Reserved: t.Reserved[k], Shared: t.Shared[k], LeftOver: t.Left[k], Entitlement: t.Total[k], Short: t.Short[k],
		}
		if q.Limit != terms.Unlimited {
			part.Limit = &q.Limit
		}
		if t.Cut[k] != 0 {
			part.Cut = t.Cut[k].String()
		}
		m.Parts = append(m.Parts, part)
	}
	return m
}
