package image

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	remoteerrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/errdefs"
)

// plainError says in other words what has failed.
type plainError struct {
	text string
	err  error
}

// Error is what it says.
func (p *plainError) Error() string { return p.text }

// Unwrap is what has failed.
func (p *plainError) Unwrap() error { return p.err }

// Short returns an error with the first digits of digests, and without the names of images that containerd puts before
// its reasons: what is told of an instance has little room.
func Short(err error) error { return &plainError{short(err.Error()), err} }

// Plain is Short of the reason why a request has failed, without the request.
func Plain(err error) error { return &plainError{reason(err), err} }

func short(text string) string {
	named := regexp.MustCompile(`(failed to resolve reference|apply layer error for) "[^"]*": `)
	digits := regexp.MustCompile(`(sha256:[0-9a-f]{12})[0-9a-f]{52}`)
	return digits.ReplaceAllString(named.ReplaceAllString(text, ""), "$1")
}

func reason(err error) string {
	var status remoteerrors.ErrUnexpectedStatus
	var request *url.Error
	var connection *net.OpError
	switch {
	case errors.As(err, &status):
		return status.Status
	case errors.As(err, &connection) && connection.Op == "dial":
		return connection.Err.Error()
	case errors.As(err, &request):
		return short(request.Err.Error())
	}
	return short(err.Error())
}

// Explain says of what became of asking a registry what a user can do something about.
func Explain(registry string, err error) error {
	var status remoteerrors.ErrUnexpectedStatus
	isStatus := errors.As(err, &status)
	switch {
	case errdefs.IsNotFound(err) && regexp.MustCompile(`^\S+: not found$`).MatchString(reason(err)):
		return &plainError{fmt.Sprintf("the registry %s has no such image", registry), err}
	case errdefs.IsNotFound(err):
		return fmt.Errorf("the registry %s has no such image: %w", registry, Plain(err))
	case errors.Is(err, docker.ErrInvalidAuthorization),
		isStatus && (status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden):
		return fmt.Errorf("the registry %s has no such image, or wants credentials for it, or others than its container's "+
			"pull_secret has: %w", registry, Plain(err))
	}
	return fmt.Errorf("the registry %s: %w", registry, Plain(err))
}
