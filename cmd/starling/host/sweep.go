package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"starling/cluster"
	"starling/cluster/workload"
	"starling/driver/container"
	"starling/driver/process"
	"starling/driver/scope"
	"starling/terms"
)

// Sweep ends the tasks in data directories that match the pattern and whose owners were killed, and removes those
// directories. It is for data that nobody will come back to. What another user may have put there it leaves alone.
func Sweep(pattern string) error {
	left, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("look for what was left behind: %w", err)
	}
	var errs []error
	for _, path := range left {
		if !abandoned(path) {
			continue
		}
		if err := sweepFolder(path); err != nil {
			errs = append(errs, fmt.Errorf("clear %s away: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// abandoned tells whether the process that held the folder is gone. One that is only being made has no owner yet, and
// one that others could write in tells nothing: neither its lock nor its records need be true.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return false
	}
	text, err := os.ReadFile(filepath.Join(path, lockName))
	if err != nil {
		return false
	}
	owner, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return err == nil && errors.Is(syscall.Kill(owner, 0), syscall.ESRCH)
}

func sweepFolder(path string) error {
	held, err := HoldFolder(path)
	if err != nil {
		return err
	}
	defer held.Release()
	hosts, err := filepath.Glob(filepath.Join(path, "*", driverFolder))
	if err != nil {
		return err
	}
	for _, folder := range hosts {
		machine := filepath.Dir(folder)
		for _, one := range []string{machine, folder} {
			if info, err := os.Lstat(one); err != nil || !info.IsDir() {
				return cmp.Or(err, fmt.Errorf("%s is not a folder", one))
			}
		}
		if err := EndTasks(machine); err != nil {
			return err
		}
	}
	return os.RemoveAll(path)
}

// EndTasks kills the tasks that a machine's peer has left behind in its folder. No peer may run there.
func EndTasks(folder string) error {
	tasks, err := process.Open(process.Config{Dir: filepath.Join(folder, driverFolder),
		Supervisor: []string{"none, for nothing is started"}, LeaveScope: scope.Leave})
	if err != nil {
		return err
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return errors.Join(endTasks(now, tasks, 0), tasks.Close())
}

// runContainers waits until containers can run here, says so if the machine has offered none, and then looks after
// their images until ctx ends.
func (h *Host) runContainers(ctx context.Context, tasks *container.Driver) {
	select {
	case <-tasks.Found():
	case <-ctx.Done():
		return
	}
	if h.offer(ctx, func(o *terms.Offer) { offerDriver(o, tasks) }) {
		h.config.Log.Info("containerd is there: containers run here from now on", "version", tasks.Version())
	}
	h.collectImages(ctx, tasks)
}

// collectImages removes the images that no version of a job has named for long, until ctx ends.
func (h *Host) collectImages(ctx context.Context, tasks *container.Driver) {
	for keep := cmp.Or(h.config.KeepImages, container.KeepDefault); ; {
		removed, err := h.collectOnce(ctx, tasks, keep)
		if err != nil && ctx.Err() == nil {
			h.config.Log.Warn("images that nothing needs could not be removed; trying again", "error", err)
		}
		for _, name := range removed {
			h.config.Log.Info("an image that no job has named for long is removed", "image", name)
		}
		select {
		case <-time.After(container.CollectEvery(keep)):
		case <-ctx.Done():
			return
		}
	}
}

// collectOnce needs the newest value: to a peer that is behind, images of new jobs would be those of none.
func (h *Host) collectOnce(ctx context.Context, tasks *container.Driver,
	keep time.Duration) (removed []string, err error) {
	head, err := h.Head(ctx)
	if err != nil {
		return nil, err
	}
	state, err := h.State(ctx, head)
	if err != nil {
		return nil, err
	}
	return tasks.Collect(ctx, imagesOf(state), keep)
}

// imagesOf names the images of all versions of all jobs that the value has.
func imagesOf(state *cluster.State) (all []string) {
	state.EachJobByName("", func(j *workload.Job) bool {
		for _, v := range j.Versions {
			for i := range v.Spec.Tasks {
				if name := v.Spec.Tasks[i].Container.Image; name != "" {
					all = append(all, name)
				}
			}
		}
		return true
	})
	return all
}
