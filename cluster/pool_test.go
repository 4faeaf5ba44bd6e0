package cluster

import "testing"

func TestPercent(t *testing.T) {
	cases := []struct {
		part         Percent
		amount, want int64
	}{
		{20, 100, 20}, {1, 2000, 20}, {33, 10, 3}, {0, 10, 0}, {100, BytesMax, BytesMax}, {50, BytesMax - 1, BytesMax/2 - 1},
		{NoPercent, 10, Unlimited},
	}
	for _, c := range cases {
		if got := c.part.of(c.amount); got != c.want {
			t.Errorf("%d %% of %d = %d, want %d", c.part, c.amount, got, c.want)
		}
	}
}
