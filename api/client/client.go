// Package client asks peers: it is what programs in Go, and the command line, use.
//
// A Client knows the addresses of one or more peers of one cluster and asks the first that answers. It remembers the
// highest index that it has seen and passes it on with what it reads, so that it reads its own writes at any peer.
// A write carries an id of its own, so that it counts once however often it is sent. Errors are *wire.Failure.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"starling/api/silence"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/terms"
	"starling/terms/rules"
	"starling/trust"
)

// messageBytesMax bounds each message of an answer: all that an entry of the journal has done may be in one.
const messageBytesMax = 256 << 20

// Client asks peers of one cluster. It is safe for concurrent use.
type Client struct {
	addresses []string
	peers     []starlingv1connect.StarlingClient
	// nodes asks peers over the network, sockets those of this machine.
	nodes, sockets *http.Client
	silence        silence.Client
	// current is the number of the peer that answered last.
	current atomic.Uint32
	// repeatable is what the ids of writes follow from, "" if each is new; again tells that another client had it before.
	repeatable string
	again      bool
	// seen is the highest index of all answers.
	seen atomic.Uint64
}

// New returns a client for the peers at the addresses, as Addresses returns them, with what there is to show who
// asks. It connects when it is first asked.
func New(addresses []string, credentials ...*trust.Credentials) *Client {
	return newClient(addresses, renewable(credentials))
}

// NewOfNode returns the same for a node, which shows its certificate.
func NewOfNode(addresses []string, keys *trust.Keys) *Client { return newClient(addresses, keys.Shows) }

// NewAt returns a client that asks about the past: at an index, or at a time as RFC 3339 has it.
func NewAt(addresses []string, at string, credentials ...*trust.Credentials) *Client {
	return newClient(addresses, renewable(credentials), wire.At(at))
}

func newClient(addresses []string, shows func() []trust.Shows, interceptors ...connect.Interceptor) *Client {
	c := &Client{addresses: slices.Clone(addresses), nodes: wire.Client(shows), sockets: wire.Client(nil)}
	options := []connect.ClientOption{connect.WithReadMaxBytes(messageBytesMax),
		connect.WithInterceptors(append(interceptors, &c.silence)...)}
	for _, address := range addresses {
		c.peers = append(c.peers, wire.Peer(c.by(address), address, options...))
	}
	return c
}

// SilentSince returns when the journal answered the peer last that has answered here, and whose answer is as old as
// that; a zero time if it answers.
func (c *Client) SilentSince() time.Time { return c.silence.Since() }

// Close lets go of connections that are not in use.
func (c *Client) Close() {
	c.nodes.CloseIdleConnections()
	c.sockets.CloseIdleConnections()
}

// by returns what asks the peer at an address.
func (c *Client) by(address string) *http.Client {
	if strings.HasPrefix(address, wire.UnixPrefix) {
		return c.sockets
	}
	return c.nodes
}

// Seen returns the highest index of all answers: what a program passes on to another that must see its writes.
func (c *Client) Seen() terms.Index { return terms.Index(c.seen.Load()) }

// See lets all that is read from now on be of this index at least.
func (c *Client) See(index terms.Index) {
	for seen := c.seen.Load(); uint64(index) > seen; seen = c.seen.Load() {
		if c.seen.CompareAndSwap(seen, uint64(index)) {
			return
		}
	}
}

// Quorum returns which machines keep the journal.
func (c *Client) Quorum(ctx context.Context) (*starlingv1.QuorumResponse, error) {
	return unary(ctx, c, &starlingv1.QuorumRequest{}, starlingv1connect.StarlingClient.Quorum)
}

// Rules returns the version of the rules in force, and up to which each member's program knows them.
func (c *Client) Rules(ctx context.Context) (*starlingv1.RulesResponse, error) {
	return unary(ctx, c, &starlingv1.RulesRequest{MinIndex: c.least(0)}, starlingv1connect.StarlingClient.Rules)
}

