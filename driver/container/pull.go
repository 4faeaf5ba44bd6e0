package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"starling/driver"
	"starling/driver/disk"
	"starling/driver/image"
)

// Pull finds the digest of an image and brings the image here. A registry need not be reached for one that is named by
// its digest and is here already.
func (e *engine) Pull(ctx context.Context, wanted driver.Image,
	tell func(progress string)) (resolved string, err error) {
	named := wanted.Name
	name, err := reference.ParseDockerRef(named)
	if err != nil {
		return "", fmt.Errorf("image %q: %w", named, err)
	}
	if lack := e.there.Load().lack; lack != nil {
		return "", fmt.Errorf("image %q: no containers run here: %w", named, lack)
	}
	caller := ctx
	ctx, cancel := context.WithCancelCause(e.within(ctx))
	defer cancel(nil)
	registry := image.Source{Name: "the registry " + reference.Domain(name),
		Resolver: image.Registries(ctx, e.configOf(wanted.Task))}
	p := &pull{engine: e, name: name, tell: tell, task: wanted.Task, registry: registry, from: registry.Name, stop: cancel}
	watching := p.watch(ctx)
	resolved, err = p.pull(ctx)
	cancel(nil)
	<-watching
	if err == nil {
		return resolved, nil
	}
	var stalled *stalledError
	if errors.As(context.Cause(ctx), &stalled) {
		err = stalled
	}
	if silence := e.silence(); silence != nil && caller.Err() == nil {
		err = silence
	}
	return "", image.Short(fmt.Errorf("image %q: %w", named, err))
}

// silence says that containerd does not answer, nil if it does: what it cannot be asked is no fault of a registry.
func (e *engine) silence() error {
	ctx, cancel := e.context()
	defer cancel()
	if _, err := e.client.Version(ctx); err != nil {
		return fmt.Errorf("containerd at %s does not answer: %w", e.socket, err)
	}
	return nil
}

// configOf returns the credentials with which a registry is asked for a task, nil for none.
func (e *engine) configOf(task string) image.Config {
	if e.credentials == nil {
		return nil
	}
	return func(ctx context.Context) ([]byte, error) { return e.credentials(ctx, task) }
}

// pull is one under way.
type pull struct {
	engine   *engine
	name     reference.Named
	task     string
	registry image.Source
	tell     func(string)

	mu    sync.Mutex
	parts []ocispec.Descriptor // each once
	// here are those of them that have come whole.
	here map[digest.Digest]bool
	// from is who sends now, by its number of those that were tried; stop gives it up.
	from  string
	tried int
	stop  context.CancelCauseFunc
}

func (p *pull) pull(ctx context.Context) (string, error) {
	pinned, isDigest := p.name.(reference.Canonical)
	if !isDigest {
		p.tell(fmt.Sprintf("asking %s for image %s", reference.Domain(p.name), reference.FamiliarString(p.name)))
		_, found, err := p.registry.Resolve(ctx, p.name.String())
		if err != nil {
			return "", p.explain(p.registry.Name, err)
		}
		if pinned, err = reference.WithDigest(reference.TrimNamed(p.name), found.Digest); err != nil {
			return "", err
		}
	}
	name := pinned.String()
	release, err := p.engine.lock(ctx, name)
	if err != nil {
		return "", err
	}
	defer release()
	elses := p.engine.isElses(ctx, name)
	if !p.engine.has(ctx, name) {
		if err := p.bring(ctx, name, elses); err != nil {
			return "", err
		}
	}
	if elses {
		return name, nil
	}
	return name, p.engine.use(ctx, name)
}

// bring brings an image here whole. One for another machine goes again, unless somebody else has brought it, and so
// does one that does not fit: it is not tried again soon.
func (p *pull) bring(ctx context.Context, name string, elses bool) error {
	room, _ := disk.RoomOf(p.engine.there.Load().root) // a disk that tells nothing is tried
	if err := p.engine.misfit(name, room); err != nil {
		return err
	}
	pulled, err := p.fetch(ctx, name)
	if err != nil {
		return err
	}
	if err = p.unpack(ctx, pulled, elses); errors.Is(err, disk.ErrNoRoom) {
		p.engine.noteMisfit(name, misfit{time.Now(), room, err})
	}
	return err
}

// releaseMax is how long a busy containerd has for taking note that a pull has ended.
const releaseMax = 10 * time.Second

// fetch brings the parts of an image here: from other machines that have it, one after the other, and else from its
// registry. A part that has come whole from one need not come from the next.
func (p *pull) fetch(ctx context.Context, name string) (containerd.Image, error) {
	ctx, done, err := p.engine.client.WithLease(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		end, cancel := context.WithTimeout(p.engine.within(context.Background()), releaseMax)
		defer cancel()
		_ = done(end) // it expires otherwise
	}()
	var before []string
	if _, isDigest := p.name.(reference.Canonical); isDigest && p.engine.sources != nil {
		for _, source := range p.engine.sources(ctx, p.task) {
			pulled, err := p.fetchFrom(ctx, name, source)
			if err == nil || ctx.Err() != nil || errors.Is(err, disk.ErrNoRoom) || errors.Is(err, errMany) {
				return pulled, err
			}
			if !errdefs.IsNotFound(err) {
				before = append(before, err.Error())
			}
			p.abort()
		}
	}
	pulled, err := p.fetchFrom(ctx, name, p.registry)
	if err != nil && len(before) > 0 {
		err = fmt.Errorf("%w; of the machines that may have it, %s", err, strings.Join(before, "; "))
	}
	return pulled, err
}

