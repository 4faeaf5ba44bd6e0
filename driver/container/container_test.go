package container_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"starling/driver"
	"starling/driver/container"
	"starling/driver/container/containertest"
	"starling/driver/drivertest"
	"starling/driver/process"
	"starling/driver/scope"
)

// testTimeout is how long a test waits for what must happen.
const testTimeout = 2 * time.Minute

const (
	superviseWord = "supervise"
	smallWord     = "small"
	programWord   = "program"
)

// Of all tests.
var (
	engine   *containertest.Containerd
	registry *containertest.Registry
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case superviseWord:
			os.Exit(process.Supervise(os.Args[2], container.Mount))
		case smallWord:
			os.Exit(process.Supervise(os.Args[2], nil))
		case programWord:
			os.Exit(drivertest.Program(os.Args[2:]))
		}
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	registry = containertest.NewRegistry()
	defer registry.Close()
	if containertest.Missing() == "" {
		folder, err := os.MkdirTemp("", "starling-containerd-test")
		if err == nil {
			defer os.RemoveAll(folder)
			engine, err = containertest.Start(folder)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer engine.Kill()
	}
	return m.Run()
}

func testBinary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, folder string) *container.Driver {
	t.Helper()
	d, err := container.Open(container.Config{Socket: engine.Socket,
		Config: process.Config{Dir: folder, Supervisor: []string{testBinary(t), superviseWord},
			Small: []string{testBinary(t), smallWord}, LeaveScope: scope.Leave}})
	if err != nil {
		t.Fatal(err)
	}
	if d.Missing() != nil {
		t.Fatal(d.Missing())
	}
	return d
}

// need skips a test on a machine without containers.
func need(t testing.TB) {
	t.Helper()
	if missing := containertest.Missing(); missing != "" {
		t.Skip(missing)
	}
}

// hosted is a container of an image with these entries, which sees the programs of the machine and the folders of tests
// at their own paths.
func hosted(t testing.TB, config v1.Config, entries ...containertest.Entry) *driver.Container {
	t.Helper()
	entries = append(entries, containertest.Link("bin", "usr/bin"), containertest.Link("lib", "usr/lib"),
		containertest.Link("lib64", "usr/lib64"))
	_, pinned := registry.Push(t, "hosted:1", containertest.Image(t, config, entries...))
	c := &driver.Container{Image: pinned, Mounts: []driver.Mount{{Path: "/usr", Folder: "/usr", ReadOnly: true},
		{Path: os.TempDir(), Folder: os.TempDir()}}}
	if folder := filepath.Dir(testBinary(t)); filepath.Dir(filepath.Dir(folder)) != os.TempDir() {
		c.Mounts = append(c.Mounts, driver.Mount{Path: folder, Folder: folder, ReadOnly: true})
	}
	return c
}

func TestContract(t *testing.T) {
	need(t)
	drivertest.Test(t, drivertest.Machine{
		Open:      func(t *testing.T, folder string) driver.Driver { return open(t, folder) },
		Command:   []string{testBinary(t), programWord},
		Container: hosted(t, v1.Config{}),
	})
}

// bench is a driver over a folder, and what tests do with it.
type bench struct {
	*container.Driver
	ctx    context.Context
	folder string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	need(t)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	b := &bench{ctx: ctx, folder: t.TempDir()}
	if err := os.Chmod(filepath.Dir(b.folder), 0o755); err != nil { // for the accounts of images
		t.Fatal(err)
	}
	b.Driver = open(t, b.folder)
	t.Cleanup(func() {
		defer cancel()
		b.end(t)
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// end stops and forgets all tasks.
func (b *bench) end(t *testing.T) {
	t.Helper()
	for _, s := range b.Tasks() {
		if err := b.Stop(s.ID, 0); err != nil {
			t.Errorf("Stop(%q): %v", s.ID, err)
		}
		b.exited(t, s.ID)
		if err := b.Forget(s.ID); err != nil {
			t.Errorf("Forget(%q): %v", s.ID, err)
		}
	}
}

func (b *bench) reopen(t *testing.T, between func()) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	between()
	b.Driver = open(t, b.folder)
}

func (b *bench) start(t *testing.T, task driver.Task) {
	t.Helper()
	if err := b.Start(b.ctx, task); err != nil {
		t.Fatalf("Start(%q): %v", task.ID, err)
	}
}

func (b *bench) status(id string) driver.Status {
	for _, s := range b.Tasks() {
		if s.ID == id {
			return s
		}
	}
	return driver.Status{}
}

func (b *bench) exited(t *testing.T, id string) driver.Status {
	t.Helper()
	for {
		if s := b.status(id); s.State == driver.Exited {
			return s
		}
		select {
		case <-b.Changed():
		case <-b.ctx.Done():
			t.Fatalf("%s did not end within %v: %+v", id, testTimeout, b.status(id))
		}
	}
}

// output is all that a task writes to its standard output until it ends, or until it has written a line.
func (b *bench) output(t *testing.T, id string, lineOnly bool) string {
	t.Helper()
	log, err := b.Logs(b.ctx, id, driver.LogOptions{Stream: driver.Stdout, TailBytes: -1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if lineOnly {
		line, _ := bufio.NewReader(log).ReadString('\n')
		return line
	}
	text, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shell is a command that runs a script.
func shell(script string) []string { return []string{"/bin/sh", "-c", "exec 2>&1; " + script} }