// ListJobs returns one page of jobs.
func (c *Client) ListJobs(ctx context.Context,
	request *starlingv1.ListJobsRequest) (*starlingv1.ListJobsResponse, error) {
	request.MinIndex = c.least(request.MinIndex)
	return unary(ctx, c, request, starlingv1connect.StarlingClient.ListJobs)
}

// AllJobs returns all jobs whose names begin with the prefix, with the index and time of the last page.
func (c *Client) AllJobs(ctx context.Context, prefix string) (*starlingv1.ListJobsResponse, error) {
	request := &starlingv1.ListJobsRequest{Prefix: prefix, PageSize: 1000}
	var jobs []*starlingv1.Job
	for {
		page, err := c.ListJobs(ctx, request)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, page.GetJobs()...)
		request.PageToken = page.GetNextPageToken()
		if request.PageToken == "" {
			page.Jobs = jobs
			return page, nil
		}
	}
}

// PlanJob tells what would come of a job, or a new version of one.
func (c *Client) PlanJob(ctx context.Context, spec *terms.Job) (*starlingv1.PlanJobResponse, error) {
	request := &starlingv1.PlanJobRequest{MinIndex: c.least(0), Spec: wire.Spec(spec)}
	return unary(ctx, c, request, starlingv1connect.StarlingClient.PlanJob)
}

// WhatIf tells what would come of imagined changes of the cluster.
func (c *Client) WhatIf(ctx context.Context, request *starlingv1.WhatIfRequest) (*starlingv1.WhatIfResponse, error) {
	request.MinIndex = c.least(request.MinIndex)
	return unary(ctx, c, request, starlingv1connect.StarlingClient.WhatIf)
}

// JobHistory lists the versions of a job that are kept.
func (c *Client) JobHistory(ctx context.Context, job terms.JobName) (*starlingv1.JobHistoryResponse, error) {
	request := &starlingv1.JobHistoryRequest{MinIndex: c.least(0), Job: string(job)}
	return unary(ctx, c, request, starlingv1connect.StarlingClient.JobHistory)
}

// JobDiff tells what differs between two versions of a job; 0 as to is the newest, as from the one before.
func (c *Client) JobDiff(ctx context.Context, job terms.JobName, from, to uint32) (*starlingv1.JobDiffResponse, error) {
	request := &starlingv1.JobDiffRequest{MinIndex: c.least(0), Job: string(job), From: from, To: to}
	return unary(ctx, c, request, starlingv1connect.StarlingClient.JobDiff)
}

// JobStatus tells how a job stands, with one page of its slots.
func (c *Client) JobStatus(ctx context.Context,
	request *starlingv1.JobStatusRequest) (*starlingv1.JobStatusResponse, error) {
	request.MinIndex = c.least(request.MinIndex)
	return unary(ctx, c, request, starlingv1connect.StarlingClient.JobStatus)
}

// Why lists every reason why something of a job does not run yet.
func (c *Client) Why(ctx context.Context, request *starlingv1.WhyRequest) (*starlingv1.WhyResponse, error) {
	request.MinIndex = c.least(request.MinIndex)
	return unary(ctx, c, request, starlingv1connect.StarlingClient.Why)
}

// ListPeers returns one page of the nodes and who lives on them.
func (c *Client) ListPeers(ctx context.Context,
	request *starlingv1.ListPeersRequest) (*starlingv1.ListPeersResponse, error) {
	request.MinIndex = c.least(request.MinIndex)
	return unary(ctx, c, request, starlingv1connect.StarlingClient.ListPeers)
}

// AllPeers returns all nodes and who lives on them, with the index and time of the last page.
func (c *Client) AllPeers(ctx context.Context) (*starlingv1.ListPeersResponse, error) {
	return c.allPeers(ctx, 0)
}

