package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	cgroups "github.com/containerd/cgroups/v3"

	"starling/driver"
)

// periodMicroseconds is the span over which processor time is bounded; the kernel's own default.
const periodMicroseconds = 100_000

// quotaMicrosecondsMin is the least that the kernel accepts for a period.
const quotaMicrosecondsMin = 1_000

// mountPoint is where the library expects control groups.
const mountPoint = "/sys/fs/cgroup"

// quota is the processor time per period for a limit.
func quota(millicores int64) int64 {
	return max(quotaMicrosecondsMin, millicores*periodMicroseconds/1000)
}

// Find makes a group of that name below this process's own, to hold the tasks' groups, and lists what cannot be
// enforced there.
func Find(name string) (Place, []string) {
	var p Place
	var reasons map[string]error
	switch cgroups.Mode() {
	case cgroups.Unified:
		p, reasons = findV2(name)
	case cgroups.Legacy, cgroups.Hybrid:
		p, reasons = findV1(name)
	default:
		missing := errors.New("no control groups are mounted at /sys/fs/cgroup")
		reasons = map[string]error{memory: missing, processor: missing, processes: missing}
	}
	warnings := p.warnings(reasons)
	if p.EnforcesMemory() && !p.boundsSwap() {
		warnings = append(warnings, "limits of memory do not bind what is swapped out: the kernel does not account for swap")
	}
	return p, warnings
}

// boundsSwap tells whether what is swapped out counts too.
func (p Place) boundsSwap() bool {
	file := filepath.Join(mountPoint, memory, "memory.memsw.limit_in_bytes")
	if p.Version == 2 {
		file = filepath.Join(mountPoint, p.Unified, "memory.swap.max")
	}
	_, err := os.Stat(file)
	return err == nil
}

// Remove deletes the groups that Find made, unless tasks are in them.
func (p Place) Remove() {
	for controller, group := range p.Paths {
		if p.Version == 1 {
			os.Remove(filepath.Join(mountPoint, controller, group))
		}
	}
	if p.Version == 2 {
		os.Remove(filepath.Join(mountPoint, p.Unified))
	}
}

// backend is one version's group.
type backend interface {
	start(start func(*syscall.SysProcAttr) error) error
	memoryAlarm() (*os.File, error)
	memoryKills() (int, error)
	kill() (int, error)
	remove() error
}

// Group holds the processes of one task.
type Group struct {
	name    string
	backend backend // nil where there are no control groups
}

// Make makes the group of a task and sets those of its limits that the place enforces.
func (p Place) Make(name string, limits driver.Limits) (*Group, error) {
	g := &Group{name: name}
	var err error
	switch p.Version {
	case 1:
		g.backend, err = p.makeV1(name, limits)
	case 2:
		g.backend, err = p.makeV2(name, limits)
	}
	if err != nil {
		return nil, fmt.Errorf("limit task by control group %s: %w", name, err)
	}
	return g, nil
}

// Open returns a group that was made earlier and may be gone.
func (p Place) Open(name string) *Group {
	g := &Group{name: name}
	switch p.Version {
	case 1:
		g.backend = p.openV1(name)
	case 2:
		g.backend = p.openV2(name)
	}
	return g
}

// Start has start fork the task's first process so that it is in the group from its first instruction. The calling
// goroutine must be locked to its thread.
func (g *Group) Start(start func(*syscall.SysProcAttr) error) error {
	if g.backend == nil {
		return start(&syscall.SysProcAttr{})
	}
	return g.backend.start(start)
}

// MemoryAlarm is a file that can be read from once the group was out of memory, where the kernel does not kill the
// whole group by itself; else nil.
func (g *Group) MemoryAlarm() (*os.File, error) {
	if g.backend == nil {
		return nil, nil
	}
	return g.backend.memoryAlarm()
}

// MemoryKills is how many of its processes the kernel killed for want of memory.
func (g *Group) MemoryKills() (int, error) {
	if g.backend == nil {
		return 0, nil
	}
	return g.backend.memoryKills()
}

// Kill sends SIGKILL to all processes in the group and returns how many there were. A killed process is in the group
// until it has ended.
func (g *Group) Kill() (int, error) {
	if g.backend == nil {
		return 0, nil
	}
	n, err := g.backend.kill()
	if err != nil {
		return n, fmt.Errorf("kill control group %s: %w", g.name, err)
	}
	return n, nil
}

// Delete removes the group, which must be empty. One that is gone is no error.
func (g *Group) Delete() error {
	if g.backend == nil {
		return nil
	}
	if err := g.backend.remove(); err != nil {
		return fmt.Errorf("delete control group %s: %w", g.name, err)
	}
	return nil
}
