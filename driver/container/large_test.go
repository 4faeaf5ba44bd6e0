package container_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/container/containertest"
	"starling/driver/disk"
)

// bomb is an image with a small layer that unpacks to so many MiB of zeros.
func bomb(t *testing.T, mebibytes int) v1.Image {
	t.Helper()
	var head, zeros, layer bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "zeros", Mode: 0o644,
		Size: int64(mebibytes) << 20}); err != nil {
		t.Fatal(err)
	}
	for into, content := range map[*bytes.Buffer][]byte{&layer: head.Bytes(), &zeros: make([]byte, 1<<20)} {
		w := gzip.NewWriter(into)
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	layer.Write(bytes.Repeat(zeros.Bytes(), mebibytes))
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer.Bytes(), types.DockerLayer))
	if err != nil {
		t.Fatal(err)
	}
	return containertest.For(t, image, "linux", runtime.GOARCH, v1.Config{})
}

// free is how many bytes of a disk are free.
func free(t *testing.T, folder string) int64 {
	t.Helper()
	room, err := disk.RoomOf(folder)
	if err != nil {
		t.Fatal(err)
	}
	return room.Bytes.Free
}

// leastFree looks how much of a disk is free, again and again. What it returns ends that and returns the least.
func leastFree(t *testing.T, folder string) (end func() int64) {
	t.Helper()
	least, ended, done := free(t, folder), make(chan struct{}), make(chan struct{})
	look := time.NewTicker(time.Millisecond)
	go func() {
		defer close(done)
		for {
			select {
			case <-look.C:
				if room, err := disk.RoomOf(folder); err == nil {
					least = min(least, room.Bytes.Free)
				}
			case <-ended:
				return
			}
		}
	}()
	return func() int64 {
		look.Stop()
		close(ended)
		<-done
		return least
	}
}

// fileSystems are those that a containerd has, of images and of tasks.
func fileSystems(t *testing.T, client *containerd.Client) (all []string) {
	t.Helper()
	err := client.SnapshotService("overlayfs").Walk(namespaces.WithNamespace(t.Context(), "starling"),
		func(_ context.Context, info snapshots.Info) error {
			all = append(all, "file system "+info.Name)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPullStopsBeforeTheDiskIsFull has an image of less than a MiB that becomes larger than the disk. The part of the
// disk that must be free stays so, nothing is left, and no second attempt is made while there is no more room.
func TestPullStopsBeforeTheDiskIsFull(t *testing.T) {
	t.Parallel()
	need(t)
	const mebibytes = 512
	c, folder := onDisk(t, "512m")
	d, client := impatient(t, c), c.Client(t)
	_, pinned := registry.Push(t, "bomb:1", bomb(t, mebibytes+128))
	var asked atomic.Int32
	name := front(t, func(http.ResponseWriter, *http.Request) bool {
		asked.Add(1)
		return false
	}) + pinned[strings.Index(pinned, "/"):]
	before, end := free(t, folder), leastFree(t, folder)
	_, err := d.Pull(t.Context(), driver.Image{Name: name}, func(string) {})
	least := end()
	if !errors.Is(err, disk.ErrNoRoom) || !strings.Contains(err.Error(), "does not fit when it is unpacked") {
		t.Errorf("got %v, want that there is not enough room", err)
	}
	if must := int64(mebibytes<<20) / 20; least < must {
		t.Errorf("only %d bytes of the disk were free, and %d must be", least, must)
	}
	left := append(append(fileSystems(t, client), kept(t, c)...), append(halves(t, client), parts(t, client)...)...)
	if len(left) > 0 {
		t.Errorf("containerd keeps\n%s", strings.Join(left, "\n"))
	}
	eventually(t, func() bool { return free(t, folder) > before-4<<20 })
	if now := free(t, folder); now <= before-4<<20 {
		t.Errorf("%d bytes are free afterwards, and %d were before", now, before)
	}
	times := asked.Load()
	_, again := d.Pull(t.Context(), driver.Image{Name: name}, func(string) {})
	if !errors.Is(again, disk.ErrNoRoom) || asked.Load() != times {
		t.Errorf("the registry was asked %d times more: %v", asked.Load()-times, again)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_REMOUNT, "size=2g"); err != nil {
		t.Fatal(err)
	}
	_, err = d.Pull(t.Context(), driver.Image{Name: name}, func(string) {})
	if err == nil || errors.Is(err, disk.ErrNoRoom) {
		t.Errorf("on a larger disk: got %v, want that its digest is wrong", err)
	}
}

// TestPullRefusesManyLayers has images of more layers than may be, of different ones and of one again and again:
// no layer is asked for. One with as many as may be is pulled.
func TestPullRefusesManyLayers(t *testing.T) {
	t.Parallel()
	need(t)
	d := impatient(t, own(t))
	for first, c := range []struct {
		name          string
		layers, alike int
		refused       bool
	}{{"most:1", 127, 1, false}, {"many:1", 128, 1, true}, {"again:1", 128, 128, true}} {
		var layers []v1.Layer
		for n := range c.layers {
			layers = append(layers, layer(t, 1000*first+n/c.alike))
		}
		image, err := mutate.AppendLayers(empty.Image, layers...)
		if err != nil {
			t.Fatal(err)
		}
		_, pinned := registry.Push(t, c.name, containertest.For(t, image, "linux", runtime.GOARCH, v1.Config{}))
		var asked atomic.Int32
		host := front(t, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				asked.Add(1)
			}
			return false
		})
		_, err = d.Pull(t.Context(), driver.Image{Name: host + pinned[strings.Index(pinned, "/"):]}, func(string) {})
		isRefused := err != nil && strings.Contains(err.Error(), "it has too many parts: 128 layers, and may have 127")
		if isRefused != c.refused || !c.refused && err != nil || c.refused && asked.Load() > 1 {
			t.Errorf("%d layers, each %d times: got %v after %d blobs", c.layers, c.alike, err, asked.Load())
		}
	}
}

// layer has one file, a number.
func layer(t *testing.T, number int) v1.Layer {
	t.Helper()
	layers, err := containertest.Image(t, v1.Config{}, containertest.File("number", fmt.Append(nil, number))).Layers()
	if err != nil {
		t.Fatal(err)
	}
	return layers[0]
}