func (c *Client) allPeers(ctx context.Context, least uint64) (*starlingv1.ListPeersResponse, error) {
	request := &starlingv1.ListPeersRequest{MinIndex: least}
	var peers []*starlingv1.Peer
	for {
		page, err := c.ListPeers(ctx, request)
		if err != nil {
			return nil, err
		}
		peers = append(peers, page.GetPeers()...)
		request.PageToken = page.GetNextPageToken()
		if request.PageToken == "" {
			page.Peers = peers
			return page, nil
		}
	}
}

// NodeStats tells what machines use now. It takes a second, or the window that the request says.
func (c *Client) NodeStats(ctx context.Context,
	request *starlingv1.NodeStatsRequest) (*starlingv1.NodeStatsResponse, error) {
	request.MinIndex = c.least(request.MinIndex)
	return unary(ctx, c, request, starlingv1connect.StarlingClient.NodeStats)
}

// InstanceStats tells what the instances of a job use now. It takes a second, or the window that the request says.
func (c *Client) InstanceStats(ctx context.Context,
	request *starlingv1.InstanceStatsRequest) (*starlingv1.InstanceStatsResponse, error) {
	request.MinIndex = c.least(request.MinIndex)
	return unary(ctx, c, request, starlingv1connect.StarlingClient.InstanceStats)
}

// ListSessions lists the sessions beside an instance that can be attached to.
func (c *Client) ListSessions(ctx context.Context,
	request *starlingv1.ListSessionsRequest) (*starlingv1.ListSessionsResponse, error) {
	request.MinIndex = c.least(request.MinIndex)
	return unary(ctx, c, request, starlingv1connect.StarlingClient.ListSessions)
}

// AllPools returns all pools whose paths begin with the prefix, with the index, version and capacity of the last
// page.
func (c *Client) AllPools(ctx context.Context, prefix string) (*starlingv1.ListPoolsResponse, error) {
	request := &starlingv1.ListPoolsRequest{MinIndex: c.least(0), Prefix: prefix, PageSize: 1000}
	var pools []*starlingv1.Pool
	version := uint32(0)
	for {
		page, err := unary(ctx, c, request, starlingv1connect.StarlingClient.ListPools)
		if err != nil {
			return nil, err
		}
		if request.PageToken != "" && page.GetVersion() != version { // begin again, so that all are of one version
			pools, request.PageToken = nil, ""
			continue
		}
		pools, version = append(pools, page.GetPools()...), page.GetVersion()
		request.PageToken = page.GetNextPageToken()
		if request.PageToken == "" {
			page.Pools = pools
			return page, nil
		}
	}
}

// Secrets returns the secrets of a pool, or of all for "", without what they hold.
func (c *Client) Secrets(ctx context.Context, pool string) (*starlingv1.ListSecretsResponse, error) {
	return unary(ctx, c, &starlingv1.ListSecretsRequest{Pool: pool}, starlingv1connect.StarlingClient.ListSecrets)
}

// AllVolumes returns all volumes of jobs whose names begin with the prefix, with the index of the last page.
func (c *Client) AllVolumes(ctx context.Context, prefix string) (*starlingv1.ListVolumesResponse, error) {
	request := &starlingv1.ListVolumesRequest{MinIndex: c.least(0), Prefix: prefix, PageSize: 1000}
	var all []*starlingv1.Volumes
	for {
		page, err := unary(ctx, c, request, starlingv1connect.StarlingClient.ListVolumes)
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetVolumes()...)
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			page.Volumes = all
			return page, nil
		}
	}
}

// PoolStatus tells how a pool stands, and how its entitlement came about.
func (c *Client) PoolStatus(ctx context.Context, path terms.PoolPath) (*starlingv1.PoolStatusResponse, error) {
	request := &starlingv1.PoolStatusRequest{MinIndex: c.least(0), Path: string(path)}
	return unary(ctx, c, request, starlingv1connect.StarlingClient.PoolStatus)
}

