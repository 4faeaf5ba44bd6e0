package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/plain"
)

// unified is what the folder of version 2 is called beside the hierarchies of version 1.
const unified = "unified"

// findV1 tries each controller: makes the group and looks for the file that sets its limit.
func findV1(name string) (Place, map[string]error) {
	p := Place{Paths: map[string]string{}}
	reasons := map[string]error{}
	own, err := ownGroups()
	if err != nil {
		return p, map[string]error{memory: err, processor: err, processes: err}
	}
	files := map[string]string{memory: "memory.limit_in_bytes", processor: "cpu.cfs_quota_us", processes: "pids.max"}
	for controller, file := range files {
		within, mounted := own[controller]
		if !mounted {
			reasons[controller] = errors.New("their control group controller is not mounted")
			continue
		}
		group := path.Join(within, name)
		folder := filepath.Join(mountPoint, controller, group)
		reasons[controller] = os.MkdirAll(folder, 0o755)
		if reasons[controller] == nil {
			_, reasons[controller] = os.Stat(filepath.Join(folder, file))
		}
		if reasons[controller] == nil {
			p.Version, p.Paths[controller] = 1, group
		}
	}
	p.countV1(own[accounting], name)
	for controller, within := range own {
		if !p.enforces(controller) {
			hierarchy := cmp.Or(strings.TrimPrefix(controller, "name="), unified)
			p.Beside = append(p.Beside, filepath.Join(mountPoint, hierarchy, within, name))
		}
	}
	slices.Sort(p.Beside)
	return p, reasons
}

// countV1 has processor time counted where that is not done by what bounds it.
func (p *Place) countV1(within, name string) {
	group := path.Join(within, name)
	_, err := os.Stat(filepath.Join(mountPoint, processor, p.Paths[processor], "cpuacct.usage"))
	if within == "" || p.Version != 1 || err == nil {
		return
	}
	if os.MkdirAll(filepath.Join(mountPoint, accounting, group), 0o755) == nil {
		p.Paths[accounting] = group
	}
}

// ownGroups are the groups that this process is in, by controller, as they are called below the place where their
// hierarchy is mounted. That of version 2 has no controller's name.
func ownGroups() (map[string]string, error) {
	text, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	tops := map[string]string{} // the group that each hierarchy shows as its top: in a container, another than its root
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		fields, system := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(system) < 3 || !strings.HasPrefix(fields[4], mountPoint) {
			continue
		}
		switch system[0] {
		case "cgroup":
			for _, controller := range strings.Split(system[2], ",") {
				tops[controller] = fields[3]
			}
		case "cgroup2":
			tops[""] = fields[3]
		}
	}
	own := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for _, controller := range strings.Split(fields[1], ",") {
			if top, mounted := tops[controller]; mounted {
				own[controller] = path.Join("/", strings.TrimPrefix(fields[2], strings.TrimSuffix(top, "/")))
			}
		}
	}
	return own, nil
}

// valuesV1 are what is written to which file of a task's groups. One process more than the limit is allowed, for the
// thread that forks the first one counts too until it leaves.
func (p Place) valuesV1(limits driver.Limits) []value {
	var values []value
	if limits.MemoryBytes > 0 {
		bytes := strconv.FormatInt(limits.MemoryBytes, 10)
		values = append(values, value{memory, "memory.limit_in_bytes", bytes})
		if p.enforces(memory) && p.boundsSwap() {
			// Together with memory, so there is no swap beside it.
			values = append(values, value{memory, "memory.memsw.limit_in_bytes", bytes})
		}
	}
	if limits.CPUMillicores > 0 { // the period is the default of a new group
		values = append(values, value{processor, "cpu.cfs_quota_us", strconv.FormatInt(quota(limits.CPUMillicores), 10)})
	}
	if limits.Background {
		values = append(values, value{processor, "cpu.shares", strconv.Itoa(backgroundShares)})
	}
	if limits.Processes > 0 {
		values = append(values, value{processes, "pids.max", strconv.FormatInt(limits.Processes+1, 10)})
	}
	return values
}

