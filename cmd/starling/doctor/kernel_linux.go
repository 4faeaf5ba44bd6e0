package doctor

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// kernel looks whether the kernel is new enough: pidfds and control groups of version 2 are of 5.4 and before.
func kernel() finding {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return unknown("kernel", err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	major, minor := 0, 0
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n == 2 && (major < 5 || major == 5 && minor < 4) {
		return finding{weak, "kernel", release, "tasks are best contained by Linux 5.4 or later"}
	}
	missing := []string{}
	version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if int(version) < 1 {
		missing = append(missing, "Landlock")
	}
	if _, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil {
		missing = append(missing, "seccomp")
	}
	if len(missing) > 0 {
		return finding{weak, "kernel", release + ", without " + strings.Join(missing, " and "),
			"switch it on in the kernel, or boot one that has it"}
	}
	return finding{fine, "kernel", release + ", with Landlock and seccomp", ""}
}

// clock asks the kernel whether something keeps its clock right.
func clock() finding {
	var state unix.Timex
	if _, err := unix.Adjtimex(&state); err != nil {
		return unknown("clock", err)
	}
	if state.Status&unix.STA_UNSYNC != 0 {
		return finding{weak, "clock", "nothing keeps it synchronized: " + time.Now().Format(time.DateTime),
			"run chrony or systemd-timesyncd; waits and stop_after are only as exact as clocks are alike"}
	}
	off := time.Duration(state.Maxerror) * time.Microsecond
	return finding{fine, "clock", fmt.Sprintf("synchronized, to %s at most", off), ""}
}
