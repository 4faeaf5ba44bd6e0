package blobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"starling/api/door"
	"starling/terms"
)

const (
	// rateBytes must come in each rateWithin that is waited for them.
	rateBytes  = 4 << 20
	rateWithin = 10 * time.Second
	// refusalBytesMax bounds what is read of the answer of a machine that refuses.
	refusalBytesMax = 4 << 10
)

// slowError is why a machine is given up.
type slowError struct{ what string }

// Error says so.
func (s *slowError) Error() string { return s.what }

// machine is one that may have an image. It is asked for one part at a time.
type machine struct {
	client     *http.Client
	root       string
	allocation terms.AllocationID
	index      terms.Index
	one        chan struct{}
	// bytes have come, of whichever parts, for which was waited.
	bytes  int
	waited time.Duration
}

// waiting is called when the machine begins to be waited for, and what it returns when that ends, with what has come:
// it is given up when too little comes for that, however many parts that is.
func (m *machine) waiting(giveUp context.CancelCauseFunc) (came func(bytes int)) {
	began := time.Now()
	late := time.AfterFunc(rateWithin-m.waited, func() {
		giveUp(&slowError{fmt.Sprintf("it sent less than %d MiB in %s", rateBytes>>20, rateWithin)})
	})
	return func(bytes int) {
		late.Stop()
		m.bytes, m.waited = m.bytes+bytes, m.waited+time.Since(began)
		if m.bytes >= rateBytes {
			m.bytes, m.waited = 0, 0
		}
	}
}

// Resolve asks what the digest in a name is that of.
func (m *machine) Resolve(ctx context.Context, ref string) (string, ocispec.Descriptor, error) {
	none := ocispec.Descriptor{}
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", none, err
	}
	pinned, ok := named.(reference.Canonical)
	if !ok {
		return "", none, fmt.Errorf("%s has no digest: %w", ref, errdefs.ErrInvalidArgument)
	}
	answer, err := m.ask(ctx, http.MethodHead, pinned.Digest())
	if err != nil {
		return "", none, err
	}
	defer answer.Close()
	kind := answer.header.Get("Content-Type")
	if !images.IsManifestType(kind) && !images.IsIndexType(kind) {
		return "", none, fmt.Errorf("it says that %s is %q, which is not an image", pinned.Digest(), kind)
	}
	size, err := strconv.ParseInt(answer.header.Get("Content-Length"), 10, 64)
	return ref, ocispec.Descriptor{MediaType: kind, Digest: pinned.Digest(), Size: size}, err
}

// Fetcher returns the machine itself.
func (m *machine) Fetcher(context.Context, string) (remotes.Fetcher, error) { return m, nil }

// Pusher does not exist: machines take no images.
func (m *machine) Pusher(context.Context, string) (remotes.Pusher, error) {
	return nil, errdefs.ErrNotImplemented
}

// Fetch asks for a part, when what was asked for before has come.
func (m *machine) Fetch(ctx context.Context, part ocispec.Descriptor) (io.ReadCloser, error) {
	select {
	case m.one <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	answer, err := m.ask(ctx, http.MethodGet, part.Digest)
	if err != nil {
		<-m.one
		return nil, err
	}
	answer.rest, answer.done = io.LimitReader(answer.rest, part.Size), func() { <-m.one }
	return answer, nil
}

// ask asks for a part, and waits until it begins to come.
func (m *machine) ask(ctx context.Context, method string, part digest.Digest) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(answerWithin, func() {
		cancel(&slowError{fmt.Sprintf("it has not answered for %s", answerWithin)})
	})
	defer late.Stop()
	query := url.Values{"allocation": {m.allocation.String()}, "digest": {part.String()},
		"index": {strconv.FormatUint(uint64(m.index), 10)}}
	request, err := http.NewRequestWithContext(ctx, method, m.root+door.PathBlob+"?"+query.Encode(), nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	came := m.waiting(cancel)
	got, err := m.client.Do(request)
	came(0)
	if err != nil {
		defer cancel(nil)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	a := &answer{of: m, ctx: ctx, cancel: cancel, header: got.Header, body: got.Body, rest: got.Body}
	if got.StatusCode != http.StatusOK {
		defer a.Close()
		refusal := struct{ Message string }{got.Status}
		_ = json.NewDecoder(io.LimitReader(a, refusalBytesMax)).Decode(&refusal) // it has none for HEAD
		err := fmt.Errorf("it refuses: %s", refusal.Message)
		if got.StatusCode == http.StatusNotFound {
			err = fmt.Errorf("%w: %w", err, errdefs.ErrNotFound)
		}
		return nil, err
	}
	return a, nil
}

// answer is a part on its way.
type answer struct {
	of     *machine
	ctx    context.Context
	cancel context.CancelCauseFunc
	header http.Header
	body   io.Closer
	rest   io.Reader
	done   func()
}

// Read reads on.
func (a *answer) Read(data []byte) (int, error) {
	came := a.of.waiting(a.cancel)
	n, err := a.rest.Read(data)
	came(n)
	if slow := (*slowError)(nil); errors.As(context.Cause(a.ctx), &slow) && err != nil {
		err = slow
	}
	return n, err
}

// Close ends it, and lets the next be asked for.
func (a *answer) Close() error {
	a.cancel(nil)
	err := a.body.Close()
	if a.done != nil {
		a.done()
		a.done = nil
	}
	return err
}
