package series

import (
	"fmt"
	"testing"

	"starling/terms"
)

func TestGrid(t *testing.T) {
	for _, c := range []struct {
		from, to terms.Index
		most     int
		want     string
	}{
		{1, 5, 9, "[1 2 3 4]"},
		{1, 9, 4, "[4 8]"},
		{1, 10, 4, "[4 8]"},
		{3, 17, 4, "[4 8 12 16]"},
		{5, 5, 4, "[]"},
		{1, 9, 0, "[]"},
	} {
		if got := fmt.Sprint(grid(c.from, c.to, c.most)); got != c.want {
			t.Errorf("%d to %d, at most %d: got %s, want %s", c.from, c.to, c.most, got, c.want)
		}
	}
	for to := terms.Index(1); to < 5000; to += 7 {
		if got := grid(1, to, 199); len(got) > 199 || to > 400 && len(got) < 90 {
			t.Errorf("1 to %d: %d indexes", to, len(got))
		}
	}
}

// TestKeepIsBounded keeps moments of a thousand pools, as many as there is room for, and the latest of them.
func TestKeepIsBounded(t *testing.T) {
	c := New(nil, nil)
	for index := range terms.Index(200) {
		m := &moment{index: index, uses: map[terms.PoolPath]*[terms.AmountCount]use{}}
		for i := range 1000 {
			m.uses[terms.PoolPath(fmt.Sprint(i))] = nil
		}
		c.keep(m, 0)
	}
	if c.bytes > bytesMax || c.known(199) == nil || c.known(0) != nil || len(c.kept) != len(c.order) ||
		c.bytes != len(c.order)*c.known(199).size() {
		t.Errorf("%d moments with %d bytes are kept", len(c.order), c.bytes)
	}
}
