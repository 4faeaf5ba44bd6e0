package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/distribution/reference"

	"starling/driver/disk"
)

// usedLabel begins a label of each image that drivers brought here. The driver's name ends it, and the value is when
// that driver last used or needed the image. Several drivers share a containerd, so that an image is given up when none
// has needed it for long. An image without such a label, or under a name without a digest, is somebody else's.
const usedLabel = "starling.used/"

// pressedKeep is how long images are kept on a disk that has little room: drivers that are alive tell more often what
// they need.
const pressedKeep = 30 * time.Minute

// KeepDefault is for how long images are kept that nothing needs, unless somebody says otherwise.
const KeepDefault = 24 * time.Hour

// CollectEvery is how often Collect is to be called, so that drivers know of each other's needs.
func CollectEvery(keep time.Duration) time.Duration { return min(10*time.Minute, keep/2) }

// use notes that an image that is not somebody else's is used or needed now.
func (e *engine) use(ctx context.Context, name string) error {
	label := usedLabel + e.owner
	_, err := e.client.ImageService().Update(ctx, images.Image{Name: name, Labels: map[string]string{
		label: time.Now().UTC().Format(time.RFC3339Nano)}}, "labels."+label)
	return err
}

// isElses tells whether an image is here that no driver brought here.
func (e *engine) isElses(ctx context.Context, name string) bool {
	image, err := e.client.ImageService().Get(ctx, name)
	_, ours := usedAt(image)
	return err == nil && !ours
}

// usedAt is when a driver last used or needed an image; false for an image that no driver brought here.
func usedAt(image images.Image) (last time.Time, ours bool) {
	for label, value := range image.Labels {
		if !strings.Contains(image.Name, "@") || !strings.HasPrefix(label, usedLabel) {
			continue
		}
		ours = true
		if at, err := time.Parse(time.RFC3339Nano, value); err == nil && at.After(last) {
			last = at
		}
	}
	return last, ours
}

// Collect removes the images that no driver has used or needed for as long as is stated, or for half an hour where the
// disk has little room, and returns their names. The needed are never removed; they are named as jobs name them. What a
// container runs on stays until that ends. It goes on when one cannot be removed, and returns why.
func (d *Driver) Collect(ctx context.Context, needed []string, keep time.Duration) (removed []string, err error) {
	e := d.engine
	if e.there.Load().lack != nil {
		return nil, nil
	}
	if room, err := disk.RoomOf(e.there.Load().root); err == nil && room.Tight() {
		keep = min(keep, pressedKeep)
	}
	ctx = e.within(ctx)
	all, err := e.client.ImageService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the images that containerd keeps: %w", err)
	}
	isNeeded := named(needed)
	for _, image := range all {
		last, ours := usedAt(image)
		switch {
		case !ours:
		case isNeeded(image.Name):
			err = errors.Join(err, e.use(ctx, image.Name))
		case time.Since(last) > keep:
			gone, failure := e.collect(ctx, image.Name, keep)
			if err = errors.Join(err, failure); gone {
				removed = append(removed, image.Name)
			}
		}
	}
	return removed, err
}

// collect removes an image, unless it has been used meanwhile.
func (e *engine) collect(ctx context.Context, name string, keep time.Duration) (gone bool, err error) {
	release, err := e.lock(ctx, name)
	if err != nil {
		return false, err
	}
	defer release()
	image, err := e.client.ImageService().Get(ctx, name)
	if err == nil {
		if last, _ := usedAt(image); time.Since(last) <= keep {
			return false, nil
		}
		err = e.client.ImageService().Delete(ctx, name, images.SynchronousDelete())
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return false, fmt.Errorf("remove the image %s: %w", name, err)
	}
	return err == nil, nil
}

// named tells which images some names mean. A name without a digest may mean any of its repository.
func named(names []string) func(image string) bool {
	whole, repositories := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		parsed, err := reference.ParseDockerRef(name)
		if err != nil {
			continue
		}
		if _, isDigest := parsed.(reference.Canonical); isDigest {
			whole[parsed.String()] = true
		} else {
			repositories[parsed.Name()] = true
		}
	}
	return func(image string) bool {
		repository, _, _ := strings.Cut(image, "@")
		return whole[image] || repositories[repository]
	}
}
