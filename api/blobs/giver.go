// Package blobs moves the parts of images from machines that have them to machines that are to start them.
//
// A machine gives an image to the machine that has, by the value, an allocation of exactly this image. If jobs have it
// with different pull secrets, it must have or have had an allocation with the same itself: no pool gets an image that
// its registry might refuse it, unless its instances could run it where it is.
package blobs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/opencontainers/go-digest"

	"starling/api/door"
	"starling/api/turns"
	"starling/api/wire"
	"starling/cluster"
	"starling/driver/image"
	"starling/replica/reaction"
	"starling/terms"
)

const (
	// sentMax is how many parts a machine sends at a time, and sentToOneMax to one node: for images of several tasks.
	sentMax, sentToOneMax = 4, 3
	// pieceBytes is how much of a part is read from the disk at a time.
	pieceBytes = 1 << 20
	// turnWithin bounds how long a request waits until a part can be sent, and answerWithin who asks for its first byte.
	turnWithin   = 4 * time.Second
	answerWithin = 6 * time.Second
)

// Config is what a machine gives, and how it knows to whom.
type Config struct {
	Node terms.NodeName
	// State returns the value at the index or later.
	State func(ctx context.Context, least terms.Index) (*cluster.State, error)
	// Blob opens a part of an image; the error wraps os.ErrNotExist where that is not here.
	Blob func(ctx context.Context, image string, part digest.Digest) (*image.Blob, error)
	// Log is told what is sent to whom; nil for no log.
	Log *slog.Logger
}

// NewHandler returns what answers at door.PathBlob. A query names the allocation that the image is for, an index at
// which it is in the value, and the digest of the part.
func NewHandler(config Config) http.Handler {
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	return &giver{config, turns.NewShared(sentMax, sentToOneMax, "sends parts of images")}
}

type giver struct {
	Config
	turns *turns.Turns
}

// ServeHTTP sends a part of an image; for HEAD, what kind of part it is and its size.
func (g *giver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := door.Check(r.Context(), door.PathBlob)
	if err == nil {
		err = g.give(w, r)
	}
	var failure *wire.Failure
	switch {
	case err == nil || r.Context().Err() != nil:
	case errors.As(err, &failure):
		door.WriteFailure(w, door.StatusOf(failure.Code), failure)
	default:
		door.WriteFailure(w, http.StatusServiceUnavailable, &wire.Failure{Code: wire.Unavailable, Reason: err.Error()})
	}
}

// give returns an error only before anything is sent; what breaks off later is shorter than was said.
func (g *giver) give(w http.ResponseWriter, r *http.Request) error {
	ctx, to := r.Context(), terms.NodeName(door.CallerOf(r.Context()).Name)
	name, part, err := g.named(ctx, to, r.URL.Query())
	if err != nil {
		return err
	}
	blob, err := g.Blob(ctx, name, part)
	if errors.Is(err, os.ErrNotExist) {
		return &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf("it does not have this part of image %s", name)}
	}
	if err != nil {
		return err
	}
	defer blob.Close()
	if r.Method != http.MethodHead {
		place, err := g.turn(ctx)
		if err != nil {
			return err
		}
		defer place.Done()
	}
	w.Header().Set("Content-Type", blob.MediaType)
	w.Header().Set("Content-Length", strconv.FormatInt(blob.Size(), 10))
	if r.Method == http.MethodHead {
		g.Log.Info("a node asks for an image that is here", "image", name, "node", to)
		return nil
	}
	pieces := bufio.NewWriterSize(struct{ io.Writer }{w}, pieceBytes)
	_, err = pieces.ReadFrom(io.NewSectionReader(blob, 0, blob.Size()))
	if err = cmp.Or(err, pieces.Flush()); err != nil {
		g.Log.Warn("a part of an image was not sent whole", "image", name, "node", to, "part", part, "error", err)
	}
	return nil
}

// turn waits for a place for sending, but not for long: there are other machines, and the registry.
func (g *giver) turn(ctx context.Context) (*turns.Place, error) {
	wait, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	place, err := g.turns.Take(wait)
	if errors.Is(err, context.DeadlineExceeded) {
		err = &wire.Failure{Code: wire.Unavailable,
			Reason: fmt.Sprintf("it sends as many parts of images as it may, %d and to one node %d, and none was sent within %s",
				sentMax, sentToOneMax, turnWithin)}
	}
	return place, err
}

// named returns the image of which a node may have a part, if it may.
func (g *giver) named(ctx context.Context, to terms.NodeName, query url.Values) (name string, part digest.Digest,
	err error) {
	id, isID := terms.ParseAllocationID(query.Get("allocation"))
	index, indexErr := strconv.ParseUint(query.Get("index"), 10, 64)
	part, err = digest.Parse(query.Get("digest"))
	if !isID || indexErr != nil || err != nil {
		return "", "", &wire.Failure{Code: wire.Invalid,
			Reason: "the request: allocation, index or digest is missing or wrong"}
	}
	ctx, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	state, err := g.State(ctx, terms.Index(index))
	if err != nil {
		return "", "", err
	}
	task := reaction.TaskOn(state, to, id)
	if task == nil {
		return "", "", &wire.Failure{Code: wire.Denied,
			Reason: fmt.Sprintf("node %s does not have %s, and gets no image for it", to, id)}
	}
	wants, ok := wantedBy(id.Slot.Job.Pool(), task)
	switch {
	case !ok:
		return "", "", &wire.Failure{Code: wire.Denied,
			Reason: fmt.Sprintf("the version of %s names no image with a digest", id)}
	case !wants.isFor(state, g.Node):
		return "", "", &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf("jobs have image %s with another pull_secret, "+
			"and no instance with the same is or was on node %s", wants.name, g.Node)}
	}
	return wants.name, part, nil
}
