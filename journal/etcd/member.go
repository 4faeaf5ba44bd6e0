package etcd

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"starling/journal"
	"starling/journal/etcd/datadir"
)

const (
	heartbeatMillis = 50
	// electionMillis is short, because a dead leader delays the end of the pulses that died with it (see leaseMargin).
	electionMillis = 500
	// QuotaDefault is how large the engine's file may become unless told otherwise; beyond it nothing can be appended.
	QuotaDefault = 8 << 30
	// learnersMax is how many members may catch up at a time: a quorum of one grows to three with two of them.
	learnersMax = 2
	// historyKept is how far back a watch can begin. What is older is compacted: all heads but the last, and what
	// pulses showed. Records are not touched, and a reader that is further behind lists them.
	historyKept = "10m"
	// requestBytesMax leaves room for the keys beside the largest payload.
	requestBytesMax = journal.PayloadBytesMax + 64<<10
)

// MemberConfig says what one member of the engine is. Members restart with the same configuration.
type MemberConfig struct {
	// Name is this member's own in InitialCluster.
	Name string
	// DataDir is created if missing.
	DataDir string
	// ClientURL is where clients reach this member: "http://127.0.0.1:2379". The host is an address or localhost.
	// Port 0 takes any free one, see Member.ClientURL.
	ClientURL string
	// PeerURL is where the other members reach it. Port 0 will do for the only one.
	PeerURL string
	// InitialCluster holds the peer URL of every member by name; it may be nil for the only one. It counts only for a
	// member whose data directory is empty.
	InitialCluster map[string]string
	// Join tells that the others of InitialCluster run already and have added this member.
	Join bool
	// Alone makes what the data directory holds a cluster of this member alone, whatever members it had.
	Alone bool
	// QuotaBytes is how large the engine's file may become, 0 for QuotaDefault.
	QuotaBytes int64
	// Certificates are for mutual TLS with clients and members; their URLs begin with https then. Without them a
	// member serves this machine only.
	Certificates Certificates
	// Refuse tells whose a certificate is that the authority has signed, and why it does not count any more, if it does
	// not; nil takes all. It must be fast.
	Refuse func(*x509.Certificate) (node string, err error) `json:"-"`
	// Log takes the engine's own log, in lines of JSON; nil drops it.
	Log io.Writer
}

// Certificates are files in PEM. They are read again for every connection, so they can be renewed in place.
type Certificates struct {
	// CertFile and KeyFile show who this member is, as a server and as a client of other members.
	CertFile, KeyFile string
	// CAFile holds who must have signed what others show.
	CAFile string
	// ServerName is a name that the certificates of all members and clients have, and no others of the same signer; ""
	// wants a certificate for the address of whoever shows it.
	ServerName string
}

// Member is a member of the engine that runs in this process.
type Member struct {
	name    string
	server  *embed.Etcd
	gate    *gate
	removed atomic.Bool
}

// Start starts a member and returns when it listens. It may not have found the others then, see Ready.
func Start(ctx context.Context, config MemberConfig) (*Member, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	settings, err := config.settings()
	if err != nil {
		return nil, fmt.Errorf("start member %s: %w", config.Name, err)
	}
	if _, err := datadir.Check(config.DataDir); err != nil && !errors.Is(err, datadir.ErrNoMember) {
		return nil, fmt.Errorf("start member %s: %w", config.Name, err)
	}
	m := &Member{name: config.Name}
	settings.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger(config.Log).WithOptions(zap.Hooks(m.heard)))
	if m.gate, err = listen(&config, &settings.PeerTLSInfo); err != nil {
		return nil, fmt.Errorf("start member %s: %w", config.Name, err)
	}
	if m.server, err = embed.StartEtcd(settings); err != nil {
		return nil, fmt.Errorf("start member %s in %s: %w", config.Name, config.DataDir, errors.Join(err, m.gate.drop()))
	}
	m.gate.serve(m.server.Server, grpc.ChainUnaryInterceptor(m.intercept))
	return m, nil
}

