package image

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	remoteerrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/errdefs"
)

// TestExplain says why a registry does not give an image: without its name and the request, and with all that callers
// ask of an error.
func TestExplain(t *testing.T) {
	t.Parallel()
	sum := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	name := "host/app@" + sum
	resolve := func(err error) error { return fmt.Errorf("failed to resolve reference %q: %w", name, err) }
	request := func(err error) error {
		return fmt.Errorf("failed to do request: %w", &url.Error{Op: "Head", URL: "http://host/v2/" + sum, Err: err})
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "host"}}
	status := func(code int, text string) error {
		return remoteerrors.ErrUnexpectedStatus{Status: text, StatusCode: code, RequestURL: "http://host/" + sum}
	}
	unauthorized := fmt.Errorf("no basic auth: %w", errors.Join(errors.New(sum), docker.ErrInvalidAuthorization))
	const none = "the registry host has no such image"
	const denied = none + ", or wants credentials for it, or others than its container's pull_secret has: "
	for want, err := range map[string]error{
		"the registry host: connect: connection refused":  resolve(request(refused)),
		"the registry host: lookup host: no such host":    resolve(request(unknown)),
		"the registry host: EOF":                          resolve(request(errors.New("EOF"))),
		"the registry host: 500 Internal Server Error":    resolve(status(500, "500 Internal Server Error")),
		denied + "403 Forbidden":                          resolve(status(403, "403 Forbidden")),
		denied + "no basic auth: " + sum[:19]:             unauthorized,
		none:                                              resolve(fmt.Errorf("%s: %w", name, errdefs.ErrNotFound)),
		none + ": content at " + sum[:19] + ": not found": fmt.Errorf("content at %s: %w", sum, errdefs.ErrNotFound),
	} {
		got := Explain("host", err)
		if text, _, _ := strings.Cut(got.Error(), "\n"); text != want || errdefs.IsNotFound(got) != errdefs.IsNotFound(err) ||
			errors.Is(got, docker.ErrInvalidAuthorization) != errors.Is(err, docker.ErrInvalidAuthorization) {
			t.Errorf("got %q, want %q and the same errors", got, want)
		}
	}
}
