package container_test

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/container"
	"starling/driver/container/containertest"
	"starling/driver/device"
	"starling/driver/process"
	"starling/driver/scope"
)

// TestImage has the image say what the task does not.
func TestImage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := hosted(t, v1.Config{
		User: "worker", WorkingDir: "/srv", Env: []string{"PATH=/usr/bin", "A=image", "B=image"},
		Entrypoint: []string{"sh", "-c"}, Cmd: []string{`id -u; id -gn; id -Gn; pwd; echo $A $B; echo $PATH`},
	}, containertest.File("etc/passwd", []byte("worker:x:1234:1234::/home/worker:/bin/sh\n")),
		containertest.File("etc/group", []byte("worker:x:1234:\nmore:x:77:worker\n")))
	b.start(t, driver.Task{ID: "as made", Container: c, Env: []string{"B=task"}})
	want := "1234\nworker\nworker more\n/srv\nimage task\n/usr/bin\n"
	if said := b.output(t, "as made", false); said != want {
		t.Errorf("got %q, want %q", said, want)
	}
	others := *c
	others.Arguments = []string{"echo arguments; id -u"}
	b.start(t, driver.Task{ID: "arguments", Container: &others, User: "77:1234"})
	if got, want := b.output(t, "arguments", false), "arguments\n77\n"; got != want {
		t.Errorf("with arguments: got %q, want %q", got, want)
	}
	others.Arguments = []string{"more"}
	b.start(t, driver.Task{ID: "command", Container: &others, Command: []string{"echo", "command"}})
	if got, want := b.output(t, "command", false), "command more\n"; got != want {
		t.Errorf("with a command: got %q, want %q", got, want)
	}
	b.start(t, driver.Task{ID: "nobody", Container: c, User: "nobody-here"})
	got := b.exited(t, "nobody")
	if !strings.Contains(got.Error, "nobody-here") || !strings.Contains(got.Error, "passwd") {
		t.Errorf("an unknown account: got %+v", got)
	}
	linked := hosted(t, v1.Config{User: "worker"}, containertest.Link("etc/passwd", "/nix/passwd"),
		containertest.Link("etc/group", "/nix/down/../group"), containertest.Link("nix", "/store"),
		containertest.File("store/down/other", nil),
		containertest.File("store/passwd", []byte("worker:x:1234:1234::/home/worker:/bin/sh\n")),
		containertest.File("store/group", []byte("worker:x:1234:\nmore:x:77:worker\n")))
	b.start(t, driver.Task{ID: "linked", Container: linked, Command: shell("id -u; id -G")})
	if got, want := b.output(t, "linked", false), "1234\n1234 77\n"; got != want {
		t.Errorf("with accounts behind absolute links: got %q, want %q", got, want)
	}
	b.start(t, driver.Task{ID: "circle", Command: shell("id -G"),
		Container: hosted(t, v1.Config{}, containertest.Link("etc/group", "/etc/group"))})
	if got := b.exited(t, "circle"); !strings.Contains(got.Error, "the image's /etc/group: ") {
		t.Errorf("with groups that cannot be read: got %+v", got)
	}
	empty := hosted(t, v1.Config{})
	if err := b.Start(b.ctx, driver.Task{ID: "empty", Container: empty}); err == nil ||
		!strings.Contains(err.Error(), "give the task a command") {
		t.Errorf("an image without a program: got error %v", err)
	}
}

// TestOddAccounts has images whose files of accounts are no files, or too large.
func TestOddAccounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	device := tar.Header{Name: "etc/group", Typeflag: tar.TypeChar, Mode: 0o644, Devmajor: 1, Devminor: 5}
	for want, entry := range map[string]containertest.Entry{
		"/etc/passwd is no file":    {Header: tar.Header{Name: "etc/passwd", Typeflag: tar.TypeFifo, Mode: 0o644}},
		"/etc/group is no file":     {Header: device},
		"/etc/passwd has more than": containertest.File("etc/passwd", make([]byte, 2<<20)),
	} {
		b.start(t, driver.Task{ID: want, Container: hosted(t, v1.Config{}, entry), Command: []string{"true"}})
		if got := b.exited(t, want); !strings.Contains(got.Error, want) {
			t.Errorf("got %+v, want the error %q", got, want)
		}
	}
}

