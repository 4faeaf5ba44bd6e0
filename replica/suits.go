package replica

import (
	"starling/cluster/facts"
	"starling/schedule/place"
)

// suits tells whether a node satisfies the rules of the newest version of a task, so that an instance of it may stay
// there.
func (f *fold) suits(key facts.TaskKey, n facts.NodeIndex) bool {
	f.s.Visit(1)
	return place.Suits(f.s, key, n)
}
