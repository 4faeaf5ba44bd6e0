package conformance

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"starling/cluster"
	"starling/schedule/entitle"
)

// sumCase says what inner pools ask for, or hold, when leaves do. The tree follows from the names: r11 is below r1.
type sumCase struct {
	told           `yaml:",inline"`
	LeafDemand     map[string]quantities `yaml:"leaf_demand"`
	LeafAllocation map[string]quantities `yaml:"leaf_allocation"`
	sumExpectation `yaml:",inline"`
	Then           struct {
		// Step is "r11 demand removed" or "r11 allocation removed".
		Step           string
		sumExpectation `yaml:",inline"`
	}
}

type sumExpectation struct {
	Demand     map[string]quantities `yaml:"expect_aggregated_demand"`
	Allocation map[string]quantities `yaml:"expect_aggregated_allocation"`
}

func (c *sumCase) run(t *testing.T) {
	for _, sum := range []struct {
		what                 string
		leaves, first, after map[string]quantities
	}{
		{"demand", c.LeafDemand, c.Demand, c.Then.Demand},
		{"allocation", c.LeafAllocation, c.Allocation, c.Then.Allocation},
	} {
		checkSums(t, sum.what, sum.leaves, sum.first)
		leaf, removed := strings.CutSuffix(c.Then.Step, " "+sum.what+" removed")
		if !removed && len(sum.after) > 0 {
			t.Errorf("no rule for step %q", c.Then.Step)
		}
		if removed {
			rest := maps.Clone(sum.leaves)
			delete(rest, leaf)
			checkSums(t, sum.what, rest, sum.after)
		}
	}
}

// checkSums compares the sums in the tree that the names tell of. What is held and what is asked for add up alike.
func checkSums(t *testing.T, what string, leaves, want map[string]quantities) {
	in, numbers, err := treeOfNames(leaves, want).input()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[int]cluster.Amounts{}
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
			got[name][cluster.Kind(k).String()] = quantityOf(amount)
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
		for k := range cluster.AmountCount {
			p.Resources[k.String()] = quotaPicture{Limit: 1e9}
		}
		c.Pools = append(c.Pools, p)
		if amounts, ok := leaves[name]; ok {
			c.Load[name] = loadPicture{Demand: amounts}
		}
	}
	return c
}
