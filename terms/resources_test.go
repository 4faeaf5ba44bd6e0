package terms

import "testing"

func TestResources(t *testing.T) {
	free := Resources{1000, 10, 0}
	cases := []struct {
		need  Resources
		most  uint32
		times uint32
		fits  bool
	}{
		{Resources{}, 7, 7, true},
		{Resources{1000, 0, 0}, 7, 1, true},
		{Resources{100, 3, 0}, 7, 3, true},
		{Resources{100, 1, 0}, 7, 7, true},
		{Resources{100, 1, 0}, 100, 10, true},
		{Resources{1001, 0, 0}, 7, 0, false},
		{Resources{0, 0, 1}, 7, 0, false},
	}
	for _, c := range cases {
		if got := c.need.Times(&free, c.most); got != c.times {
			t.Errorf("%v fits %d times into %v, want %d", c.need, got, free, c.times)
		}
		if got := c.need.Fits(&free); got != c.fits {
			t.Errorf("%v fits into %v: %v, want %v", c.need, free, got, c.fits)
		}
	}
	owed := Resources{-5, 10, 0}
	if need := (Resources{1, 0, 0}); need.Fits(&owed) || need.Times(&owed, 9) != 0 {
		t.Errorf("%v fits into %v", need, owed)
	}
	if got := free.Plus(owed).Minus(owed); got != free {
		t.Errorf("plus and minus give %v, want %v", got, free)
	}
}