// fetchFrom brings the parts of an image here that are not, from one source.
func (p *pull) fetchFrom(ctx context.Context, name string, source image.Source) (containerd.Image, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.mu.Lock()
	p.parts, p.here, p.from, p.stop = nil, map[digest.Digest]bool{}, source.Name, cancel
	p.tried++
	p.mu.Unlock()
	p.tell(p.pulling())
	pulled, err := p.engine.client.Pull(ctx, name, containerd.WithResolver(source),
		containerd.WithImageHandler(images.HandlerFunc(p.handle)), containerd.WithImageHandlerWrapper(p.handler))
	if err == nil {
		return pulled, nil
	}
	var stalled *stalledError
	if errors.As(context.Cause(ctx), &stalled) {
		return nil, stalled
	}
	return nil, p.explain(source.Name, err)
}

// pulling says what is pulled, and from which machine if one of the cluster sends it.
func (p *pull) pulling() string {
	text := "pulling image " + reference.FamiliarString(p.name)
	if p.from != p.registry.Name {
		text += " from " + p.from
	}
	return text
}

// abort gives up what has come in part: nothing tells whether it is what it should be.
func (p *pull) abort() {
	ctx, cancel := p.engine.context()
	defer cancel()
	for _, part := range p.counted() {
		_ = p.engine.client.ContentStore().Abort(ctx, remotes.MakeRefKey(ctx, part)) // or it goes with the lease
	}
}

// has tells whether an image is here whole.
func (e *engine) has(ctx context.Context, name string) bool {
	image, err := e.client.GetImage(ctx, name)
	if err != nil {
		return false
	}
	unpacked, err := image.IsUnpacked(ctx, e.there.Load().snapshotter)
	return err == nil && unpacked
}

// forget gives up an image. What of it no other needs is collected by containerd.
func (e *engine) forget(name string) error {
	ctx, cancel := e.context()
	defer cancel()
	if err := e.client.ImageService().Delete(ctx, name); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// lock waits until no one else pulls the image. What it returns ends the lock.
func (e *engine) lock(ctx context.Context, name string) (release func(), err error) {
	for {
		e.mu.Lock()
		other := e.busy[name]
		if other == nil {
			done := make(chan struct{})
			e.busy[name] = done
			e.mu.Unlock()
			return func() {
				e.mu.Lock()
				delete(e.busy, name)
				e.mu.Unlock()
				close(done)
			}, nil
		}
		e.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// explain says what a user can do something about.
func (p *pull) explain(source string, err error) error {
	switch {
	case errors.Is(err, disk.ErrNoRoom), errors.Is(err, errMany):
		return err
	case errdefs.IsFailedPrecondition(err), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("size or digest of what %s sends do not match: %w", source, image.Plain(err))
	case source != p.registry.Name:
		return fmt.Errorf("%s: %w", source, image.Plain(err))
	case errdefs.IsNotFound(err) && len(p.counted()) > 0:
		return fmt.Errorf("it has nothing for %s: %w", platforms.DefaultString(), err)
	}
	return image.Explain(reference.Domain(p.name), err)
}

// stopCounting has watch tell nothing any more, and wait for ever.
func (p *pull) stopCounting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell = nil
}

// stalledError is why a source is given up.
type stalledError struct {
	source string
	after  time.Duration
}

// Error says so.
func (s *stalledError) Error() string {
	return fmt.Sprintf("%s sent nothing for %s", s.source, s.after)
}

// lookEvery is how often is looked how far a pull is.
const lookEvery = time.Second

// watch tells how far the pull is, and gives a source up from which nothing comes any more.
func (p *pull) watch(ctx context.Context) (ended chan struct{}) {
	ended = make(chan struct{})
	look := time.NewTicker(min(lookEvery, p.engine.stall/4))
	go func() {
		defer close(ended)
		defer look.Stop()
		have, of, since := int64(0), 0, time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			p.mu.Lock()
			tell, tried, what, from, stop := p.tell, p.tried, p.pulling(), p.from, p.stop
			p.mu.Unlock()
			now, all := p.progress(ctx)
			switch {
			case tell == nil:
				return
			case now != have:
				have, of, since = now, tried, time.Now()
				tell(fmt.Sprintf("%s: %.1f of %.1f MiB", what, float64(now)/(1<<20), float64(all)/(1<<20)))
			case tried != of:
				of, since = tried, time.Now()
			case time.Since(since) > p.engine.stall:
				stop(&stalledError{from, p.engine.stall})
			}
		}
	}()
	return ended
}
