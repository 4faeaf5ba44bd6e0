package conformance

import (
	"maps"
	"slices"
	"strings"

	"starling/schedule/entitle"
	"starling/terms"
)

// sumCase says what inner pools ask for, or hold, when leaves do: leaf_demand, expect_aggregated_demand and so on. The
// tree follows from the names: r11 is below r1.
type sumCase struct {
	told `yaml:",inline"`
	Sums map[string]map[string]quantities `yaml:",inline"`
	Then struct {
		// Step is "r11 demand removed".
		Step string
		Sums map[string]map[string]quantities `yaml:",inline"`
	}
}

const (
	leavesPrefix  = "leaf_"
	expectsPrefix = "expect_aggregated_"
)

func (c *sumCase) run(t *trial) {
	for _, key := range slices.Concat(sortedKeys(c.Sums), sortedKeys(c.Then.Sums)) {
		what := strings.TrimPrefix(strings.TrimPrefix(key, leavesPrefix), expectsPrefix)
		if _, ok := c.Sums[leavesPrefix+what]; !ok {
			t.Errorf("no rule for key %s", key)
		}
	}
	stepped := c.Then.Step == ""
	for _, key := range sortedKeys(c.Sums) {
		what, ok := strings.CutPrefix(key, leavesPrefix)
		if !ok {
			continue
		}
		checkSums(t, what, c.Sums[key], c.Sums[expectsPrefix+what])
		if leaf, removed := strings.CutSuffix(c.Then.Step, " "+what+" removed"); removed {
			stepped = true
			rest := maps.Clone(c.Sums[key])
			delete(rest, leaf)
			checkSums(t, what, rest, c.Then.Sums[expectsPrefix+what])
		}
	}
	if !stepped {
		t.Errorf("no rule for step %q", c.Then.Step)
	}
}

// checkSums compares the sums in the tree that the names tell of. What is held and what is asked for add up alike.
func checkSums(t *trial, what string, leaves, want map[string]quantities) {
	in, numbers, err := treeOfNames(leaves, want).input()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[int]terms.Amounts{}
	for i, trace := range entitle.Traces(in) {
		sums[i] = trace.Asked
		if in.Pools[i].Parent < 0 {
			root := sums[-1]
			for k := range root {
				root[k] += trace.Asked[k]
			}
			sums[-1] = root
		}
	}
	got := map[string]quantities{}
	for name, number := range numbers {
		got[name] = quantities{}
		for k, amount := range sums[number] {
			got[name][terms.Kind(k).String()] = quantityOf(amount)
		}
	}
	for _, line := range different(what, got, want, 0) {
		t.Error(line)
	}
}

// treeOfNames returns the pools that are named, without bounds: a name is below the longest other that it begins with.
func treeOfNames(leaves, want map[string]quantities) *entitlementCase {
	c := &entitlementCase{Load: map[string]loadPicture{}}
	names := slices.Compact(slices.Sorted(slices.Values(append(sortedKeys(leaves), sortedKeys(want)...))))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "root" })
	for _, name := range names {
		p := poolPicture{ID: name, Parent: "root", Resources: map[string]quotaPicture{}}
		for _, above := range names {
			if above != name && strings.HasPrefix(name, above) {
				p.Parent = above
			}
		}
		for k := range terms.AmountCount {
			p.Resources[k.String()] = quotaPicture{Limit: 1e9}
		}
		c.Pools = append(c.Pools, p)
		if amounts, ok := leaves[name]; ok {
			c.Load[name] = loadPicture{Demand: amounts}
		}
	}
	return c
}
