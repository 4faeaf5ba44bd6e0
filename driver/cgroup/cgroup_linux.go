package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/plain"
)

// periodMicroseconds is the span over which processor time is bounded; the kernel's own default.
const periodMicroseconds = 100_000

// quotaMicrosecondsMin is the least that the kernel accepts for a period.
const quotaMicrosecondsMin = 1_000

// mountPoint is where systems have control groups.
const mountPoint = "/sys/fs/cgroup"

// quota is the processor time per period for a limit.
func quota(millicores int64) int64 {
	return max(quotaMicrosecondsMin, millicores*periodMicroseconds/1000)
}

// Find makes a group of that name below this process's own, to hold the tasks' groups, and lists what cannot be
// enforced there. It calls leave, unless that is nil, where this process must be moved to another group first, one that
// it may divide.
func Find(name string, leave func() error) (Place, []string) {
	var p Place
	var reasons map[string]error
	var mounted unix.Statfs_t
	switch err := unix.Statfs(mountPoint, &mounted); {
	case err == nil && mounted.Type == unix.CGROUP2_SUPER_MAGIC:
		p, reasons = findV2(name, leave)
	case err == nil && mounted.Type == unix.TMPFS_MAGIC:
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
	for _, folder := range p.Beside {
		os.Remove(folder)
	}
}

// Relative is the path of a task's group as a container engine wants it: from the group that this process is in.
func (p Place) Relative(name string) string {
	for _, parent := range p.Paths {
		return path.Join(path.Base(parent), name)
	}
	return path.Join(path.Base(p.Unified), name)
}

// backgroundShares is the least weight that version 1 has; others have 1024.
const backgroundShares = 2

// Resources are the limits that the place enforces, as a container engine wants them.
func (p Place) Resources(limits driver.Limits) *specs.LinuxResources {
	resources := &specs.LinuxResources{}
	if limits.MemoryBytes > 0 && p.enforces(memory) {
		resources.Memory = &specs.LinuxMemory{Limit: &limits.MemoryBytes}
		if p.boundsSwap() {
			resources.Memory.Swap = &limits.MemoryBytes // together with memory, so there is no swap beside it
		}
		if p.Version == 2 {
			resources.Unified = map[string]string{"memory.oom.group": "1"}
		}
	}
	if limits.CPUMillicores > 0 && p.enforces(processor) {
		quota, period := quota(limits.CPUMillicores), uint64(periodMicroseconds)
		resources.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period}
		if shares := uint64(backgroundShares); limits.Background {
			resources.CPU.Shares = &shares // version 2 has 1 of 10000 for it
		}
	}
	if limits.Processes > 0 && p.enforces(processes) {
		resources.Pids = &specs.LinuxPids{Limit: &limits.Processes}
	}
	return resources
}

// Group holds the processes of one task: one control group in each hierarchy that its place uses.
type Group struct {
	name    string
	place   Place
	limits  driver.Limits
	fresh   bool     // only this process has made groups of that name
	passage *passage // of version 1, until the first process is started
}

// value is what is written to a file of the group that a controller enforces.
type value struct{ controller, file, text string }

// Make makes the group of a task and sets those of its limits that the place enforces.
func (p Place) Make(name string, limits driver.Limits) (*Group, error) {
	g := &Group{name: name, place: p, limits: limits, fresh: true}
	if err := g.make(); err != nil {
		return nil, errors.Join(fmt.Errorf("limit task by control group %s: %w", name, err), g.Delete())
	}
	return g, nil
}

func (g *Group) make() error {
	var values []value
	switch g.place.Version {
	case 1:
		values = g.place.valuesV1(g.limits)
	case 2:
		values = g.place.valuesV2(g.limits)
	}
	for _, folder := range g.folders() {
		err := os.Mkdir(folder, 0o755)
		if errors.Is(err, os.ErrExist) {
			g.fresh, err = false, nil
		}
		if err != nil {
			return err
		}
	}
	for _, v := range values {
		if !g.place.enforces(v.controller) {
			continue
		}
		if err := write(filepath.Join(g.folder(v.controller), v.file), v.text); err != nil {
			return err
		}
	}
	if g.place.Version == 1 {
		var err error
		g.passage, err = g.openPassage()
		return err
	}
	return nil
}

