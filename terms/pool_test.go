package terms

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

func TestText(t *testing.T) {
	cases := []struct {
		kind   Kind
		amount int64
		want   string
	}{
		{CPU, 0, "0"}, {CPU, 2000, "2"}, {CPU, 1500, "1500m"}, {Memory, 0, "0"}, {Memory, 1536, "1536B"},
		{Memory, 3 << 29, "1536Mi"},
		{Disk, BytesMax, "1024Pi"}, {GPU, 2000, "2"}, {GPU, 1250, "1.25"}, {GPU, Unlimited, "unlimited"},
	}
	for _, c := range cases {
		if got := c.kind.Text(c.amount); got != c.want {
			t.Errorf("%d of %s is %s, want %s", c.amount, c.kind, got, c.want)
		}
	}
}

func TestRound(t *testing.T) {
	cases := []struct {
		kind   Kind
		amount int64
		want   string
	}{
		{CPU, 0, "0"}, {CPU, 2000, "2"}, {CPU, 1333, "1.333"}, {CPU, 500, "0.5"}, {Memory, 0, "0"}, {Memory, 1023, "1023B"},
		{Memory, 1536, "1.5Ki"}, {Memory, 7158278826, "6.6Gi"}, {Disk, 64 << 30, "64Gi"}, {Disk, BytesMax, "1024Pi"},
		{GPU, 250, "0.25"},
		{Memory, Unlimited, "unlimited"},
	}
	for _, c := range cases {
		if got := c.kind.Round(c.amount); got != c.want {
			t.Errorf("%d of %s is %s, want %s", c.amount, c.kind, got, c.want)
		}
	}
}
