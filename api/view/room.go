package view

import (
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
)

// Room returns what of a node is free, and what nothing holds but is kept for work that waits, nil if that is
// nothing. More may be kept than has come free yet, and more held than is offered.
func Room(s *cluster.State, n facts.NodeIndex) (free, kept *starlingv1.Resources) {
	left, unheld, some := s.Free(n), s.Unheld(n), false
	for k := range left {
		left[k] = max(left[k], 0)
		unheld[k] = max(unheld[k]-left[k], 0)
		some = some || unheld[k] > 0
	}
	if some {
		kept = wire.Resources(unheld)
	}
	return wire.Resources(left), kept
}