// heard looks for the one thing that the engine tells nobody but its log.
func (m *Member) heard(line zapcore.Entry) error {
	if line.Message == "data-dir used by this member must be removed" {
		m.removed.Store(true)
	}
	return nil
}

// settings returns the configuration in the engine's words.
func (c MemberConfig) settings() (*embed.Config, error) {
	clients, err := c.listenURL(c.ClientURL)
	if err != nil {
		return nil, fmt.Errorf("client URL: %w", err)
	}
	peers, err := c.listenURL(c.PeerURL)
	if err != nil {
		return nil, fmt.Errorf("peer URL: %w", err)
	}
	members, err := c.members()
	if err != nil {
		return nil, err
	}
	s := embed.NewConfig()
	s.Name, s.Dir = c.Name, c.DataDir
	s.ListenClientUrls, s.ListenPeerUrls = nil, nil // the gate answers there
	s.AdvertiseClientUrls, s.AdvertisePeerUrls = []url.URL{*clients}, []url.URL{*peers}
	s.InitialCluster = members
	if c.InitialCluster == nil {
		// Where another cluster was, some of its members may still run, and take one of the same name for theirs.
		s.InitialClusterToken = rand.Text()
	}
	if c.Join {
		s.ClusterState = embed.ClusterStateFlagExisting
	}
	s.ForceNewCluster, s.MaxLearners = c.Alone, learnersMax
	if c.Certificates != (Certificates{}) {
		s.PeerTLSInfo = transport.TLSInfo{
			CertFile: c.Certificates.CertFile, KeyFile: c.Certificates.KeyFile,
			TrustedCAFile: c.Certificates.CAFile, ClientCertAuth: true,
		}
		if name := c.Certificates.ServerName; name != "" {
			s.PeerTLSInfo.ServerName, s.PeerTLSInfo.AllowedHostnames = name, []string{name}
			s.PeerTLSInfo.SkipClientSANVerify = true // the name says enough, and addresses change
		}
	}
	s.TickMs, s.ElectionMs = heartbeatMillis, electionMillis
	s.QuotaBackendBytes, s.MaxRequestBytes = cmp.Or(c.QuotaBytes, QuotaDefault), requestBytesMax
	s.AutoCompactionMode, s.AutoCompactionRetention = embed.CompactorModePeriodic, historyKept
	s.EnableGRPCGateway = false
	return s, nil
}

// listenURL returns a URL to listen on, unless that would let others in who show no certificate.
func (c MemberConfig) listenURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	secure := c.Certificates != (Certificates{})
	address := net.ParseIP(u.Hostname())
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Port() == "":
		return nil, fmt.Errorf("%q is not of the form http://address:port or https://address:port", text)
	case secure != (u.Scheme == "https"):
		return nil, fmt.Errorf("%q: https needs certificates, and certificates https", text)
	case !secure && u.Hostname() != "localhost" && !address.IsLoopback():
		return nil, fmt.Errorf("%q: to serve other machines a member needs certificates, and https", text)
	}
	return u, nil
}

// members returns the cluster in the engine's notation.
func (c MemberConfig) members() (string, error) {
	cluster := c.InitialCluster
	if cluster == nil {
		cluster = map[string]string{c.Name: c.PeerURL}
	}
	if cluster[c.Name] != c.PeerURL {
		return "", fmt.Errorf("the cluster knows this member by peer URL %q, not by its own %q", cluster[c.Name], c.PeerURL)
	}
	var members []string
	for _, name := range slices.Sorted(maps.Keys(cluster)) {
		members = append(members, name+"="+cluster[name])
	}
	return strings.Join(members, ","), nil
}

// logger returns a logger of the engine to w. Where the engine panics, the process ends as where it gives up: a line
// has said why.
func logger(w io.Writer) *zap.Logger {
	if w == nil {
		w = io.Discard
	}
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), zap.InfoLevel),
		zap.WithPanicHook(zapcore.WriteThenFatal))
}

