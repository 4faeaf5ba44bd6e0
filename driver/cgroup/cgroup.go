// Package cgroup bounds what all processes of a task use together, as far as this machine lets us.
//
// Linux has control groups in two versions; version 1 is used where the controllers are mounted the old way. Groups
// are made below the group that this process is in, so whoever bounds the peer bounds its tasks too. Nothing is
// claimed that is not so: [Find] tries what can be enforced, says in a line each what cannot, and once a [Place]
// enforces a limit, failing to set it is an error.
package cgroup

import (
	"fmt"
	"maps"
	"slices"
)

// leaf is the group into which version 2 makes the peer move: a group with processes of its own cannot have limited
// groups below it. A service manager may put the peer there from the start.
const leaf = "peer"

// Place is where groups are made. It is a value that can be stored: who finds it later can end and delete the groups.
type Place struct {
	// Version of control groups; 0 when there are none to use.
	Version int
	// Paths are the groups that hold the tasks' groups, from the root of their hierarchy, by the controller that
	// enforces a limit there, or counts what is used.
	Paths map[string]string
	// Unified is the one group of version 2, which is there also where no limit is enforced.
	Unified string
	// Beside are the folders of the other hierarchies of version 1 in which a container engine makes groups of the same
	// names.
	Beside []string
}

// The controllers that are used. Of version 1, that which bounds processor time need not be the one that counts it.
const (
	memory     = "memory"
	processor  = "cpu"
	processes  = "pids"
	accounting = "cpuacct"
)

// Counted tells what of a use is that of the whole group, also of its processes that have ended.
type Counted struct{ CPU, Memory, IO bool }

// controllers are what Find tries, and what a machine that lacks one does not limit.
func controllers() map[string]string {
	return map[string]string{memory: "memory", processor: "processor time", processes: "the number of processes"}
}

// EnforcesMemory tells whether the memory limit holds for the task as a whole.
func (p Place) EnforcesMemory() bool { return p.enforces(memory) }

func (p Place) enforces(controller string) bool {
	_, ok := p.Paths[controller]
	return ok
}

// warnings lists what is not enforced, with the reasons found for controllers.
func (p Place) warnings(reasons map[string]error) []string {
	var warnings []string
	words := controllers()
	for _, controller := range slices.Sorted(maps.Keys(words)) {
		if !p.enforces(controller) {
			warnings = append(warnings, fmt.Sprintf("limits of %s are not enforced: %v", words[controller], reasons[controller]))
		}
	}
	return warnings
}
