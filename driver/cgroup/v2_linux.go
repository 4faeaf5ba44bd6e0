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
const advice = "run the peer as a service of its own with Delegate=yes"

// findV2 makes the group and has the kernel offer its controllers there. In a scope of systemd that is not its own to
// divide, as a program in a terminal is, this process asks for another.
func findV2(name string, leave func() error) (Place, map[string]error) {
	p := Place{Version: 2, Paths: map[string]string{}}
	reasons := map[string]error{}
	var failed error
	if scope := ownScope(); scope != "" && leave != nil && !delegated(scope) {
		failed = leave()
	}
	base, err := makeV2(name)
	if err != nil {
		err = errors.Join(err, failed)
	}
	if p.Unified = path.Join(base, name); base == "" {
		p.Version, p.Unified = 0, ""
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

// makeV2 makes the group of that name, and returns the one below which it is, "" if it could not be made.
func makeV2(name string) (base string, err error) {
	if base, err = baseV2(); err == nil {
		err = os.MkdirAll(filepath.Join(mountPoint, base, name), 0o755)
	}
	if err != nil {
		return "", err
	}
	return base, vacate(base)
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

// ownScope is the scope of systemd that this process is in, as all of a terminal is; "" if it is in none. One that is
// in a service stays there: who stops the service means it.
func ownScope() string {
	own, err := ownGroups()
	if err != nil {
		return ""
	}
	for group := own[""]; len(group) > 1; group = path.Dir(group) {
		switch path.Ext(group) {
		case ".scope":
			return group
		case ".service":
			return ""
		}
	}
	return ""
}

// delegated tells whether systemd leaves the groups below one to who is in it. In another it stops all of them when one
// is out of memory (systemd.scope(5), OOMPolicy=).
func delegated(group string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} { // since version 251, and before it
		value := make([]byte, 1)
		if n, err := unix.Getxattr(filepath.Join(mountPoint, group), name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
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
	if limits.Background {
		values = append(values, value{processor, "cpu.weight", "1"})
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
