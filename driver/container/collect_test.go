package container_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/container/containertest"
	"starling/driver/image"
)

// pushed has images of some names in the registry, and returns the names with digests.
func pushed(t *testing.T, names ...string) (all []string) {
	t.Helper()
	for _, name := range names {
		made := containertest.Image(t, v1.Config{}, containertest.File(name, []byte(name)))
		_, pinned := registry.Push(t, name+":1", made)
		all = append(all, pinned)
	}
	return all
}

// pulled brings images to the machine.
func (b *bench) pulled(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := b.Pull(b.ctx, driver.Image{Name: name}, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
}

// collects wants that these images, and no others, are removed.
func (b *bench) collects(t *testing.T, needed []string, keep time.Duration, want ...string) {
	t.Helper()
	removed, err := b.Collect(b.ctx, needed, keep)
	if slices.Sort(removed); err != nil || !slices.Equal(removed, want) {
		t.Errorf("with %q needed it removed %q, %v, want %q", needed, removed, err, want)
	}
}

// TestCollect keeps images that jobs name, by digest or tag, that another driver of the machine needs, that are not
// Starling's, and on which a container runs; and removes the rest with all that is theirs.
func TestCollect(t *testing.T) {
	t.Parallel()
	c := own(t)
	b, other := over(t, c, t.TempDir()), over(t, c, t.TempDir())
	all := pushed(t, "digest", "tag", "shared", "unused")
	b.pulled(t, all...)
	client := c.Client(t)
	elses := pushed(t, "elses")[0]
	if _, err := client.Pull(b.ctx, elses, containerd.WithResolver(image.Registries(b.ctx, nil))); err != nil {
		t.Fatal(err)
	}
	b.pulled(t, elses)
	tagged, err := client.GetImage(b.ctx, all[3])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ImageService().Create(b.ctx, images.Image{Name: "copy:1", Target: tagged.Target(),
		Labels: tagged.Labels()}); err != nil { // as ctr images tag does
		t.Fatal(err)
	}
	b.collects(t, nil, time.Hour)
	needed := []string{strings.Replace(all[0], "@", ":1@", 1), registry.Host + "/tag:1", "not a name"}
	other.collects(t, all[2:3], time.Hour)
	b.age(t, client, 2*time.Hour)
	other.collects(t, all[2:3], time.Hour*3)
	b.collects(t, needed, time.Hour, all[3])
	if err := client.ImageService().Delete(b.ctx, "copy:1"); err != nil {
		t.Fatal(err)
	}
	other.collects(t, nil, 0, all[0], all[2], all[1])
	if left := kept(t, c); !slices.Equal(left, []string{"image " + elses}) {
		t.Errorf("containerd keeps %q, want what another put there", left)
	}
	b.close(t)
	other.close(t)
}

// age lets all drivers have used all images that long ago.
func (b *bench) age(t *testing.T, client *containerd.Client, by time.Duration) {
	t.Helper()
	all, err := client.ImageService().List(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		for label := range one.Labels {
			if strings.HasPrefix(label, "starling.used/") {
				one.Labels[label] = time.Now().Add(-by).Format(time.RFC3339Nano)
			}
		}
		if _, err := client.ImageService().Update(b.ctx, one, "labels"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCollectUnderATask removes the image of a task that runs: it goes on, and the next one brings the image again.
func TestCollectUnderATask(t *testing.T) {
	t.Parallel()
	c := own(t)
	b := over(t, c, t.TempDir())
	contained := hosted(t, v1.Config{})
	script := shell("echo ready; while [ ! -e /end ]; do sleep 0.01; done; echo $(ls -d /bin)")
	b.start(t, driver.Task{ID: "runs", Container: contained, Command: script, Env: []string{"PATH=/bin"}})
	if line := b.output(t, "runs", true); line != "ready\n" {
		t.Fatalf("it wrote %q", line)
	}
	b.collects(t, nil, 0, contained.Image)
	// The task may have ended, and this with it, before its own end is told.
	_ = driver.Run(b.ctx, b, driver.Task{ID: "runs", Container: contained, Env: []string{"PATH=/bin"},
		Command: []string{"touch", "/end"}})
	if got := b.exited(t, "runs"); got.ExitCode != 0 {
		t.Errorf("without its image it ended as %+v", got)
	}
	b.start(t, driver.Task{ID: "next", Container: contained, Command: []string{"/bin/true"}})
	if got := b.exited(t, "next"); got.ExitCode != 0 {
		t.Errorf("after the image was removed a task ended as %+v", got)
	}
	b.end(t)
	b.close(t)
}

// onDisk starts a containerd whose disk has that size, and is in a folder.
func onDisk(t *testing.T, size string) (c *containertest.Containerd, folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	c, err := containertest.Start(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c, folder
}

// TestCollectOnATightDisk keeps less where the disk has little room.
func TestCollectOnATightDisk(t *testing.T) {
	t.Parallel()
	need(t)
	c, folder := onDisk(t, "64m")
	b := over(t, c, t.TempDir())
	all := pushed(t, "tight", "recent")
	b.pulled(t, all[0])
	b.age(t, c.Client(t), 45*time.Minute)
	b.pulled(t, all[1])
	b.collects(t, nil, time.Hour)
	if err := os.WriteFile(filepath.Join(folder, "large"), make([]byte, 55<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	b.collects(t, all[:1], time.Hour)
	b.age(t, c.Client(t), 45*time.Minute)
	b.pulled(t, all[1])
	b.collects(t, nil, time.Hour, all[0])
	b.close(t)
}
