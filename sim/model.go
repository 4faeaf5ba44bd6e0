package sim

import (
	"starling/cluster"
	"starling/replica"
)

// model is a slow twin of the fold.
type model struct{}

func newModel() *model { return &model{} }

func (m *model) apply(*replica.Folded) {}

func (m *model) differences(*cluster.State) []string { return nil }
