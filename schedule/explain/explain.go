// Package explain answers "why is this not running?" from the value alone.
package explain

import "starling/cluster"

// Finding is one reason why instances of a task do not run yet. All reasons that hold are found, not only the first.
type Finding struct {
	Task cluster.TaskName
	// Instances is how many instances it keeps from running, Slot the lowest of them.
	Instances uint32
	Slot      uint32
	// Reason is one sentence; Details are lines that prove it: counts of nodes per obstacle, the nearest misses.
	Reason  string
	Details []string
	// Since is the time from which on it holds, 0 if not known.
	Since cluster.Time
	// Until is the time at which it ends by itself, 0 if it does not.
	Until cluster.Time
}
