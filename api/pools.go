package api

import (
	"context"
	"fmt"
	"strings"

	"starling/api/caution"
	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/command"
	"starling/terms"
	"starling/terms/pool"
)

// ListPools lists one page of the pools that the caller sees, in the order of their tree; what is about all of them is
// for who sees all. The token of a page is its first path.
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
	}
	sees := s.seer(ctx)
	if sees("") {
		answer.Warnings = wire.Problems(tree.Overcommitted(&capacity))
	} else {
		capacity = terms.Amounts{}
	}
	for k, amount := range capacity {
		answer.Capacity = append(answer.Capacity, &starlingv1.Amount{Kind: terms.Kind(k).String(), Amount: amount})
	}
	b := view.PoolsOf(state, sees)
	first, _ := tree.Find(terms.PoolPath(request.GetPageToken()))
	for i := range tree[first:] {
		path := string(tree[first+i].Path)
		if !strings.HasPrefix(path, request.GetPrefix()) || !sees(tree[first+i].Path) {
			continue
		}
		if len(answer.Pools) == size {
			answer.NextPageToken = path
			break
		}
		answer.Pools = append(answer.Pools, b.Pool(first+i))
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
	b := view.PoolsOf(state, s.seer(ctx))
	answer := &starlingv1.PoolStatusResponse{Index: uint64(state.Index), Time: timestamp(state.Time), Pool: b.Pool(number)}
	parent, _ := pool.Split(path)
	answer.Parent = string(parent)
	for k := range terms.AmountCount {
		if b.Matters(number, k) {
			answer.Explanations = append(answer.Explanations, b.Explanation(number, k))
		}
	}
	return answer, nil
}

// poolsRequest is a request to change the tree, or to tell what that would do.
type poolsRequest interface {
	GetAgainst() uint32
	GetPools() []*starlingv1.PoolSpec
	GetGone() []string
}

// ChangePools changes the tree of resource pools. What is wrong is told before anything is written, all at once; the
// fold checks it again.
func (s *server) ChangePools(ctx context.Context,
	request *starlingv1.ChangePoolsRequest) (*starlingv1.ChangePoolsResponse, error) {
	change, problems, err := poolsChange(request)
	if err != nil {
		return nil, err
	}
	if problems = append(problems, requestIDProblems(request.GetRequestId())...); len(problems) > 0 {
		return nil, invalid("the pools", problems...)
	}
	if err = s.rightful(ctx, s.signed(ctx, change)); err != nil {
		return nil, err
	}
	state, err := s.stateAt(ctx, 0)
	if err != nil {
		return nil, err
	}
	change.RequestID = request.GetRequestId()
	key := command.RequestKey(state.Rules, s.signed(ctx, change), change.RequestID)
	if _, repeated := state.RequestOf(key); !repeated || key == "" {
		if _, err := changedTree(state, change); err != nil {
			return nil, err
		}
	}
	receipt, err := s.submit(ctx, change)
	return &starlingv1.ChangePoolsResponse{Index: uint64(receipt.Index)}, err
}

// poolsChange returns the command that a request asks for, and what is wrong with it whatever the tree.
func poolsChange(request poolsRequest) (*command.ChangePools, []terms.Problem, error) {
	put, problems := wire.PoolsOf(request.GetPools())
	change := &command.ChangePools{Against: request.GetAgainst(), Pools: put}
	for _, path := range request.GetGone() {
		change.Gone = append(change.Gone, terms.PoolPath(path))
	}
	if len(put)+len(change.Gone) == 0 {
		problems = append(problems, terms.Problem{Path: "pools", Reason: "must name what is to be changed"})
	}
	if size := command.Size(change); size > command.EntryBytesMax/2 || len(put) > command.PoolsMax ||
		len(change.Gone) > command.PoolsMax {
		return nil, nil, &wire.Failure{Code: wire.Exhausted, Reason: fmt.Sprintf(
			"a change of %d pools takes %d bytes, at most %d fit into an entry: make it in several steps",
			len(put)+len(change.Gone),
			size, command.EntryBytesMax/2)}
	}
	return change, problems, nil
}

// changedTree returns the tree after a change, or all that is wrong with it.
func changedTree(state *cluster.State, c *command.ChangePools) (pool.Tree, error) {
	if present := state.PoolsVersion(); c.Against != 0 && c.Against != present {
		return nil, &wire.Failure{Code: wire.Conflict, Index: state.Index, Decided: true, Reason: fmt.Sprintf(
			"the pools have version %d by now: they were changed against version %d", present, c.Against)}
	}
	var problems []terms.Problem
	for _, path := range c.Gone {
		if _, found := state.PoolNumber(path); !found {
			problems = append(problems, terms.Problem{Path: string(path), Reason: "does not exist"})
		}
	}
	changed := pool.Tree(state.Pools()).Change(c.Pools, c.Gone)
	problems = append(problems, changed.Problems(state.BusyPools())...)
	if problems = append(problems, caution.Pools(state, changed)...); len(problems) > 0 {
		return nil, invalid("the pools", problems...)
	}
	return changed, nil
}

// PlanPools tells what would come of a change of the tree: any to who sees all pools, and one's own to others.
func (s *server) PlanPools(ctx context.Context,
	request *starlingv1.PlanPoolsRequest) (*starlingv1.PlanPoolsResponse, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	change, problems, err := poolsChange(request)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, invalid("the pools", problems...)
	}
	sees := s.seer(ctx)
	if !sees("") {
		if err = s.rightful(ctx, s.signed(ctx, change)); err != nil {
			return nil, err
		}
	}
	after, err := changedTree(state, change)
	if err != nil {
		return nil, err
	}
	capacity, before := state.Capacity(), pool.Tree(state.Pools())
	answer := &starlingv1.PlanPoolsResponse{Index: uint64(state.Index), Version: state.PoolsVersion()}
	if sees("") {
		answer.Warnings = wire.Problems(after.Overcommitted(&capacity))
	}
	all := pool.New(append(change.Pools, pathsOnly(change.Gone)...))
	for i := range all {
		if m := view.PoolChange(before, after, all[i].Path); m != nil {
			answer.Changes = append(answer.Changes, m)
		}
	}
	place, err := s.imagining.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer place.Done()
	imagined := state.Copy()
	imagined.SetPools(after)
	answer.Entitlements = view.EntitlementChanges(state, imagined, sees)
	return answer, nil
}

func pathsOnly(paths []terms.PoolPath) (specs []terms.Pool) {
	for _, path := range paths {
		specs = append(specs, terms.Pool{Path: path})
	}
	return specs
}
