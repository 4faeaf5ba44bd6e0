package container_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/container"
	"starling/driver/device"
	"starling/driver/process"
	"starling/driver/scope"
)

// graphics is a machine with two GPUs, whose devices have no driver, and a folder for specs of CDI.
type graphics struct {
	*bench
	// minors are the numbers of their devices, specs is the folder.
	minors [2]int
	specs  string
}

func newGraphics(t *testing.T, base int) *graphics {
	t.Helper()
	g := &graphics{bench: newBench(t), specs: t.TempDir()}
	root := t.TempDir()
	for i, bus := range []string{"0000:af:00.0", "0000:3b:00.0"} { // the first on the bus has the second number
		g.minors[1-i] = base + os.Getpid()%10000*10 + i
		folder := filepath.Join(root, "proc/driver/nvidia/gpus", bus)
		text := fmt.Sprintf("Model: \t NVIDIA Test\nGPU UUID: \t GPU-%d\nDevice Minor: \t %d\n", 1-i, g.minors[1-i])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "information"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range g.minors {
		if err := unix.Mknod(g.node(i), unix.S_IFCHR|0o660, int(unix.Mkdev(240, uint32(i+1)))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(g.node(i)) })
	}
	g.open(t, device.Find(root))
	return g
}

// open opens the driver anew.
func (g *graphics) open(t *testing.T, all []device.GPU) {
	t.Helper()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	g.Driver, err = container.Open(container.Config{Socket: engine.Socket,
		CDI: []string{filepath.Join(g.specs, "none"), g.specs},
		Config: process.Config{Dir: g.folder, Supervisor: []string{testBinary(t), superviseWord},
			LeaveScope: scope.Leave, GPUs: all}})
	if err != nil {
		t.Fatal(err)
	}
}

// node is the device of a GPU.
func (g *graphics) node(i int) string { return fmt.Sprintf("/dev/nvidia%d", g.minors[i]) }

