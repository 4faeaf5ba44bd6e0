package topology

import "testing"

// racks are the racks of nodes 0 to 3.
func racks(n int) string { return []string{"a", "a", "b", ""}[n] }

func rackOf(n int) func(string) string { return func(string) string { return racks(n) } }

func TestCounts(t *testing.T) {
	c := New[int]()
	c.Add(0, 2, rackOf(0))
	c.Add(2, 1, rackOf(2))
	c.Divide("rack", racks)
	kept := c
	c = c.Copy()
	c.Add(1, 3, rackOf(1))
	c.Add(0, -2, rackOf(0))
	c.Add(3, 1, rackOf(3))
	for _, want := range []struct {
		name  string
		got   uint32
		count uint32
	}{
		{"node 0", c.On(0), 0}, {"node 1", c.On(1), 3}, {"rack a", c.Within("rack", "a"), 3},
		{"rack b", c.Within("rack", "b"), 1},
		{"no rack", c.Within("rack", ""), 1}, {"rack c", c.Within("rack", "c"), 0},
		{"node 0 as it was", kept.On(0), 2}, {"rack a as it was", kept.Within("rack", "a"), 2},
		{"no rack as it was", kept.Within("rack", ""), 0},
	} {
		if want.got != want.count {
			t.Errorf("%s: got %d, want %d", want.name, want.got, want.count)
		}
	}
	if !c.Divided("rack") || c.Divided("zone") {
		t.Errorf("divided by rack %v, by zone %v; want true and false", c.Divided("rack"), c.Divided("zone"))
	}
}

// TestMove gives a node another rack, instance by instance.
func TestMove(t *testing.T) {
	c := New[int]()
	c.Add(0, 2, rackOf(0))
	c.Move(rackOf(0), rackOf(2))
	c.Divide("rack", racks)
	for range 2 {
		c.Move(rackOf(0), rackOf(2))
	}
	c.Move(rackOf(0), rackOf(1)) // is in the same rack
	if c.Within("rack", "a") != 0 || c.Within("rack", "b") != 2 {
		t.Errorf("rack a has %d and rack b %d, want 0 and 2", c.Within("rack", "a"), c.Within("rack", "b"))
	}
	c.Add(0, -2, rackOf(2))
	if !c.Empty() || !c.Same(New[int](), func(n int, _ string) string { return racks(n) }) {
		t.Error("something is left of nothing")
	}
}
