package peers

import (
	"testing"

	starlingv1 "starling/api/v1"
	"starling/terms"
)

func TestPart(t *testing.T) {
	p := &starlingv1.Peer{Free: &starlingv1.Resources{CpuMillicores: 1025, MemoryBytes: 3 << 29},
		Capacity: &starlingv1.Resources{CpuMillicores: 10_000, MemoryBytes: 8 << 30}}
	for _, c := range []struct{ got, want string }{
		{part(p, terms.CPU), "1.025/10"}, {part(p, terms.Memory), "1.5Gi/8Gi"}, {part(p, terms.Disk), "0/0"},
		{part(&starlingv1.Peer{}, terms.CPU), "-"},
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
		{&starlingv1.Resources{CpuMillicores: 1000, MemoryBytes: 1 << 30}, "1 cpu, 1Gi memory"}} {
		if got := kept(&starlingv1.Peer{Kept: c.kept}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
