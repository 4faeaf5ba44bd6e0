// Package etcd keeps the journal in etcd: in members embedded in this process, or in an ensemble reached as a client.
//
// One record is one key and one revision: a transaction puts `journal/record/<writer>/<seq>` if that key was never
// put, so that the engine itself drops a resend, and together with it the key `journal/head`. The engine counts
// the puts of a key (its version), hence the version of the head at a record's revision is the record's index:
// gap-free, the same for everybody, and without writers competing for a number.
//
//	revision  ...   41           42        43           44
//	record    ...   a/7          b/1                    a/8
//	head      ...   version 17   18                     19
//	pulse     ...                          of n-3
//
// A reader lists the keys once, fetches what it misses, and then watches. A watch is a hint: each of its events
// carries the version of the head, so a reader that misses one knows it before it delivers the next, and reads
// again; one that hears nothing looks at the head now and then. A watch ends with its stream, and the last record is
// looked at before the next: meanwhile the engine may have been given older data.
//
// The key `journal/seal` ends the journal: a record is put only as long as there is none.
//
// The key `journal/snapshot` says up to which record a snapshot stands for them, and the revision of that one. It is
// put first; then the records up to that revision are deleted. So what a cut that was broken off has left counts for
// nobody, and goes with the next cut. A journal that begins with a snapshot of another counts from there.
//
// A pulse is a key that is attached to a lease, to a new one when the engine has a new leader.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"starling/journal"
)

const (
	// attemptMax bounds one request. What a member sent to a leader that died is lost without a word, and a member
	// may fall silent: the next attempt goes to another member, and to the next leader.
	attemptMax = 2 * time.Second
	// reachMax bounds how long Open tries to reach the engine if its context does not.
	reachMax = 10 * time.Second
	// silenceMax is after how long without acknowledgement a connection is given up.
	silenceMax = 2 * time.Second
	// reconnectMax bounds the wait before a member that was not reachable is tried again; gRPC's own is two minutes.
	reconnectMax = time.Second
	// pingEvery is the shortest interval at which gRPC lets a client ask whether an idle connection still works.
	pingEvery = 10 * time.Second
)

// ClientConfig says how to reach an ensemble.
type ClientConfig struct {
	// Endpoints are the client URLs of all members: "http://10.0.0.1:2379". Name all, to outlive any of them.
	Endpoints []string
	// Prefix begins every key, for an ensemble that serves others too: "starling/". All peers need the same; with
	// members of Starling's own it is empty, as Member.Journal has it.
	Prefix string
	// TLS is for endpoints that begin with https.
	TLS *tls.Config
	// User and Password are for an ensemble that asks for them, "" for one that does not.
	User, Password string
}

// Journal is a journal.Journal in etcd.
type Journal struct {
	client *engine
	shared bool // whether the engine is another journal's, which closes it
	keys   keyspace

	ctx      context.Context // until Close
	cancel   context.CancelFunc
	mu       sync.Mutex     // orders the begin of a pulse's goroutine and Close
	renewing sync.WaitGroup // one per pulse owned here

	watches    atomic.Int64  // ever begun
	checkEvery time.Duration // how often a reader compares its position with the head
}

var _ journal.Journal = (*Journal)(nil)

// Open returns a journal in the ensemble, once that has answered. It gives up when ctx ends, and after 10 seconds.
func Open(ctx context.Context, config ClientConfig) (*Journal, error) {
	where := whereabouts(config.Endpoints)
	client, err := dial(config)
	if err != nil {
		return nil, fmt.Errorf("open journal in %s: %w", where, err)
	}
	j := newJournal(newEngine(&way{client, where, false}), newKeyspace(config.Prefix), false)
	ctx, cancel := context.WithTimeout(ctx, reachMax)
	defer cancel()
	if _, err := client.Get(ctx, j.keys.head); err != nil {
		err = cmp.Or(insecure(config), remedied(err))
		return nil, errors.Join(fmt.Errorf("open journal in %s: %w", where, err), j.Close())
	}
	return j, nil
}

// dial returns a client, which finds its members in its own time.
func dial(config ClientConfig) (*clientv3.Client, error) {
	options := []grpc.DialOption{openOnce(), grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: pauseMin, Multiplier: 2, Jitter: 0.2, MaxDelay: reconnectMax},
		MinConnectTimeout: silenceMax,
	})}
	who := &signIn{user: config.User, password: config.Password}
	if config.User != "" {
		options = append(options, who.options()...)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            config.Endpoints,
		DialTimeout:          readMax,
		DialKeepAliveTime:    pingEvery,
		DialKeepAliveTimeout: silenceMax,
		TLS:                  config.TLS,
		DialOptions:          options,
		Logger:               zap.NewNop(),
	})
	who.client = client
	return client, err
}

