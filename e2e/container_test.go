package e2e

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/rogpeppe/go-internal/testscript"

	"starling/driver/container/containertest"
)

// containers starts a containerd and a registry with the images app:1, app:2 and foreign:1, the lists list:1 of app:1
// and none:1 of nothing, and puts their places into the variables CONTAINERD and REGISTRY; PRIVATE is the
// same registry for the user robot with the password swordfish. Without what that needs the script is skipped.
func containers(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) > 0 {
			ts.Fatalf("usage: containers")
		}
		startContainerd(ts, false, []string{"CONTAINERD"})
		registry := containertest.NewRegistry()
		ts.Defer(registry.Close)
		*ts.Value(registryKey{}).(**containertest.Registry) = registry
		for _, version := range []string{"1", "2"} {
			registry.Push(t, "app:"+version, app(t, version))
		}
		registry.Push(t, "foreign:1", containertest.For(t, app(t, "1"), "linux", "s390x", v1.Config{}))
		registry.PushIndex(t, "list:1", app(t, "1"))
		registry.PushList(t, "none:1", empty.Index)
		ts.Setenv("REGISTRY", registry.Host)
		guarded := httptest.NewServer(registry.Guarded("robot", "swordfish"))
		ts.Defer(guarded.Close)
		ts.Setenv("PRIVATE", strings.TrimPrefix(guarded.URL, "http://"))
	}
}

// startContainerd starts a containerd for another machine, and puts its socket into a variable: containerd ANOTHER.
func startContainerd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: containerd VARIABLE")
	}
	if missing := containertest.Missing(); missing != "" {
		ts.Value(skipKey{}).(func(...any))(missing)
	}
	folder, err := os.MkdirTemp("", "starling-e2e-containerd-") // short, for the socket
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(folder) })
	engine, err := containertest.Start(folder)
	ts.Check(err)
	ts.Defer(engine.Kill)
	ts.Setenv(args[0], engine.Socket)
}

// registryKey leads to the registry of a script.
type registryKey struct{}

// endRegistry ends the registry, so that nothing answers in its place: no-registry.
func endRegistry(ts *testscript.TestScript, neg bool, args []string) {
	registry := *ts.Value(registryKey{}).(**containertest.Registry)
	if neg || len(args) > 0 || registry == nil {
		ts.Fatalf("usage: no-registry, after containers")
	}
	registry.Close()
}

// pushApp moves a tag of the registry to a version of app.
func pushApp(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 2 {
			ts.Fatalf("usage: push-app NAME:TAG VERSION")
		}
		registry := containertest.Registry{Host: ts.Getenv("REGISTRY")}
		registry.Push(t, args[0], app(t, args[1]))
	}
}

// skipKey leads to what skips a script.
type skipKey struct{}

// app is an image of a shell and a script that says which version it is of.
func app(t *testing.T, version string) v1.Image {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	entries := []containertest.Entry{
		containertest.File("bin/busybox", containertest.Program(t, busybox)),
		containertest.File("bin/app", []byte("#!/bin/sh\necho version "+version+" as $(id -un) in $PWD: $*\n"+
			"trap 'echo told to end; exit 0' USR1\ntouch /run/ready\nwhile :; do sleep 0.1; done\n")),
		containertest.File("etc/passwd", []byte("root:x:0:0::/:/bin/sh\nweb:x:1234:1234::/srv:/bin/sh\n")),
		containertest.File("srv/file", nil),
	}
	for _, name := range []string{"sh", "id", "touch", "sleep", "test", "cat"} {
		entries = append(entries, containertest.Link(filepath.Join("bin", name), "busybox"))
	}
	return containertest.Image(t, v1.Config{Entrypoint: []string{"/bin/app"}, Cmd: []string{"usual"},
		WorkingDir: "/srv", Env: []string{"PATH=/bin"}, StopSignal: "SIGUSR1"}, entries...)
}
