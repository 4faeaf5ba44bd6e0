package api

import (
	"context"
	"fmt"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/command"
	"starling/jobspec"
	"starling/schedule/entitle"
	"starling/terms"
	"starling/terms/pool"
)

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
	state, err := s.stateAt(ctx, 0)
	if err != nil {
		return nil, err
	}
	change.RequestID = request.GetRequestId()
	if _, repeated := state.RequestOf(change.RequestID); !repeated || change.RequestID == "" {
		if _, err := changedTree(state, change); err != nil {
			return nil, err
		}
	}
	receipt, err := s.submit(ctx, change)
	if err != nil {
		return nil, err
	}
	return &starlingv1.ChangePoolsResponse{Index: uint64(receipt.Index)}, nil
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
	if problems = append(problems, changed.Problems(state.BusyPools())...); len(problems) > 0 {
		return nil, invalid("the pools", problems...)
	}
	return changed, nil
}

// PlanPools tells what would come of a change of the tree.
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
	after, err := changedTree(state, change)
	if err != nil {
		return nil, err
	}
	capacity, before := state.Capacity(), pool.Tree(state.Pools())
	answer := &starlingv1.PlanPoolsResponse{
		Index: uint64(state.Index), Version: state.PoolsVersion(), Warnings: wire.Problems(after.Overcommitted(&capacity)),
	}
	all := pool.New(append(change.Pools, pathsOnly(change.Gone)...))
	for i := range all {
		if m := poolChange(before, after, all[i].Path); m != nil {
			answer.Changes = append(answer.Changes, m)
		}
	}
	done, err := s.imagine(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	imagined := state.Copy()
	imagined.SetPools(after)
	answer.Entitlements = entitlementChanges(state, imagined)
	return answer, nil
}

func pathsOnly(paths []terms.PoolPath) (specs []terms.Pool) {
	for _, path := range paths {
		specs = append(specs, terms.Pool{Path: path})
	}
	return specs
}

// poolChange returns what becomes of a pool, nil if nothing does.
func poolChange(before, after pool.Tree, path terms.PoolPath) *starlingv1.PoolChange {
	from, old := before.Find(path)
	to, kept := after.Find(path)
	m := &starlingv1.PoolChange{Path: string(path)}
	usual := terms.NewPool(path)
	var changes []jobspec.Change
	switch {
	case !kept:
		m.What = "deleted"
		return m
	case !old:
		m.What, changes = "created", jobspec.DiffPools(&usual, &after[to])
	default:
		m.What, changes = "changed", jobspec.DiffPools(&before[from], &after[to])
		if len(changes) == 0 {
			return nil
		}
	}
	for _, c := range changes {
		m.Changes = append(m.Changes, &starlingv1.Change{Path: c.Path, Old: c.Old, New: c.New})
	}
	return m
}

// entitlementChanges lists whose entitlements differ between two values, in the order of both trees.
func entitlementChanges(before, after *cluster.State) []*starlingv1.EntitlementChange {
	old, now := entitle.Entitlements(entitle.Of(before)), entitle.Entitlements(entitle.Of(after))
	both := pool.New(append(pathsOf(before), pathsOf(after)...))
	var changes []*starlingv1.EntitlementChange
	for i := range both {
		path := both[i].Path
		if i > 0 && both[i-1].Path == path {
			continue
		}
		var a, b terms.Amounts
		if at, found := before.PoolNumber(path); found {
			a = old[at].Total
		}
		if at, found := after.PoolNumber(path); found {
			b = now[at].Total
		}
		for k := range a {
			if a[k] != b[k] {
				changes = append(changes, &starlingv1.EntitlementChange{
					Path: string(path), Kind: terms.Kind(k).String(), Before: a[k], After: b[k],
				})
			}
		}
	}
	return changes
}

func pathsOf(state *cluster.State) (specs []terms.Pool) {
	for _, spec := range state.Pools() {
		specs = append(specs, terms.Pool{Path: spec.Path})
	}
	return specs
}
