package cluster

import (
	"fmt"
	"testing"
)

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
		n := s.EnsureNode(NodeName(fmt.Sprint("n", i))).Index
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
