package container_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"starling/driver"
	"starling/driver/container"
	"starling/driver/container/containertest"
	"starling/driver/disk"
	"starling/driver/image"
	"starling/driver/process"
	"starling/driver/scope"
)

// machine gives what a driver has, changed if it is not faithful.
type machine struct {
	remotes.Resolver
	has    *container.Driver
	change func(ctx context.Context, part ocispec.Descriptor, sent io.Reader) io.Reader
	fails  error
	sent   *sync.Map // the digests of what was sent, nil if that does not matter
}

func (m *machine) Resolve(ctx context.Context, ref string) (string, ocispec.Descriptor, error) {
	root := digest.Digest(ref[strings.Index(ref, "@")+1:])
	blob, err := m.has.Blob(ctx, ref, root)
	if err = errors.Join(m.fails, err); err != nil {
		return "", ocispec.Descriptor{}, err
	}
	defer blob.Close()
	return ref, ocispec.Descriptor{MediaType: blob.MediaType, Digest: root, Size: blob.Size()}, nil
}

func (m *machine) Fetcher(_ context.Context, ref string) (remotes.Fetcher, error) {
	return remotes.FetcherFunc(func(ctx context.Context, part ocispec.Descriptor) (io.ReadCloser, error) {
		blob, err := m.has.Blob(ctx, ref, part.Digest)
		if err != nil {
			return nil, err
		}
		if m.sent != nil {
			m.sent.Store(part.Digest, true)
		}
		var sent io.Reader = io.NewSectionReader(blob, 0, blob.Size())
		if m.change != nil {
			sent = m.change(ctx, part, sent)
		}
		return struct {
			io.Reader
			io.Closer
		}{sent, blob}, nil
	}), nil
}

// telling is what a pull tells, from more than one goroutine.
type telling struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *telling) tell(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.WriteString(text + "\n")
}