// PlanPools tells what would come of a change of the tree, as ChangePools would make it.
func (c *Client) PlanPools(
	ctx context.Context, against uint32, pools []terms.Pool, gone []terms.PoolPath,
) (*starlingv1.PlanPoolsResponse, error) {
	request := &starlingv1.PlanPoolsRequest{MinIndex: c.least(0), Against: against, Pools: wire.Pools(pools),
		Gone: texts(gone)}
	return unary(ctx, c, request, starlingv1connect.StarlingClient.PlanPools)
}

// Info tells what the peer that answers knows of itself.
func (c *Client) Info(ctx context.Context) (*starlingv1.InfoResponse, error) {
	request := &starlingv1.InfoRequest{MinIndex: c.least(0)}
	return unary(ctx, c, request, starlingv1connect.StarlingClient.Info)
}

// needs refuses what the rules in force do not have: an older program than this would pass over it without a word.
func (c *Client) needs(ctx context.Context, flag string, number rules.Number) error {
	info, err := c.Info(ctx)
	if err == nil && info.GetRules() < uint32(number) {
		return &wire.Failure{Code: wire.Conflict, Reason: fmt.Sprintf("%s needs version %d of the rules, which are at version %d: "+
			"raise them with \"starling rules raise\" when the programs of all peers know it", flag, number, info.GetRules())}
	}
	return err
}

// Watch visits what there is, and then what changes, until visit returns an error or ctx ends. A connection that breaks
// is an error: what the last response says in resume tells where to go on, at any peer. After NotFound what was read is
// of a past that is lost or not kept any more: watch again without After, as the first time.
func (c *Client) Watch(
	ctx context.Context, request *starlingv1.WatchRequest, visit func(*starlingv1.WatchResponse) error,
) error {
	request.MinIndex = c.least(request.MinIndex)
	err := stream(ctx, c, streamCall[starlingv1.WatchRequest, starlingv1.WatchResponse]{
		request: request, method: starlingv1connect.StarlingClient.Watch, visit: visit,
	})
	if lost := (*wire.Failure)(nil); errors.As(err, &lost) && lost.Code == wire.NotFound && request.After != nil {
		request.MinIndex = 0 // the journal may end before what was seen
		c.seen.Store(min(c.seen.Load(), uint64(lost.Index)))
	}
	return err
}

// Diff tells what changed from one moment to another, the newest if that is empty.
func (c *Client) Diff(ctx context.Context, from, to string) (*starlingv1.DiffResponse, error) {
	return unary(ctx, c, &starlingv1.DiffRequest{From: from, To: to}, starlingv1connect.StarlingClient.Diff)
}

// Blame visits all entries that something happened with to a job, or to a part of it.
func (c *Client) Blame(
	ctx context.Context, request *starlingv1.BlameRequest, visit func(*starlingv1.TailJournalResponse) error,
) error {
	return stream(ctx, c, streamCall[starlingv1.BlameRequest, starlingv1.TailJournalResponse]{
		request: request, method: starlingv1connect.StarlingClient.Blame, visit: visit,
	})
}

// Usage tells what was held, and for how long.
func (c *Client) Usage(ctx context.Context, request *starlingv1.UsageRequest) (*starlingv1.UsageResponse, error) {
	return unary(ctx, c, request, starlingv1connect.StarlingClient.Usage)
}

// Export visits the pieces of a file of entries; the first has no data and says what the file holds.
func (c *Client) Export(
	ctx context.Context, request *starlingv1.ExportRequest, visit func(*starlingv1.ExportResponse) error,
) error {
	return stream(ctx, c, streamCall[starlingv1.ExportRequest, starlingv1.ExportResponse]{
		request: request, method: starlingv1connect.StarlingClient.Export, visit: visit,
	})
}