// TestIsolation looks at the machine from within.
func TestIsolation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := hosted(t, v1.Config{})
	script := `grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status; ls /proc | grep -c '^[0-9]'; cat /proc/1/environ;
		touch /made && echo made; mknod /disk b 254 0 && cat /disk; mount -t tmpfs none /mnt; ls /root-of-machine`
	b.start(t, driver.Task{ID: "usual", Container: c, Command: shell(script)})
	got := b.output(t, "usual", false)
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t00000000a00425fb", "made",
		"/proc/1/environ: Permission denied", "mount: ", "mknod: /disk: Operation not permitted"} {
		if !strings.Contains(got, want) {
			t.Errorf("it saw %q, which lacks %q", got, want)
		}
	}
	maker := *c
	maker.Capabilities = []string{"MKNOD"}
	b.start(t, driver.Task{ID: "maker", Container: &maker, Command: shell(`mknod /disk b 254 0 && echo made; cat /disk`)})
	got = b.output(t, "maker", false)
	if !strings.HasPrefix(got, "made\n") || !strings.Contains(got, "/disk: Operation not permitted") {
		t.Errorf("who may make devices saw %q", got)
	}
	closed := *c
	closed.ReadOnly, closed.Capabilities = true, []string{"NET_ADMIN"}
	closed.Mounts = append(slices.Clone(c.Mounts), driver.Mount{Path: "/cache"})
	script = `touch /made || echo refused; touch /cache/made && echo cached; grep CapEff /proc/self/status`
	b.start(t, driver.Task{ID: "closed", Container: &closed, Command: shell(script), User: "1234"})
	got = b.output(t, "closed", false)
	for _, want := range []string{"refused", "cached", "CapEff:\t0000000000001000"} {
		if !strings.Contains(got, want) {
			t.Errorf("with a read-only root it saw %q, which lacks %q", got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := hosted(t, v1.Config{})
	b.start(t, driver.Task{ID: "eater", Container: c, Command: []string{"tail", "/dev/zero"},
		Limits: driver.Limits{MemoryBytes: 64 << 20}})
	if got := b.exited(t, "eater"); !got.OutOfMemory || got.Signal != 9 {
		t.Errorf("got %+v, want it killed for want of memory", got)
	}
	b.start(t, driver.Task{ID: "bomb", Container: c, Command: shell(`for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; echo all`),
		Limits: driver.Limits{Processes: 5}})
	if got := b.output(t, "bomb", false); strings.Contains(got, "all") {
		t.Errorf("more processes ran than may: %q", got)
	}
}

func TestStopSignal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := hosted(t, v1.Config{StopSignal: "SIGUSR1"})
	b.start(t, driver.Task{ID: "server", Container: c, Command: shell(`trap 'echo told; exit 3' USR1; echo ready; while :; do sleep 0.05; done`)})
	if line := b.output(t, "server", true); line != "ready\n" {
		t.Fatalf("it wrote %q", line)
	}
	if err := b.Stop("server", time.Hour); err != nil {
		t.Error(err)
	}
	if got := b.exited(t, "server"); got.ExitCode != 3 {
		t.Errorf("got %+v, want it to end by the signal that the image names", got)
	}
}

// TestVolumeAtPath has a volume where the job wants it, of the account that the image names.
func TestVolumeAtPath(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := hosted(t, v1.Config{User: "1234:1234"})
	c.Mounts = append(c.Mounts, driver.Mount{Path: "/data", Volume: "data"})
	for _, want := range []string{"/data\n1\n", "/data\n2\n"} {
		b.start(t, driver.Task{ID: want, Container: c, Command: shell(`echo $DATA; echo line >> $DATA/kept; wc -l < /data/kept`),
			Volumes: []driver.Volume{{Set: "db.main[0]@1", Name: "data", Variable: "DATA"}}})
		if got := b.output(t, want, false); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestMountsInEachOther has mounts that lie in each other, told in the wrong order.
func TestMountsInEachOther(t *testing.T) {
	t.Parallel()
	b, folder := newBench(t), t.TempDir()
	c := hosted(t, v1.Config{})
	c.Mounts = append(c.Mounts, driver.Mount{Path: "/a/b/c/d"}, driver.Mount{Path: "/a/b/c", Folder: folder},
		driver.Mount{Path: "/a/b", Volume: "data"}, driver.Mount{Path: "/a"})
	b.start(t, driver.Task{ID: "reader", Container: c, Command: shell(`touch /a/b/c/d/made && grep -o ' /a[^ ]* ' /proc/self/mounts`),
		Volumes: []driver.Volume{{Set: "db.main[0]@1", Name: "data", Variable: "DATA"}}})
	if got, want := b.output(t, "reader", false), " /a \n /a/b \n /a/b/c \n /a/b/c/d \n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReads has the account that an image names read what the peer has brought for it.
func TestReads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	brought, err := b.MakeVolume(driver.Volume{Set: "other", Name: "output"})
	if err == nil {
		err = os.WriteFile(filepath.Join(brought, "text"), []byte("brought\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.start(t, driver.Task{ID: "reader", Container: hosted(t, v1.Config{User: "1234:1234"}),
		Command: shell(`cat ` + brought + `/text`), Reads: []string{brought}})
	if got, want := b.output(t, "reader", false), "brought\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSecrets gives a secret file to the account of the image alone, and looks for the environment in all files.
func TestSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := hosted(t, v1.Config{User: "1234"})
	files := &driver.FileSet{Version: 1, Files: []driver.File{{Path: "key", Content: []byte("opens\n"), Secret: true}}}
	b.start(t, driver.Task{ID: "secretive", Container: c, Env: []string{"PASSWORD=xyzzy-plugh"}, Files: files,
		Command: shell(`cat ` + b.FilesFolder("secretive") + `/key; exec sleep 1000`)})
	if line := b.output(t, "secretive", true); line != "opens\n" {
		t.Errorf("it read %q in its file", line)
	}
	files.Version = 2
	if err := b.Renew("secretive", *files, 0); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(b.FilesFolder("secretive"), "key"))
	if err != nil || info.Mode().Perm() != 0o600 || owner(info) != 1234 {
		t.Errorf("the renewed file is %v (%v), of %d", info, err, owner(info))
	}
	err = filepath.WalkDir(b.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "xyzzy-plugh") {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestEvilLayers unpacks layers that try to leave their file system, and one with a device.
func TestEvilLayers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	outside := filepath.Join(b.folder, "out")
	for name, entries := range map[string][]containertest.Entry{
		"path":      {containertest.File("../../../../../.."+outside, []byte("evil"))},
		"link":      {containertest.Link("etc", "/"), containertest.File("etc"+outside, []byte("evil"))},
		"hard link": {{Header: tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../../../../../../etc/shadow"}}},
		"device":    {{Header: tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Mode: 0o666, Devmajor: 254}}},
	} {
		task := driver.Task{ID: name, Container: hosted(t, v1.Config{}, entries...), Command: shell("cat /disk /hard")}
		if err := b.Start(b.ctx, task); err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		got := b.output(t, name, false)
		if strings.Contains(got, "root:") || name == "device" && !strings.Contains(got, "/disk: Operation not permitted") {
			t.Errorf("%s: it read %q", name, got)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a layer wrote outside of its file system")
	}
}

// TestEngineIsCovered has a process of the machine look for the socket of containerd.
func TestEngineIsCovered(t *testing.T) {
	t.Parallel()
	need(t)
	b := newBench(t)
	b.start(t, driver.Task{ID: "process", Command: shell("test -S " + engine.Socket), Env: []string{"PATH=/usr/bin:/bin"}})
	if got := b.exited(t, "process"); b.Unconfined() == nil && (got.ExitCode != 1 || got.Error != "") {
		t.Errorf("a process that looks for the socket ends with %+v, want that it is not there", got)
	}
}

// TestGPU gives a container one of two devices.
func TestGPU(t *testing.T) {
	t.Parallel()
	need(t)
	b := newBench(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	var all []device.GPU
	for i := range 2 {
		path := fmt.Sprintf("/dev/starling-test-%d-contained%d", os.Getpid(), i)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(path) })
		all = append(all, device.GPU{Files: []string{path}})
	}
	var err error
	b.Driver, err = container.Open(container.Config{Socket: engine.Socket,
		Config: process.Config{Dir: b.folder, Supervisor: []string{testBinary(t), superviseWord},
			LeaveScope: scope.Leave, GPUs: all}})
	if err != nil {
		t.Fatal(err)
	}
	b.start(t, driver.Task{ID: "gpu", Container: hosted(t, v1.Config{}),
		Devices: []driver.Device{{Kind: device.Kind, Number: 1}},
		Command: shell(`for d in /dev/starling-test-*; do head -c 1 "$d" > /dev/null && echo "${d##*-} $CUDA_VISIBLE_DEVICES"; done`)})
	if got := b.exited(t, "gpu"); got.ExitCode != 0 {
		t.Errorf("got %+v", got)
	}
	if got := b.output(t, "gpu", false); got != "contained1 1\n" {
		t.Errorf("it found %q, want the second", got)
	}
}

// TestHostPaths has a container use folders of the machine.
func TestHostPaths(t *testing.T) {
	t.Parallel()
	b, folder := newBench(t), t.TempDir()
	data, link := filepath.Join(folder, "data"), filepath.Join(folder, "link")
	mounted := filepath.Join(data, "mounted")
	if err := os.MkdirAll(mounted, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "size=64k,mode=777"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) })
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	c := hosted(t, v1.Config{WorkingDir: "/there"})
	c.Mounts = append(c.Mounts, driver.Mount{Path: "/there", Volume: "data"})
	b.start(t, driver.Task{ID: "fixed", Container: c,
		Command:   shell(`echo $DATA; pwd; for at in . mounted; do touch $at/made 2> /dev/null && echo $at changed; done; true`),
		HostPaths: []driver.HostPath{{Name: "data", Path: data, ReadOnly: true, Variable: "DATA"}}})
	if got, want := b.output(t, "fixed", false), "/there\n/there\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.start(t, driver.Task{ID: "free", Container: c, Command: shell(`for at in . mounted; do touch $at/made && echo $at changed; done`),
		HostPaths: []driver.HostPath{{Name: "data", Path: data, Variable: "DATA"}}})
	if got, want := b.output(t, "free", false), ". changed\nmounted changed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(data, "made")); err != nil {
		t.Error(err)
	}
	b.start(t, driver.Task{ID: "link", Container: c, Command: shell(`ls $DATA`),
		HostPaths: []driver.HostPath{{Name: "data", Path: link, Variable: "DATA"}}})
	if got, want := b.exited(t, "link"), "leads elsewhere by a symbolic link now"; !strings.Contains(got.Error, want) {
		t.Errorf("got %+v, want the error %q", got, want)
	}
}
