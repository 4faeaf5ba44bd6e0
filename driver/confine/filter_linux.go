package confine

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are the system calls that change mounts, namespaces, the kernel or the machine.
func refused() []uint32 {
	return append([]uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
		unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE,
		unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY,
		unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	}, refusedHere...)
}

// newNamespaces are the flags of clone and unshare that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

// The fields of what a filter looks at: the kernel's struct seccomp_data.
const (
	numberOffset       = 0
	architectureOffset = 4
	argumentOffset     = 16
	secondOffset       = 24
)

// setProject and setFlags32 are the kernel's FS_IOC_FSSETXATTR and FS_IOC32_SETFLAGS.
const (
	setProject = 0x401c5820
	setFlags32 = 0x40046602
)

// keepAttributes refuses what changes attributes of files, if the loaded number is that of ioctl.
func keepAttributes(ioctl uint32) []unix.SockFilter {
	refuse := give(errorReturn(unix.EPERM))
	return []unix.SockFilter{unless(unix.BPF_JEQ, ioctl, 8), load(secondOffset),
		unless(unix.BPF_JEQ, setProject, 1), refuse, unless(unix.BPF_JEQ, unix.FS_IOC_SETFLAGS, 1), refuse,
		unless(unix.BPF_JEQ, setFlags32, 1), refuse, give(unix.SECCOMP_RET_ALLOW)}
}

// KeepAttributes has what this thread starts not change attributes of files, as Rules.Quotas has it for a task that is
// confined by something else, which knows system calls of other architectures: ioctl has the number 54 there, and what
// has it elsewhere is never called with such arguments.
func KeepAttributes() error { return filter(attributeCode()) }

func attributeCode() []unix.SockFilter {
	code := []unix.SockFilter{load(numberOffset)}
	for _, ioctl := range []uint32{unix.SYS_IOCTL, 54, foreignNumbers + 514} {
		code = append(code, keepAttributes(ioctl)...)
	}
	for _, number := range []uint32{unix.SYS_FILE_SETATTR, foreignNumbers + unix.SYS_FILE_SETATTR} {
		code = append(code, unless(unix.BPF_JEQ, number, 1), give(errorReturn(unix.EPERM)))
	}
	return append(code, give(unix.SECCOMP_RET_ALLOW))
}

// errorReturn makes a system call fail.
func errorReturn(err unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(err) }

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func give(result uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: result}
}

// unless skips the next instructions if the comparison fails.
func unless(comparison uint16, value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | comparison, K: value, Jf: skip}
}

// isRefused is a jump to the end of the program if the system call has a number, when the end is known.
func isRefused(number uint32) unix.SockFilter { return unless(unix.BPF_JEQ, number, 0) }

// search allows the system calls that do not have one of the sorted numbers. The kernel tries each filter with all
// system calls that there are when it is set, which would be half of its cost if all numbers were compared.
func search(numbers []uint32) (code []unix.SockFilter) {
	const few = 4
	if len(numbers) <= few {
		for _, number := range numbers {
			code = append(code, isRefused(number))
		}
		return append(code, give(unix.SECCOMP_RET_ALLOW))
	}
	middle := len(numbers) / 2
	low, high := search(numbers[:middle]), search(numbers[middle:])
	jump := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JGE, K: numbers[middle], Jt: uint8(len(low))}
	return slices.Concat([]unix.SockFilter{jump}, low, high)
}

// program is the filter. A system call by the numbers of another architecture is unknown: there is none for which all
// numbers are listed here. clone3 is unknown too, for its flags cannot be looked at: the C library then takes clone.
func program(clone3, quotas bool) []unix.SockFilter {
	code := []unix.SockFilter{
		load(architectureOffset),
		{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: architecture, Jt: 1},
		give(errorReturn(unix.ENOSYS)),
		load(numberOffset),
		unless(unix.BPF_JGE, foreignNumbers, 1),
		give(errorReturn(unix.ENOSYS)),
	}
	if !clone3 {
		code = append(code, unless(unix.BPF_JEQ, unix.SYS_CLONE3, 1), give(errorReturn(unix.ENOSYS)))
	}
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		code = append(code, unless(unix.BPF_JEQ, number, 4), load(argumentOffset),
			unless(unix.BPF_JSET, newNamespaces, 1), give(errorReturn(unix.EPERM)), give(unix.SECCOMP_RET_ALLOW))
	}
	numbers := refused()
	if quotas {
		numbers = append(numbers, unix.SYS_FILE_SETATTR)
		code = append(code, keepAttributes(unix.SYS_IOCTL)...)
	}
	slices.Sort(numbers)
	first, found := len(code), search(numbers)
	code = append(code, found...)
	for i := first; i < len(code); i++ {
		if code[i] == isRefused(code[i].K) {
			code[i].Jt = uint8(len(code) - i - 1)
		}
	}
	return append(code, give(errorReturn(unix.EPERM)))
}

// filter has the kernel refuse what no task needs. Libraries that make such filters know the system calls of all
// architectures by name, which costs more than the rest of a start.
func filter(code []unix.SockFilter) error {
	list := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&list)))
	if errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EINVAL) {
		return nil // Missing tells
	}
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}
