package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	miekg "github.com/miekg/dns"
	"golang.org/x/net/netutil"

	"starling/terms/domain"
)

const (
	// connectionsMax bounds the clients that are connected at a time; others wait.
	connectionsMax = 256
	// stopSecondsMax is how long answers under way may take when the server stops.
	stopSecondsMax = 5
	// listenTriesMax bounds the search for a port that is free for UDP and TCP alike.
	listenTriesMax = 10
)

// Server answers questions about the names of one zone.
type Server struct {
	zone      domain.Zone
	directory Directory
	clients   *clients
}

// NewServer returns a server for the names of a zone.
func NewServer(zone domain.Zone, directory Directory) (*Server, error) {
	if reason := zone.Problem(); reason != "" {
		return nil, fmt.Errorf("DNS zone %q %s", zone, reason)
	}
	return &Server{zone: zone, directory: directory,
		clients: &clients{now: time.Now, asked: map[netip.Prefix]int{}}}, nil
}

// Listen opens an address for UDP and for TCP. Port 0 stands for one that is free for both.
func Listen(ctx context.Context, address string) (packets net.PacketConn, streams net.Listener, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for DNS: %w", err)
	}
	var config net.ListenConfig
	for range listenTriesMax {
		if streams, err = config.Listen(ctx, "tcp", address); err != nil {
			return nil, nil, fmt.Errorf("listen for DNS: %w", err)
		}
		_, chosen, _ := net.SplitHostPort(streams.Addr().String())
		if packets, err = config.ListenPacket(ctx, "udp", net.JoinHostPort(host, chosen)); err == nil {
			return packets, streams, nil
		}
		streams.Close()
		if port != "0" {
			break
		}
	}
	return nil, nil, fmt.Errorf("listen for DNS: %w", err)
}

// Serve answers what comes in until the context ends. It closes both before it returns, and returns nil if the context
// ended it.
func (s *Server) Serve(ctx context.Context, packets net.PacketConn, streams net.Listener) error {
	defer packets.Close()
	defer streams.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers := []*miekg.Server{{PacketConn: packets}, {Listener: netutil.LimitListener(streams, connectionsMax)}}
	ended := make(chan error, len(servers))
	for _, server := range servers {
		server.Handler = s
		go func() {
			// Neither goes on without the other.
			defer cancel()
			ended <- run(ctx, server)
		}()
	}
	if err := errors.Join(<-ended, <-ended); err != nil {
		return fmt.Errorf("answer DNS: %w", err)
	}
	return nil
}

// run answers with one server until the context ends.
func run(ctx context.Context, server *miekg.Server) error {
	started, ended := make(chan struct{}), make(chan error, 1)
	server.NotifyStartedFunc = func() { close(started) }
	go func() { ended <- server.ActivateAndServe() }()
	select {
	case <-started: // before, it cannot be stopped
	case err := <-ended:
		return err
	}
	select {
	case <-ctx.Done():
	case err := <-ended:
		return err
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopSecondsMax*time.Second)
	defer cancel()
	if err := server.ShutdownContext(stopping); err != nil {
		return err
	}
	return <-ended
}

// ServeDNS answers one question, unless its client asks too much: whose address is forged is sent nothing then, and
// others ask again.
func (s *Server) ServeDNS(client miekg.ResponseWriter, question *miekg.Msg) {
	if !s.clients.allow(client.RemoteAddr()) {
		return
	}
	reply := s.answer(question)
	room := miekg.MaxMsgSize
	if _, datagram := client.RemoteAddr().(*net.UDPAddr); datagram {
		room = miekg.MinMsgSize
		if options := question.IsEdns0(); options != nil {
			room = min(max(int(options.UDPSize()), room), datagramBytesMax)
		}
	}
	reply.Truncate(room)
	// A client that is gone asks again, or never.
	_ = client.WriteMsg(reply)
}