// passage is how a thread gets into a group and out of it again: open files, because one that is confined can open
// none.
type passage struct {
	in, out []int // the lists of threads, in all hierarchies
	most    int   // the limit of processes, -1 for none
	folder  int   // that is locked meanwhile
}

// openPassage opens it.
func (g *Group) openPassage() (*passage, error) {
	p := &passage{most: -1, folder: -1}
	var errs []error
	keep := func(path string, flags int) int {
		file, err := plain.Number(path, flags, 0)
		errs = append(errs, err)
		return file
	}
	for controller, parent := range g.place.Paths {
		p.in = append(p.in, keep(filepath.Join(g.folder(controller), "tasks"), os.O_WRONLY))
		// The groups of all tasks lie in the one that this process was started in.
		p.out = append(p.out, keep(filepath.Join(mountPoint, controller, path.Dir(parent), "tasks"), os.O_WRONLY))
	}
	if g.limits.Processes > 0 && g.place.enforces(processes) {
		p.most = keep(filepath.Join(g.folder(processes), "pids.max"), os.O_WRONLY)
	}
	p.folder = keep(g.first(), os.O_RDONLY)
	if err := errors.Join(errs...); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *passage) close() {
	for _, file := range slices.Concat(p.in, p.out, []int{p.most, p.folder}) {
		if file >= 0 {
			unix.Close(file)
		}
	}
}

// move moves this thread, and no other, to where lists of threads are.
func move(lists []int) error {
	var errs []error
	for _, list := range lists {
		errs = append(errs, plain.Write(list, []byte("0")))
	}
	return errors.Join(errs...)
}

// startV1 has this thread be in the group while it forks: a new process is where its parent's thread is.
func (g *Group) startV1(start func(*syscall.SysProcAttr) error) error {
	p := g.passage
	g.passage = nil
	if p == nil {
		var err error
		elsewhere(func() { p, err = g.openPassage() })
		if err != nil {
			return err
		}
	}
	defer p.close()
	hold(p.folder, unix.LOCK_SH)
	err := move(p.in)
	if err == nil {
		err = start(&syscall.SysProcAttr{})
	}
	if p.most >= 0 {
		err = errors.Join(err, plain.Write(p.most, strconv.AppendInt(nil, g.limits.Processes, 10)))
	}
	return errors.Join(err, move(p.out))
}

// first is a folder of the group, always the same one.
func (g *Group) first() string { return g.folder(slices.Min(slices.Collect(maps.Keys(g.place.Paths)))) }

// hold locks the folder of a group until it is closed. A thread that is in the group for as long as it forks a process
// into it makes its own process look like one of the group's: who kills those must not meet it.
func hold(folder, how int) {
	for end := time.Now().Add(holdMax); ; time.Sleep(holdAgain) {
		if unix.Flock(folder, how|unix.LOCK_NB) == nil || time.Now().After(end) {
			return // who has held it for so long is not forking
		}
	}
}

// holdMax is the longest wait for others, holdAgain that between two tries.
const (
	holdMax   = time.Second
	holdAgain = time.Millisecond
)

// elsewhere runs on another thread what this one may not do any more, since it has mounts of its own that cannot be
// changed.
func elsewhere(work func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	<-done
}

// memoryAlarmV1 is the kernel's notice, for it kills one process where the limit is the task's.
func (g *Group) memoryAlarmV1() (*os.File, error) {
	if !g.place.enforces(memory) {
		return nil, nil
	}
	control, err := plain.Number(filepath.Join(g.folder(memory), "memory.oom_control"), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(control)
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	alarm := os.NewFile(uintptr(event), "memory alarm")
	err = write(filepath.Join(g.folder(memory), "cgroup.event_control"), fmt.Sprintf("%d %d", event, control))
	if err != nil {
		alarm.Close()
		return nil, err
	}
	return alarm, nil
}