func write(path, text string) error {
	file, err := plain.Number(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	if err := plain.Write(file, []byte(text)); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// Open returns a group that was made earlier and may be gone.
func (p Place) Open(name string) *Group { return &Group{name: name, place: p} }

// folder is the group's in the hierarchy of a controller.
func (g *Group) folder(controller string) string {
	if g.place.Version == 2 {
		return filepath.Join(mountPoint, g.place.Unified, g.name)
	}
	return filepath.Join(mountPoint, controller, g.place.Paths[controller], g.name)
}

// folders are all of the group.
func (g *Group) folders() []string {
	switch g.place.Version {
	case 1:
		var all []string
		for _, controller := range slices.Sorted(maps.Keys(g.place.Paths)) {
			all = append(all, g.folder(controller))
		}
		return all
	case 2:
		return []string{g.folder("")}
	}
	return nil
}

// Start has start fork the task's first process so that it is in the group from its first instruction. The calling
// goroutine must be locked to its thread.
func (g *Group) Start(start func(*syscall.SysProcAttr) error) error {
	switch g.place.Version {
	case 1:
		return g.startV1(start)
	case 2:
		return g.startV2(start)
	}
	return start(&syscall.SysProcAttr{})
}

// MemoryAlarm is a file that can be read from once the group was out of memory, where the kernel does not kill the
// whole group by itself; else nil.
func (g *Group) MemoryAlarm() (*os.File, error) {
	if g.place.Version != 1 {
		return nil, nil
	}
	return g.memoryAlarmV1()
}

// MemoryKills is how many of its processes the kernel killed for want of memory.
func (g *Group) MemoryKills() (int, error) {
	if !g.place.enforces(memory) {
		return 0, nil
	}
	file := "memory.oom_control"
	if g.place.Version == 2 {
		file = "memory.events"
	}
	text, err := plain.Read(filepath.Join(g.folder(memory), file))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strconv.Atoi(strings.TrimSpace(count))
		}
	}
	return 0, err
}

// Kill sends SIGKILL to all processes in the group and returns how many there were. A killed process is in the group
// until it has ended.
func (g *Group) Kill() (int, error) {
	found := map[int]struct{}{}
	if g.place.Version == 1 && len(g.place.Paths) > 0 {
		if folder, err := plain.Number(g.first(), os.O_RDONLY, 0); err == nil { // else it is gone
			defer unix.Close(folder)
			hold(folder, unix.LOCK_EX)
		}
	}
	for _, folder := range g.folders() {
		list, err := processesBelow(folder)
		if err != nil {
			return len(found), fmt.Errorf("kill control group %s: %w", g.name, err)
		}
		for _, process := range list {
			found[process] = struct{}{}
		}
	}
	if len(found) > 0 && g.place.Version == 2 && g.killV2() {
		return len(found), nil
	}
	for process := range found {
		_ = unix.Kill(process, unix.SIGKILL)
	}
	return len(found), nil
}

// processesIn lists the processes of one group, without those of another namespace.
func processesIn(folder string) (list []int, err error) {
	text, err := plain.Read(filepath.Join(folder, "cgroup.procs"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) { // ENODEV: it is deleted while it is read
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		if process, failed := strconv.Atoi(strings.TrimSpace(line)); failed == nil && process > 0 {
			list = append(list, process)
		}
	}
	return list, err
}

// processesBelow lists the processes of a group and of those that it holds, which a task may have made.
func processesBelow(folder string) (list []int, err error) {
	list, err = processesIn(folder)
	if err != nil {
		return nil, err
	}
	for _, below := range groupsIn(folder) {
		more, err := processesBelow(below)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// groupsIn are the groups that one holds, each of which is a link to it. One that is gone holds none.
func groupsIn(folder string) (below []string) {
	var info unix.Stat_t
	if err := unix.Stat(folder, &info); err != nil || info.Nlink == 2 {
		return nil
	}
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if entry.IsDir() {
			below = append(below, filepath.Join(folder, entry.Name()))
		}
	}
	return below
}

// Delete removes the group, which must be empty. One that is gone is no error.
func (g *Group) Delete() error {
	if g.passage != nil {
		g.passage.close()
		g.passage = nil
	}
	var errs []error
	for _, folder := range g.folders() {
		errs = append(errs, deleteBelow(folder))
	}
	if !g.fresh {
		for _, folder := range g.place.Beside {
			errs = append(errs, deleteBelow(filepath.Join(folder, g.name)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete control group %s: %w", g.name, err)
	}
	return nil
}

// deleteBelow removes a group with those that it holds. The kernel may call one busy for a moment after its last
// process has ended.
func deleteBelow(folder string) error {
	for pause := busyPause; ; pause *= 2 {
		err := unix.Rmdir(folder)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		for _, below := range groupsIn(folder) {
			if err := deleteBelow(below); err != nil {
				return err
			}
		}
		if pause > busyPauseMax {
			return &os.PathError{Op: "rmdir", Path: folder, Err: err}
		}
		time.Sleep(pause)
	}
}

// Pauses between attempts to delete a group that is busy.
const (
	busyPause    = time.Millisecond
	busyPauseMax = 128 * time.Millisecond
)
