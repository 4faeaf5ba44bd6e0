// Package stock runs etcd for tests as its makers ship it, with their defaults, as processes of their own: an etcd that
// others keep.
package stock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"starling/journal/journaltest/engines"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// patience bounds how long a server may take until it serves, and lookEvery is how often it is looked whether it does.
const (
	patience  = 60 * time.Second
	lookEvery = 20 * time.Millisecond
)

// The ports to choose from: systems give none of them to outgoing connections, so a server that was killed finds its
// own again.
const portFirst, portCount = 17000, 6000

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

	engines.Process
	arguments []string
}

// New builds the program, and chooses ports for a server at each place; none runs yet. All lies in the folder.
func New(ctx context.Context, folder string, places ...engines.Place) (*Servers, error) {
	s := &Servers{folder: folder, binary: filepath.Join(folder, "etcd")}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "go.etcd.io/etcd/server/v3")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build etcd: %w\n%s", err, said)
	}
	var members []string
	for i, at := range places {
		client, peer := freeURL(at), freeURL(at)
		name := fmt.Sprint("etcd-", i+1)
		members = append(members, name+"="+peer)
		s.All = append(s.All, &Server{URL: client,
			Process: engines.Process{Place: at, Said: filepath.Join(folder, name+".said")}, arguments: []string{"--name", name,
				"--data-dir", filepath.Join(folder, "data", name), "--listen-client-urls", client,
				"--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer}})
	}
	for _, one := range s.All {
		one.arguments = append(one.arguments, "--initial-cluster", strings.Join(members, ","))
	}
	return s, nil
}

// freeURL returns a URL at which nothing listens.
func freeURL(at engines.Place) string {
	for {
		port := portFirst + rand.IntN(portCount)
		if at.IsFree(port) {
			return fmt.Sprintf("http://%s:%d", at.Host, port)
		}
	}
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
		if err := one.Run(s.binary, one.arguments...); err != nil {
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

// Leader waits until a server leads, and returns it. Those to leave out are paused, and may believe anything.
func (s *Servers) Leader(ctx context.Context, but ...*Server) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(lookEvery) {
		for _, one := range s.All {
			if slices.Contains(but, one) {
				continue
			}
			if status, err := one.status(ctx); err == nil && status.Leader == status.Header.MemberId {
				return one, nil
			}
		}
	}
	return nil, fmt.Errorf("no server of %v leads: %w", s.URLs(), ctx.Err())
}

// ready waits until the server serves.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ; ctx.Err() == nil && !s.HasEnded(); time.Sleep(lookEvery) {
		status, err := s.status(ctx)
		if err == nil && status.Leader != 0 || errors.Is(err, rpctypes.ErrUserEmpty) { // it asks who asks
			return nil
		}
	}
	said, _ := os.ReadFile(s.Said) // it may have said nothing
	return fmt.Errorf("etcd at %s does not serve: %s", s.URL, said[max(0, len(said)-4096):])
}

// status returns what the server tells of itself.
func (s *Server) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.URL}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Status(ctx, s.URL)
}
