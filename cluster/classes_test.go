package cluster

import (
	"fmt"
	"testing"

	"starling/terms"
)

// TestClasses checks that nodes share a class only if their attributes and device kinds are equal.
func TestClasses(t *testing.T) {
	s := NewState()
	offers := []*terms.Offer{
		{},
		{Attributes: []terms.EnvVar{{Name: "a", Value: "b"}}},
		{Attributes: []terms.EnvVar{{Name: "ab", Value: ""}}},
		{Attributes: []terms.EnvVar{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}}},
		{Devices: []terms.DeviceOffer{{Kind: "gpu", Count: 1}}},
		{Devices: []terms.DeviceOffer{{Kind: "gpu", Model: "A100", Count: 1}}},
		{Attributes: []terms.EnvVar{{Name: "gpu", Value: ""}}},
		{Attributes: []terms.EnvVar{{Name: "a", Value: "b"}}, Devices: []terms.DeviceOffer{{Kind: "gpu", Count: 1}}},
	}
	for i, o := range offers {
		n := s.EnsureNode(terms.NodeName(fmt.Sprint("n", i))).Index
		s.SetOffer(n, o)
		if got := s.Node(n).Class; got != uint32(i) {
			t.Errorf("offer %d has class %d, want one of its own", i, got)
		}
	}
	s.SetOffer(0, &terms.Offer{Devices: []terms.DeviceOffer{{Kind: "gpu", Count: 8}}, Address: "elsewhere"})
	if got := s.Node(0).Class; got != 4 {
		t.Errorf("an offer that differs in counts and address has class %d, want 4", got)
	}
}
