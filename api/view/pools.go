package view

import (
	"slices"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/jobspec"
	"starling/schedule/entitle"
	"starling/schedule/entitle/explanation"
	"starling/terms"
	"starling/terms/pool"
)

// partsMax bounds the siblings that are told of a pool.
const partsMax = 1000

// Pools is what is told of pools, by their numbers.
type Pools struct {
	state *cluster.State
	*explanation.Pools
	jobs []uint32
	sees func(terms.PoolPath) bool
}

// PoolsOf returns what is told of the pools of a value to who sees some of them.
func PoolsOf(state *cluster.State, sees func(terms.PoolPath) bool) *Pools {
	return &Pools{state, explanation.Of(state).For(sees), jobsBelow(state), sees}
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

// Pool says how a pool stands.
func (b *Pools) Pool(number int) *starlingv1.Pool {
	m := &starlingv1.Pool{Spec: wire.Pool(&b.state.Pools()[number]), Leaf: b.Leaf(number), Jobs: b.jobs[number]}
	specs := b.state.Account(number).Specs
	m.Specs, m.SpecBytes = specs.Count, specs.Bytes
	for k := range terms.AmountCount {
		u := b.Use(number, k)
		m.Uses = append(m.Uses, &starlingv1.PoolUse{
			Kind: k.String(), Allocated: u.Held, Demand: u.Asked, Entitlement: u.Entitled, Borrowed: u.Borrowed, Lent: u.Lent,
			SlackAllocated: u.SlackHeld, SlackDemand: u.SlackAsked, SlackEntitlement: u.SlackEntitled,
		})
	}
	return m
}

// Explanation says how the entitlement of a pool to one kind came about.
func (b *Pools) Explanation(number int, k terms.Kind) *starlingv1.PoolExplanation {
	m := &starlingv1.PoolExplanation{Kind: k.String(), Divided: b.Divided(number, k), Sentences: b.Sentences(number, k)}
	siblings := slices.DeleteFunc(b.Siblings(number), func(i int) bool { return !b.sees(b.state.Pools()[i].Path) })
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

// PoolChange returns what becomes of a pool, nil if nothing does.
func PoolChange(before, after pool.Tree, path terms.PoolPath) *starlingv1.PoolChange {
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

// EntitlementChanges lists whose entitlements differ between two values, in the order of both trees, to who sees some
// of them.
func EntitlementChanges(before, after *cluster.State,
	sees func(terms.PoolPath) bool) []*starlingv1.EntitlementChange {
	old, now := entitle.Entitlements(entitle.Of(before)), entitle.Entitlements(entitle.Of(after))
	both := pool.New(append(pathsOf(before), pathsOf(after)...))
	var changes []*starlingv1.EntitlementChange
	for i := range both {
		path := both[i].Path
		if i > 0 && both[i-1].Path == path || !sees(path) {
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
