package containertest

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Registry is one on this machine.
type Registry struct {
	server *httptest.Server
	// Host is its name in those of images.
	Host string
}

// NewRegistry starts an empty registry.
func NewRegistry() *Registry {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	return &Registry{server: server, Host: strings.TrimPrefix(server.URL, "http://")}
}

// Close ends it.
func (r *Registry) Close() { r.server.Close() }

// Push puts an image there under a name with a tag, and returns the whole name and that with the digest.
func (r *Registry) Push(t testing.TB, tag string, image v1.Image) (tagged, pinned string) {
	t.Helper()
	ref, err := name.NewTag(r.Host+"/"+tag, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return ref.Name(), ref.Context().Digest(digest.String()).Name()
}

// PushIndex puts a list there that has one image, under a name with a tag, and returns the whole name and the digest of
// the list.
func (r *Registry) PushIndex(t testing.TB, tag string, image v1.Image) (tagged, digest string) {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	list := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
		Platform: &v1.Platform{OS: file.OS, Architecture: file.Architecture}}})
	sum, err := list.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return r.PushList(t, tag, list), sum.String()
}

// PushList puts a list there under a name with a tag, and returns the whole name.
func (r *Registry) PushList(t testing.TB, tag string, list v1.ImageIndex) (tagged string) {
	t.Helper()
	ref, err := name.NewTag(r.Host+"/"+tag, name.Insecure)
	if err == nil {
		err = remote.WriteIndex(ref, list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref.Name()
}

// Guarded answers as the registry does, but only those who know a password.
func (r *Registry) Guarded(user, password string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if gotUser, gotPassword, ok := request.BasicAuth(); !ok || gotUser != user || gotPassword != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.ServeHTTP(w, request)
	})
}

// ServeHTTP answers as the registry does.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.server.Config.Handler.ServeHTTP(w, request)
}

// Entry is a file, folder, link or whatever a header can say, in an image.
type Entry struct {
	tar.Header
	Content []byte
}

// File is a program or another file.
func File(path string, content []byte) Entry {
	return Entry{tar.Header{Name: path, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}, content}
}

// Link is a symbolic link.
func Link(path, to string) Entry {
	return Entry{Header: tar.Header{Name: path, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}}
}

// Image makes an image for this machine of one layer.
func Image(t testing.TB, config v1.Config, entries ...Entry) v1.Image {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, entry := range entries {
		if err := w.WriteHeader(&entry.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(entry.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layer.Bytes())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, made)
	if err != nil {
		t.Fatal(err)
	}
	return For(t, image, "linux", runtime.GOARCH, config)
}

// For makes an image one for another system, with another configuration.
func For(t testing.TB, image v1.Image, system, architecture string, config v1.Config) v1.Image {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = system, architecture, config
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// Program reads a program of this machine that needs no other file, such as a test.
func Program(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
