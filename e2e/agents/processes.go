package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Process is a process that an agent has started.
type Process struct {
	PID int
	// Start is when it began, in the kernel's ticks: with the number it names the process for good.
	Start string
	// Allocation is the task to which it belongs; empty for a supervisor.
	Allocation string
}

// Tasks returns the processes of the agent's tasks that live, whoever started them and however long ago.
func (a *Agent) Tasks() ([]Process, error) {
	all, err := a.everything()
	var tasks []Process
	for _, p := range all {
		if p.Allocation != "" {
			tasks = append(tasks, p)
		}
	}
	return tasks, err
}

// Supervisors returns the processes that look after the agent's tasks, and those that these have started for a while.
func (a *Agent) Supervisors() ([]Process, error) {
	all, err := a.everything()
	return slices.DeleteFunc(all, func(p Process) bool { return p.Allocation != "" }), err
}

// Tasks returns the processes of all agents' tasks.
func (f *Flock) Tasks() ([]Process, error) {
	var all []Process
	for _, a := range f.Agents {
		tasks, err := a.Tasks()
		if err != nil {
			return nil, err
		}
		all = append(all, tasks...)
	}
	return all, nil
}

// everything returns the agent's supervisors and tasks that live.
func (a *Agent) everything() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		p, ours, err := a.look(pid)
		if err != nil {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		if ours {
			all = append(all, p)
		}
	}
	return all, nil
}

// look tells whether a process was started by the agent; one that is ending was not.
func (a *Agent) look(pid int) (p Process, ours bool, err error) {
	p.PID = pid
	var texts [3][]byte
	for i, name := range []string{"environ", "cmdline", "stat"} {
		texts[i], err = os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
		if gone(err) {
			return p, false, nil
		}
		if err != nil {
			return p, false, err
		}
	}
	const startAfterName = 19 // field 22 of the file, of which the name, which may hold anything, is the second
	stat := string(texts[2])
	if fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]); len(fields) > startAfterName {
		p.Start = fields[startAfterName]
	}
	supervisor := bytes.Contains(texts[1], []byte("supervise\x00"+a.folder+"/"))
	environ := strings.Split(string(texts[0]), "\x00")
	here := false
	for _, variable := range environ {
		if id, ok := strings.CutPrefix(variable, "STARLING_ALLOCATION="); ok {
			p.Allocation = id
		}
		here = here || variable == "STARLING_API="+a.Address
	}
	return p, supervisor || here && p.Allocation != "", nil
}

// gone tells that a process ended while it was looked at, or is none of ours because we may not look.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrPermission)
}
