package kill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/e2e/agents"
	"starling/terms"
)

// diskBytes has room for the log of the engine, the next one, and the copy that it makes of one that was torn, each of
// which is 64 MB large at once.
const diskBytes = 224 << 20

// TestFullDisk fills the disk of the only machine that keeps the journal: its agent ends, and says why and what to do;
// its task goes on. With room again the agent starts, and nothing that was acknowledged is lost.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and mounts a disk")
	}
	t.Parallel()
	logFile := filepath.Join(t.TempDir(), "log") // on another disk
	tr := prepare(t, 3*time.Second, []string{"a"}, "--log-file", logFile)
	a := tr.Agents[0]
	err := syscall.Mount("tmpfs", a.Folder(), "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes))
	if errors.Is(err, syscall.EPERM) {
		t.Skip("only root mounts a disk")
	}
	tr.must(err)
	t.Cleanup(func() { tr.must(syscall.Unmount(a.Folder(), syscall.MNT_DETACH)) })
	tr.must(tr.Start(tr.soon()))
	tr.submit(tr.job("web", terms.Stateless, serverRole, 1))
	task := tr.wantTasks(tr.awaitRunning(a, "web"))

	filler := filepath.Join(a.Folder(), "filler")
	tr.fill(filler)
	acknowledged := tr.submitUntilEnded(a)
	log, err := os.ReadFile(logFile)
	tr.must(err)
	for _, want := range []string{"this node's etcd member cannot go on and ends the agent", "no space left on device",
		"free space on the disk of " + filepath.Join(a.Folder(), "etcd")} {
		if !strings.Contains(a.Said(), want) {
			t.Errorf("the agent says nothing of %q:\n%s", want, a.Said())
		}
	}
	if !strings.Contains(string(log), "etcd ends this process") {
		t.Errorf("the log does not tell why the agent has ended:\n%s", tail(string(log), 5))
	}
	if now := tr.processes(); len(now) != 1 {
		t.Errorf("processes %+v run on the full disk, want %+v", now, task)
	}
	tr.must(os.Remove(filler))
	tr.must(a.Start())
	tr.must(a.Ready(tr.soon()))
	for i := range acknowledged {
		tr.status(a, fmt.Sprintf("job-%d", i))
	}
	tr.awaitRunning(a, "web")
}

// fill writes a file until there is no room.
func (tr *trial) fill(path string) {
	tr.Helper()
	file, err := os.Create(path)
	tr.must(err)
	defer file.Close()
	for piece := make([]byte, 64<<10); err == nil; {
		_, err = file.Write(piece)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		tr.Fatal(err)
	}
}

// submitUntilEnded submits jobs that are large until the agent has ended, and returns how many were acknowledged.
func (tr *trial) submitUntilEnded(a *agents.Agent) int {
	tr.Helper()
	api := tr.asked(a)
	for i := 0; ; i++ {
		job := tr.job(fmt.Sprintf("job-%d", i), terms.Batch, witnessRole, 1)
		job.Tasks[0].Env = []terms.EnvVar{{Name: "LARGE", Value: strings.Repeat("x", 60<<10)}}
		job.Tasks[0].Resources[terms.CPU] = 1_000_000 // it waits for ever
		if _, err := api.SubmitJob(tr.soon(), job, 0); err != nil {
			tr.Logf("job %d: %v", i, err)
			if _, err := a.Ended(tr.soon()); err != nil {
				tr.Fatal(err)
			}
			return i
		}
	}
}
