//go:build !linux

package doctor

import "runtime"

// kernel tells what tasks go without elsewhere.
func kernel() finding {
	return finding{weak, "kernel", runtime.GOOS, "tasks are limited and contained on Linux only"}
}

// clock is not looked at elsewhere.
func clock() finding { return finding{fine, "clock", "not looked at on " + runtime.GOOS, ""} }
