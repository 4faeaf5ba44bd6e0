package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

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
	own, err := ownGroups()
	if err != nil {
		return "", err
	}
	if path.Base(own[""]) == leaf {
		return path.Dir(own[""]), nil
	}
	return own[""], nil
}

// vacate makes sure that the group holds no processes, by moving this one to the leaf. Otherwise the kernel would
// refuse to limit groups below it or, worse, accept it and refuse all processes there.
func vacate(group string) error {
	folder := filepath.Join(mountPoint, group)
	if _, err := os.Stat(filepath.Join(folder, "cgroup.type")); errors.Is(err, os.ErrNotExist) {
		return nil // the root of all groups may hold processes
	}
	list, err := processesIn(folder)
	if err != nil || len(list) == 0 {
		return err
	}
	if len(list) > 1 || list[0] != os.Getpid() {
		return fmt.Errorf("the control group %s holds other processes, too (%s)", group, advice)
	}
	if err := os.MkdirAll(filepath.Join(folder, leaf), 0o755); err != nil {
		return err
	}
	return write(filepath.Join(folder, leaf, "cgroup.procs"), strconv.Itoa(os.Getpid()))
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
	return write(filepath.Join(folder, "cgroup.subtree_control"), "+"+controller)
}

// valuesV2 are what is written to which file of a task's group.
func (p Place) valuesV2(limits driver.Limits) []value {
	var values []value
	if limits.MemoryBytes > 0 {
		values = append(values, value{memory, "memory.max", strconv.FormatInt(limits.MemoryBytes, 10)},
			value{memory, "memory.oom.group", "1"})
		if p.boundsSwap() {
			values = append(values, value{memory, "memory.swap.max", "0"})
		}
	}
	if limits.CPUMillicores > 0 {
		share := fmt.Sprintf("%d %d", quota(limits.CPUMillicores), periodMicroseconds)
		values = append(values, value{processor, "cpu.max", share})
	}
	if limits.Processes > 0 {
		values = append(values, value{processes, "pids.max", strconv.FormatInt(limits.Processes, 10)})
	}
	return values
}

// startV2 has the kernel make the new process in the group.
func (g *Group) startV2(start func(*syscall.SysProcAttr) error) error {
	folder, err := unix.Open(g.folder(""), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	return start(&syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: folder})
}

// killV2 has the kernel kill all that is in the group; one before 5.14 leaves that to whoever lists them.
func (g *Group) killV2() bool {
	return write(filepath.Join(g.folder(""), "cgroup.kill"), "1") == nil
}
