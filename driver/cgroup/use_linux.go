package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"starling/driver"
)

// Use reads what the group's processes use together, as far as control groups count it here.
func (g *Group) Use() (use driver.Use, counted Counted) {
	if g.place.Version == 2 {
		return useV2(g.reader(""))
	}
	cpu := processor
	if g.place.enforces(accounting) {
		cpu = accounting
	}
	return useV1(g.reader(cpu), g.reader(memory))
}

// Processes lists the processes that are in the group now.
func (g *Group) Processes() []int {
	for _, folder := range g.folders() {
		if list, err := processesBelow(folder); err == nil && len(list) > 0 {
			return list
		}
	}
	return nil
}

// reader returns what reads the files of the group in the hierarchy of a controller; they are empty if it has none.
func (g *Group) reader(controller string) func(file string) string {
	return func(file string) string {
		if g.place.Version != 2 && !g.place.enforces(controller) {
			return ""
		}
		text, _ := os.ReadFile(filepath.Join(g.folder(controller), file))
		return string(text)
	}
}

// useV1 reads the files of two controllers of version 1. That for disks misses most of what is written, and is left
// out.
func useV1(cpu, memory func(file string) string) (use driver.Use, counted Counted) {
	if spent, ok := number(cpu("cpuacct.usage")); ok {
		use.CPU, counted.CPU = time.Duration(spent), true
	}
	if has, ok := number(memory("memory.usage_in_bytes")); ok {
		dropped, _ := field(memory("memory.stat"), "total_inactive_file")
		use.MemoryBytes, counted.Memory = max(has-dropped, 0), true
	}
	return use, counted
}

// useV2 reads the files of a group of version 2.
func useV2(read func(file string) string) (use driver.Use, counted Counted) {
	if spent, ok := field(read("cpu.stat"), "usage_usec"); ok {
		use.CPU, counted.CPU = time.Duration(spent)*time.Microsecond, true
	}
	if has, ok := number(read("memory.current")); ok {
		dropped, _ := field(read("memory.stat"), "inactive_file")
		use.MemoryBytes, counted.Memory = max(has-dropped, 0), true
	}
	devices := read("io.stat") // "8:0 rbytes=90430464 wbytes=299008000 rios=8950 ..."
	for _, word := range strings.Fields(devices) {
		name, text, _ := strings.Cut(word, "=")
		amount, _ := number(text)
		switch name {
		case "rbytes":
			use.ReadBytes += amount
		case "wbytes":
			use.WrittenBytes += amount
		}
	}
	counted.IO = devices != ""
	return use, counted
}

// field finds the number behind a name at the beginning of a line.
func field(text, name string) (value int64, ok bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			return number(rest)
		}
	}
	return 0, false
}

func number(text string) (value int64, ok bool) {
	value, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return value, err == nil
}
