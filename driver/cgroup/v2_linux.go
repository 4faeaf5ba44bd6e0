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

// findV2 makes the group and has the kernel offer its controllers there.
func findV2(name string) (Place, map[string]error) {
	reasons := map[string]error{}
	fail := func(err error) (Place, map[string]error) {
		for controller := range controllers() {
			reasons[controller] = err
		}
		return Place{}, reasons
	}
	_, own, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup")
	if err != nil {
		return fail(err)
	}
	base := own
	if path.Base(own) == leaf {
		base = path.Dir(own)
	}
	p := Place{Version: 2, Unified: path.Join(base, name), Paths: map[string]string{}}
	if err := os.MkdirAll(filepath.Join(mountPoint, p.Unified), 0o755); err != nil {
		return fail(err)
	}
	for controller := range controllers() {
		err := p.offer(controller)
		if err != nil && own == base && own != "/" && moveTo(path.Join(base, leaf)) == nil {
			own = path.Join(base, leaf)
			err = p.offer(controller)
		}
		if err != nil {
			reasons[controller] = fmt.Errorf("the control group %s does not offer the controller %s (run the peer as a service with Delegate=yes and DelegateSubgroup=%s): %w", base, controller, leaf, err)
			continue
		}
		p.Paths[controller] = p.Unified
	}
	return p, reasons
}

// moveTo moves this process into a group that has none below it.
func moveTo(group string) error {
	if err := os.MkdirAll(filepath.Join(mountPoint, group), 0o755); err != nil {
		return err
	}
	manager, err := cgroup2.Load(group)
	if err != nil {
		return err
	}
	return manager.AddProc(uint64(os.Getpid()))
}

// offer makes a controller available to the groups of tasks.
func (p Place) offer(controller string) error {
	task, err := cgroup2.Load(path.Join(p.Unified, "task"))
	if err != nil {
		return err
	}
	toggled := task.ToggleControllers([]string{controller}, cgroup2.Enable)
	offered, err := os.ReadFile(filepath.Join(mountPoint, p.Unified, "cgroup.subtree_control"))
	switch {
	case err != nil:
		return err
	case slices.Contains(strings.Fields(string(offered)), controller):
		return nil
	case toggled != nil:
		return toggled
	default:
		return errors.New("it stays off")
	}
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
