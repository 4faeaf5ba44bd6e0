package terms

import (
	"strings"
	"testing"
)

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
		{`attribute "zone" must have at most 1024 bytes with its value`,
			func(o *Offer) { o.Attributes[1].Value = strings.Repeat("x", 1021) }},
		{`attribute "zone" must be UTF-8 without zero bytes, and so must its value`,
			func(o *Offer) { o.Attributes[1].Value = "a\x00" }},
		{`attribute "zone" must be UTF-8 without zero bytes, and so must its value`,
			func(o *Offer) { o.Attributes[1].Value = "\xff" }},
		{"devices of kind fpga are given twice: give each kind once", func(o *Offer) { o.Devices[1].Kind = "fpga" }},
		{"devices must be ordered by kind, at most 65536 of each", func(o *Offer) { o.Devices[1].Kind = "cpu" }},
		{"devices must be ordered by kind, at most 65536 of each", func(o *Offer) { o.Devices[0].Count = 1<<16 + 1 }},
		{`the kind of device "a b" must be of letters, digits, "-" and "_" and begin with a letter or digit; ' ' is not allowed at position 2`, func(o *Offer) { o.Devices[0].Kind = "a b" }},
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