// String returns all of it, a line each.
func (h *telling) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// asking is a driver that asks machines before registries.
func asking(t *testing.T, c *containertest.Containerd, sources ...image.Source) *container.Driver {
	t.Helper()
	d, err := container.Open(container.Config{Socket: c.Socket, Stall: time.Second,
		Sources: func(context.Context, string) []image.Source { return sources },
		Config: process.Config{Dir: t.TempDir(), Supervisor: []string{testBinary(t), superviseWord},
			LeaveScope: scope.Leave}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// isolated is an image in a registry that ends, which one machine has.
func isolated(t *testing.T) (pinned string, has *container.Driver, end func()) {
	t.Helper()
	registry := containertest.NewRegistry()
	t.Cleanup(registry.Close)
	noise, err := random.Image(64<<10, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, pinned = registry.Push(t, "isolated:1", containertest.For(t, noise, "linux", runtime.GOARCH, v1.Config{}))
	has = impatient(t, own(t))
	if _, err := has.Pull(t.Context(), driver.Image{Name: pinned}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return pinned, has, registry.Close
}

// TestPullFromMachine has the image of a registry that is gone from another machine, and tells so.
func TestPullFromMachine(t *testing.T) {
	t.Parallel()
	need(t)
	pinned, has, end := isolated(t)
	tagged := strings.Replace(pinned[:strings.Index(pinned, "@")], "isolated", "isolated:1", 1)
	_, err := asking(t, own(t), image.Source{Name: "node a", Resolver: &machine{has: has}}).Pull(t.Context(),
		driver.Image{Name: tagged}, func(text string) {
			if strings.Contains(text, "node a") {
				t.Errorf("for a tag it told %q", text)
			}
		})
	if err != nil {
		t.Errorf("pulling a tag: %v", err)
	}
	end()
	c := own(t)
	sent := &sync.Map{}
	dies := func(_ context.Context, part ocispec.Descriptor, r io.Reader) io.Reader {
		if strings.Contains(part.MediaType, "container.image") {
			return io.LimitReader(r, 10) // of the config, after it has sent other parts
		}
		return r
	}
	first := &machine{has: has, sent: sent, change: dies}
	d := asking(t, c, image.Source{Name: "node a", Resolver: first},
		image.Source{Name: "node b", Resolver: &machine{has: has, sent: sent}})
	told := &telling{}
	resolved, err := d.Pull(t.Context(), driver.Image{Name: pinned}, told.tell)
	if err != nil || resolved != pinned {
		t.Fatalf("got %s, %v", resolved, err)
	}
	for _, want := range []string{"from node a", "from node b"} {
		if !strings.Contains(told.String(), "pulling image "+pinned+" "+want) {
			t.Errorf("told %s, want %q", told, want)
		}
	}
	parts := 0
	sent.Range(func(any, any) bool { parts++; return true })
	if parts != 4 { // the manifest, the config, two layers
		t.Errorf("%d parts were sent", parts)
	}
	client := c.Client(t)
	wantKept(t, func() []string { return halves(t, client) }, 0)
	if _, err := d.Blob(t.Context(), pinned, digest.Digest(pinned[strings.Index(pinned, "@")+1:])); err != nil {
		t.Errorf("it does not give what it got: %v", err)
	}
}

// TestPullFromBadMachines has machines that refuse, lie, break off and hang: the registry is asked after them, and what
// each has done is told when that does not answer, too. Nothing is left.
func TestPullFromBadMachines(t *testing.T) {
	t.Parallel()
	need(t)
	pinned, has, end := isolated(t)
	type change = func(context.Context, ocispec.Descriptor, io.Reader) io.Reader
	bad := []image.Source{
		{Name: "node refuses", Resolver: &machine{has: has, fails: errors.New("it refuses: not yours")}},
		{Name: "node lies", Resolver: &machine{has: has, change: change(
			func(_ context.Context, part ocispec.Descriptor, _ io.Reader) io.Reader {
				return bytes.NewReader(make([]byte, part.Size))
			})}},
		{Name: "node lies of layers", Resolver: &machine{has: has, change: change(
			func(_ context.Context, part ocispec.Descriptor, r io.Reader) io.Reader {
				if strings.Contains(part.MediaType, "rootfs") {
					return bytes.NewReader(make([]byte, part.Size))
				}
				return r
			})}},
		{Name: "node breaks off", Resolver: &machine{has: has, change: change(
			func(_ context.Context, _ ocispec.Descriptor, r io.Reader) io.Reader { return io.LimitReader(r, 9) })}},
		{Name: "node hangs", Resolver: &machine{has: has, change: change(
			func(ctx context.Context, _ ocispec.Descriptor, r io.Reader) io.Reader {
				return io.MultiReader(io.LimitReader(r, 5), readerFunc(func([]byte) (int, error) {
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}))
			})}},
	}
	c := own(t)
	if _, err := asking(t, c, bad...).Pull(t.Context(), driver.Image{Name: pinned}, func(string) {}); err != nil {
		t.Errorf("with the registry: %v", err)
	}
	client := c.Client(t)
	wantKept(t, func() []string { return halves(t, client) }, 0)
	end()
	c = own(t)
	_, err := asking(t, c, bad...).Pull(t.Context(), driver.Image{Name: pinned}, func(string) {})
	for _, want := range []string{"connection refused; of the machines that may have it, ", "node refuses: ",
		"it refuses: not yours; ", "digest of what node lies sends do not match", "digest of what node lies of layers sends",
		"digest of what node breaks off sends", "node hangs sent nothing for 1s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without the registry: got %v, want %q", err, want)
		}
	}
	client = c.Client(t)
	wantKept(t, func() []string { return append(halves(t, client), parts(t, client)...) }, 0)
}

// readerFunc is a function that reads.
type readerFunc func(data []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(data []byte) (int, error) { return f(data) }

// halves is what a containerd has of parts that have not come whole, and the leases of pulls.
func halves(t *testing.T, client *containerd.Client) (all []string) {
	t.Helper()
	statuses, err := client.ContentStore().ListStatuses(namespaces.WithNamespace(t.Context(), "starling"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statuses {
		all = append(all, fmt.Sprintf("half %s with %d of %d bytes", s.Ref, s.Offset, s.Total))
	}
	var kept []leases.Lease
	if kept, err = client.LeasesService().List(namespaces.WithNamespace(t.Context(), "starling")); err != nil {
		t.Fatal(err)
	}
	for _, lease := range kept {
		all = append(all, "lease "+lease.ID)
	}
	return all
}

// parts are those of images that a containerd has whole.
func parts(t *testing.T, client *containerd.Client) (all []string) {
	t.Helper()
	err := client.ContentStore().Walk(namespaces.WithNamespace(t.Context(), "starling"), func(i content.Info) error {
		all = append(all, "part "+i.Digest.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPullFromMachineAsksForRoom has a machine send more than there is room for: no other and no registry is asked.
func TestPullFromMachineAsksForRoom(t *testing.T) {
	t.Parallel()
	need(t)
	noise, err := random.Image(6<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, pinned := registry.Push(t, "given:1", containertest.For(t, noise, "linux", runtime.GOARCH, v1.Config{}))
	has := impatient(t, own(t))
	if _, err := has.Pull(t.Context(), driver.Image{Name: pinned}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	c, _ := onDisk(t, "24m")
	told := &telling{}
	_, err = asking(t, c, image.Source{Name: "node a", Resolver: &machine{has: has}}).Pull(t.Context(),
		driver.Image{Name: pinned}, told.tell)
	text := told.String()
	if !errors.Is(err, disk.ErrNoRoom) || strings.Count(text, "\n") != strings.Count(text, "from node a") {
		t.Errorf("got %v after %s", err, text)
	}
}

// TestBlob gives of a list what is of this machine's platform, and nothing of another image.
func TestBlob(t *testing.T) {
	t.Parallel()
	need(t)
	here := containertest.Image(t, v1.Config{}, containertest.File("file", []byte("list")))
	foreign := containertest.For(t, here, "linux", "s390x", v1.Config{})
	on := func(architecture string) v1.Descriptor {
		return v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}
	}
	list := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: foreign, Descriptor: on("s390x")},
		mutate.IndexAddendum{Add: here, Descriptor: on(runtime.GOARCH)})
	tagged := registry.PushList(t, "blobs:1", list)
	root, err := list.Digest()
	if err != nil {
		t.Fatal(err)
	}
	d := impatient(t, own(t))
	pinned := strings.TrimSuffix(tagged, ":1") + "@" + root.String()
	other := pushed(t, "blobsother")[0]
	for _, name := range []string{pinned, other} {
		if _, err := d.Pull(t.Context(), driver.Image{Name: name}, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(name, what string, part interface{ String() string }, has bool) {
		t.Helper()
		blob, err := d.Blob(t.Context(), name, digest.Digest(part.String()))
		if has != (err == nil) || !has && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of %s: got %v", what, name, err)
		}
		if err == nil {
			blob.Close()
		}
	}
	hash := func(part v1.Hash, err error) v1.Hash {
		if err != nil {
			t.Fatal(err)
		}
		return part
	}
	layers, err := here.Layers()
	if err != nil {
		t.Fatal(err)
	}
	wants(pinned, "the list", root, true)
	wants(pinned, "its manifest", hash(here.Digest()), true)
	wants(pinned, "its config", hash(here.ConfigName()), true)
	wants(pinned, "its layer", hash(layers[0].Digest()), true)
	wants(pinned, "the manifest of another platform", hash(foreign.Digest()), false)
	wants(pinned, "another image", digest.Digest(other[strings.Index(other, "@")+1:]), false)
	wants(registry.Host+"/nowhere@"+root.String(), "the list", root, false)
}
