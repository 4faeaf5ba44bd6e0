package process_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/device"
	"starling/driver/process"
)

// gpus makes devices that look like GPUs, and read like /dev/zero.
func gpus(t *testing.T, count int) (all []device.GPU) {
	t.Helper()
	for i := range count {
		path := fmt.Sprintf("/dev/starling-test-%d-gpu%d", os.Getpid(), i)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
			t.Skipf("devices for the test cannot be made: %v", err)
		}
		t.Cleanup(func() { _ = os.Remove(path) })
		all = append(all, device.GPU{Files: []string{path}})
	}
	return all
}

// TestGPUs has tasks look for GPUs: each finds those that it was given, and no others.
func TestGPUs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if b.Unconfined() != nil {
		t.Skip(b.Unconfined())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	all := gpus(t, 4)
	var err error
	b.Driver, err = process.Open(process.Config{Dir: b.folder, Supervisor: []string{b.binary, superviseWord}, GPUs: all})
	if err != nil {
		t.Fatal(err)
	}
	script := `for d in /dev/starling-test-*; do test -c "$d" && head -c 1 "$d" > /dev/null && printf '%s ' "${d##*-}"; done
		echo "$CUDA_VISIBLE_DEVICES/$NVIDIA_VISIBLE_DEVICES/$ROCR_VISIBLE_DEVICES"`
	for _, test := range []struct {
		id      string
		numbers []uint32
		env     string
		want    string
	}{
		{"none", nil, "A=B", "//"},
		{"one", []uint32{3}, "A=B", "gpu3 3/3/3"},
		{"two", []uint32{0, 2}, "CUDA_VISIBLE_DEVICES=1", "gpu0 gpu2 1/0,2/0,2"}, // what the job says itself wins
	} {
		task := driver.Task{ID: test.id, Command: []string{"sh", "-c", script}, Env: []string{"PATH=/bin:/usr/bin", test.env},
			Devices: []driver.Device{{Kind: "virtual-peers", Number: 1}}}
		for _, number := range test.numbers {
			task.Devices = append(task.Devices, driver.Device{Kind: device.Kind, Number: number})
		}
		b.start(t, task)
		b.exited(t, test.id)
		if got := strings.TrimSpace(b.output(t, test.id, driver.Stdout)); got != test.want {
			t.Errorf("%s: found %q, want %q", test.id, got, test.want)
		}
	}
}

// TestNothingIsLeft kills supervisors, with a driver and without, and then looks for what tasks had of the machine.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ids := []string{"leaves-a", "leaves-b", "leaves-c", "leaves-d"}
	for _, id := range ids {
		b.start(t, driver.Task{ID: id, Command: []string{"sh", "-c", "setsid sleep 1000 & sleep 1000 & echo ready; wait"},
			Env: []string{"PATH=/bin:/usr/bin", "LEAVES=" + b.folder}})
		b.ready(t, id)
	}
	kill := func(id string) {
		if err := syscall.Kill(b.supervisor(t, id), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	kill("leaves-a")
	unseen := b.supervisor(t, "leaves-b")
	b.reopen(t, func() { _ = syscall.Kill(unseen, syscall.SIGKILL) })
	b.stop(t, "leaves-c", 0)
	b.stop(t, "leaves-d", 0)
	for _, id := range ids {
		b.exited(t, id)
		if err := b.Forget(id); err != nil {
			t.Error(err)
		}
	}
	if !b.findsRemains() {
		t.Skip("the driver warns that processes may survive")
	}
	for _, left := range remains(t, b.folder, "leaves-") {
		t.Errorf("left is %s", left)
	}
}

// remains lists processes with the folder in their environment, mounts below it, folders of tasks, and control groups
// with the name.
func remains(t *testing.T, folder, name string) (left []string) {
	t.Helper()
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		env, err := os.ReadFile("/proc/" + p.Name() + "/environ")
		if err == nil && strings.Contains(string(env), "LEAVES="+folder) {
			left = append(left, "the process "+p.Name())
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), folder) {
		left = append(left, fmt.Sprintf("a mount (%v)", err))
	}
	tasks, err := os.ReadDir(folder + "/tasks")
	if err != nil || len(tasks) > 0 {
		left = append(left, fmt.Sprintf("the folders %v (%v)", tasks, err))
	}
	return append(left, groupsNamed(name)...)
}
