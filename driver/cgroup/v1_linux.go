package cgroup

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"starling/driver"
)

// findV1 tries each controller: makes the group and looks for the file that sets its limit.
func findV1(name string) (Place, map[string]error) {
	p := Place{Paths: map[string]string{}}
	reasons := map[string]error{}
	files := map[string]string{memory: "memory.limit_in_bytes", processor: "cpu.cfs_quota_us", processes: "pids.max"}
	for controller, file := range files {
		group, err := findControllerV1(controller, name, file)
		if err != nil {
			reasons[controller] = err
			continue
		}
		p.Version, p.Paths[controller] = 1, group
	}
	return p, reasons
}

func findControllerV1(controller, name, file string) (string, error) {
	only := Place{Version: 1, Paths: map[string]string{controller: ""}}
	mounted, err := only.hierarchy()
	if err != nil {
		return "", err
	}
	if len(mounted) == 0 {
		return "", errors.New("their control group controller is not mounted")
	}
	below := cgroup1.NestedPath(name)
	group, err := below(cgroup1.Name(controller))
	if err != nil {
		return "", err
	}
	if _, err := cgroup1.New(below, &specs.LinuxResources{}, cgroup1.WithHierarchy(only.hierarchy)); err != nil {
		return "", err
	}
	_, err = os.Stat(filepath.Join(mountPoint, controller, group, file))
	return group, err
}

// hierarchy lists those mounted controllers that the place uses.
func (p Place) hierarchy() ([]cgroup1.Subsystem, error) {
	all, err := cgroup1.Default()
	if err != nil {
		return nil, err
	}
	var used []cgroup1.Subsystem
	for _, s := range all {
		if p.enforces(string(s.Name())) {
			used = append(used, s)
		}
	}
	return used, nil
}

// groupV1 is a task's group in each of the place's hierarchies.
type groupV1 struct {
	cgroup1.Cgroup // nil when the group is gone
	place          Place
	limits         driver.Limits
}

// pathV1 is where the group of that name is, by controller.
func (p Place) pathV1(name string) cgroup1.Path {
	return func(controller cgroup1.Name) (string, error) {
		parent, ok := p.Paths[string(controller)]
		if !ok {
			return "", cgroup1.ErrControllerNotActive
		}
		return path.Join(parent, name), nil
	}
}

// makeV1 allows one process more than the limit, for the thread that forks the first one counts too until it leaves.
func (p Place) makeV1(name string, limits driver.Limits) (backend, error) {
	resources := &specs.LinuxResources{}
	if limits.MemoryBytes > 0 && p.enforces(memory) {
		resources.Memory = &specs.LinuxMemory{Limit: &limits.MemoryBytes}
		if p.boundsSwap() {
			resources.Memory.Swap = &limits.MemoryBytes
		}
	}
	if limits.CPUMillicores > 0 && p.enforces(processor) {
		quota, period := quota(limits.CPUMillicores), uint64(periodMicroseconds)
		resources.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period}
	}
	if limits.Processes > 0 && p.enforces(processes) {
		more := limits.Processes + 1
		resources.Pids = &specs.LinuxPids{Limit: &more}
	}
	group, err := cgroup1.New(p.pathV1(name), resources, cgroup1.WithHierarchy(p.hierarchy))
	if err != nil {
		return nil, errors.Join(err, p.openV1(name).remove())
	}
	return &groupV1{Cgroup: group, place: p, limits: limits}, nil
}

func (p Place) openV1(name string) backend {
	group, err := cgroup1.Load(p.pathV1(name), cgroup1.WithHierarchy(p.hierarchy))
	if err != nil {
		return &groupV1{place: p}
	}
	return &groupV1{Cgroup: group, place: p}
}

// start moves this thread, and no other, into the group while it forks: a new process is where its parent's thread is.
func (g *groupV1) start(start func(*syscall.SysProcAttr) error) error {
	own, err := cgroup1.Load(cgroup1.NestedPath(""), cgroup1.WithHierarchy(g.place.hierarchy))
	if err != nil {
		return err
	}
	thread := cgroup1.Process{Pid: unix.Gettid()}
	if err := g.AddTask(thread); err != nil {
		return err
	}
	err = start(&syscall.SysProcAttr{})
	if err == nil && g.limits.Processes > 0 && g.place.enforces(processes) {
		err = g.Update(&specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &g.limits.Processes}})
	}
	return errors.Join(err, own.AddTask(thread))
}

// memoryAlarm is the kernel's notice, for it kills one process where the limit is the task's.
func (g *groupV1) memoryAlarm() (*os.File, error) {
	if !g.place.enforces(memory) {
		return nil, nil
	}
	event, err := g.OOMEventFD()
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(int(event), true); err != nil {
		return nil, err
	}
	return os.NewFile(event, "memory alarm"), nil
}

func (g *groupV1) memoryKills() (int, error) {
	if !g.place.enforces(memory) {
		return 0, nil
	}
	stat, err := g.Stat(cgroup1.IgnoreNotExist)
	if err != nil || stat.MemoryOomControl == nil {
		return 0, err
	}
	return int(stat.MemoryOomControl.OomKill), nil
}

func (g *groupV1) kill() (int, error) {
	if g.Cgroup == nil {
		return 0, nil
	}
	found := map[int]struct{}{}
	for _, subsystem := range g.Subsystems() {
		list, err := g.Processes(subsystem.Name(), true)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return len(found), err
		}
		for _, process := range list {
			if process.Pid > 0 { // 0 is one of another namespace
				found[process.Pid] = struct{}{}
				_ = unix.Kill(process.Pid, unix.SIGKILL)
			}
		}
	}
	return len(found), nil
}

func (g *groupV1) remove() error {
	if g.Cgroup == nil {
		return nil
	}
	if err := g.Delete(); err != nil && !errors.Is(err, cgroup1.ErrCgroupDeleted) {
		return err
	}
	return nil
}
