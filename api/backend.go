// Package api answers requests for a peer: gRPC, gRPC-Web and HTTP/JSON on one port, and the journal as a stream of
// events for plain curl. Package door says who asks, and what that one may ask.
//
// Every answer carries the journal index at which it was true, and a request that reads may say which index it wants
// to have seen. Writes answer after the peer's own fold has applied them. What the API needs of a peer is a Backend;
// it holds no state of its own. The service is described in v1/starling.proto; client wraps it for Go.
package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"starling/api/metrics"
	"starling/api/relocation"
	"starling/api/session"
	"starling/api/stats"
	starlingv1 "starling/api/v1"
	"starling/cluster"
	"starling/cluster/registry"
	"starling/command"
	"starling/driver"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
	"starling/trust"
)

// Limits of what is asked and answered.
const (
	// pageSizeDefault and pageSizeMax bound the rows of an answer.
	pageSizeDefault = 100
	pageSizeMax     = 1000
	// chunkBytes is the size of a piece of output.
	chunkBytes = 32 << 10
	// waitMax bounds how long a request waits for an index or for its entry.
	waitMax = 30 * time.Second
	// readerTimeoutMax bounds how long a reader may take nothing before he is let go.
	readerTimeoutMax = 30 * time.Second
)

// Backend is what the API needs of a peer. An error that is not the context's means that the peer cannot answer now.
type Backend interface {
	// Status tells what the peer knows of itself.
	Status() report.PeerStatus
	// State returns the value at index least or later, as a copy of the caller's own; it waits for it until ctx ends.
	State(ctx context.Context, least terms.Index) (*cluster.State, error)
	// Head asks the engine how far the journal goes: an error if that does not answer.
	Head(ctx context.Context) (terms.Index, error)
	// Silence returns when the engine answered last, and why it does not now; a zero time if it does.
	Silence() (since time.Time, why error)
	// Archive is the past, nil if the peer keeps none.
	Archive() Archive
	// Registry is who is known to the cluster, and whether its rules have such a registry.
	Registry() (known *registry.Registry, inForce bool)
	// Submit appends the command and returns when this peer has folded it.
	Submit(ctx context.Context, c command.Command) (report.Receipt, error)
	// Follow calls visit with every folded entry from the index on, or from the oldest that is remembered, until ctx
	// ends or visit returns an error, which it returns.
	Follow(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error
	// Remembered is like Follow, and returns nil after the newest entry.
	Remembered(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error
	// Logs reads the output of an allocation that ran on this peer's node; it wraps os.ErrNotExist if none did.
	Logs(ctx context.Context, allocation string, o driver.LogOptions) (io.ReadCloser, error)
	// Folder opens the working folder of an allocation on this peer's node, as driver.Driver does.
	Folder(allocation string) (*os.Root, error)
	session.Backend
	relocation.Backend
	stats.Backend
	// SendOutput writes the output of an instance that is whole on this peer's node; it wraps os.ErrNotExist if there
	// is none.
	SendOutput(ctx context.Context, output terms.OutputSet, to io.Writer) error
	// SealSecret has a node that holds the authority's key seal what a secret of a pool holds.
	SealSecret(ctx context.Context, pool terms.PoolPath, name string, value []byte) (access.Secret, error)
	// Pulses returns what the peers publish with their pulses.
	Pulses(ctx context.Context) ([]report.PulseView, error)
}

// Options are what a server is told besides its peer.
type Options struct {
	// Version of the program, for Info.
	Version string
	// Rules is the newest version of the rules that the program knows.
	Rules rules.Number
	// Quorum is who keeps the journal, nil where that is not the etcd in Starling itself.
	Quorum Quorum
	// Meter counts what is asked, and has what the peer counts; nil for one of the server's own.
	Meter *metrics.Meter
	// Log takes what is wrong with the server itself.
	Log *slog.Logger
	// Pin returns the name of the image of a container with the digest that its tag has now, as door.Door does; nil leaves
	// names as they are. The secret of the container is one of the pool.
	Pin func(ctx context.Context, pool terms.PoolPath, c *terms.Container) (pinned string, err error)
	// Blobs gives parts of images to other nodes, nil for none.
	Blobs http.Handler
	// Shows is what this peer shows to others when it asks them.
	Shows func() []trust.Shows
}

// Quorum is who keeps the journal. Its errors are *wire.Failure where the one who asked can do something about them.
type Quorum interface {
	// Quorum tells which machines do.
	Quorum(ctx context.Context) (*starlingv1.QuorumResponse, error)
	// ChangeQuorum adds, promotes or removes a node.
	ChangeQuorum(ctx context.Context, action, node string) error
}

//go:generate bash generate
