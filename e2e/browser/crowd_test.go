package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/api"
	"starling/api/client"
	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/archive"
	"starling/cmd/starling/host"
	"starling/driver"
	"starling/driver/fake"
	"starling/jobspec"
	"starling/journal/memory"
	"starling/peer"
	"starling/peer/identity"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/web"
)

// What is measured: all instances are of one job but one in each of the others.
const (
	crowdPeers, crowdJobs, crowdInstances = 30, 1_000, 10_000
	// crowdReady bounds how long the instances may take to start.
	crowdReady = 4 * time.Minute
	// historyPause is the time between the deaths of two instances while the journal is filled.
	historyPause = 3 * time.Millisecond
)

// crowd is a cluster in this process whose peers play their tasks, and the page of its first peer.
type crowd struct {
	testing.TB
	machines []*fake.Machine
	drivers  []*fake.Driver
	first    *peer.Peer
	page     *web.Page
}

// playing is a peer as the API wants it.
type playing struct {
	*peer.Peer
	archive *archive.Archive
}

// Status implements api.Backend.
func (p playing) Status() report.PeerStatus { return p.Peer.Status(context.Background()) }

// Archive implements api.Backend.
func (p playing) Archive() api.Archive { return p.archive }

// SealSecret implements api.Backend.
func (p playing) SealSecret(context.Context, terms.PoolPath, string, []byte) (access.Secret, error) {
	return access.Secret{}, errors.New("nobody has the key here")
}

func newCrowd(b *testing.B) *crowd {
	c := &crowd{TB: b}
	// Paths of sockets must be short.
	folder, err := os.MkdirTemp("", "starling-crowd-")
	if err != nil {
		b.Fatal(err)
	}
	kept, err := archive.Open(archive.Config{Dir: filepath.Join(folder, "archive"), BytesMax: 1 << 30,
		Knows: peer.RulesNewest, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	shared := memory.New()
	var peers []*peer.Peer
	for i := range crowdPeers {
		machine := fake.NewMachine(func(driver.Task) fake.Behaviour { return fake.Behaviour{Terminated: fake.Exits} })
		config := peer.Config{
			Node: terms.NodeName(fmt.Sprintf("node-%d", i+1)), Journal: shared.Open(), Driver: fake.Open(machine),
			Identity: &identity.Memory{}, PulseTTL: time.Minute, Limits: host.ClusterLimits(),
			Log: slog.New(slog.DiscardHandler),
			Offer: terms.Offer{Capacity: terms.Resources{64_000, 256 << 30, 1 << 40}, Rules: peer.RulesNewest,
				Address:    fmt.Sprintf("127.0.0.1:%d", i+1),
				Attributes: []terms.EnvVar{{Name: "rack", Value: fmt.Sprintf("r%d", i/10+1)}}},
		}
		if i == 0 {
			config.Archive = kept
		}
		c.machines, c.drivers = append(c.machines, machine), append(c.drivers, config.Driver.(*fake.Driver))
		peers = append(peers, peer.Start(ctx, config))
	}
	socket := filepath.Join(folder, "api")
	opened, err := door.Open(door.Config{Socket: socket})
	if err != nil {
		b.Fatal(err)
	}
	opened.Answer(api.NewServer(playing{peers[0], kept}, api.Options{Rules: peer.RulesNewest}), peers[0])
	asks := client.New([]string{wire.UnixPrefix + socket})
	if c.page, err = web.Open(asks); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.page.Close() // nothing of it is needed any more
		asks.Close()
		cancel()
		_ = opened.Close() // nor of this
		for _, p := range peers {
			p.Stop()
		}
		kept.Close()
		os.RemoveAll(folder)
	})
	c.first = peers[0]
	for _, p := range peers {
		if err := p.Ready(ctx); err != nil {
			b.Fatal(err)
		}
	}
	c.fill(ctx, asks)
	return c
}

// fill submits the jobs, and waits until all instances run.
func (c *crowd) fill(ctx context.Context, asks *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, crowdReady)
	defer cancel()
	text := strings.Builder{}
	for i := range crowdJobs { // the large one comes last: each entry costs each peer as much as it has instances
		name, instances := fmt.Sprintf("service-%03d", i), 1
		if i == crowdJobs-1 {
			name, instances = "big", crowdInstances-crowdJobs+1
		}
		fmt.Fprintf(&text, "---\njob: %s\ntype: stateless\ntasks: [{instances: %d, command: [work], placement: spread, "+
			"resources: {cpu: 100m, memory: 64Mi}, restart: {delay: 100ms}}]\nupdate: {min_healthy: 0s}\n", name, instances)
	}
	documents, err := jobspec.Parse("crowd.yaml", []byte(text.String()))
	if err != nil {
		c.Fatal(err)
	}
	for i := range documents {
		if _, err := asks.SubmitJob(ctx, &documents[i].Spec, 0); err != nil {
			c.Fatal(err)
		}
	}
	running := map[string]bool{}
	done := errors.New("all run")
	err = asks.Watch(ctx, &starlingv1.WatchRequest{Kinds: []string{"instance"}}, func(w *starlingv1.WatchResponse) error {
		if w.GetInstance().GetSlot().GetPhase() == "running" {
			running[w.GetName()] = true
		}
		if len(running) == crowdInstances {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) {
		c.Fatalf("%d instances run: %v", len(running), err)
	}
}

// history lets instances end and start until the journal has so many entries.
func (c *crowd) history(entries int) {
	ctx, cancel := context.WithTimeout(context.Background(), crowdReady)
	defer cancel()
	stirring := sync.WaitGroup{}
	defer stirring.Wait()
	defer cancel()
	stirring.Go(func() { c.stir(ctx, historyPause) })
	if _, err := c.first.State(ctx, terms.Index(entries)); err != nil {
		c.Fatal(err)
	}
}

// stir ends an instance each pause until the context ends; it is started again.
func (c *crowd) stir(ctx context.Context, pause time.Duration) {
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		at := i % crowdPeers
		tasks := c.drivers[at].Tasks()
		if len(tasks) == 0 {
			continue
		}
		if one := tasks[i/crowdPeers%len(tasks)]; one.State == driver.Running {
			c.machines[at].Exit(one.ID, 1)
		}
	}
}

// SecretVersions knows of none.
func (playing) SecretVersions(terms.AllocationID) map[string]uint32 { return nil }