// Files visits pieces of what the working folder of an instance holds; the first says whose it is.
func (c *Client) Files(
	ctx context.Context, request *starlingv1.FilesRequest, visit func(*starlingv1.FilesResponse) error,
) error {
	request.MinIndex = c.least(request.MinIndex)
	return stream(ctx, c, streamCall[starlingv1.FilesRequest, starlingv1.FilesResponse]{
		request: request, method: starlingv1connect.StarlingClient.Files, visit: visit,
	})
}

// VolumeStats tells how much volumes take.
func (c *Client) VolumeStats(ctx context.Context, volumes string) (*starlingv1.VolumeStatsResponse, error) {
	request := &starlingv1.VolumeStatsRequest{MinIndex: c.least(0), Volumes: volumes}
	return unary(ctx, c, request, starlingv1connect.StarlingClient.VolumeStats)
}

// ReadVolumes writes what volumes hold that no instance has: a tar archive with a folder for each.
func (c *Client) ReadVolumes(ctx context.Context, volumes string, to io.Writer) error {
	request := &starlingv1.ReadVolumesRequest{MinIndex: c.least(0), Volumes: volumes}
	return stream(ctx, c, streamCall[starlingv1.ReadVolumesRequest, starlingv1.ReadVolumesResponse]{
		request: request, method: starlingv1connect.StarlingClient.ReadVolumes,
		visit: func(piece *starlingv1.ReadVolumesResponse) error {
			_, err := to.Write(piece.GetData())
			return err
		}})
}

// Output writes the output of an instance: a manifest, and then what is in the files.
func (c *Client) Output(ctx context.Context, request *starlingv1.OutputRequest, to io.Writer) error {
	request.MinIndex = c.least(request.MinIndex)
	return stream(ctx, c, streamCall[starlingv1.OutputRequest, starlingv1.OutputResponse]{
		request: request, method: starlingv1connect.StarlingClient.Output,
		visit: func(piece *starlingv1.OutputResponse) error {
			_, err := to.Write(piece.GetData())
			return err
		},
	})
}

func (c *Client) least(index uint64) uint64 { return max(index, c.seen.Load()) }

// indexed is every answer.
type indexed interface{ GetIndex() uint64 }

func (c *Client) saw(answer any) {
	if one, ok := answer.(indexed); ok {
		c.See(terms.Index(one.GetIndex()))
	}
}

// unary asks one peer after another, with pauses between rounds, until one decides or the retries are used up.
func unary[Q, A any](
	ctx context.Context, c *Client, request *Q,
	method func(starlingv1connect.StarlingClient, context.Context, *Q) (*A, error),
) (*A, error) {
	var answer *A
	err := c.retry(ctx, func(peer starlingv1connect.StarlingClient) error {
		var err error
		answer, err = method(peer, ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.saw(answer)
	return answer, nil
}

type streamCall[Q, A any] struct {
	request *Q
	method  func(starlingv1connect.StarlingClient, context.Context, *Q) (*connect.ServerStreamForClient[A], error)
	visit   func(*A) error
}

// stream is like unary until the first answer has come.
func stream[Q, A any](ctx context.Context, c *Client, call streamCall[Q, A]) error {
	var answers *connect.ServerStreamForClient[A]
	more, at := false, 0
	err := c.retry(ctx, func(peer starlingv1connect.StarlingClient) error {
		var err error
		at = slices.Index(c.peers, peer)
		answers, err = call.method(peer, ctx, call.request)
		if err != nil {
			return err
		}
		if more = answers.Receive(); more {
			return nil
		}
		defer answers.Close()
		return answers.Err()
	})
	if err != nil {
		return err
	}
	defer answers.Close()
	for ; more; more = answers.Receive() {
		c.saw(answers.Msg())
		if err := call.visit(answers.Msg()); err != nil {
			return err
		}
	}
	if answers.Err() != nil && ctx.Err() == nil { // another may do better
		c.current.CompareAndSwap(uint32(at), uint32((at+1)%len(c.peers)))
	}
	return c.broken(answers.Err(), c.addresses[at])
}