// write writes a spec, in which FIRST and SECOND are the devices and FOLDER that of the specs.
func (g *graphics) write(t *testing.T, name, text string) {
	t.Helper()
	text = strings.NewReplacer("FIRST", g.node(0), "SECOND", g.node(1), "FOLDER", g.specs).Replace(text)
	if err := os.WriteFile(filepath.Join(g.specs, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// clear removes all specs.
func (g *graphics) clear(t *testing.T) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(g.specs, "*.yaml"))
	for _, path := range all {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// task is a container that was given the second GPU, and runs a script.
func (g *graphics) task(t *testing.T, id, script string) driver.Task {
	t.Helper()
	return driver.Task{ID: id, Container: hosted(t, v1.Config{}), Command: shell(script),
		Devices: []driver.Device{{Kind: "virtual-peers"}, {Kind: device.Kind, Number: 1}}}
}

// generated is a spec as vendors' programs write it.
const generated = `cdiVersion: 0.6.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits: {env: [SEEN=first], deviceNodes: [{path: FIRST}]}
- name: "1"
  containerEdits: {env: [SEEN=second], deviceNodes: [{path: SECOND, permissions: r}]}
- name: all
  containerEdits: {env: [SEEN=all], deviceNodes: [{path: FIRST}, {path: SECOND}]}
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void]
  mounts: [{hostPath: FOLDER/library, containerPath: /run/driver/library, options: [ro, nosuid, nodev, bind]}]
  hooks: [{hookName: createContainer, path: /bin/sh, args: [sh, -c, cat > FOLDER/hooked && env >> FOLDER/hooked]}]
`

// TestCDI gives a container one of two GPUs, of which a spec says what they need.
func TestCDI(t *testing.T) {
	t.Parallel()
	g := newGraphics(t, 200000)
	g.write(t, "nvidia.yaml", generated)
	g.write(t, "library", "code\n")
	g.start(t, g.task(t, "gpu", `cd /dev; echo nvidia[0-9]* $SEEN $NVIDIA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES; cat /run/driver/library
		echo x > /run/driver/library; cat nvidia[0-9]*; tee nvidia[0-9]* < /dev/null; mknod /other c 240 1 && cat /other`))
	got := g.output(t, "gpu", false)
	own := filepath.Base(g.node(1))
	for _, want := range []string{own + " second void GPU-1\ncode\n", "library: Read-only file system",
		"cat: " + own + ": No such device", "tee: " + own + ": Operation not permitted", "/other: Operation not permitted"} {
		if !strings.Contains(got, want) {
			t.Errorf("it found %q, which lacks %q", got, want)
		}
	}
	state, err := os.ReadFile(filepath.Join(g.specs, "hooked"))
	if err != nil || !strings.Contains(string(state), g.folder) {
		t.Errorf("the hook was told %q (%v), want the state of the container", state, err)
	}
	if strings.Contains(string(state), "SEEN=") {
		t.Errorf("the hook has the environment of the container: %s", state)
	}
	user := g.task(t, "user", "cat /dev/nvidia[0-9]*")
	user.User = "1234:1234"
	g.start(t, user)
	if got := g.output(t, "user", false); !strings.Contains(got, "No such device") {
		t.Errorf("for an account of its own the device is %q, want it to be open", got)
	}
	without := g.task(t, "without", "echo /dev/nvidia[0-9]* $SEEN")
	without.Devices = nil
	g.start(t, without)
	if got := g.output(t, "without", false); got != "/dev/nvidia[0-9]*\n" {
		t.Errorf("without a GPU it found %q", got)
	}
}

// TestCDINames has specs that name the GPU in other ways, or not at all, beside some that do not count.
func TestCDINames(t *testing.T) {
	t.Parallel()
	g := newGraphics(t, 400000)
	spec := func(kind string, devices ...string) string {
		return "cdiVersion: 0.6.0\nkind: " + kind + "\ndevices:\n" + strings.Join(devices, "")
	}
	named := func(name, nodes string) string {
		return fmt.Sprintf("- {name: %q, containerEdits: {env: [SEEN=%[1]s], deviceNodes: [%s]}}\n", name, nodes)
	}
	const second, part = "{path: SECOND}", "{path: SECOND}, {path: /dev/nvidia-caps/nvidia-cap3, type: c, major: 240, minor: 3}"
	for _, test := range []struct {
		name  string
		specs []string
		want  string
	}{
		{"identity", []string{spec("nvidia.com/gpu", named("1", second), named("GPU-1", second))}, "GPU-1"},
		{"stale number", []string{spec("nvidia.com/gpu", named("1", "{path: FIRST}"), named("0", second))}, "0"},
		{"elsewhere in the container", []string{spec("nvidia.com/gpu", named("x", "{path: /dev/x, hostPath: SECOND}"))}, "x"},
		{"part", []string{spec("nvidia.com/gpu", named("1:0", part))}, ""},
		{"all", []string{spec("nvidia.com/gpu", named("all", "{path: FIRST}, {path: SECOND}"))}, ""},
		{"another kind", []string{spec("management.nvidia.com/gpu", named("1", second))}, ""},
		{"conflict of another kind", []string{spec("a.b/c", named("1", second)), spec("a.b/c", named("1", second))}, ""},
		{"another that is broken", []string{spec("nvidia.com/gpu", named("1", second)), "{"}, "1"},
	} {
		for i, text := range test.specs {
			g.write(t, fmt.Sprintf("%d.yaml", i), text)
		}
		g.start(t, g.task(t, test.name, "test -c "+g.node(1)+" -a ! -e "+g.node(0)+" && echo \"$SEEN.\""))
		if got := g.output(t, test.name, false); got != test.want+".\n" {
			t.Errorf("%s: it found %q, want what %q has", test.name, got, test.want)
		}
		g.clear(t)
	}
}

// TestCDIThatCannotBeUsed has specs that are wrong where the GPU may be in them: nothing is started.
func TestCDIThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	g := newGraphics(t, 600000)
	for _, test := range []struct {
		name, want string
		specs      []string
	}{
		{"no YAML", "0.yaml", []string{"kind: [nvidia.com/gpu"}},
		{"no specification", "0.yaml", []string{"strange: 1\n"}},
		{"empty", "0.yaml", []string{""}},
		{"version", `0.yaml: invalid CDI Spec: invalid version`,
			[]string{strings.Replace(generated, "0.6.0", "9.9.9", 1)}},
		{"twice", "conflicting device", []string{generated, generated}},
		{"device that is not there", "/dev/starling-none",
			[]string{strings.Replace(generated, "permissions: r}]", "permissions: r}, {path: /dev/starling-none}]", 1)}},
		{"hook at the end", "poststop", []string{strings.Replace(generated, "createContainer", "poststop", 1)}},
	} {
		for i, text := range test.specs {
			g.write(t, fmt.Sprintf("%d.yaml", i), text)
		}
		err := g.Start(g.ctx, g.task(t, test.name, "echo started"))
		if err == nil || !strings.Contains(err.Error(), test.want) || g.status(test.name).State != 0 {
			t.Errorf("%s: got error %v and %+v, want one with %q and no task", test.name, err, g.status(test.name), test.want)
		}
		g.clear(t)
	}
	g.write(t, "library", "code\n")
	g.write(t, "fails.yaml", strings.Replace(generated, "cat > ", "exit 3; ", 1))
	g.start(t, g.task(t, "hook", "echo started"))
	ended := g.exited(t, "hook")
	if said := g.output(t, "hook", false); !strings.Contains(ended.Error, "hook") || said != "" {
		t.Errorf("a hook that fails: got %+v, and it said %q", ended, said)
	}
}

// TestCDIFolderThatIsNone has a file where the first of the folders is to be: nothing is known of what would be in it.
func TestCDIFolderThatIsNone(t *testing.T) {
	t.Parallel()
	g := newGraphics(t, 700000)
	g.write(t, "none", "")
	g.write(t, "nvidia.yaml", generated)
	err := g.Start(g.ctx, g.task(t, "gpu", "echo started"))
	if err == nil || !strings.Contains(err.Error(), "none: not a directory") || g.status("gpu").State != 0 {
		t.Errorf("got error %v and %+v, want one about the folder and no task", err, g.status("gpu"))
	}
}

// TestCDIWarnings tells of specs that cannot be used as soon as there is a driver, where there are GPUs.
func TestCDIWarnings(t *testing.T) {
	t.Parallel()
	g := newGraphics(t, 800000)
	g.write(t, "wrong.yaml", "{")
	wrong := func(line string) bool { return strings.Contains(line, "wrong.yaml") }
	if told := g.Warnings(); slices.ContainsFunc(told, wrong) {
		t.Errorf("before it was read it is told of: %q", told)
	}
	g.open(t, []device.GPU{{Files: []string{g.node(0)}}})
	if told := g.Warnings(); !slices.ContainsFunc(told, wrong) {
		t.Errorf("got the warnings %q, want one of wrong.yaml", told)
	}
	g.open(t, nil)
	if told := g.Warnings(); slices.ContainsFunc(told, wrong) {
		t.Errorf("without GPUs: got the warnings %q", told)
	}
}
