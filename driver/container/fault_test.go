package container_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"starling/driver"
	"starling/driver/container"
	"starling/driver/container/containertest"
	"starling/driver/disk"
	"starling/driver/process"
	"starling/driver/scope"
)

func owner(info os.FileInfo) int {
	if info == nil {
		return -1
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// front is a registry behind another host name, of which some answers are changed.
func front(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool) (host string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer(w, r) {
			return
		}
		ask, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+registry.Host+r.URL.Path, nil)
		if err != nil {
			panic(err)
		}
		ask.Header = r.Header
		got, err := http.DefaultClient.Do(ask)
		if err != nil {
			panic(err)
		}
		defer got.Body.Close()
		for name, values := range got.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(got.StatusCode)
		_, _ = io.Copy(w, got.Body)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// impatient is a driver that waits for a registry for a moment only.
func impatient(t *testing.T, c *containertest.Containerd) *container.Driver {
	t.Helper()
	d, err := container.Open(container.Config{Socket: c.Socket, Stall: time.Second,
		Config: process.Config{Dir: t.TempDir(), Supervisor: []string{testBinary(t), superviseWord},
			LeaveScope: scope.Leave}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestPullFails has images that cannot be had, each for a reason that is told, and of none is anything left.
func TestPullFails(t *testing.T) {
	t.Parallel()
	c := own(t)
	d := impatient(t, c)
	plain := containertest.Image(t, v1.Config{}, containertest.File("file", []byte("text")))
	tagged, pinned := registry.Push(t, "plain:1", plain)
	gone := httptest.NewServer(nil)
	gone.Close()
	images := badRegistries(t, pinned)
	foreign := containertest.For(t, plain, "linux", "s390x", v1.Config{})
	list, _ := registry.PushIndex(t, "list:1", foreign)
	images[list] = "has nothing for linux/"
	one, _ := registry.Push(t, "foreign:1", foreign)
	images[one] = "it is for linux/s390x, and this machine is linux/"
	large, _ := registry.Push(t, "large:1", containertest.For(t, plain, "linux", runtime.GOARCH,
		v1.Config{Labels: map[string]string{"large": strings.Repeat("x", 5<<20)}}))
	images[large] = "its description has 5.0 MiB, and may have 4.0 MiB"
	images["not a name"] = "invalid reference format"
	images[registry.Host+"/missing:1"] = "the registry " + registry.Host + " has no such image"
	images[strings.Replace(tagged, "plain:1", "plain:2", 1)] = "has no such image"
	silent := strings.TrimPrefix(gone.URL, "http://")
	images[silent+"/plain:1"] = ": the registry " + silent + ": connect: connection refused"
	images[silent+pinned[strings.Index(pinned, "/"):]] = images[silent+"/plain:1"]
	for image, want := range images {
		_, err := d.Pull(context.Background(), driver.Image{Name: image}, func(string) {})
		shown, _, isPinned := strings.Cut(image, "@")
		if isPinned {
			shown = image[:len(shown)+len("@sha256:")+12] + `": `
		}
		if err == nil || !strings.Contains(err.Error(), shown) || strings.Count(err.Error(), "/plain") > 1 ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("pulling %s: got error %v, want %q", image, err, want)
		}
		task := driver.Task{ID: "half", Container: &driver.Container{Image: image}, Command: []string{"/bin/true"}}
		if err := d.Start(context.Background(), task); err == nil || len(d.Tasks()) > 0 {
			t.Errorf("a task of the image %s was started: %v, %+v", image, err, d.Tasks())
		}
	}
	wantKept(t, func() []string { return kept(t, c) }, 0)
}

// wantKept waits until no more than so many things are kept.
func wantKept(t *testing.T, kept func() []string, most int) {
	t.Helper()
	eventually(t, func() bool { return len(kept()) <= most })
	if left := kept(); len(left) > most {
		t.Errorf("containerd keeps\n%s", strings.Join(left, "\n"))
	}
}

// eventually asks again and again until something is so, or the test has had its time: containerd tells nobody.
func eventually(t *testing.T, isSo func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !isSo() && ctx.Err() == nil {
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}

// TestPullAsksForRoom has an image that is larger than the disk of containerd: no layer of it is brought.
func TestPullAsksForRoom(t *testing.T) {
	t.Parallel()
	need(t)
	c, _ := onDisk(t, "24m")
	d := impatient(t, c)
	noise, err := random.Image(6<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, pinned := registry.Push(t, "roomy:1", containertest.For(t, noise, "linux", runtime.GOARCH, v1.Config{}))
	_, err = d.Pull(context.Background(), driver.Image{Name: pinned}, func(string) {})
	if !errors.Is(err, disk.ErrNoRoom) || strings.Contains(err.Error(), "the registry") {
		t.Errorf("pulling 12 MiB to a disk of 24: got %v, want that there is not enough room", err)
	}
	small := hosted(t, v1.Config{}).Image
	if _, err := d.Pull(context.Background(), driver.Image{Name: small}, func(string) {}); err != nil {
		t.Errorf("pulling an image for which there is room: %v", err)
	}
}

// TestPullWithoutContainerd has containerd, not the registry, be what does not answer.
func TestPullWithoutContainerd(t *testing.T) {
	t.Parallel()
	c := own(t)
	d := impatient(t, c)
	image := hosted(t, v1.Config{}).Image
	wants := func(how string) {
		t.Helper()
		_, err := d.Pull(context.Background(), driver.Image{Name: image}, func(string) {})
		if want := "containerd at " + c.Socket + " does not answer: "; err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "registry") {
			t.Errorf("pulling while containerd %s: got %v, want that %s", how, err, want)
		}
	}
	if err := c.Hang(); err != nil {
		t.Fatal(err)
	}
	wants("hangs")
	c.Kill()
	wants("is down")
}

// badRegistries are registries that hang, stall, lie and refuse, as names of images and what is said of them. The
// digest of one of them is another's.
func badRegistries(t *testing.T, pinned string) map[string]string {
	t.Helper()
	noise, err := random.Image(1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	registry.Push(t, "noise:1", containertest.For(t, noise, "linux", runtime.GOARCH, v1.Config{}))
	layers, err := noise.Layers()
	if err != nil {
		t.Fatal(err)
	}
	layer, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	hangs := front(t, func(http.ResponseWriter, *http.Request) bool { <-ended; return true })
	stalls := front(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, layer.String()) {
			return false
		}
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(make([]byte, 1000))
		w.(http.Flusher).Flush()
		<-ended
		return true
	})
	lies := front(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		_, _ = io.WriteString(w, `{"schemaVersion": 2, "other": true}`)
		return true
	})
	page := front(t, func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, "<html>Welcome</html>")
		return true
	})
	denied := front(t, func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	t.Cleanup(func() { close(ended) }) // before the servers, which wait for their answers
	return map[string]string{
		hangs + "/plain:1":                         "sent nothing for 1s",
		stalls + "/noise:1":                        "sent nothing for 1s",
		lies + pinned[strings.Index(pinned, "/"):]: "size or digest of what the registry " + lies + " sends do not match",
		page + "/plain:1":                          "it is not an image",
		denied + "/plain:1":                        "403 Forbidden",
	}
}

// kept is all that a containerd has of tasks, and of images other than that of hosted.
func kept(t *testing.T, c *containertest.Containerd) (all []string) {
	t.Helper()
	client, ctx := c.Client(t), namespaces.WithNamespace(context.Background(), "starling")
	leases, err := client.LeasesService().List(ctx, `labels."starling.owner"`)
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases {
		all = append(all, "lease "+lease.ID)
	}
	images, err := client.ImageService().List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if !strings.Contains(image.Name, "hosted") {
			all = append(all, "image "+image.Name)
		}
	}
	return all
}

// TestPullTells slows a registry down and expects to hear how far the pull is; what is here is not asked for again.
func TestPullTells(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	noise, err := random.Image(4<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, pinned := registry.Push(t, "slow:1", containertest.For(t, noise, "linux", "amd64", v1.Config{}))
	go1 := make(chan struct{})
	host := front(t, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet {
			<-go1
		}
		return false
	})
	var told []string
	resolved, err := b.Pull(b.ctx, driver.Image{Name: host + "/slow:1"}, func(text string) {
		told = append(told, text)
		if strings.Contains(text, " of ") {
			select {
			case <-go1:
			default:
				close(go1)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := pinned[strings.Index(pinned, "@"):]; !strings.HasSuffix(resolved, "/slow"+want) {
		t.Errorf("got the image %q, want the digest %q", resolved, want)
	}
	if text := strings.Join(told, "\n"); !strings.Contains(text, "asking "+host) || !strings.Contains(text, " of ") {
		t.Errorf("it told\n%s", text)
	}
	before := len(told)
	again, err := b.Pull(b.ctx, driver.Image{Name: resolved}, func(text string) { told = append(told, text) })
	if err != nil || again != resolved || len(told) != before {
		t.Errorf("pulled again: %q, %v, told %q", again, err, told[before:])
	}
	canceled, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.Pull(canceled, driver.Image{Name: host + "/slow:2"}, func(string) {}); err == nil {
		t.Error("a canceled pull succeeded")
	}
}

// own starts a containerd that a test may kill.
func own(t *testing.T) *containertest.Containerd {
	t.Helper()
	need(t)
	c, err := containertest.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

// over opens a driver over a folder, with a containerd or without.
func over(t *testing.T, c *containertest.Containerd, folder string) *bench {
	t.Helper()
	d, err := container.Open(container.Config{Socket: c.Socket,
		Config: process.Config{Dir: folder, Supervisor: []string{testBinary(t), superviseWord},
			LeaveScope: scope.Leave}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return &bench{Driver: d, ctx: ctx, folder: folder}
}

// TestContainerdKilled has tasks go on, be asked, be stopped and end while there is no containerd, and leave nothing in
// the next one.
func TestContainerdKilled(t *testing.T) {
	t.Parallel()
	c := own(t)
	folder := t.TempDir()
	b := over(t, c, folder)
	image := hosted(t, v1.Config{})
	for _, id := range []string{"stopped", "kept"} {
		b.start(t, driver.Task{ID: id, Container: image, Command: []string{testBinary(t), programWord, "terminate", "7"}})
		if line := b.output(t, id, true); line != "ready\n" {
			t.Fatalf("%s wrote %q", id, line)
		}
	}
	c.Kill()
	b.withoutContainerd(t, image)
	b = over(t, c, folder)
	if b.Missing() == nil || b.status("kept").State != driver.Running {
		t.Errorf("a peer that starts without containerd: missing is %v, the task is %+v", b.Missing(), b.status("kept"))
	}
	b.close(t)
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
	b = over(t, c, folder)
	b.end(t)
	wantKept(t, func() []string { return kept(t, c) }, 0)
	wantKept(t, func() []string { return snapshotsOf(t, c) }, 1) // that of the image
	b.close(t)
}

// TestContainerdHangs forgets tasks while containerd does not answer, and starts one again that was forgotten.
func TestContainerdHangs(t *testing.T) {
	t.Parallel()
	c := own(t)
	b := over(t, c, t.TempDir())
	task := driver.Task{Container: hosted(t, v1.Config{}), Command: shell("touch /made && exit 3")}
	names := []string{"a", "b", "c", "d"}
	for _, task.ID = range names {
		b.start(t, task)
		b.exited(t, task.ID)
	}
	if err := c.Hang(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, id := range names {
		if err := b.Forget(id); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > time.Duration(len(names))*time.Second { // it would answer each after two
		t.Errorf("forgetting %d containers takes %s while containerd hangs", len(names), took)
	}
	other := func(line string) bool { return !strings.Contains(line, "is not deleted yet") }
	behind := func() []string { return slices.DeleteFunc(b.Warnings(), other) }
	eventually(t, func() bool { return len(behind()) > 0 })
	if err := c.Resume(); err != nil {
		t.Fatal(err)
	}
	task.ID = "a"
	b.start(t, task)
	if got := b.exited(t, "a"); got.ExitCode != 3 {
		t.Errorf("got %+v, want the exit code 3", got)
	}
	wantKept(t, func() []string { return snapshotsOf(t, c) }, 2) // that of the image, and of what has not been forgotten
	wantKept(t, behind, 0)
	b.end(t)
	wantKept(t, func() []string { return kept(t, c) }, 0)
	b.close(t)
}

func (b *bench) close(t *testing.T) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// withoutContainerd does all that needs no containerd, and tries what does.
func (b *bench) withoutContainerd(t *testing.T, image *driver.Container) {
	t.Helper()
	if err := b.Stop("stopped", time.Hour); err != nil {
		t.Error(err)
	}
	if got := b.exited(t, "stopped"); got.ExitCode != 7 {
		t.Errorf("without containerd: got %+v, want the exit code 7", got)
	}
	if err := driver.Run(b.ctx, b, driver.Task{ID: "kept", Container: image, Command: []string{"true"}}); err != nil {
		t.Errorf("beside a task, without containerd: %v", err)
	}
	if err := b.Forget("stopped"); err != nil {
		t.Error(err)
	}
	short, stop := context.WithTimeout(b.ctx, 100*time.Millisecond)
	defer stop()
	if err := b.Start(short, driver.Task{ID: "new", Container: image, Command: []string{"true"}}); err == nil {
		t.Error("a container was started without containerd")
	}
	b.close(t)
}

// TestContainerdComesLater has a peer that starts first run containers as soon as containerd is there.
func TestContainerdComesLater(t *testing.T) {
	t.Parallel()
	c := own(t)
	c.Kill()
	b := over(t, c, t.TempDir())
	image := hosted(t, v1.Config{})
	if b.Missing() == nil {
		t.Error("nothing is missing without containerd")
	}
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.Found():
	case <-b.ctx.Done():
		t.Fatal("containerd is not found")
	}
	if b.Missing() != nil || b.Version() == "" {
		t.Errorf("containerd %q is found: missing is %v", b.Version(), b.Missing())
	}
	b.start(t, driver.Task{ID: "late", Container: image, Command: shell("exit 3")})
	if got := b.exited(t, "late"); got.ExitCode != 3 {
		t.Errorf("got %+v, want the exit code 3", got)
	}
	b.end(t)
	b.close(t)
}

func snapshotsOf(t *testing.T, c *containertest.Containerd) (all []string) {
	t.Helper()
	ctx := namespaces.WithNamespace(context.Background(), "starling")
	err := c.Client(t).SnapshotService("overlayfs").Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		all = append(all, info.Name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSupervisorKilled kills what owns a container, seen by a driver and not.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	image := hosted(t, v1.Config{})
	for _, unseen := range []bool{false, true} {
		b.start(t, driver.Task{ID: "orphan", Container: image, Command: []string{testBinary(t), programWord, "run"}})
		if line := b.output(t, "orphan", true); line != "ready\n" {
			t.Fatalf("it wrote %q", line)
		}
		supervisor := parent(t, b.status("orphan").PID)
		kill := func() {
			if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		if unseen {
			b.reopen(t, kill)
		} else {
			kill()
		}
		got := b.exited(t, "orphan")
		if !got.Lost || got.ExitCode != driver.NoExitCode || !strings.Contains(got.Error, "supervisor was killed") {
			t.Errorf("got %+v", got)
		}
		if err := b.Forget("orphan"); err != nil {
			t.Error(err)
		}
	}
	b.wantNothing(t, "orphan")
}

// TestLeavesNothing runs some tasks through their whole life and counts what is left.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	image := hosted(t, v1.Config{})
	for _, command := range [][]string{{"true"}, {"no-such-program"}, {"sleep", "1000"}, shell("sleep 1000 & exit 3")} {
		b.start(t, driver.Task{ID: "short", Container: image, Command: command, Limits: driver.Limits{MemoryBytes: 64 << 20}})
		b.end(t)
	}
	b.wantNothing(t, "short")
}

// wantNothing looks for what the tasks of this driver, all of one name, may have left on the machine.
func (b *bench) wantNothing(t *testing.T, name string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), b.folder) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	tasks, err := os.ReadDir(filepath.Join(b.folder, "tasks"))
	if err != nil || len(tasks) > 0 {
		t.Errorf("folders are left: %v (%v)", tasks, err)
	}
	groups, err := filepath.Glob("/sys/fs/cgroup/*/" + "starling-*/task-" + name)
	deeper, _ := filepath.Glob("/sys/fs/cgroup/*/*/*/starling-*/task-" + name)
	if groups = append(groups, deeper...); err != nil || len(groups) > 0 {
		t.Errorf("control groups are left: %q (%v)", groups, err)
	}
	wantKept(t, func() []string {
		return slices.DeleteFunc(snapshotsOf(t, engine), func(key string) bool { return !strings.HasSuffix(key, "-"+name) })
	}, 0)
}

// parent is the number of a process's parent.
func parent(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, "PPid:"); ok {
			parent, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				t.Fatal(err)
			}
			return parent
		}
	}
	t.Fatalf("process %d has no parent", pid)
	return 0
}

// TestNoContainerd has a machine without containerd say so, and run processes all the same.
func TestNoContainerd(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "no.sock")
	d, err := container.Open(container.Config{Socket: socket,
		Config: process.Config{Dir: t.TempDir(), Supervisor: []string{testBinary(t), superviseWord},
			LeaveScope: scope.Leave}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Driver: d}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	defer d.Close()
	if d.Missing() == nil {
		t.Error("nothing is missing")
	}
	_, err = d.Pull(b.ctx, driver.Image{Name: "image:1"}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), `"image:1": no containers run here: `) {
		t.Errorf("Pull: got error %v", err)
	}
	if err := b.Start(b.ctx, driver.Task{ID: "c", Container: &driver.Container{Image: "image:1"}}); err == nil {
		t.Error("a container was started")
	}
	b.start(t, driver.Task{ID: "process", Command: []string{"/bin/true"}})
	if got := b.exited(t, "process"); got.ExitCode != 0 || got.Error != "" {
		t.Errorf("a process: got %+v", got)
	}
}
