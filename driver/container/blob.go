package container

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"starling/driver/image"
)

// Blob opens a part of an image that is named by its digest: the list of platforms, or for this machine's platform the
// manifest, the config or a layer. The error wraps os.ErrNotExist if the image is not here whole or has no such part.
func (d *Driver) Blob(ctx context.Context, named string, part digest.Digest) (*image.Blob, error) {
	e := d.engine
	name, err := reference.ParseDockerRef(named)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", named, err)
	}
	if lack := e.there.Load().lack; lack != nil {
		return nil, fmt.Errorf("no containers run here: %w", lack)
	}
	ctx = e.within(ctx)
	record, err := e.client.ImageService().Get(ctx, name.String())
	if err != nil {
		return nil, absent(err)
	}
	found, err := e.partOf(ctx, record.Target, part)
	if err != nil {
		return nil, absent(err)
	}
	opened, err := e.client.ContentStore().ReaderAt(ctx, found)
	if err != nil {
		return nil, absent(err)
	}
	return &image.Blob{ReaderAt: opened, MediaType: found.MediaType}, nil
}

// partOf finds a part of an image among those that its pull has brought here.
func (e *engine) partOf(ctx context.Context, root ocispec.Descriptor, part digest.Digest) (found ocispec.Descriptor,
	err error) {
	platform := platforms.Default()
	children := images.LimitManifests(images.FilterPlatforms(images.ChildrenHandler(e.client.ContentStore()), platform),
		platform, 1)
	err = images.Walk(ctx, images.HandlerFunc(func(ctx context.Context, one ocispec.Descriptor) ([]ocispec.Descriptor,
		error) {
		if one.Digest == part {
			found = one
			return nil, images.ErrStopHandler
		}
		return children.Handle(ctx, one)
	}), root)
	switch {
	case errors.Is(err, images.ErrStopHandler):
		return found, nil
	case err == nil:
		err = fmt.Errorf("it has no part %s for %s: %w", part, platforms.DefaultString(), os.ErrNotExist)
	}
	return found, err
}

// absent says in the words of files that containerd has no such thing.
func absent(err error) error {
	if errdefs.IsNotFound(err) {
		return errors.Join(os.ErrNotExist, err)
	}
	return err
}
