// Package image asks registries what names of images mean.
//
// A name with a tag means an image until somebody moves the tag; one with a digest means the same for ever. The digest
// of an image for several platforms is that of the list of them, so that each machine finds its own.
package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	remoteerrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/errdefs"
	"github.com/containerd/log"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sirupsen/logrus"
)

// answerMax is how long registries have to tell what one name means.
const answerMax = 5 * time.Second

// wholeMax bounds the lists that are remembered.
const wholeMax = 1024

// ErrUnavailable tells that a registry was not reached, or could not answer.
var ErrUnavailable = errors.New("it may answer later, or to another machine")

// What a tag means instead of an image for some machine.
var (
	errNoImage    = errors.New("it is not an image of a container")
	errNoPlatform = errors.New("it is a list of images that has none for any platform")
)

// errConfig is a config of no use for a registry.
var errConfig = errors.New("the pull_secret of its container")

// Resolver finds the digests of tags.
type Resolver struct {
	mu sync.Mutex
	// whole are lists that have something for a platform. To ask for a list counts as a pull with some registries, to ask
	// for the digest of a tag does not.
	whole map[digest.Digest]bool
}

// NewResolver returns one that knows nothing yet.
func NewResolver() *Resolver { return &Resolver{whole: map[digest.Digest]bool{}} }

// Config returns a config.json of Docker, with credentials for registries; nil for none.
type Config = func(ctx context.Context) ([]byte, error)

// Registries asks registries, those of this machine without TLS. It asks for the config, which may be nil, when a
// registry wants credentials.
func Registries(ctx context.Context, config Config) remotes.Resolver {
	client := &http.Client{Transport: docker.DefaultHTTPTransport(nil)}
	options := []docker.AuthorizerOpt{docker.WithAuthClient(client)}
	if config != nil {
		options = append(options, docker.WithAuthCreds(func(host string) (user, secret string, err error) {
			text, err := config(ctx)
			if err != nil || text == nil {
				return "", "", err
			}
			return credentialsFor(host, text)
		}))
	}
	return docker.NewResolver(docker.ResolverOptions{Hosts: docker.ConfigureDefaultRegistries(
		docker.WithPlainHTTP(docker.MatchLocalhost), docker.WithClient(client),
		docker.WithAuthorizer(docker.NewDockerAuthorizer(options...)))})
}

// Quiet is a context in which the library that asks registries writes no log; its errors tell the same.
func Quiet(ctx context.Context) context.Context {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return log.WithLogger(ctx, logrus.NewEntry(quiet))
}

// Pinned tells whether a name has a digest, so that no registry need be asked what it means.
func Pinned(name string) bool { return strings.Contains(name, "@") }

// Pin returns the name of an image with the digest that its tag has now, as in "app:1@sha256:…". A name with a digest
// stays as it is, and no registry is asked. The config, which may be nil, is as for Registries. It takes at most some
// seconds; an error that is ErrUnavailable may be none later.
func (r *Resolver) Pin(ctx context.Context, name string, config Config) (pinned string, err error) {
	parsed, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", fmt.Errorf("image %q: %w", name, err)
	}
	if reference.IsNameOnly(parsed) {
		parsed, name = reference.TagNameOnly(parsed), name+":latest"
	}
	if _, isDigest := parsed.(reference.Canonical); isDigest {
		return name, nil
	}
	ctx, cancel := context.WithTimeout(Quiet(ctx), answerMax)
	defer cancel()
	registries := Registries(ctx, config)
	_, found, err := registries.Resolve(ctx, parsed.String())
	if err == nil {
		err = r.check(ctx, registries, parsed, found)
	}
	if err != nil {
		explained := Explain(reference.Domain(parsed), err)
		if !isAnswer(err) {
			explained = fmt.Errorf("%w: %w", explained, ErrUnavailable)
		}
		return "", fmt.Errorf("image %q: %w", name, explained)
	}
	return name + "@" + found.Digest.String(), nil
}

// check tells what is wrong with what a tag means, if it cannot be an image for any machine.
func (r *Resolver) check(ctx context.Context, from remotes.Resolver, name reference.Named,
	found ocispec.Descriptor) error {
	switch {
	case images.IsManifestType(found.MediaType):
		return nil
	case !images.IsIndexType(found.MediaType):
		return fmt.Errorf("%w but %q", errNoImage, found.MediaType)
	}
	r.mu.Lock()
	known := r.whole[found.Digest]
	r.mu.Unlock()
	if known {
		return nil
	}
	list, err := fetchList(ctx, from, name, found)
	if err != nil {
		return err
	}
	for _, one := range list.Manifests {
		if one.Platform == nil || one.Platform.OS != "unknown" { // as what is said about an image has it
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.whole) == wholeMax {
				clear(r.whole)
			}
			r.whole[found.Digest] = true
			return nil
		}
	}
	return errNoPlatform
}

func fetchList(ctx context.Context, from remotes.Resolver, name reference.Named,
	found ocispec.Descriptor) (list ocispec.Index, err error) {
	fetcher, err := from.Fetcher(ctx, name.String())
	if err != nil {
		return list, err
	}
	body, err := fetcher.Fetch(ctx, found)
	if err != nil {
		return list, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, docker.MaxManifestSize))
	if err != nil {
		return list, err
	}
	if digest.FromBytes(text) != found.Digest {
		return list, fmt.Errorf("what it sends has not the digest %s", found.Digest)
	}
	return list, json.Unmarshal(text, &list)
}

// isAnswer tells whether a registry has said what a name means, so that asking again is of no use.
func isAnswer(err error) bool {
	for _, answer := range []error{errdefs.ErrNotFound, docker.ErrInvalidAuthorization, errNoImage, errNoPlatform,
		errConfig} {
		if errors.Is(err, answer) {
			return true
		}
	}
	var status remoteerrors.ErrUnexpectedStatus
	return errors.As(err, &status) && status.StatusCode < http.StatusInternalServerError &&
		status.StatusCode != http.StatusTooManyRequests
}
