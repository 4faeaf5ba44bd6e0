package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// process is one of this machine's.
type process struct {
	pid, parent int
	command     string
}

// processes lists those that run: from /proc, or where there is none from ps.
func processes() ([]process, error) {
	if folders, err := filepath.Glob("/proc/[0-9]*"); err == nil && len(folders) > 0 {
		return processesOf(folders), nil
	}
	text, err := exec.Command("ps", "-axww", "-o", "pid=,ppid=,command=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []process
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		pid, err1 := strconv.Atoi(fields[0])
		parent, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil {
			all = append(all, process{pid, parent, strings.Join(fields[2:], " ")})
		}
	}
	return all, nil
}

// processesOf reads /proc. Processes that end meanwhile, and zombies, are left out.
func processesOf(folders []string) []process {
	var all []process
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		command, err1 := os.ReadFile(filepath.Join(folder, "cmdline"))
		stat, err2 := os.ReadFile(filepath.Join(folder, "stat"))
		_, after, found := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
		fields := strings.Fields(after)
		if err1 != nil || err2 != nil || !found || len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		all = append(all, process{pid, parent, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))})
	}
	return all
}

// family returns the processes that are wanted, and all their descendants.
func family(all []process, wanted func(process) bool) []int {
	var found []int
	in := map[int]bool{os.Getpid(): false}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && p.pid != os.Getpid() && (wanted(p) || in[p.parent]) {
				in[p.pid], grown = true, true
				found = append(found, p.pid)
			}
		}
	}
	return found
}
