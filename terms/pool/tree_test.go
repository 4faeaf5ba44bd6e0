package pool

import (
	"fmt"
	"strings"
	"testing"

	"starling/cluster"
	"starling/terms"
)

// treeOf returns a tree of pools that each reserve, and may use at most, so much memory, given as "path 10/20".
func treeOf(lines ...string) Tree {
	pools := Tree(cluster.NewState().Pools())
	for _, line := range lines {
		pools = append(pools, poolOf(line))
	}
	return New(pools)
}

func poolOf(line string) terms.Pool {
	path, quota, found := strings.Cut(line, " ")
	spec := terms.NewPool(terms.PoolPath(path))
	if found {
		q := &spec.Quotas[terms.Memory]
		if _, err := fmt.Sscanf(quota, "%d/%d", &q.Reservation, &q.Limit); err != nil {
			panic(err)
		}
	}
	return spec
}

func text(problems []terms.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Path+": "+p.Reason)
	}
	return strings.Join(all, "; ")
}

func TestProblems(t *testing.T) {
	cases := []struct {
		name  string
		pools []string
		busy  Busy
		want  string
	}{
		{"only the default", nil, nil, ""},
		{"a tree", []string{"a 100/200", "a-b", "a/x 40/100", "a/y 60/200", "a/y/z 60/60", "b/x"}, nil,
			"b/x: its parent b does not exist: create that first"},
		{"a sum that is equal", []string{"a 100/200", "a/x 40/100", "a/y 60/200"}, nil, ""},
		{"a sum that is not", []string{"a 100/200", "a/x 50/100", "a/y 51/200"}, nil,
			"a.memory.reservation: is 100B, but the pools below it reserve 101B together (a/x 50B, a/y 51B): raise it, or lower theirs"},
		{"a limit above the parent's", []string{"a 100/200", "a/x 50/201"}, nil,
			"a/x.memory.limit: is 201B, but the limit of a is 200B"},
		{"no limit below one", []string{"a 100/200", "a/x"}, nil, ""},
		{"a limit below the reservation", []string{"a 50/10"}, nil,
			"a.memory.limit: must be at least the reservation, 50B, is 10B"},
		{"less than nothing", []string{"a -5/10"}, nil, "a.memory.reservation: must be 0 to 2^60, is -5"},
		{"more than anything", []string{"a 1152921504606846976/1152921504606846976", "b 1/1"}, nil,
			"root.memory.reservation: the pools at the top reserve more than 2^60 together"},
		{"a path that is none", []string{"a/"}, nil,
			`a/: name "" must not be empty; a/: its parent a does not exist: create that first`},
		{"the root", []string{"root"}, nil,
			`root: "root" is the whole tree, whose quota is what the cluster has: begin with the name of a pool below it`},
		{"below the default", []string{"default/a"}, nil,
			"default: is for jobs, and jobs live in pools with none below: take default/a away"},
		{"below jobs", []string{"a", "a/x"}, Busy{"a"},
			"a: is for jobs, and jobs live in pools with none below: take a/x away"},
		{"jobs in a leaf", []string{"a", "a/x"}, Busy{"a/x"}, ""},
		{"jobs nowhere", nil, Busy{"a"}, "a: must stay while it has jobs: stop them first"},
	}
	for _, c := range cases {
		if got := text(treeOf(c.pools...).Problems(c.busy)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	if got, want := text(Tree{}.Problems(nil)), "default: must be there, for the jobs that name no pool"; got != want {
		t.Errorf("an empty tree: got %s, want %s", got, want)
	}
	if got, want := text(treeOf("a", "a").Problems(nil)),
		"a: must stand once, and the pools in the order of their paths"; got != want {
		t.Errorf("a pool that stands twice: got %s, want %s", got, want)
	}
	if got, want := text(make(Tree, SizeMax+1).Problems(nil)),
		"root: must have at most 16384 pools, has 16385"; got != want {
		t.Errorf("many pools: got %s, want %s", got, want)
	}
}

func TestChanges(t *testing.T) {
	tree := treeOf("a 100/200", "a/x 50/100", "b")
	cases := []struct {
		what string
		put  string
		gone terms.PoolPath
		busy Busy
		want string
	}{
		{"create", "a/y 50/200", "", nil, "a a/x a/y b default"},
		{"create too much", "a/y 51/200", "", nil,
			"a.memory.reservation: is 100B, but the pools below it reserve 101B together (a/x 50B, a/y 51B): raise it, or lower theirs"},
		{"create below jobs", "b/x", "", Busy{"b"},
			"b: is for jobs, and jobs live in pools with none below: take b/x away"},
		{"update", "a/x 60/100", "", nil, "a a/x b default"},
		{"update below the sum", "a 40/200", "", nil,
			"a.memory.reservation: is 40B, but the pools below it reserve 50B together (a/x 50B): raise it, or lower theirs"},
		{"delete", "", "a/x", nil, "a b default"},
		{"delete what has others", "", "a", nil, "a/x: its parent a does not exist: create that first"},
		{"delete what has jobs", "", "b", Busy{"b"}, "b: must stay while it has jobs: stop them first"},
		{"delete the default", "", "default", nil, "default: must be there, for the jobs that name no pool"},
	}
	for _, c := range cases {
		var put []terms.Pool
		if c.put != "" {
			put = append(put, poolOf(c.put))
		}
		changed := tree.Change(put, []terms.PoolPath{c.gone})
		got := text(changed.Problems(c.busy))
		if got == "" {
			var paths []string
			for i := range changed {
				paths = append(paths, string(changed[i].Path))
			}
			got = strings.Join(paths, " ")
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
	if got := len(tree); got != 4 || tree[1].Quotas[terms.Memory].Reservation != 50 {
		t.Error("a change has changed the tree that it began with")
	}
}

func TestOvercommitted(t *testing.T) {
	tree := treeOf("a 100/200", "a/x 100/100", "b 50/200")
	for _, c := range []struct {
		capacity int64
		want     string
	}{
		{150, ""},
		{149, "root.memory.reservation: the pools at the top reserve 150B together (a 100B, b 50B), the cluster has 149B: each gets its part of that"},
	} {
		if got := text(tree.Overcommitted(&terms.Amounts{terms.Memory: c.capacity})); got != c.want {
			t.Errorf("with %d: got %s, want %s", c.capacity, got, c.want)
		}
	}
}
