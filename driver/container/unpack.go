package container

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"starling/driver/disk"
)

// unpack makes an image that is here the base of file systems. When that fails nothing is left of what was made until
// then, nor of the image unless it is somebody else's.
func (p *pull) unpack(ctx context.Context, image containerd.Image, elses bool) error {
	ctx, done, err := p.engine.leased(ctx)
	if err != nil {
		return err
	}
	if err = p.check(ctx, image); err == nil {
		err = p.engine.fit(ctx, image)
	}
	if err != nil && !elses {
		err = errors.Join(err, p.engine.forget(image.Name()))
	}
	return errors.Join(err, done(err != nil))
}

// check tells why an image that is here cannot be unpacked, and nothing if it is one for this machine.
func (p *pull) check(ctx context.Context, image containerd.Image) error {
	config, err := image.Config(ctx)
	if err == nil {
		err = p.engine.bounded(ctx, config) // which may be here as a layer of this size
	}
	var spec ocispec.Image
	if err == nil {
		spec, err = image.Spec(ctx)
	}
	if err != nil {
		return fmt.Errorf("it is not an image of a container: %w", err)
	}
	if has := platforms.Normalize(spec.Platform); !platforms.Default().Match(has) {
		return fmt.Errorf("it is for %s, and this machine is %s", platforms.Format(has), platforms.DefaultString())
	}
	p.tell("unpacking image " + reference.FamiliarString(p.name))
	p.stopCounting()
	return nil
}

// fit unpacks an image, and stops before the disk is full: its layers may become a thousand times larger than they are.
func (e *engine) fit(ctx context.Context, image containerd.Image) error {
	at := e.there.Load()
	unpack := func(ctx context.Context) error { return image.Unpack(ctx, at.snapshotter) }
	if at.root == "" {
		return unpack(ctx)
	}
	err := disk.Guard(ctx, at.root, unpack)
	if errors.Is(err, disk.ErrNoRoom) {
		err = fmt.Errorf("it does not fit when it is unpacked: %w", err)
	}
	return err
}

// leased is a context in which containerd keeps what is made, until done is called. If that is for a failure, done
// waits until all is deleted that nothing else needs.
func (e *engine) leased(ctx context.Context) (in context.Context, done func(failed bool) error, err error) {
	in, end, err := e.client.WithLease(ctx)
	if err != nil {
		return nil, nil, err
	}
	return in, func(failed bool) error {
		ctx, cancel := context.WithTimeout(e.within(context.Background()), removeMax)
		defer cancel()
		id, isLeased := leases.FromContext(in)
		if !failed || !isLeased {
			_ = end(ctx) // it expires otherwise
			return nil
		}
		return e.client.LeasesService().Delete(ctx, leases.Lease{ID: id}, leases.SynchronousDelete)
	}, nil
}

// misfitMax is how long it is remembered that an image did not fit.
const misfitMax = 10 * time.Minute

// misfit is an image that did not fit onto the disk with the room that there was when it was begun.
type misfit struct {
	at   time.Time
	room disk.Room
	why  error
}

// noteMisfit notes that an image does not fit, so that it is not brought here and unpacked again and again.
func (e *engine) noteMisfit(name string, m misfit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.misfits, func(_ string, m misfit) bool { return time.Since(m.at) > misfitMax })
	e.misfits[name] = m
}

// misfit is why an image did not fit a while ago, nil if it may fit now.
func (e *engine) misfit(name string, now disk.Room) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	m, isNoted := e.misfits[name]
	if !isNoted || time.Since(m.at) > misfitMax || now.Grown(m.room) {
		return nil
	}
	return m.why
}
