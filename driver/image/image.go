// Package image asks registries for images.
package image

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"
	"github.com/containerd/log"
	"github.com/sirupsen/logrus"
)

// Registries asks registries, those of this machine without TLS.
func Registries() remotes.Resolver {
	client := &http.Client{Transport: docker.DefaultHTTPTransport(nil)}
	return docker.NewResolver(docker.ResolverOptions{Hosts: docker.ConfigureDefaultRegistries(
		docker.WithPlainHTTP(docker.MatchLocalhost), docker.WithClient(client),
		docker.WithAuthorizer(docker.NewDockerAuthorizer(docker.WithAuthClient(client))))})
}

// Quiet is a context in which the library that asks registries writes no log; its errors tell the same.
func Quiet(ctx context.Context) context.Context {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return log.WithLogger(ctx, logrus.NewEntry(quiet))
}

// Explain says of what became of asking a registry what a user can do something about.
func Explain(registry string, err error) error {
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("the registry %s has no such image: %w", registry, err)
	}
	return fmt.Errorf("the registry %s: %w", registry, err)
}
