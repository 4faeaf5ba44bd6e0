package image_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"

	"starling/driver/container/containertest"
	"starling/driver/image"
)

// server is a registry that answers everything alike; it returns its name in those of images.
func server(t *testing.T, answer http.HandlerFunc) (host string) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestPin(t *testing.T) {
	registry := containertest.NewRegistry()
	t.Cleanup(registry.Close)
	plain := containertest.Image(t, v1.Config{}, containertest.File("file", []byte("text")))
	tagged, pinned := registry.Push(t, "app:1", plain)
	latest, _ := registry.Push(t, "app:latest", plain)
	list, sum := registry.PushIndex(t, "list:1", plain)
	bare := strings.TrimSuffix(latest, ":latest")
	digest := pinned[strings.Index(pinned, "@"):]
	r := image.NewResolver()
	for name, want := range map[string]string{
		tagged:                         tagged + digest,
		bare:                           latest + digest,
		list:                           list + "@" + sum, // of the list, not of one of its images
		"nowhere.invalid/x" + digest:   "nowhere.invalid/x" + digest,
		"nowhere.invalid/x:1" + digest: "nowhere.invalid/x:1" + digest,
	} {
		if got, err := r.Pin(context.Background(), name); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestPinFails has tags that mean nothing, or of which nobody says what they mean.
func TestPinFails(t *testing.T) {
	registry := containertest.NewRegistry()
	t.Cleanup(registry.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	status := func(code int, header string) string {
		return server(t, func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("WWW-Authenticate", header)
			}
			w.WriteHeader(code)
		})
	}
	hangs := server(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	page := server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>Welcome</html>")) })
	for _, c := range []struct {
		name, want string
		later      bool
	}{
		{"not a name", "invalid reference format", false},
		{registry.Host + "/app:2", "has no such image", false},
		{registry.PushList(t, "none:1", empty.Index), "it is a list of images that has none for any platform", false},
		{page + "/app:1", "it is not an image of a container", false},
		{status(http.StatusUnauthorized, `Basic realm="registry"`) + "/app:1", "wants credentials", false},
		{status(http.StatusForbidden, "") + "/app:1", "403 Forbidden", false},
		{status(http.StatusBadGateway, "") + "/app:1", "502 Bad Gateway", true},
		{strings.TrimPrefix(gone.URL, "http://") + "/app:1", "connection refused", true},
		{hangs + "/app:1", "deadline exceeded", true},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if strings.HasPrefix(c.name, hangs) {
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			got, err := image.NewResolver().Pin(ctx, c.name)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
				t.Fatalf("got %q, %v, want %q", got, err, c.want)
			}
			if later := errors.Is(err, image.ErrUnavailable); later != c.later {
				t.Errorf("%v: may it be answered later: got %v, want %v", err, later, c.later)
			}
		})
	}
}

// TestPinAsksOnce asks twice what a tag means, and what is in the list that it means only once: that may be a pull.
func TestPinAsksOnce(t *testing.T) {
	registry := containertest.NewRegistry()
	t.Cleanup(registry.Close)
	plain := containertest.Image(t, v1.Config{}, containertest.File("file", []byte("text")))
	list, _ := registry.PushIndex(t, "list:1", plain)
	var heads, gets atomic.Int32
	host := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			heads.Add(1)
		} else {
			gets.Add(1)
		}
		registry.ServeHTTP(w, r)
	})
	r := image.NewResolver()
	for range 2 {
		if _, err := r.Pin(context.Background(), strings.Replace(list, registry.Host, host, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if heads.Load() != 2 || gets.Load() != 1 {
		t.Errorf("the tag was asked for %d times, and the list %d times, want 2 and 1", heads.Load(), gets.Load())
	}
}
