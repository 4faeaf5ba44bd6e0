package host

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"starling/api/wire"
	"starling/driver/device"
	"starling/peer/clock"
	"starling/terms"
	"starling/trust"
)

func TestOfferGPUs(t *testing.T) {
	small := device.GPU{Model: "NVIDIA H100 80GB HBM3", MemoryBytes: 80 << 30}
	large := device.GPU{Model: "NVIDIA H200", MemoryBytes: 141 << 30}
	unknown := device.GPU{Model: "Strange/1.0"}
	for _, test := range []struct {
		name   string
		has    []terms.DeviceOffer
		found  []device.GPU
		want   []terms.DeviceOffer
		memory string
	}{
		{"of one model", nil, []device.GPU{small, small},
			[]terms.DeviceOffer{{Kind: "gpu", Model: "H100-80GB-HBM3", Count: 2}}, "85899345920"},
		{"of two models", nil, []device.GPU{large, small}, []terms.DeviceOffer{{Kind: "gpu", Count: 2}}, "85899345920"},
		{"of unknown memory", []terms.DeviceOffer{{Kind: "peers", Count: 3}}, []device.GPU{unknown},
			[]terms.DeviceOffer{{Kind: "gpu", Model: "Strange-1-0", Count: 1}, {Kind: "peers", Count: 3}}, ""},
		{"none", nil, nil, nil, ""},
		{"told otherwise", []terms.DeviceOffer{{Kind: "gpu", Count: 0}}, []device.GPU{small},
			[]terms.DeviceOffer{{Kind: "gpu", Count: 0}}, ""},
	} {
		offer := terms.Offer{Devices: test.has}
		OfferGPUs(&offer, test.found)
		memory, _ := offer.Attribute("gpu_memory")
		if !slices.Equal(offer.Devices, test.want) || memory != test.memory {
			t.Errorf("%s: got %+v and %q, want %+v and %q", test.name, offer.Devices, memory, test.want, test.memory)
		}
	}
}

// TestClockThatNobodyConfirms goes on not to count while the machines that are remembered do not answer, whatever the
// value knows; with nobody remembered it counts.
func TestClockThatNobodyConfirms(t *testing.T) {
	for _, remembered := range [][]string{{"127.0.0.1:1"}, nil} {
		keys, err := trust.Create(filepath.Join(t.TempDir(), trust.Folder), "a")
		if err == nil && remembered != nil {
			err = keys.Remember(remembered)
		}
		if err != nil {
			t.Fatal(err)
		}
		h := &Host{asks: wire.Client(nil), wall: clock.NewWall(), config: Config{Keys: keys}}
		h.wall.Compare([]time.Duration{-24 * time.Hour})
		h.compareClocks(t.Context(), nil)
		if counts := h.wall.Ahead() == 0; counts != (remembered == nil) {
			t.Errorf("with %q remembered, the clock counts: %t", remembered, counts)
		}
	}
}
