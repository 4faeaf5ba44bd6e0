package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Thread confines the calling thread. In namespaces that the peer has made for the task it gets its own mounts and
// loses capabilities; outside of such it may send signals to what it starts and to nothing else.
func (r *Rules) Thread(namespaces bool) error {
	if !namespaces {
		return r.Beside(false)
	}
	if r.hasBase() {
		if err := r.Base.enter(); err != nil {
			return fmt.Errorf("enter the mounts that were prepared: %w", err)
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWIPC); err != nil {
		return fmt.Errorf("set the task's mounts and IPC apart: %w", err)
	}
	if err := r.mount(); err != nil {
		return err
	}
	return r.Beside(true)
}

// Beside confines a thread for a program beside a task. The namespaces that it has joined have their mounts; where
// there are none it may not send signals to the task either.
func (r *Rules) Beside(namespaces bool) error {
	apart := scope
	if namespaces {
		apart = dropCapabilities
	}
	return errors.Join(noNewPrivileges(), apart(), filter(program(r.Clone3, r.Quotas)))
}

func noNewPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// Join puts the calling thread where a process is: into its namespaces of mounts, processes, IPC and names. What the
// thread starts is there; and it must be confined, which a thread does not get by joining.
func Join(process int) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // or else all threads would move
		return err
	}
	var spaces []int
	defer func() {
		for _, space := range spaces {
			unix.Close(space)
		}
	}()
	for _, kind := range []string{"pid", "ipc", "uts", "mnt"} { // all are opened in the /proc of this thread
		space, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", process, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		spaces = append(spaces, space)
	}
	for _, space := range spaces {
		if err := unix.Setns(space, 0); err != nil {
			return err
		}
	}
	return nil
}

// kept are the capabilities that a task of root has: over files and accounts, for its own processes, and for low ports.
// None of them reaches another process, the kernel or a device.
func kept() (set uint64) {
	for _, one := range []uint{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
		unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP, unix.CAP_SETFCAP, unix.CAP_SYS_CHROOT, unix.CAP_AUDIT_WRITE,
		unix.CAP_NET_BIND_SERVICE} {
		set |= 1 << one
	}
	return set
}

// dropCapabilities leaves those that are kept, also to programs that are executed later.
func dropCapabilities() error {
	for one := uint(0); one <= unix.CAP_LAST_CAP; one++ {
		if kept()&(1<<one) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(one), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // this kernel has fewer
			break
		}
		if err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	for half := range sets {
		mask := uint32(kept() >> (32 * half))
		sets[half].Permitted &= mask
		sets[half].Effective &= mask
		sets[half].Inheritable = 0
	}
	return unix.Capset(&header, &sets[0])
}

// landlockRules are the kernel's struct landlock_ruleset_attr.
type landlockRules struct{ files, network, scopes uint64 }

// scopesSince is the version of Landlock that can keep signals within.
const scopesSince = 6

// landlockVersion is that of the kernel, 0 for none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// scope keeps the thread from sending signals out of what it starts, and with that from tracing what is outside.
// There is a library for Landlock, but what it does it does to all threads.
func scope() error {
	if landlockVersion() < scopesSince {
		return nil // Missing tells
	}
	rules := landlockRules{scopes: unix.LANDLOCK_SCOPE_SIGNAL}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)),
		unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return fmt.Errorf("make a set of Landlock's rules: %w", errno)
	}
	defer unix.Close(int(set))
	if _, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return fmt.Errorf("restrict by Landlock: %w", errno)
	}
	return nil
}

// Missing lists what the machine cannot do, a line each.
func Missing(namespaces bool) (lines []string) {
	if namespaces {
		if err := unix.MountSetattr(-1, "", 0, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) {
			lines = append(lines, "tasks of root may change the system's files and settings, and "+
				"tasks may open devices in their folders: the kernel is older than 5.12")
		}
	}
	if landlockVersion() < scopesSince && !namespaces {
		lines = append(lines, fmt.Sprintf("tasks may send signals to other processes of their account: the kernel's "+
			"Landlock has version %d, and %d is needed", landlockVersion(), scopesSince))
	}
	if _, err := os.Stat(filepath.Join("/proc/sys/kernel/seccomp", "actions_avail")); err != nil {
		lines = append(lines, "the system calls of tasks are not filtered: the kernel has no seccomp")
	}
	return lines
}
