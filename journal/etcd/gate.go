package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"starling/journal/connlimit"
)

// What the engine itself has for connections of clients and of members.
const (
	keepaliveMin  = 5 * time.Second
	memberReadMax = 5 * time.Minute
	memberGoodbye = time.Second
	// gateEvery is how often the gate looks whether what it let in still counts.
	gateEvery = time.Second
	// unprovenMax is how long a connection may take to show a certificate that counts.
	unprovenMax = 8 * time.Second
	// ofNodeMax bounds the connections of one node to one address.
	ofNodeMax = 512
)

// gate is where a member answers clients and other members. With certificates it lets in whose does count, and for as
// long as it does.
type gate struct {
	secure transport.TLSInfo // empty for a member that serves this machine only
	refuse func(*x509.Certificate) (node string, err error)
	server *etcdserver.EtcdServer

	clients, members net.Listener
	rpc              *grpc.Server
	http             *http.Server
	serving          sync.WaitGroup
	closed           chan struct{}

	mu   sync.Mutex
	open map[*admitted]func() error // why one that was let in is to end, if it is
	err  error                      // the first
}

// listen takes the addresses of a member.
func listen(config *MemberConfig, settings *transport.TLSInfo) (*gate, error) {
	g := &gate{secure: *settings, refuse: config.Refuse, closed: make(chan struct{}), open: map[*admitted]func() error{}}
	var err error
	if g.clients, err = g.listenAt(config.ClientURL); err != nil {
		return nil, err
	}
	within := transport.WithTimeout(rafthttp.ConnReadTimeout, rafthttp.ConnWriteTimeout)
	if g.members, err = g.listenAt(config.PeerURL, within); err != nil {
		return nil, errors.Join(err, g.clients.Close())
	}
	return g, nil
}

// listenAt takes one address. Who reaches it has shown nothing yet.
func (g *gate) listenAt(at string, options ...transport.ListenerOption) (net.Listener, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	l, err := transport.NewListenerWithOpts(u.Host, "http", options...)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", at, err)
	}
	limits := connlimit.Default()
	if limits.Within = unprovenMax; g.secure.Empty() {
		limits.Within = 0 // nobody shows anything there
	}
	return admitting{connlimit.New(l, limits, nil), g}, nil
}

// drop gives the addresses back that nothing answers at yet.
func (g *gate) drop() error { return errors.Join(g.clients.Close(), g.members.Close()) }

// serve answers for a member until close.
func (g *gate) serve(server *etcdserver.EtcdServer, rpc ...grpc.ServerOption) {
	g.server = server
	var forClients *tls.Config
	members := g.members
	if !g.secure.Empty() {
		forClients = g.config("h2", g.stranger)
		members = tls.NewListener(g.members, g.config("http/1.1", g.outsider))
		g.serving.Go(g.watch)
	}
	g.rpc = v3rpc.Server(server, forClients, nil, append(rpc,
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMin}))...)
	g.http = &http.Server{Handler: etcdhttp.NewPeerHandler(server.Logger(), server), ReadTimeout: memberReadMax,
		ErrorLog: zap.NewStdLog(zap.NewNop())}
	g.serving.Go(func() { g.ended(g.rpc.Serve(g.clients)) })
	g.serving.Go(func() { g.ended(g.http.Serve(members)) })
}

func (g *gate) ended(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
		g.err = err
	}
}

// config returns how connections are made secure. The files are read for each.
func (g *gate) config(protocol string, refusal func(*x509.Certificate) error) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			one, err := g.secure.ServerConfig()
			if err != nil {
				return nil, err
			}
			one.MinVersion, one.NextProtos, one.SessionTicketsDisabled = tls.VersionTLS13, []string{protocol}, true
			one.VerifyConnection = func(c tls.ConnectionState) error {
				return g.admit(hello.Conn.(*admitted), c.PeerCertificates[0], refusal)
			}
			return one, nil
		}}
}

// stranger is an error if a client's certificate does not count any more. A member without a leader refuses nobody: who
// it takes for a stranger may be the one through whom it would hear what it has missed.
func (g *gate) stranger(certificate *x509.Certificate) error {
	if g.refuse == nil || g.server.Leader() == 0 {
		return nil
	}
	_, err := g.refuse(certificate)
	return err
}

// outsider is the same for other members: who is one yet is needed until the quorum has removed it.
func (g *gate) outsider(certificate *x509.Certificate) error {
	err := g.stranger(certificate)
	if err == nil {
		return nil
	}
	node, _ := g.refuse(certificate)
	for _, m := range g.server.Cluster().Members() {
		if m.Name == node {
			return nil
		}
	}
	return err
}

// admit lets a connection in unless there is a reason against its certificate, which is asked for again and again, or
// its node has as many as it may have.
func (g *gate) admit(connection *admitted, shown *x509.Certificate, refusal func(*x509.Certificate) error) error {
	if err := refusal(shown); err != nil {
		return err
	}
	node := shown.Subject.String()
	if g.refuse != nil {
		node, _ = g.refuse(shown)
	}
	if err := connection.Known(connlimit.Share{Key: "node " + node, Max: ofNodeMax}); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[connection] = func() error { return refusal(shown) }
	return nil
}

// watch ends connections whose certificates do not count any more.
func (g *gate) watch() {
	tick := time.NewTicker(gateEvery)
	defer tick.Stop()
	for {
		select {
		case <-g.closed:
			return
		case <-tick.C:
		}
		var refused []*admitted
		g.mu.Lock()
		for connection, refusal := range g.open {
			if refusal() != nil {
				refused = append(refused, connection)
			}
		}
		g.mu.Unlock()
		for _, connection := range refused {
			_ = connection.Close()
		}
	}
}

// close ends all connections of clients; with the member's own end come those of members to theirs.
func (g *gate) close(stop func()) error {
	close(g.closed)
	g.rpc.Stop()
	stop()
	short, cancel := context.WithTimeout(context.Background(), memberGoodbye)
	defer cancel()
	if g.http.Shutdown(short) != nil {
		_ = g.http.Close() // what is left has had its time
	}
	g.serving.Wait()
	return g.err
}

// admitting is a listener with limits, whose connections the gate forgets when they end.
type admitting struct {
	*connlimit.Listener
	gate *gate
}

// Accept implements net.Listener.
func (a admitting) Accept() (net.Conn, error) {
	connection, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &admitted{connection.(*connlimit.Conn), a.gate}
	if a.gate.secure.Empty() && one.Known() != nil { // there are too many
		_ = one.Close() // and who asked sees no more of it than that
	}
	return one, nil
}

type admitted struct {
	*connlimit.Conn
	gate *gate
}

// Close implements net.Conn.
func (a *admitted) Close() error {
	a.gate.mu.Lock()
	delete(a.gate.open, a)
	a.gate.mu.Unlock()
	return a.Conn.Close()
}
