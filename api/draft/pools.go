package draft

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/jobspec"
	"starling/rights"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/pool"
)

// Tree is the tree of pools as the cluster has it.
type Tree struct {
	Version uint32
	Pools   pool.Tree
}

// Present asks for the tree of pools.
func Present(ctx context.Context, peer *client.Client) (*Tree, error) {
	answer, err := peer.AllPools(ctx, "")
	if err != nil {
		return nil, err
	}
	t := &Tree{Version: answer.GetVersion()}
	for _, p := range answer.GetPools() {
		t.Pools = append(t.Pools, PoolSpec(p))
	}
	return t, nil
}

// PoolSpec returns the pool of an answer, whose peer is trusted to send none with problems.
func PoolSpec(p *starlingv1.Pool) terms.Pool {
	spec, _ := wire.PoolOf(p.GetSpec())
	return spec
}

// Difference returns what must be put into the present tree and taken out of it to make it another.
func (t *Tree) Difference(tree pool.Tree) (put []terms.Pool, gone []terms.PoolPath) {
	for i := range tree {
		at, found := t.Pools.Find(tree[i].Path)
		if !found || len(jobspec.DiffPools(&t.Pools[at], &tree[i])) > 0 {
			put = append(put, tree[i])
		}
	}
	for i := range t.Pools {
		if _, stays := tree.Find(t.Pools[i].Path); !stays && t.Pools[i].Path != terms.DefaultPool {
			gone = append(gone, t.Pools[i].Path)
		}
	}
	return put, gone
}

// Deleted returns those of the pools that are not in a file which are deleted for that: all for who sees the whole
// tree, and for others those that they own the one above of.
func Deleted(ctx context.Context, peer *client.Client, gone []terms.PoolPath) ([]terms.PoolPath, error) {
	if len(gone) == 0 {
		return nil, nil
	}
	me, err := peer.WhoAmI(ctx)
	if err != nil || me.Role != "" {
		return gone, err
	}
	return slices.DeleteFunc(gone, func(path terms.PoolPath) bool {
		return !slices.ContainsFunc(me.Pools, func(own rights.InPool) bool {
			return own.Role == access.Admin.String() && strings.HasPrefix(string(path), string(own.Pool)+"/")
		})
	}), nil
}

// Keeps says that a pools file would change nothing.
func (t *Tree) Keeps() string {
	return fmt.Sprintf("nothing would change: the tree keeps version %d", t.Version)
}

// PoolsText tells people which pools are created, changed and deleted.
func PoolsText(plan *starlingv1.PlanPoolsResponse) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "pools: version %d to %d\n", plan.GetVersion(), plan.GetVersion()+1)
	for _, c := range plan.GetChanges() {
		fmt.Fprintf(b, "  %s  %s\n", c.GetWhat(), c.GetPath())
		for _, one := range c.GetChanges() {
			if c.GetWhat() == "created" || one.GetOld() == "" {
				fmt.Fprintf(b, "             %s: %s\n", one.GetPath(), one.GetNew())
				continue
			}
			now := one.GetNew()
			if now == "" {
				now = "-"
			}
			fmt.Fprintf(b, "             %s: %s -> %s\n", one.GetPath(), one.GetOld(), now)
		}
	}
	return b.String()
}

// entitlementsShownMax bounds the entitlements that are shown to people.
const entitlementsShownMax = 40

// EntitlementRows lists whose entitlements would be others at once, under headings; nil if those of no pool.
func EntitlementRows(plan *starlingv1.PlanPoolsResponse) (rows [][]string) {
	for i, e := range plan.GetEntitlements() {
		if i == 0 {
			rows = [][]string{{"POOL", "KIND", "ENTITLED NOW", "THEN"}}
		}
		if i == entitlementsShownMax {
			return append(rows, []string{fmt.Sprintf("and %d more: -o json shows all", len(plan.GetEntitlements())-i)})
		}
		k, _ := pool.Kind(e.GetKind())
		rows = append(rows, []string{e.GetPath(), e.GetKind(), k.Round(e.GetBefore()), k.Round(e.GetAfter())})
	}
	return rows
}
