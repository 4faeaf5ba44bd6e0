// Package meter reads from the kernel's /proc what the machine uses, and what some of its processes use, where no
// control group counts that.
package meter

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/driver"
)

// tick is the unit in which /proc tells processor time, on all systems.
const tick = 10 * time.Millisecond

// sectorBytes is the unit in which /proc tells what disks did, whatever their own is.
const sectorBytes = 512

// errUnknown is what a system says that has no /proc as Linux has it.
var errUnknown = errors.New("this system does not tell what is used: it has no /proc/stat, /proc/meminfo and /proc/diskstats")

// Machine reads what all of the machine uses, whose /proc and /sys are below root.
func Machine(root string) (use driver.Use, err error) {
	processors, known := file(root, "proc/stat")
	if !known || len(processors) == 0 {
		return use, errUnknown
	}
	for i, text := range processors[0] { // "cpu" user nice system idle iowait irq softirq steal guest ...
		if slices.Contains([]int{1, 2, 3, 6, 7}, i) {
			use.CPU += time.Duration(number(text)) * tick
		}
	}
	memory, _ := file(root, "proc/meminfo")
	for _, line := range memory {
		switch kibibytes := number(at(line, 1)); at(line, 0) {
		case "MemTotal:":
			use.MemoryBytes += kibibytes << 10
		case "MemAvailable:":
			use.MemoryBytes -= kibibytes << 10
		}
	}
	disks, _ := file(root, "proc/diskstats")
	for _, line := range disks { // major minor name reads merged sectors ms writes merged sectors ...
		// Partitions, and what is made of disks, count as the disks that they lie on.
		if _, err := os.Stat(filepath.Join(root, "sys/block", at(line, 2), "device")); err == nil && at(line, 2) != "" {
			use.ReadBytes += number(at(line, 5)) * sectorBytes
			use.WrittenBytes += number(at(line, 9)) * sectorBytes
		}
	}
	return use, nil
}

// Of adds up what processes use, with what their children used that have ended. Memory that several share does not
// count. A process that is gone uses nothing.
func Of(processes []int) (use driver.Use) {
	for _, process := range processes {
		folder := filepath.Join("proc", strconv.Itoa(process))
		if fields := stat(folder); len(fields) > 14 {
			for _, text := range fields[11:15] { // utime stime cutime cstime
				use.CPU += time.Duration(number(text)) * tick
			}
		}
		if pages, _ := file("/", folder+"/statm"); len(pages) > 0 { // size resident shared ...
			own := number(at(pages[0], 1)) - number(at(pages[0], 2))
			use.MemoryBytes += max(own, 0) * int64(os.Getpagesize())
		}
		lines, _ := file("/", folder+"/io")
		for _, line := range lines {
			switch at(line, 0) {
			case "read_bytes:":
				use.ReadBytes += number(at(line, 1))
			case "write_bytes:":
				use.WrittenBytes += number(at(line, 1))
			}
		}
	}
	return use
}

// Below lists the processes that descend from one, without itself.
func Below(process int) []int {
	children := map[int][]int{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		child, err := strconv.Atoi(filepath.Base(folder))
		if fields := stat(strings.TrimPrefix(folder, "/")); err == nil && len(fields) > 1 {
			parent := int(number(fields[1]))
			children[parent] = append(children[parent], child)
		}
	}
	all := children[process]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// stat reads of a process what stands behind its name: state, parent, and so on.
func stat(folder string) []string {
	text, _ := os.ReadFile(filepath.Join("/", folder, "stat"))
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // a name may hold any character
}

// file reads a file as lines of words.
func file(root, name string) (lines [][]string, known bool) {
	text, err := os.ReadFile(filepath.Join(root, name))
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines, err == nil
}

// at returns a word of a line, "" behind its end.
func at(line []string, i int) string {
	if i < len(line) {
		return line[i]
	}
	return ""
}

func number(text string) int64 {
	value, _ := strconv.ParseInt(text, 10, 64)
	return value
}
