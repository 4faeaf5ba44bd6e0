package cluster

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestRestartDelay(t *testing.T) {
	doubling := Restart{DelayMillis: 1000, DelayMaxMillis: 60_000}
	cases := []struct {
		restart  Restart
		failures uint32
		want     int64
	}{
		{doubling, 1, 1000},
		{doubling, 2, 2000},
		{doubling, 6, 32_000},
		{doubling, 7, 60_000},
		{doubling, 1 << 31, 60_000},
		{Restart{}, 1, 0},
		{Restart{}, 1000, 0},
		{Restart{DelayMillis: 5, DelayMaxMillis: 5}, 9, 5},
		{Restart{DelayMillis: 7, DelayMaxMillis: 20}, 3, 20},
		{Restart{DelayMillis: DelayMillisMax, DelayMaxMillis: DelayMillisMax}, 1<<32 - 1, DelayMillisMax},
	}
	for _, c := range cases {
		if got := c.restart.Delay(c.failures); got != c.want {
			t.Errorf("%+v after %d failures: %d ms, want %d", c.restart, c.failures, got, c.want)
		}
	}
}

func TestOfferProblem(t *testing.T) {
	sound := func() *Offer {
		return &Offer{
			Capacity: Resources{4000, 1 << 30, 1 << 40}, Attributes: []EnvVar{{"arch", "arm64"}, {"zone", "b"}},
			Devices: []DeviceOffer{{"fpga", "", 1}, {"gpu", "A100", 2}}, PortFirst: 8000, PortLast: 8000,
		}
	}
	cases := []struct {
		want  string
		spoil func(*Offer)
	}{
		{"", func(*Offer) {}},
		{"", func(o *Offer) { *o = Offer{} }},
		{"cpu must be 0 to 2^60", func(o *Offer) { o.Capacity[CPU] = -1 }},
		{"disk must be 0 to 2^60", func(o *Offer) { o.Capacity[Disk] = BytesMax + 1 }},
		{"attributes must be named and ordered by name, each name once", func(o *Offer) { o.Attributes[0].Name = "" }},
		{"attributes must be named and ordered by name, each name once", func(o *Offer) { o.Attributes[0].Name = "zone" }},
		{"must have at most 256 attributes, has 257", func(o *Offer) { o.Attributes = make([]EnvVar, 257) }},
		{`attribute "zone" must have at most 1024 bytes with its value`, func(o *Offer) { o.Attributes[1].Value = strings.Repeat("x", 1021) }},
		{`attribute "zone" must be UTF-8 without zero bytes, and so must its value`, func(o *Offer) { o.Attributes[1].Value = "a\x00" }},
		{`attribute "zone" must be UTF-8 without zero bytes, and so must its value`, func(o *Offer) { o.Attributes[1].Value = "\xff" }},
		{"devices must be ordered by kind, each kind once, at most 65536 of each", func(o *Offer) { o.Devices[1].Kind = "fpga" }},
		{"devices must be ordered by kind, each kind once, at most 65536 of each", func(o *Offer) { o.Devices[0].Count = 1<<16 + 1 }},
		{"devices must be ordered by kind, each kind once, at most 65536 of each", func(o *Offer) { o.Devices[0].Kind = "a b" }},
		{`the model of gpu must be of letters, digits, "-" and "_" and begin with a letter or digit; ' ' is not allowed at position 2`, func(o *Offer) { o.Devices[1].Model = "A 100" }},
		{"the first port must be above 0 and not above the last", func(o *Offer) { o.PortLast = 7999 }},
		{"the first port must be above 0 and not above the last", func(o *Offer) { o.PortFirst = 0 }},
	}
	for i, c := range cases {
		o := sound()
		c.spoil(o)
		if got := o.Problem(); got != c.want {
			t.Errorf("case %d: Problem() = %q, want %q", i, got, c.want)
		}
	}
}

// TestClasses checks that nodes share a class only if their attributes and device kinds are equal.
func TestClasses(t *testing.T) {
	s := NewState()
	offers := []*Offer{
		{},
		{Attributes: []EnvVar{{"a", "b"}}},
		{Attributes: []EnvVar{{"ab", ""}}},
		{Attributes: []EnvVar{{"a", "b"}, {"c", "d"}}},
		{Devices: []DeviceOffer{{"gpu", "", 1}}},
		{Devices: []DeviceOffer{{"gpu", "A100", 1}}},
		{Attributes: []EnvVar{{"gpu", ""}}},
		{Attributes: []EnvVar{{"a", "b"}}, Devices: []DeviceOffer{{"gpu", "", 1}}},
	}
	for i, o := range offers {
		n := s.EnsureNode(NodeName(randomName(rand.New(rand.NewPCG(uint64(i), 0)), true))).Index
		s.SetOffer(n, o)
		if got := s.Node(n).Class; got != uint32(i) {
			t.Errorf("offer %d has class %d, want one of its own", i, got)
		}
	}
	s.SetOffer(0, &Offer{Devices: []DeviceOffer{{"gpu", "", 8}}, Address: "elsewhere"})
	if got := s.Node(0).Class; got != 4 {
		t.Errorf("an offer that differs in counts and address has class %d, want 4", got)
	}
}

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
