package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"starling/api/door"
	"starling/api/turns"
	"starling/api/wire"
	"starling/terms/access"
	"starling/trust"
)

// answers is how a machine answers requests.
type answers func(r *http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// asked is a machine that answers so.
func asked(a answers) *machine {
	return &machine{client: &http.Client{Transport: a}, root: "https://machine", one: make(chan struct{}, 1)}
}

// dripping sends a piece of so many bytes after each pause, until it is read no more.
type dripping struct {
	ctx   context.Context
	bytes int
	pause time.Duration
}

// Read waits for the next piece.
func (d *dripping) Read(data []byte) (int, error) {
	select {
	case <-time.After(d.pause):
		return min(d.bytes, len(data)), nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

func sends(body func(ctx context.Context) io.Reader) answers {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body(r.Context()))}, nil
	}
}

// read fetches a part of so many bytes, and returns how much has come.
func (m *machine) read(ctx context.Context, size int64) (int64, error) {
	body, err := m.Fetch(ctx, ocispec.Descriptor{Digest: digest.FromString("part"), Size: size})
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, make([]byte, 1<<20))
}

// TestSlowMachines gives machines up that do not answer, or send too little for the time that is waited.
func TestSlowMachines(t *testing.T) {
	drips := func(bytes int, pause time.Duration) answers {
		return sends(func(ctx context.Context) io.Reader { return &dripping{ctx, bytes, pause} })
	}
	for _, c := range []struct {
		name  string
		asked answers
		want  string
		after time.Duration
	}{
		{"does not answer", func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, "it has not answered for 6s", answerWithin},
		{"sends nothing", drips(1, time.Hour), "it sent less than 4 MiB in 10s", rateWithin},
		{"sends little", drips(1<<10, time.Second), "it sent less than 4 MiB in 10s", rateWithin},
		{"is slow", drips(1<<20, 2*time.Second), "", 32 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			n, err := asked(c.asked).read(t.Context(), 16<<20)
			if took := time.Since(began); took != c.after {
				t.Errorf("%s: it took %s, want %s", c.name, took, c.after)
			}
			if c.want == "" && (err != nil || n != 16<<20) ||
				c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: got %d bytes, %v, want %q", c.name, n, err, c.want)
			}
		})
	}
}

// TestSlowWithManyParts gives a machine up that is slow with each of many small parts, before it answers or after, and
// none that sends many at once.
func TestSlowWithManyParts(t *testing.T) {
	const parts = 13
	late := func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(4 * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return sends(func(context.Context) io.Reader { return bytes.NewReader(make([]byte, 1<<10)) })(r)
	}
	drips := sends(func(ctx context.Context) io.Reader { return &dripping{ctx, 1 << 10, 9 * time.Second} })
	quick := sends(func(ctx context.Context) io.Reader { return &dripping{ctx, 1 << 10, time.Second / 2} })
	large := sends(func(ctx context.Context) io.Reader { return &dripping{ctx, 1 << 20, 2 * time.Second} })
	for _, c := range []struct {
		name  string
		asked answers
		bytes int64
		slow  bool
		after time.Duration
	}{
		{"answers late", late, 1 << 10, true, rateWithin},
		{"sends late", drips, 1 << 10, true, rateWithin},
		{"is quick", quick, 1 << 10, false, parts * time.Second / 2},
		{"sends large parts", large, 4 << 20, false, parts * 8 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, m := time.Now(), asked(c.asked)
			var err error
			for part := 0; part < parts && err == nil; part++ {
				_, err = m.read(t.Context(), c.bytes)
			}
			var slow *slowError
			if took := time.Since(began); took != c.after || errors.As(err, &slow) != c.slow {
				t.Errorf("one that %s: got %v after %s, want %s", c.name, err, took, c.after)
			}
		})
	}
}

// TestOnePartAtATime lets a part wait until the one before has come, and reads no more than a part should have.
func TestOnePartAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := asked(sends(func(context.Context) io.Reader { return bytes.NewReader(make([]byte, 100)) }))
		first, err := m.Fetch(t.Context(), ocispec.Descriptor{Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		var second error
		go func() { _, second = m.read(t.Context(), 10) }()
		began, waiting := time.Now(), context.Context(nil)
		waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := m.read(waiting, 10); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("another came beside it: %v", err)
		}
		if n, err := io.Copy(io.Discard, first); n != 10 || err != nil {
			t.Errorf("got %d bytes, %v", n, err)
		}
		first.Close()
		synctest.Wait()
		if second != nil {
			t.Errorf("the second: %v", second)
		}
		if n, err := m.read(t.Context(), 10); n != 10 || err != nil {
			t.Errorf("the third: got %d bytes, %v", n, err)
		}
	})
}

// TestResolve believes a machine only what may be an image.
func TestResolve(t *testing.T) {
	sum := digest.FromString("root")
	for kind, want := range map[string]string{
		ocispec.MediaTypeImageManifest: "", ocispec.MediaTypeImageIndex: "",
		ocispec.MediaTypeImageLayer: "which is not an image", "text/html": "which is not an image",
	} {
		m := asked(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody,
				Header: http.Header{"Content-Type": {kind}, "Content-Length": {"7"}}}, nil
		})
		name, found, err := m.Resolve(t.Context(), "host/app@"+sum.String())
		if want == "" && (err != nil || name != "host/app@"+sum.String() || found.Digest != sum || found.Size != 7) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %s, %v, %v", kind, name, found, err)
		}
	}
	if _, _, err := asked(nil).Resolve(t.Context(), "host/app:1"); err == nil {
		t.Error("a tag was asked for")
	}
}

// TestTurns lets a node that comes when many are sent to wait for a moment, and then ask elsewhere.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewHandler(Config{}).(*giver)
		as := func(n int) context.Context {
			return door.WithCaller(t.Context(), trust.Identity{Kind: access.OfNode, Name: fmt.Sprint("n", n)})
		}
		var places []*turns.Place
		for n := range sentMax {
			place, err := g.turn(as(n))
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, place)
		}
		began := time.Now()
		var failure *wire.Failure
		if _, err := g.turn(as(sentMax)); !errors.As(err, &failure) || failure.Code != wire.Unavailable ||
			time.Since(began) != turnWithin {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		places[0].Done()
		if _, err := g.turn(as(sentMax)); err != nil {
			t.Errorf("when one has ended: %v", err)
		}
	})
}

// TestTurnsOfOneNode lets a node that starts several tasks have several parts at once, and another one more.
func TestTurnsOfOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewHandler(Config{}).(*giver)
		as := func(name string) context.Context {
			return door.WithCaller(t.Context(), trust.Identity{Kind: access.OfNode, Name: name})
		}
		for _, node := range []string{"a", "a", "a", "b"} {
			if _, err := g.turn(as(node)); err != nil {
				t.Errorf("node %s: %v", node, err)
			}
		}
		if _, err := g.turn(as("a")); err == nil || !strings.Contains(err.Error(), "4 and to one node 3, and none was sent") {
			t.Errorf("one too many: got %v", err)
		}
	})
}
