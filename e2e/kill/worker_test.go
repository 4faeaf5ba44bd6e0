package kill

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	starlingv1 "starling/api/v1"
	"starling/terms"
)

const gateSuffix = ".gate"

// worker is an instance that works until the gate of its job is opened, and then ends well, or until it is told to end.
func worker(folder string) int { return workUntil(folder, true) }

// stubborn is a worker that is told to end in vain.
func stubborn(folder string) int { return workUntil(folder, false) }

func workUntil(folder string, told bool) int {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	opened := make(chan error, 1)
	err := leave(folder, begunSuffix)
	go func() { opened <- awaitUnlocked(proofOf(folder, os.Getenv("STARLING_JOB"), gateSuffix)) }()
	for ends := false; err == nil && !ends; {
		select {
		case <-terminated:
			err, ends = leave(folder, toldSuffix), told
		case err = <-opened:
			ends = err == nil
			if ends {
				err = leave(folder, doneSuffix)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	return 0
}

// What a worker takes: there is room for twelve.
const (
	workerCPU    = 1000
	workerMemory = 128 << 20
)

// workers is a job of workers; open lets them end.
func (tr *trial) workers(name string, instances uint32) (spec *terms.Job, open func()) {
	tr.Helper()
	spec = tr.job(name, terms.Batch, workerRole, instances)
	spec.Tasks[0].Resources = terms.Resources{terms.CPU: workerCPU, terms.Memory: workerMemory}
	return spec, tr.hold(proofOf(tr.watched, name, gateSuffix))
}

// poolFor is a pool that is promised room for so many workers, and takes it back soon.
func poolFor(path terms.PoolPath, workers int64) terms.Pool {
	spec := terms.NewPool(path)
	spec.Quotas[terms.CPU].Reservation = workers * workerCPU
	spec.Quotas[terms.Memory].Reservation = workers * workerMemory
	spec.PreemptionDelayMillis = 200
	return spec
}

// makePools adds pools to the tree.
func (tr *trial) makePools(pools ...terms.Pool) {
	tr.Helper()
	api := tr.asked()
	_, err := api.ChangePools(tr.soon(), 0, pools, nil)
	tr.must(err)
	tr.written = api.Seen()
}

// awaitShare waits until so many instances of a job run, and the others wait and nothing of them is left.
func (tr *trial) awaitShare(job string, running uint32) []*starlingv1.Slot {
	tr.Helper()
	var last *starlingv1.JobStatusResponse
	err := tr.asked().FollowJob(tr.soon(), &starlingv1.JobStatusRequest{Job: job},
		func(status *starlingv1.JobStatusResponse) (bool, error) {
			last = status
			c := status.GetJob().GetCounts()
			return c.GetRunning() == running && c.GetWaiting() == c.GetDesired()-running, nil
		})
	if err != nil {
		tr.Fatalf("waits until %d instances of %s run: %v; it is %v", running, job, err, last)
	}
	return last.GetSlots()
}

// proofs returns for which allocations of a job there is a file of a kind.
func (tr *trial) proofs(job, suffix string) []string {
	tr.Helper()
	files, err := filepath.Glob(proofOf(tr.watched, job, ".*"+suffix))
	tr.must(err)
	var found []string
	for _, file := range files {
		found = append(found, strings.TrimSuffix(strings.ReplaceAll(filepath.Base(file), "%", "/"), suffix))
	}
	return found
}

// wantProofs wants files of a kind for so many allocations of a job.
func (tr *trial) wantProofs(job, suffix string, want int) {
	tr.Helper()
	if found := tr.proofs(job, suffix); len(found) != want {
		tr.Errorf("%s: these are %s: %q, want %d", job, strings.TrimPrefix(suffix, "."), found, want)
	}
}

// awaitBegun waits until so many allocations of a job, or of several, have begun: that is after the value has them
// running.
func (tr *trial) awaitBegun(job string, want int) { tr.awaitProofs(job, begunSuffix, want) }

// awaitProofs waits for files of a kind for so many allocations of a job.
func (tr *trial) awaitProofs(job, suffix string, want int) {
	tr.Helper()
	tr.eventually(fmt.Sprintf("%d of %s are %s", want, job, strings.TrimPrefix(suffix, ".")), func() string {
		if found := tr.proofs(job, suffix); len(found) != want {
			return fmt.Sprintf("these are: %q", found)
		}
		return ""
	})
}

// finish opens what is left, and wants jobs to succeed.
func (tr *trial) finish(open []func(), jobs ...string) {
	tr.Helper()
	for _, o := range open {
		o()
	}
	for _, job := range jobs {
		tr.awaitDone(tr.Agents[0], job)
		tr.judgeJob(tr.Agents[0], tr.status(tr.Agents[0], job).GetJob())
	}
	tr.wantTasks(nil)
	tr.wantWhole()
}
