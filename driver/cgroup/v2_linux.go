package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	cgroups "github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup2"
	"golang.org/x/sys/unix"

	"starling/driver"
)

// advice is how a peer gets a group in which it may limit tasks.
const advice = "run the peer as a service of its own with Delegate=yes and DelegateSubgroup=" + leaf

// findV2 makes the group and has the kernel offer its controllers there.
func findV2(name string) (Place, map[string]error) {
	p := Place{Version: 2, Paths: map[string]string{}}
	reasons := map[string]error{}
	base, err := baseV2()
	if err == nil {
		p.Unified = path.Join(base, name)
		err = os.MkdirAll(filepath.Join(mountPoint, p.Unified), 0o755)
	}
	if err != nil {
		p.Version = 0
	} else {
		err = vacate(base)
	}
	for controller := range controllers() {
		if reasons[controller] = err; err != nil {
			continue
		}
		if reasons[controller] = errors.Join(offer(base, controller),
			offer(p.Unified, controller)); reasons[controller] == nil {
			p.Paths[controller] = p.Unified
		}
	}
	return p, reasons
}

// baseV2 is the group below which groups are made: the one that this process was started in.
func baseV2() (string, error) {
	_, own, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	if path.Base(own) == leaf {
		return path.Dir(own), nil
	}
	return own, nil
}

// vacate makes sure that the group holds no processes, by moving this one to the leaf. Otherwise the kernel would
// refuse to limit groups below it or, worse, accept it and refuse all processes there.
func vacate(group string) error {
	if _, err := os.Stat(filepath.Join(mountPoint, group, "cgroup.type")); errors.Is(err, os.ErrNotExist) {
		return nil // the root of all groups may hold processes
	}
	manager, err := cgroup2.Load(group)
	if err != nil {
		return err
	}
	list, err := manager.Procs(false)
	if err != nil || len(list) == 0 {
		return err
	}
	if self := uint64(os.Getpid()); len(list) > 1 || list[0] != self {
		return fmt.Errorf("the control group %s holds other processes, too (%s)", group, advice)
	}
	manager, err = cgroup2.NewManager(mountPoint, path.Join(group, leaf), &cgroup2.Resources{})
	if err != nil {
		return err
	}
	return manager.AddProc(uint64(os.Getpid()))
}

// offer makes a controller available to the groups below one. It leaves those above alone: whoever manages them would
// take back, unnoticed, what it has not delegated.
func offer(group, controller string) error {
	folder := filepath.Join(mountPoint, group)
	offered, err := os.ReadFile(filepath.Join(folder, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(offered)), controller) {
		return fmt.Errorf("the control group %s has no controller %s (%s)", group, controller, advice)
	}
	return os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
}

// groupV2 is a task's group.
type groupV2 struct {
	*cgroup2.Manager
	place  Place
	folder string
}

func (p Place) makeV2(name string, limits driver.Limits) (backend, error) {
	resources := &cgroup2.Resources{}
	if limits.MemoryBytes > 0 && p.enforces(memory) {
		whole, none := true, int64(0)
		resources.Memory = &cgroup2.Memory{Max: &limits.MemoryBytes, OOMGroup: &whole}
		if p.boundsSwap() {
			resources.Memory.Swap = &none
		}
	}
	if limits.CPUMillicores > 0 && p.enforces(processor) {
		quota, period := quota(limits.CPUMillicores), uint64(periodMicroseconds)
		resources.CPU = &cgroup2.CPU{Max: cgroup2.NewCPUMax(&quota, &period)}
	}
	if limits.Processes > 0 && p.enforces(processes) {
		resources.Pids = &cgroup2.Pids{Max: limits.Processes}
	}
	if _, err := cgroup2.NewManager(mountPoint, path.Join(p.Unified, name), resources); err != nil {
		return nil, err
	}
	return p.openV2(name), nil
}

func (p Place) openV2(name string) backend {
	group := path.Join(p.Unified, name)
	manager, err := cgroup2.Load(group)
	if err != nil {
		return nil // only a relative name is refused
	}
	return &groupV2{Manager: manager, place: p, folder: filepath.Join(mountPoint, group)}
}

// start has the kernel make the new process in the group.
func (g *groupV2) start(start func(*syscall.SysProcAttr) error) error {
	folder, err := unix.Open(g.folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	return start(&syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: folder})
}

// memoryAlarm is not needed: the kernel ends the whole group.
func (g *groupV2) memoryAlarm() (*os.File, error) { return nil, nil }

func (g *groupV2) memoryKills() (int, error) {
	if !g.place.enforces(memory) {
		return 0, nil
	}
	stat, err := g.StatFiltered(cgroup2.StatMemoryEvents)
	if err != nil || stat.MemoryEvents == nil {
		return 0, err
	}
	return int(stat.MemoryEvents.OomKill), nil
}

func (g *groupV2) kill() (int, error) {
	if _, err := os.Stat(g.folder); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	list, err := g.Procs(true)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return len(list), g.Manager.Kill()
}

func (g *groupV2) remove() error {
	if _, err := os.Stat(g.folder); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return g.Manager.Delete()
}
