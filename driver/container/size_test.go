package container_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"starling/driver"
	"starling/driver/container"
	"starling/driver/process"
	"starling/driver/scope"
)

// supervisorBytesMax is what a supervisor may hold of its own while its task runs: twice what it needs.
const supervisorBytesMax = 2 << 20

// TestSupervisorsAreSmall runs a process and a container as an agent does, and looks at what their supervisors hold
// when they have settled. The path of the whole program means another one in a supervisor.
func TestSupervisorsAreSmall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	small := filepath.Join(t.TempDir(), "supervise")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", small, "starling/cmd/supervise")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	b.Driver, err = container.Open(container.Config{Socket: engine.Socket, Config: process.Config{Dir: b.folder,
		Supervisor: []string{"/proc/self/exe", superviseWord}, Small: []string{small}, LeaveScope: scope.Leave}})
	if err != nil {
		t.Fatal(err)
	}
	sleep := []string{"/usr/bin/sleep", "1000"}
	b.start(t, driver.Task{ID: "process", Command: sleep})
	b.start(t, driver.Task{ID: "container", Command: sleep, Container: hosted(t, v1.Config{})})
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	settled := time.After(15 * time.Second)
	for _, id := range []string{"process", "container"} {
		supervisor := parent(t, b.status(id).PID)
		for held := ownBytes(t, supervisor); held > supervisorBytesMax; held = ownBytes(t, supervisor) {
			select {
			case <-look.C:
			case <-settled:
				t.Fatalf("the supervisor of a %s holds %d bytes, want at most %d", id, held, supervisorBytesMax)
			}
		}
		t.Logf("the supervisor of a %s holds %d bytes", id, ownBytes(t, supervisor))
	}
}

// ownBytes is what a process holds that is no file's.
func ownBytes(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("the status of process %d has no RssAnon: %s", pid, status)
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
