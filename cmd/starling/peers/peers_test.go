package peers

import (
	"testing"

	starlingv1 "starling/api/v1"
)

func TestAmounts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{cores(2000), "2"}, {cores(1500), "1.5"}, {cores(25), "0.025"}, {cores(0), "0"}, {cores(10000), "10"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestDevices(t *testing.T) {
	for _, c := range []struct {
		devices []*starlingv1.Device
		want    string
	}{
		{nil, "-"},
		{[]*starlingv1.Device{{Kind: "gpu", Count: 2, Model: "a100"}, {Kind: "peers", Count: 4}}, "gpu=2 peers=4"},
	} {
		if got := devices(&starlingv1.Peer{Devices: c.devices}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestKept(t *testing.T) {
	for _, c := range []struct {
		kept *starlingv1.Resources
		want string
	}{{nil, "-"}, {&starlingv1.Resources{CpuMillicores: 2900}, "2.9 cpu"},
		{&starlingv1.Resources{CpuMillicores: 1000, MemoryBytes: 1 << 30}, "1 cpu, 1GiB memory"}} {
		if got := kept(&starlingv1.Peer{Kept: c.kept}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