// insecure tells why the connection to an endpoint cannot be made secure, which etcd's client keeps to itself; nil if
// it can, or nothing answers. It takes readMax at most, for all endpoints together.
func insecure(config ClientConfig) error {
	end := time.Now().Add(readMax)
	for _, endpoint := range config.Endpoints {
		at, err := url.Parse(endpoint)
		if err != nil || at.Scheme != "https" || config.TLS == nil {
			continue
		}
		how := config.TLS.Clone()
		how.NextProtos = []string{"h2"}
		connection, err := tls.DialWithDialer(&net.Dialer{Deadline: end}, "tcp", at.Host, how)
		if err == nil { // a server says only then that it takes no client with this certificate, or without one
			_ = connection.SetReadDeadline(end)
			for err == nil {
				_, err = connection.Read(make([]byte, 1<<10))
			}
			_ = connection.Close()
		}
		var unreachable *net.OpError
		if errors.As(err, &unreachable) && unreachable.Op != "remote error" || errors.Is(err, io.EOF) {
			continue
		}
		return fmt.Errorf("no secure connection to %s: %w; are certificate, key and authority the right ones?", endpoint, err)
	}
	return nil
}

func newJournal(e *engine, keys keyspace, shared bool) *Journal {
	ctx, cancel := context.WithCancel(context.Background())
	return &Journal{
		client: e, shared: shared, keys: keys, ctx: ctx, cancel: cancel, checkEvery: 2 * time.Second,
	}
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, r journal.Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	key := j.keys.record(r.Writer, r.Seq)
	put := clientv3.OpPut(key, "")
	put.WithValueBytes(r.Payload)
	// A transaction that finds the key is a resend, and as good as the first.
	got, err := j.client.Txn(during).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(j.keys.seal), "=", 0)).
		Then(put, clientv3.OpPut(j.keys.head, "")).
		Else(clientv3.OpGet(key, clientv3.WithCountOnly())).
		Commit()
	if err == nil && !got.Succeeded && got.Responses[0].GetResponseRange().Count == 0 {
		err = journal.ErrSealed
	}
	if err != nil {
		return j.failed(ctx, fmt.Sprintf("append %s/%d", r.Writer, r.Seq), err)
	}
	return nil
}

// Head implements journal.Journal.
func (j *Journal) Head(ctx context.Context) (journal.Index, error) {
	during, done := j.during(ctx, attemptMax)
	defer done()
	head, _, err := j.ends(during)
	if err != nil {
		return 0, j.failed(ctx, "read the head", err)
	}
	return head.index, nil
}

// Seal implements journal.Journal.
func (j *Journal) Seal(ctx context.Context, to string) (seal journal.Seal, err error) {
	during, done := j.during(ctx, attemptMax)
	defer done()
	if to != "" {
		_, err = j.client.Txn(during).If(clientv3.Compare(clientv3.CreateRevision(j.keys.seal), "=", 0)).
			Then(clientv3.OpPut(j.keys.seal, to)).Commit()
	}
	if err == nil {
		seal.To, err = j.sealedTo(during)
	}
	if err == nil && seal.To != "" { // since then the head stays
		head, _, failed := j.ends(during)
		seal.Index, err = head.index, failed
	}
	if err != nil {
		return journal.Seal{}, j.failed(ctx, "read the seal", err)
	}
	return seal, nil
}

// sealedTo says where the journal goes on, "" if it is not sealed.
func (j *Journal) sealedTo(ctx context.Context) (string, error) {
	got, err := j.client.Get(ctx, j.keys.seal)
	if err != nil || len(got.Kvs) == 0 {
		return "", err
	}
	return string(got.Kvs[0].Value), nil
}

// Room implements journal.Journal. What counts is what is used of a member's file: the rest is used before that grows.
func (j *Journal) Room(ctx context.Context) (room journal.Room, err error) {
	during, done := j.during(ctx, attemptMax)
	defer done()
	client, answered := j.Client(), false
	endpoints := client.Endpoints()
	if len(endpoints) == 0 {
		endpoints = []string{""} // the member in this process
	}
	for _, e := range endpoints {
		s, failed := client.Status(during, e)
		if failed != nil {
			err = failed
			continue
		}
		if answered = true; s.DbSizeInUse >= room.Used {
			room = journal.Room{Used: s.DbSizeInUse, Quota: s.DbSizeQuota}
		}
	}
	if !answered {
		return room, j.failed(ctx, "read the room", err)
	}
	return room, nil
}

