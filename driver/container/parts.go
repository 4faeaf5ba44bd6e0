package container

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"starling/driver/disk"
)

const (
	// layersMax is how many layers an image may have: no more can Docker mount. Overlayfs mounts some hundreds.
	layersMax = 127
	// descriptionsMax is how many other parts are brought: a list, and lists in it, a manifest and a configuration.
	descriptionsMax = 16
	partsMax        = layersMax + descriptionsMax
)

// errMany is why an image is not brought here, from wherever.
var errMany = errors.New("it has too many parts")

// descriptionBytesMax bounds each part of an image that is read into memory: all but its layers.
const descriptionBytesMax = 4 << 20

// bounded returns an error for a part that is larger, whatever is said of it if it is here.
func (e *engine) bounded(ctx context.Context, part ocispec.Descriptor) error {
	size := part.Size
	if info, err := e.client.ContentStore().Info(ctx, part.Digest); err == nil {
		size = max(size, info.Size)
	}
	if size > descriptionBytesMax {
		return fmt.Errorf("its description has %.1f MiB, and may have %.1f MiB", float64(size)/(1<<20),
			float64(descriptionBytesMax)/(1<<20))
	}
	return nil
}

// handle looks at a part before it is brought here. Of the first nobody else has told.
func (p *pull) handle(ctx context.Context, part ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	if !images.IsLayerType(part.MediaType) {
		if err := p.engine.bounded(ctx, part); err != nil {
			return nil, err
		}
	}
	if len(p.counted()) == 0 {
		return nil, p.expect(ctx, part)
	}
	return nil, nil
}

// handler brings a part here as next does, and looks at all that it names before any of that is brought.
func (p *pull) handler(next images.Handler) images.Handler {
	return images.HandlerFunc(func(ctx context.Context, part ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		named, err := next.Handle(ctx, part)
		if err != nil || len(named) == 0 {
			return named, err
		}
		return named, p.expect(ctx, named...)
	})
}

// expect notes what is to be brought here, and returns why that may not be.
func (p *pull) expect(ctx context.Context, parts ...ocispec.Descriptor) error {
	layers := 0
	p.mu.Lock()
	for _, part := range parts {
		if images.IsLayerType(part.MediaType) {
			layers++
		}
		isAgain := func(other ocispec.Descriptor) bool { return other.Digest == part.Digest }
		if len(p.parts) <= partsMax && !slices.ContainsFunc(p.parts, isAgain) {
			p.parts = append(p.parts, part)
		}
	}
	all := len(p.parts)
	p.mu.Unlock()
	switch {
	case layers > layersMax:
		return fmt.Errorf("%w: %d layers, and may have %d: join them when it is built", errMany, layers, layersMax)
	case all > partsMax:
		return fmt.Errorf("%w: more than %d", errMany, partsMax)
	}
	return p.room(ctx)
}

// room is a disk.ErrNoRoom if the disk of containerd would be full with what is to be brought: each layer is kept as it
// comes, and unpacked, which takes as much again or more.
func (p *pull) room(ctx context.Context) error {
	root := p.engine.there.Load().root
	if root == "" {
		return nil
	}
	now, all := p.progress(ctx)
	return disk.SpareFor(root, 2*(all-now))
}

func (p *pull) counted() []ocispec.Descriptor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parts
}

// progress is how many bytes are here, and how many there will be as far as is known. Containerd is asked for what was
// not whole yet.
func (p *pull) progress(ctx context.Context) (now, all int64) {
	store := p.engine.client.ContentStore()
	for _, part := range p.counted() {
		all += part.Size
		if p.isHere(part.Digest) {
			now += part.Size
		} else if status, err := store.Status(ctx, remotes.MakeRefKey(ctx, part)); err == nil {
			now += status.Offset
		} else if _, err := store.Info(ctx, part.Digest); err == nil {
			now += part.Size
			p.noteHere(part.Digest)
		}
	}
	return now, all
}

func (p *pull) isHere(part digest.Digest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.here[part]
}

func (p *pull) noteHere(part digest.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.here[part] = true
}
