// Package pool is the tree of resource pools: its order, its rules, and what a change makes of it.
//
// A tree is checked whole, whatever changed. So a change is a copy of the tree with something put in or taken out, and
// one set of rules serves the commands, the file that holds a tree and the fold.
package pool

import (
	"slices"
	"strings"

	"starling/terms"
)

// Tree holds every pool but the root, ordered by path: a pool stands directly before all that is below it.
type Tree []terms.Pool

// Split returns the path of a pool's parent and its own name.
func Split(path terms.PoolPath) (parent terms.PoolPath, name string) {
	at := strings.LastIndexByte(string(path), '/')
	return path[:max(at, 0)], string(path[at+1:])
}

// Kind returns the kind with that name.
func Kind(name string) (k terms.Kind, found bool) {
	for k := range terms.AmountCount {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// SizeMax bounds the pools of a tree.
const SizeMax = 1 << 14

// Root is the number of the root as a parent.
const Root = -1

// New puts pools into the order of a tree.
func New(pools []terms.Pool) Tree {
	t := slices.Clone(pools)
	slices.SortStableFunc(t, func(a, b terms.Pool) int { return a.Path.Compare(b.Path) })
	return t
}

// Find returns the number of a pool, or where it would stand.
func (t Tree) Find(path terms.PoolPath) (int, bool) {
	return slices.BinarySearchFunc(t, path, func(s terms.Pool, path terms.PoolPath) int { return s.Path.Compare(path) })
}

// Parents returns the number of each pool's parent, Root for the pools at the top and for those whose parent is
// missing.
func (t Tree) Parents() []int {
	parents := make([]int, len(t))
	var above []int // the pools that lead to the present one
	for i := range t {
		parent, _ := Split(t[i].Path)
		for len(above) > 0 && t[above[len(above)-1]].Path != parent {
			above = above[:len(above)-1]
		}
		parents[i] = Root
		if len(above) > 0 {
			parents[i] = above[len(above)-1]
		}
		above = append(above, i)
	}
	return parents
}

// Leaf tells whether nothing is below a pool: only then it can hold jobs.
func (t Tree) Leaf(number int) bool {
	return number+1 == len(t) || !strings.HasPrefix(string(t[number+1].Path), string(t[number].Path)+"/")
}

// Change returns the tree with pools put in, in the places of those with the same paths, and others taken out. It
// checks nothing.
func (t Tree) Change(put []terms.Pool, gone []terms.PoolPath) Tree {
	changed, away := Tree(slices.Clone(put)), map[terms.PoolPath]bool{}
	for _, path := range gone {
		away[path] = true
	}
	for _, spec := range put {
		away[spec.Path] = true
	}
	for _, spec := range t {
		if !away[spec.Path] {
			changed = append(changed, spec)
		}
	}
	return New(changed)
}
