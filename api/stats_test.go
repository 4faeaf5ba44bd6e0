package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/command"
	"starling/driver"
	"starling/terms"
)

// Usage has every instance keep half of a processor busy, and the machine a whole one.
func (p *peer) Usage(ids []string) (driver.Usage, error) {
	now := time.Now()
	spent := time.Duration(now.UnixNano() % int64(time.Hour))
	usage := driver.Usage{At: now, Machine: driver.Use{CPU: spent, MemoryBytes: 3 << 20}, Tasks: map[string]driver.Use{}}
	for _, id := range ids {
		usage.Tasks[id] = driver.Use{CPU: spent / 2, MemoryBytes: 1 << 20, ReadBytes: int64(spent / time.Millisecond)}
	}
	return usage, p.failure
}

// SecretVersions has every instance have version 2 of db.
func (p *peer) SecretVersions(terms.AllocationID) map[string]uint32 {
	return map[string]uint32{"db": 2}
}

func (p *peer) GPUs(context.Context) []driver.GPUUse {
	return []driver.GPUUse{{Number: 0, MemoryBytes: 5, MemoryTotalBytes: 9, BusyPercent: 40}, {Number: 7}}
}

// statsPair is a client of a, and b, which runs an instance of web, and one of train with a GPU.
func statsPair(t *testing.T) (c *client.Client, b *peer) {
	t.Helper()
	a, b := pair()
	for _, one := range []*peer{a, b} {
		one.volunteer(one.serve(t))
	}
	job := jobOn("web", 2, "b")
	job.Tasks[0].Resources[terms.Memory] = 2 << 20
	job.Tasks[0].Secrets = []terms.SecretUse{{Name: "db", OnChange: terms.SignalHangUp}, {Name: "other", Version: 7}}
	a.add("a~1", &command.SubmitJob{Spec: *job})
	gpu := jobOn("train", 1, "b")
	gpu.Tasks[0].Devices = []terms.DeviceRequest{{Kind: "gpu", Amount: terms.WholeDevice}}
	a.add("a~1", &command.SubmitJob{Spec: *gpu})
	for _, name := range []terms.SlotName{{Job: "web", Task: "main"}, {Job: "train", Task: "main"}} {
		r, _ := a.state.RefOf(name)
		b.ready(r)
	}
	return ask(t, a.serve(t)), b
}

// about tells whether so much of a processor was used, but for rounding.
func about(cpu int64, use *starlingv1.Use) bool {
	return use.GetCpuMillicores() >= cpu*95/100 && use.GetCpuMillicores() <= cpu*105/100
}

func TestNodeStats(t *testing.T) {
	c, b := statsPair(t)
	request := &starlingv1.NodeStatsRequest{WindowMillis: 50}
	answer, err := c.NodeStats(within(t), request)
	if err != nil || len(answer.GetNodes()) != 2 {
		t.Fatalf("got %v, %v, want two nodes", answer, err)
	}
	for i, n := range answer.GetNodes() {
		if n.GetProblem() != "" || !about(1000, n.GetUse()) || n.GetUse().GetMemoryBytes() != 3<<20 ||
			len(n.GetGpus()) != 2 || n.GetCapacity().GetCpuMillicores() != 4000 {
			t.Errorf("got %v", n)
		}
		if want := []int64{0, 3000}[i]; n.GetAllocated().GetCpuMillicores() != want {
			t.Errorf("%s: got %v allocated, want %d", n.GetNode(), n.GetAllocated(), want)
		}
	}
	b.volunteer("127.0.0.1:1") // where nothing answers
	answer, err = c.NodeStats(within(t), request)
	if n := answer.GetNodes(); err != nil || n[0].Use == nil || n[1].Use != nil || n[1].GetProblem() == "" {
		t.Errorf("got %v, %v, want the one node and a problem of the other", answer, err)
	}
}

func TestInstanceStats(t *testing.T) {
	c, b := statsPair(t)
	web := &starlingv1.InstanceStatsRequest{Job: "web", WindowMillis: 50}
	answer, err := c.InstanceStats(within(t), web)
	if err != nil || len(answer.GetInstances()) != 1 { // the other has not begun
		t.Fatalf("got %v, %v, want one instance", answer, err)
	}
	if one := answer.GetInstances()[0]; one.GetProblem() != "" || !about(500, one.GetUse()) || one.GetNode() != "b" ||
		one.GetLimits().GetMemoryBytes() != 2<<20 || len(one.GetGpus()) != 0 || one.GetUse().GetReadBytes() < 900 {
		t.Errorf("got %v", one)
	}
	answer, err = c.InstanceStats(within(t), &starlingv1.InstanceStatsRequest{Job: "train", WindowMillis: 50})
	if gpus := answer.GetInstances()[0].GetGpus(); err != nil || len(gpus) != 1 || gpus[0].GetBusyPercent() != 40 {
		t.Errorf("got %v, %v, want the use of the GPU that it has", answer, err)
	}
	b.volunteer("127.0.0.1:1") // where nothing answers
	answer, err = c.InstanceStats(within(t), web)
	if one := answer.GetInstances()[0]; err != nil || one.Use != nil ||
		!strings.Contains(one.GetProblem(), "the peer of node b does not tell") {
		t.Errorf("got %v, %v, want a problem", answer, err)
	}
}

// TestSecretVersions has the node of an instance tell which versions of its secrets it has.
func TestSecretVersions(t *testing.T) {
	c, b := statsPair(t)
	web := &starlingv1.InstanceStatsRequest{Job: "web", WindowMillis: 50}
	answer, err := c.InstanceStats(within(t), web)
	if err != nil {
		t.Fatal(err)
	}
	if s := answer.GetInstances()[0].GetSecrets(); len(s) != 2 || s[0].GetVersion() != 2 || s[1].GetVersion() != 0 ||
		s[0].GetUse().GetOnChange() != "SIGHUP" || s[1].GetUse().GetVersion() != 7 {
		t.Errorf("got the secrets %v, want version 2 of db, and of other what is not known", s)
	}
	b.volunteer("127.0.0.1:1") // where nothing answers
	answer, err = c.InstanceStats(within(t), web)
	if s := answer.GetInstances()[0].GetSecrets(); err != nil || len(s) != 2 || s[0].GetVersion() != 0 {
		t.Errorf("got the secrets %v, %v, want that no version is known", s, err)
	}
}

func TestStatsRefuse(t *testing.T) {
	c, _ := statsPair(t)
	for want, request := range map[string]*starlingv1.InstanceStatsRequest{
		`no job "none"`:         {Job: "none"},
		"has no task odd":       {Job: "web", Task: "odd"},
		"must be at most 10000": {Job: "web", WindowMillis: 10001},
	} {
		if _, err := c.InstanceStats(within(t), request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestHeldDevices lists which devices of a node instances have, and not its virtual peers.
func TestHeldDevices(t *testing.T) {
	c, _ := statsPair(t)
	answer, err := c.AllPeers(within(t))
	if err != nil || len(answer.GetPeers()) != 2 {
		t.Fatalf("got %v, %v", answer, err)
	}
	want := &starlingv1.HeldDevice{Kind: "gpu", Milli: 1000, Job: "train", Instance: "main[0]"}
	if got := answer.GetPeers()[1].GetHeld(); len(got) != 1 || !proto.Equal(got[0], want) ||
		len(answer.GetPeers()[0].GetHeld()) > 0 {
		t.Errorf("got %v, want %v", got, want)
	}
}