// Ready waits until the member serves: it has found enough of the others to elect a leader.
func (m *Member) Ready(ctx context.Context) error {
	select {
	case <-m.server.Server.ReadyNotify():
		return nil
	case <-m.Stopped():
		return fmt.Errorf("member %s has stopped, see the engine's log", m.name)
	case <-ctx.Done():
		return fmt.Errorf("member %s has not found most of the members of its cluster: %w", m.name, ctx.Err())
	}
}

// Stopped is closed when the member does not run any more, for whatever reason.
func (m *Member) Stopped() <-chan struct{} {
	return m.server.Server.StopNotify()
}

// Removed tells, of a member that has stopped, that the others have removed it: its data is of no more use.
func (m *Member) Removed() bool { return m.removed.Load() }

// ID is the member's in the engine.
func (m *Member) ID() uint64 { return uint64(m.server.Server.MemberID()) }

// Leads tells whether the member leads the quorum.
func (m *Member) Leads() bool { return m.server.Server.Leader() == m.server.Server.MemberID() }

// Votes tells whether the member has a vote: it is no learner, and was not removed.
func (m *Member) Votes() bool {
	one := m.server.Server.Cluster().Member(m.server.Server.MemberID())
	return one != nil && !one.IsLearner
}

// Journal returns a journal that asks this member without a network between. Close it before the member.
func (m *Member) Journal() *Journal {
	return newJournal(newEngine(m.way()), newKeyspace(""), false)
}

func (m *Member) way() *way {
	client := v3client.New(m.server.Server)
	client.Maintenance = present{client.Maintenance, m}
	return &way{client, "embedded etcd member " + m.name, true}
}

// present answers for a member only while that is one.
type present struct {
	clientv3.Maintenance
	member *Member
}

// Status implements clientv3.Maintenance.
func (p present) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	return ask(p.member, func() (*clientv3.StatusResponse, error) { return p.Maintenance.Status(ctx, endpoint) })
}

// intercept keeps the question how a member is from one that is none any more, as present does within the process.
func (m *Member) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (any,
	error,
) {
	if info.FullMethod != etcdserverpb.Maintenance_Status_FullMethodName {
		return answer(ctx, request)
	}
	return ask(m, func() (any, error) { return answer(ctx, request) })
}

// ask puts the question how a member is. From its removal, and when it has ended, the engine's own answer to that would
// end the process, for it reads what is not there any more; the engine waits with its end for what is attached to it.
func ask[T any](m *Member, question func() (T, error)) (T, error) {
	type reply struct {
		answer T
		err    error
	}
	replied := make(chan reply, 1)
	if err := m.gone(); err != nil {
		return reply{}.answer, err
	}
	m.server.Server.GoAttach(func() {
		answer, err := question()
		replied <- reply{answer, err}
	})
	select {
	case r := <-replied:
		return r.answer, r.err
	case <-m.server.Server.StoppingNotify():
		return reply{}.answer, status.Error(codes.Unavailable, "member "+m.name+" ends")
	}
}

// gone says that the others have removed the member, though it may not have ended yet.
func (m *Member) gone() error {
	if m.server.Server.IsMemberExist(m.server.Server.MemberID()) {
		return nil
	}
	return status.Error(codes.Unavailable, "member "+m.name+" was removed")
}

// Close stops the member. What it holds stays in its data directory.
func (m *Member) Close() error { return m.end(m.server.Close) }

// Leave does that at once, where nobody needs a leader in place of this member any more: to hand that on can take
// seconds.
func (m *Member) Leave() error {
	return m.end(func() {
		m.server.Server.HardStop()
		m.server.Server = nil // Close would stop it again, and wait for another leader
		m.server.Close()
	})
}

func (m *Member) end(stop func()) error {
	if err := m.gate.close(stop); err != nil {
		return fmt.Errorf("answer for member %s: %w", m.name, err)
	}
	for err := range m.server.Err() {
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("stop member %s: %w", m.name, err)
		}
	}
	return nil
}
