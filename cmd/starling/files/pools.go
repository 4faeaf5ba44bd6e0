package files

import (
	"context"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/jobspec"
	"starling/terms"
	"starling/terms/pool"
)

// Pools reads and checks a pools file. What is wrong with it is told, a line each, and that nothing was done.
func Pools(c *console.Console, file, nothing string) (pool.Tree, error) {
	data, file, err := c.ReadFile(file, "pools file")
	if err != nil {
		return nil, err
	}
	tree, err := jobspec.ParsePools(file, data)
	return tree, told(c, err, file, nothing)
}

// PoolTree is the tree of pools as the cluster has it.
type PoolTree struct {
	Version uint32
	Tree    pool.Tree
}

// PresentPools asks for the tree of pools.
func PresentPools(ctx context.Context, peer *client.Client) (*PoolTree, error) {
	answer, err := peer.AllPools(ctx, "")
	if err != nil {
		return nil, err
	}
	t := &PoolTree{Version: answer.GetVersion()}
	for _, p := range answer.GetPools() {
		t.Tree = append(t.Tree, PoolSpec(p))
	}
	return t, nil
}

// Difference returns what must be put into the present tree and taken out of it to make it another.
func (t *PoolTree) Difference(tree pool.Tree) (put []terms.Pool, gone []terms.PoolPath) {
	for i := range tree {
		at, found := t.Tree.Find(tree[i].Path)
		if !found || len(jobspec.DiffPools(&t.Tree[at], &tree[i])) > 0 {
			put = append(put, tree[i])
		}
	}
	for i := range t.Tree {
		if _, stays := tree.Find(t.Tree[i].Path); !stays && t.Tree[i].Path != terms.DefaultPool {
			gone = append(gone, t.Tree[i].Path)
		}
	}
	return put, gone
}

// PoolSpec returns the pool of an answer, whose peer is trusted to send none with problems.
func PoolSpec(p *starlingv1.Pool) terms.Pool {
	spec, _ := wire.PoolOf(p.GetSpec())
	return spec
}