// Cluster implements journal.Journal.
func (j *Journal) Cluster(ctx context.Context, proposed string) (string, error) {
	during, done := j.during(ctx, attemptMax)
	defer done()
	get := clientv3.OpGet(j.keys.cluster)
	then := []clientv3.Op{get}
	if proposed != "" {
		then = []clientv3.Op{clientv3.OpPut(j.keys.cluster, proposed), get}
	}
	got, err := j.client.Txn(during).If(clientv3.Compare(clientv3.CreateRevision(j.keys.cluster), "=", 0)).
		Then(then...).Else(get).Commit()
	if err != nil {
		return "", j.failed(ctx, "read the cluster's id", err)
	}
	if kvs := got.Responses[len(got.Responses)-1].GetResponseRange().Kvs; len(kvs) > 0 {
		return string(kvs[0].Value), nil
	}
	return "", nil
}

// position is a record's place, in the journal and in the engine.
type position struct {
	index    journal.Index
	revision int64
}

// ends returns the position of the last record, and up to where records were trimmed.
func (j *Journal) ends(ctx context.Context) (head position, trimmed cut, err error) {
	got, err := j.client.Txn(ctx).Then(clientv3.OpGet(j.keys.head), clientv3.OpGet(j.keys.snapshot)).Commit()
	if err != nil {
		return head, trimmed, err
	}
	if kvs := got.Responses[1].GetResponseRange().Kvs; len(kvs) > 0 {
		if trimmed, err = decodeCut(kvs[0]); err != nil {
			return head, trimmed, err
		}
	}
	head = position{index: trimmed.Base, revision: got.Header.Revision}
	if kvs := got.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		head = position{index: trimmed.Base + journal.Index(kvs[0].Version), revision: kvs[0].ModRevision}
	}
	return head, trimmed, nil
}

// Close implements journal.Journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	first := j.ctx.Err() == nil
	j.cancel()
	j.mu.Unlock()
	j.renewing.Wait()
	if !first || j.shared {
		return nil
	}
	if err := j.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close journal in %s: %w", j.client.where(), err)
	}
	return nil
}

// during returns a context for one request: it ends with ctx, with the journal, and after limit (0 means none).
func (j *Journal) during(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	stop := context.AfterFunc(j.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// over returns why nothing can be done any more: the journal is closed, or the caller's context has ended.
func (j *Journal) over(ctx context.Context) error {
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	return ctx.Err()
}

// failed returns the error of an operation that the caller's ctx bounded.
func (j *Journal) failed(ctx context.Context, operation string, err error) error {
	if over := j.over(ctx); over != nil {
		return over
	}
	return fmt.Errorf("%s in %s: %w", operation, j.client.where(), remedied(err))
}

// remedied adds what can be done about err where that is known.
func remedied(err error) error {
	code := status.Code(err)
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w; the journal has used up the engine's quota: free space and disarm its alarm", err)
	case errors.Is(err, context.DeadlineExceeded), code == codes.DeadlineExceeded, code == codes.Unavailable:
		return fmt.Errorf("%w; are most of its members running, and reachable from here?", err)
	}
	return err
}

// keyspace names the keys.
type keyspace struct {
	prefix   string
	journal  string // begins head, seal, snapshot and records, which are watched together
	head     string
	seal     string // says where the journal goes on
	snapshot string
	records  string
	chunks   string
	pulses   string
	cluster  string // the cluster's id
}

func newKeyspace(prefix string) keyspace {
	return keyspace{
		prefix:   prefix,
		journal:  prefix + "journal/",
		head:     prefix + "journal/head",
		seal:     prefix + "journal/seal",
		snapshot: prefix + "journal/snapshot",
		records:  prefix + "journal/record/",
		chunks:   prefix + "snapshot/",
		pulses:   prefix + "pulse/",
		cluster:  prefix + "cluster",
	}
}

func (k keyspace) record(writer string, seq uint64) string {
	return fmt.Sprintf("%s%s/%016x", k.records, writer, seq)
}

// chunksFrom begins the keys of the chunks of snapshots at an index; those of earlier ones are less.
func (k keyspace) chunksFrom(at journal.Index) string {
	return fmt.Sprintf("%s%016x/", k.chunks, uint64(at))
}

func (k keyspace) chunk(s journal.Snapshot, number uint32) string {
	return fmt.Sprintf("%s%x/%08x", k.chunksFrom(s.Index), s.Sum, number)
}

func (k keyspace) pulse(id string) string {
	return k.pulses + id
}

// identity returns the writer and the sequence number that a record's key holds.
func (k keyspace) identity(key []byte) (writer []byte, seq uint64, err error) {
	const digits = 16
	slash := len(key) - digits - 1
	if slash <= len(k.records) || key[slash] != '/' {
		return nil, 0, fmt.Errorf("key %q is no record: %w", key, errDamaged)
	}
	seq, err = strconv.ParseUint(string(key[slash+1:]), 16, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("key %q is no record: %w", key, errDamaged)
	}
	return key[len(k.records):slash], seq, nil
}
