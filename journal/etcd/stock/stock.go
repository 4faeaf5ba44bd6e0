// Package stock runs etcd for tests as its makers ship it, with their defaults, as processes of their own: an etcd that
// others keep.
package stock

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// patience bounds how long a server may take until it serves, and lookEvery is how often it is looked whether it does.
const (
	patience  = 60 * time.Second
	lookEvery = 20 * time.Millisecond
)

// Servers are those of one quorum on this machine.
type Servers struct {
	All    []*Server
	folder string
	binary string
}

// Server is one of them. It is not safe for concurrent use.
type Server struct {
	// URL is where clients reach it.
	URL string

	servers   *Servers
	arguments []string
	said      string
	process   *os.Process   // nil if none runs
	ended     chan struct{} // closed when it has ended
}

// New builds the program, and chooses ports on an address of this machine; no server runs yet. All lies in the folder.
func New(ctx context.Context, host, folder string, count int) (*Servers, error) {
	s := &Servers{folder: folder, binary: filepath.Join(folder, "etcd")}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "go.etcd.io/etcd/server/v3")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build etcd: %w\n%s", err, said)
	}
	var members []string
	for i := range count {
		client, err := freeURL(host)
		if err != nil {
			return nil, err
		}
		peer, err := freeURL(host)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprint("etcd-", i+1)
		members = append(members, name+"="+peer)
		s.All = append(s.All, &Server{URL: client, servers: s, said: filepath.Join(folder, name+".said"), arguments: []string{
			"--name", name, "--data-dir", filepath.Join(folder, "data", name), "--listen-client-urls", client,
			"--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer}})
	}
	for _, one := range s.All {
		one.arguments = append(one.arguments, "--initial-cluster", strings.Join(members, ","))
	}
	return s, nil
}

// freeURL returns a URL at which nothing listens.
func freeURL(host string) (string, error) {
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	defer l.Close()
	return "http://" + l.Addr().String(), nil
}

// Data is the folder in which the servers keep all that they have. It may be another disk, as long as none has run.
func (s *Servers) Data() string { return filepath.Join(s.folder, "data") }

// URLs are where clients reach the servers.
func (s *Servers) URLs() (all []string) {
	for _, one := range s.All {
		all = append(all, one.URL)
	}
	return all
}

// Start starts all servers that do not run, and waits until they serve.
func (s *Servers) Start(ctx context.Context) error {
	for _, one := range s.All {
		if err := one.start(); err != nil {
			return err
		}
	}
	for _, one := range s.All {
		if err := one.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Kill kills all servers.
func (s *Servers) Kill() {
	for _, one := range s.All {
		one.Kill()
	}
}

// Leader waits until a server leads, and returns it.
func (s *Servers) Leader(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(lookEvery) {
		for _, one := range s.All {
			if status := one.status(ctx); status != nil && status.Leader == status.Header.MemberId {
				return one, nil
			}
		}
	}
	return nil, fmt.Errorf("no server of %v leads: %w", s.URLs(), ctx.Err())
}

// start starts the server unless it runs.
func (s *Server) start() error {
	if s.process != nil && !s.hasEnded() {
		return nil
	}
	said, err := os.OpenFile(s.said, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	command := exec.Command(s.servers.binary, s.arguments...)
	command.Stdout, command.Stderr, command.SysProcAttr = said, said, dieWithParent()
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// What dies with its parent dies with the thread that forked it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		started <- command.Start()
		_ = command.Wait() // it is killed, or tells why not in what it has said
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	s.process, s.ended = command.Process, ended
	return nil
}

func (s *Server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// ready waits until the server serves.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ; ctx.Err() == nil && !s.hasEnded(); time.Sleep(lookEvery) {
		if status := s.status(ctx); status != nil && status.Leader != 0 {
			return nil
		}
	}
	said, _ := os.ReadFile(s.said) // it may have said nothing
	return fmt.Errorf("etcd at %s does not serve: %s", s.URL, said[max(0, len(said)-4096):])
}

// status returns what the server tells of itself, nil if it does not answer.
func (s *Server) status(ctx context.Context) *clientv3.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.URL}, Logger: zap.NewNop()})
	if err != nil {
		return nil
	}
	defer client.Close()
	status, err := client.Status(ctx, s.URL)
	if err != nil {
		return nil
	}
	return status
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Kill() // it may have ended
	<-s.ended
	s.process = nil
}
