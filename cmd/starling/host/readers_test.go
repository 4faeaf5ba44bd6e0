package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"starling/api"
	"starling/api/client"
	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/driver"
	"starling/driver/fake"
	"starling/journal/memory"
	"starling/peer"
	"starling/peer/clock"
	"starling/peer/credential"
	"starling/peer/identity"
	"starling/replica/forecast"
	"starling/schedule/explain"
	"starling/sim/imprint"
	"starling/terms"
	"starling/terms/domain"
)

// crew is a peer with its API, and jobs of every kind that readers compute on.
type crew struct {
	t      *testing.T
	peer   *peer.Peer
	client *client.Client
}

func newCrew(t *testing.T) *crew {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crew{t: t, peer: peer.Start(ctx, peer.Config{
		Node: "a", Journal: memory.New().Open(),
		Driver:   fake.Open(fake.NewMachine(func(driver.Task) fake.Behaviour { return fake.Behaviour{} })),
		Identity: &identity.Memory{}, PulseTTL: time.Minute, Limits: ClusterLimits(), Log: slog.New(slog.DiscardHandler),
		Offer: terms.Offer{
			Capacity: terms.Resources{8000, 8 << 30, 1 << 40}, PortFirst: 20000, PortLast: 20100, Rules: 1,
			Address:    "127.0.0.1:1",
			Attributes: []terms.EnvVar{{Name: "rack", Value: "r1"}}, Devices: []terms.DeviceOffer{{Kind: "gpu", Count: 4}},
		},
	})}
	folder, err := os.MkdirTemp("", "host-") // its path is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "api")
	opened, err := door.Open(door.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	behind := backend{Peer: c.peer, host: &Host{credentials: &credential.Credentials{}, wall: clock.NewWall()}}
	opened.Answer(api.NewServer(behind, api.Options{}), c.peer)
	c.client = client.New([]string{wire.UnixPrefix + socket})
	t.Cleanup(func() {
		c.client.Close()
		cancel()
		opened.Close()
		c.peer.Stop()
		os.RemoveAll(folder)
	})
	if err := c.peer.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	for i, spec := range []terms.Job{
		{Name: "spread", Type: terms.Stateless,
			Tasks: []terms.Task{{Name: "main", Instances: 9, Placement: terms.Pack, SpreadOver: "rack", PerNodeMax: 4,
				Ports: []terms.PortRequest{{Name: "http"}}, Labels: []terms.EnvVar{{Name: "app", Value: "web"}}}}},
		{Name: "gang", Type: terms.Batch, MinAvailable: 9,
			Tasks: []terms.Task{{Name: "main", Instances: 9, Placement: terms.Defragment,
				Devices: []terms.DeviceRequest{{Kind: "gpu", Amount: 500}}}}},
		{Name: "devices", Type: terms.Stateless, Tasks: []terms.Task{{Name: "main", Instances: 5, Placement: terms.Defragment,
			Devices: []terms.DeviceRequest{{Kind: "gpu", Amount: 250}}}}},
	} {
		for task := range spec.Tasks {
			spec.Tasks[task].Command, spec.Tasks[task].Resources = []string{"work"}, terms.Resources{int64(200 + i), 1 << 20, 0}
		}
		c.submit(&command.SubmitJob{Spec: spec})
	}
	return c
}

func (c *crew) submit(one command.Command) {
	receipt, err := c.peer.Submit(context.Background(), one)
	if err != nil || receipt.Refusal.Code != facts.OK {
		c.t.Errorf("%T: %v, %v", one, receipt.Refusal, err)
	}
}

// read asks all that can be asked about a job.
func (c *crew) read(job terms.JobName) error {
	ctx := context.Background()
	s, err := c.peer.State(ctx, 0)
	if err != nil {
		return err
	}
	explain.Job(s, s.JobOf(job), &explain.Reader{Try: forecast.Tries(s, job)})
	spec := *s.JobOf(job).Spec
	spec.Tasks = append([]terms.Task(nil), spec.Tasks...)
	spec.Tasks[0].Instances += 2
	for page := range s.RoomPages() {
		s.Tighten(page, terms.AnyWork)
	}
	s.Audit()
	names := directory{c.peer.State}
	if _, found := names.Lookup(domain.Name{Job: job, Task: "main"}); !found || !names.Holds(string(job)) {
		return fmt.Errorf("%s is not found by its name", job)
	}
	for _, ask := range []func() error{
		func() error { _, err := c.client.Why(ctx, &starlingv1.WhyRequest{Job: string(job)}); return err },
		func() error { _, err := c.client.PlanJob(ctx, &spec); return err },
		func() error {
			_, err := c.client.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: string(job)})
			return err
		},
		func() error { _, err := c.client.ListJobs(ctx, &starlingv1.ListJobsRequest{}); return err },
		func() error { _, err := c.client.JobHistory(ctx, job); return err },
		func() error { _, err := c.client.AllPeers(ctx); return err },
		func() error { _, err := c.client.AllPools(ctx, ""); return err },
		func() error {
			_, err := c.client.PlanPools(ctx, 0, []terms.Pool{terms.NewPool("other")}, nil)
			return err
		},
		func() error { _, err := c.client.PoolStatus(ctx, terms.DefaultPool); return err },
		func() error { _, err := c.client.Info(ctx); return err },
	} {
		if err := ask(); err != nil {
			return err
		}
	}
	return nil
}

// TestReadersBesideTheFold has many readers compute on what a peer gives them, at the same entry and then while it
// folds others. Under the race detector none writes what another reads, and what one was given first stays as it was.
func TestReadersBesideTheFold(t *testing.T) {
	c := newCrew(t)
	first, err := c.peer.State(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	before, digest := imprint.Of(first), first.Digest()
	for _, round := range []string{"at rest", "folding"} {
		var readers sync.WaitGroup
		for _, job := range []terms.JobName{"spread", "gang", "devices", "spread"} {
			readers.Go(func() {
				for range 5 {
					if err := c.read(job); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := uint32(1); i <= 20 && round == "folding"; i++ {
			for _, job := range []terms.JobName{"spread", "devices"} {
				spec := *first.JobOf(job).Spec
				spec.Tasks = append([]terms.Task(nil), spec.Tasks...)
				spec.Tasks[0].Instances += i % 3
				c.submit(&command.SubmitJob{Spec: spec, Against: i})
			}
		}
		readers.Wait()
		if imprint.Of(first) != before || first.Digest() != digest {
			t.Errorf("%s, readers have changed what another one was given", round)
		}
	}
}
