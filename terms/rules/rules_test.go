package rules

import (
	"slices"
	"testing"
)

func TestTables(t *testing.T) {
	table := []Row[string]{{First, "a"}, {3, "c"}, {2, "b"}, {3, "d"}}
	for _, c := range []struct {
		in      Number
		known   []string
		current string
	}{
		{1, []string{"a"}, "a"},
		{2, []string{"a", "b"}, "b"},
		{3, []string{"a", "c", "b", "d"}, "d"},
		{4, []string{"a", "c", "b", "d"}, "d"},
	} {
		if got := Known(c.in, table); !slices.Equal(got, c.known) {
			t.Errorf("under %d there are %q, want %q", c.in, got, c.known)
		}
		if got := Current(c.in, table); got != c.current {
			t.Errorf("under %d %q counts, want %q", c.in, got, c.current)
		}
	}
}
