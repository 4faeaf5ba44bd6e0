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
		if got, err := r.Pin(context.Background(), name, nil); err != nil || got != want {
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
			got, err := image.NewResolver().Pin(ctx, c.name, nil)
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
		if _, err := r.Pin(context.Background(), strings.Replace(list, registry.Host, host, 1), nil); err != nil {
			t.Fatal(err)
		}
	}
	if heads.Load() != 2 || gets.Load() != 1 {
		t.Errorf("the tag was asked for %d times, and the list %d times, want 2 and 1", heads.Load(), gets.Load())
	}
}

// TestPinWithCredentials asks a registry that wants some, as several forms of config.json have them. An error tells
// nothing of what a config holds, and that it will not be better later.
func TestPinWithCredentials(t *testing.T) {
	registry := containertest.NewRegistry()
	t.Cleanup(registry.Close)
	tagged, _ := registry.Push(t, "app:1", containertest.Image(t, v1.Config{}))
	host := server(t, registry.Guarded("robot", "swordfish").ServeHTTP)
	const others, none, form = "others than its container's", "has no credentials for it", "is not a config.json of Docker"
	for config, want := range map[string]string{
		`{"HOST": {"auth": "cm9ib3Q6c3dvcmRmaXNo"}}`:                                        "",
		`{"other": {}, "https://HOST/v1/": {"username": "robot", "password": "swordfish"}}`: "",
		`{"HOST": {}, "http://HOST": {"username": "robot", "password": "swordfish"}}`:       "",
		`{"HOST": {"username": "robot", "password": "herring"}}`:                            others,
		`{"other": {"auth": "cm9ib3Q6c3dvcmRmaXNo"}}`:                                       none,
		`{"HOST": {}}, "credsStore": "swordfish"`:                                           none,
		`{"HOST": {"auth": "swordfish?"}}`:                                                  "is not base64",
		`{"HOST": "swordfish"}`:                                                             form,
		`swordfish`:                                                                         form,
	} {
		config = `{"auths": ` + config + `}`
		err := pinWith(strings.Replace(tagged, registry.Host, host, 1), strings.ReplaceAll(config, "HOST", host))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", config, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "swordfish") || errors.Is(err, image.ErrUnavailable)) {
			t.Errorf("%s: got %v, which tells the password, or that it may be better later", config, err)
		}
	}
	if _, err := image.NewResolver().Pin(context.Background(), tagged, func(context.Context) ([]byte, error) {
		t.Error("a registry that wants no credentials had some opened")
		return nil, nil
	}); err != nil {
		t.Error(err)
	}
}

// pinWith asks what a name means with a config, none if it is empty.
func pinWith(name, config string) error {
	_, err := image.NewResolver().Pin(context.Background(), name, func(context.Context) ([]byte, error) {
		if config == "" {
			return nil, nil
		}
		return []byte(config), nil
	})
	return err
}

// TestPinWithTokens asks a registry that sends everybody for a token first: without credentials it is one for what is
// public, and with credentials they are needed for the token alone.
func TestPinWithTokens(t *testing.T) {
	registry := containertest.NewRegistry()
	t.Cleanup(registry.Close)
	public, _ := registry.Push(t, "public:1", containertest.Image(t, v1.Config{}))
	private, _ := registry.Push(t, "private:1", containertest.Image(t, v1.Config{}))
	host := server(t, withTokens(registry))
	const right, wrong = `{"auths": {"HOST": {"auth": "cm9ib3Q6c3dvcmRmaXNo"}}}`,
		`{"auths": {"HOST": {"username": "robot", "password": "herring"}}}`
	for _, c := range []struct{ name, config, want string }{
		{public, "", ""}, {public, right, ""}, {private, right, ""},
		{private, "", "wants credentials for it"}, {private, wrong, "others than its container's pull_secret has"},
	} {
		err := pinWith(strings.Replace(c.name, registry.Host, host, 1), strings.ReplaceAll(c.config, "HOST", host))
		switch {
		case c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s with %q: got %v, want %q", c.name, c.config, err, c.want)
		case err != nil && (strings.Contains(err.Error(), "herring") || errors.Is(err, image.ErrUnavailable)):
			t.Errorf("%s: got %v, which tells the password, or that it may be better later", c.name, err)
		}
	}
}

// withTokens has a registry answer those who have a token, which anybody gets for what is public, and for the rest
// whoever knows the password.
func withTokens(registry http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, password, known := r.BasicAuth()
		may := !known && strings.Contains(r.URL.RawQuery, "public") || user == "robot" && password == "swordfish"
		switch isToken := r.URL.Path == "/token" && r.Method == http.MethodGet; {
		case isToken && may:
			_, _ = w.Write([]byte(`{"token": "good"}`))
		case !isToken && r.Header.Get("Authorization") == "Bearer good":
			registry.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
}
