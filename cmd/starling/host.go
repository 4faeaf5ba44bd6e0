package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"starling/api"
	"starling/cluster"
	"starling/driver"
	"starling/driver/process"
	"starling/journal"
	"starling/peer"
	"starling/replica"
)

// hostConfig is what the peer of one machine is made of.
type hostConfig struct {
	node     cluster.NodeName
	folder   string
	journal  journal.Journal
	offer    cluster.Offer
	listener net.Listener
	pulse    time.Duration
	log      *slog.Logger
}

// host is a running peer with its driver and its API.
type host struct {
	*peer.Peer
	node    cluster.NodeName
	driver  driver.Driver
	address string
	serving sync.WaitGroup
	cancel  context.CancelFunc
}

// startHost starts everything of one machine. The listener is its own from now on.
func startHost(ctx context.Context, config hostConfig) (*host, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which supervises tasks: %w", err)
	}
	tasks, err := process.Open(process.Config{
		Dir: filepath.Join(config.folder, "driver"), Supervisor: []string{program, superviseCommand},
	})
	if err != nil {
		return nil, fmt.Errorf("start the tasks of %s: %w", config.node, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	config.offer.Address = config.listener.Addr().String()
	config.offer.Rules = cluster.RulesNewest
	h := &host{node: config.node, driver: tasks, address: config.offer.Address, cancel: cancel}
	h.Peer = peer.Start(ctx, peer.Config{
		Node: config.node, Journal: config.journal, Driver: tasks, Offer: config.offer, PulseTTL: config.pulse,
		Identity: peer.FileIdentity{Path: filepath.Join(config.folder, "identity.json")}, Log: config.log,
	})
	version, _ := programVersion()
	handler := api.NewServer(backend{h.Peer}, api.Options{Version: version, Log: config.log})
	h.serving.Go(func() {
		if err := api.Serve(ctx, config.listener, handler); err != nil {
			config.log.Error("the API has stopped", "error", err)
			cancel() // a peer that nobody can ask must not look well
		}
	})
	return h, nil
}

// backend is the peer as the API wants it.
type backend struct{ *peer.Peer }

// Status asks the peer, which answers at once.
func (b backend) Status() replica.PeerStatus { return b.Peer.Status(context.Background()) }

// stop ends the API and the peer. Its tasks go on.
func (h *host) stop() error {
	h.cancel()
	h.Peer.Stop()
	h.serving.Wait()
	return h.driver.Close()
}

// running returns the ids of the tasks that run.
func running(d driver.Driver) []string {
	var ids []string
	for _, status := range d.Tasks() {
		if status.State == driver.Running {
			ids = append(ids, status.ID)
		}
	}
	return ids
}

// endTasks stops all tasks and forgets them, so that what comes after finds nothing. Those that do not end within the
// grace, or by the time that ctx ends, are killed.
func endTasks(ctx context.Context, d driver.Driver, grace time.Duration) error {
	for _, id := range running(d) {
		if err := d.Stop(id, grace); err != nil {
			return fmt.Errorf("stop %s: %w", id, err)
		}
	}
	hurry := ctx.Done()
	for len(running(d)) > 0 {
		select {
		case <-d.Changed():
		case <-hurry:
			hurry = nil
			for _, id := range running(d) {
				if err := d.Stop(id, 0); err != nil {
					return fmt.Errorf("kill %s: %w", id, err)
				}
			}
		}
	}
	var errs []error
	for _, status := range d.Tasks() {
		errs = append(errs, d.Forget(status.ID))
	}
	return errors.Join(errs...)
}

// listen opens the API's port.
func listen(address string, insecure bool) (net.Listener, error) {
	listener, err := api.Listen(address, insecure)
	var network *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program listens on %s already\nhint: stop it, or choose another port with --address", address)
	case err != nil && !errors.As(err, &network):
		return nil, &failure{exitUsage, err}
	}
	return listener, err
}

// offerOf puts an offer together, in the order that the cluster wants.
func offerOf(capacity cluster.Resources, attributes map[string]string) cluster.Offer {
	offer := cluster.Offer{Capacity: capacity}
	for name, value := range attributes {
		offer.Attributes = append(offer.Attributes, cluster.EnvVar{Name: name, Value: value})
	}
	slices.SortFunc(offer.Attributes, func(a, b cluster.EnvVar) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return offer
}
