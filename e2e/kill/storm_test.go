package kill

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/journal/etcd/stock"
	"starling/journal/journaltest/engines"
	"starling/journal/zookeeper/ensemble"
	"starling/terms"
)

// lengthVariable says how long a storm lasts, such as 10m.
const lengthVariable = "STORM"

// lengthDefault is how long it lasts unless told otherwise.
const lengthDefault = 2 * time.Minute

// storm is five machines in network namespaces of their own, of which one or two always have some trouble.
type storm struct {
	*trial
	network *engines.Network
	random  *rand.Rand
	keeps   bool // whether the machines keep the journal
	// troubled are the machines that have some.
	troubled map[*agents.Agent]*trouble
	away     []int // machines that are cut off
	counts   map[string]int
}

// trouble is what a machine has, until when, and what ends it.
type trouble struct {
	until time.Time
	end   func() error
}

// TestStorm has a storm on each engine, an etcd of others included: jobs come in through all machines, services are
// scaled, while machines die, freeze, are cut off, and lose their disks. A snapshot is due every 30 entries. At the end
// every job that was acknowledged has run once, no stateful slot ever had two instances, and all peers have one value.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("lasts long")
	}
	length := lengthDefault
	if text := os.Getenv(lengthVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", lengthVariable, err)
		}
	}
	binary, err := agents.Build(t.Context(), t.TempDir(), "smallsnapshots")
	if err != nil {
		t.Fatal(err)
	}
	seed := seedOf(t)
	for _, engine := range []string{"etcd", "zookeeper", "external"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := gather(t, engine, binary)
			s.random = rand.New(rand.NewPCG(seed, 0))
			s.rage(seed, length)
		})
	}
}

// gather starts the machines.
func gather(t *testing.T, engine, binary string) *storm {
	t.Helper()
	nodes := []string{"a", "b", "c", "d", "e"}
	network := engines.NeedNetwork(t, len(nodes))
	flags := []string{"--etcd-away", "5s"}
	if engine == "zookeeper" {
		ensemble.Need(t)
		servers, err := ensemble.New(t.TempDir(), engines.At(network.Host(), 3)...)
		if err == nil {
			t.Cleanup(servers.Kill)
			err = servers.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		flags = []string{"--zookeeper-servers", strings.Join(servers.Addresses(), ","), "--zookeeper-plaintext", "yes"}
	}
	if engine == "external" {
		servers, err := stock.New(t.Context(), t.TempDir(), engines.At(network.Host(), 3)...)
		if err == nil {
			t.Cleanup(servers.Kill)
			err = servers.Start(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		flags = []string{"--etcd-endpoints", strings.Join(servers.URLs(), ","), "--etcd-plaintext", "yes"}
	}
	s := &storm{network: network, keeps: engine == "etcd", troubled: map[*agents.Agent]*trouble{},
		counts: map[string]int{}}
	s.trial = prepareOn(t, network, 4*time.Second, nodes, flags...)
	s.restarts = terms.RestartsUnlimited // machines die
	for _, a := range s.Agents {
		a.Install(binary)
		s.must(a.Start())
		s.must(a.Ready(s.soon()))
	}
	return s
}

// rage lets all happen, and judges what came of it.
func (s *storm) rage(seed uint64, length time.Duration) {
	web := s.job("web", terms.Stateless, serverRole, 4)
	s.submit(web)
	s.submit(s.stateful("db"))
	ctx, stop := context.WithTimeout(s.Context(), length)
	defer stop()
	submitters := []*submitter{}
	var working sync.WaitGroup
	for i, name := range []string{"x", "y"} {
		one := &submitter{trial: s.trial, name: name, random: rand.New(rand.NewPCG(seed, uint64(i+1))), pace: 2 * time.Second}
		submitters = append(submitters, one)
		working.Go(func() { one.run(ctx) })
	}
	working.Go(func() { s.scale(ctx, web, rand.New(rand.NewPCG(seed, 9))) })
	for ctx.Err() == nil {
		s.trouble()
		pause(ctx, time.Duration(300+s.random.Int64N(1200))*time.Millisecond)
	}
	working.Wait()
	for _, a := range s.Agents {
		s.calm(a)
	}
	for _, a := range s.Agents {
		s.must(a.Ready(s.soon()))
	}
	s.Logf("troubles: %v", s.counts)
	s.awaitOnly("web", "db")
	s.wantNeverTwo()
	for _, name := range []terms.JobName{"web", "db"} {
		_, err := s.asked().KillJob(s.soon(), name, 0, false)
		s.must(err)
	}
	s.judge(submitters)
	s.wantWhole()
	restored := 0
	for _, a := range s.Agents {
		restored += strings.Count(a.Log(), "went on from a snapshot")
	}
	s.Logf("%d times a machine went on from a snapshot", restored)
}

// awaitOnly waits until nothing of these services runs but what the value has of them: batch work may. The value is
// asked anew each time, for a machine that was away may yet be given up.
func (s *storm) awaitOnly(services ...string) {
	s.Helper()
	s.eventually("of services only the value's allocations run", func() string {
		want := map[string]bool{}
		for i, name := range services {
			for _, slot := range s.awaitRunning(s.Agents[i], name) {
				want[slot.GetAllocation()] = true
			}
		}
		found := s.processes()
		maps.DeleteFunc(found, func(id string, _ agents.Process) bool {
			return !strings.HasPrefix(id, "web.") && !strings.HasPrefix(id, "db.")
		})
		for id := range want {
			if _, runs := found[id]; !runs {
				return id + " does not run"
			}
		}
		if len(found) > len(want) {
			return fmt.Sprintf("got %v, want %v", slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(want)))
		}
		return ""
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// scale changes how many instances a service has. Whether it was told is not certain; the last word is repeated.
func (s *storm) scale(ctx context.Context, web *terms.Job, random *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(1000+random.Int64N(3000))*time.Millisecond)
		next := *web
		next.Tasks = slices.Clone(web.Tasks)
		next.Tasks[0].Instances = uint32(1 + random.IntN(6))
		api := s.Client(s.Agents[random.IntN(len(s.Agents))])
		short, cancel := context.WithTimeout(ctx, submitWithin)
		now, err := api.JobStatus(short, &starlingv1.JobStatusRequest{Job: "web"})
		if err == nil {
			_, err = api.SubmitJob(short, &next, now.GetJob().GetVersion())
		}
		cancel()
		api.Close()
		s.Logf("web has %d instances: %v", next.Tasks[0].Instances, err)
	}
}

// trouble ends what has lasted long enough, and brings some to one more machine if it may: of three that keep the
// journal two may be gone for a while, and come back.
func (s *storm) trouble() {
	for _, a := range s.Agents {
		if t := s.troubled[a]; t != nil && time.Now().After(t.until) {
			s.calm(a)
		}
	}
	victim := s.Agents[s.random.IntN(len(s.Agents))]
	if s.troubled[victim] != nil || len(s.troubled) == 2 {
		return
	}
	kind := []string{"kill", "kill", "crash", "freeze", "cut", "cut", "wipe"}[s.random.IntN(7)]
	end := victim.Start
	switch kind {
	case "kill":
		s.must(victim.Kill())
	case "crash":
		s.must(victim.Crash(s.soon()))
	case "freeze":
		s.must(victim.Pause())
		end = victim.Resume
	case "cut":
		at := slices.Index(s.Agents, victim)
		s.away = append(s.away, at)
		s.must(s.network.Cut(s.away...))
		end = func() error {
			s.away = slices.DeleteFunc(s.away, func(i int) bool { return i == at })
			return s.network.Cut(s.away...)
		}
	case "wipe":
		s.wipe(victim)
		return
	}
	s.counts[kind]++
	lasts := time.Duration(500+s.random.Int64N(7500)) * time.Millisecond
	s.Logf("%s %s for %v", kind, victim.Node, lasts)
	s.troubled[victim] = &trouble{time.Now().Add(lasts), end}
}

// wipe destroys a machine with its disk, which comes back empty. All others are well meanwhile, and all well before: or
// the disks of a majority may be lost one by one.
func (s *storm) wipe(victim *agents.Agent) {
	for _, a := range s.Agents {
		s.calm(a)
	}
	for _, a := range s.Agents {
		s.must(a.Ready(s.soon()))
	}
	s.awaitThree()
	s.counts["wipe"]++
	s.Logf("wipe %s", victim.Node)
	s.must(victim.Crash(s.soon()))
	s.must(victim.Wipe(s.others(victim)...))
	s.must(victim.Start())
	s.must(victim.Ready(s.soon()))
	s.awaitThree()
}

// awaitThree waits until three machines keep the journal, if machines do: of two the disk of neither may be lost.
func (s *storm) awaitThree() {
	s.Helper()
	if !s.keeps {
		return
	}
	s.eventually("three machines keep the journal", func() string {
		answer, err := s.asked(s.Agents[0]).Quorum(s.soon())
		if err != nil {
			return err.Error()
		}
		voters := 0
		for _, m := range answer.GetMembers() {
			if m.GetState() == "voter" || m.GetState() == "leader" {
				voters++
			}
		}
		if voters != 3 || len(answer.GetMembers()) != 3 {
			return fmt.Sprint(answer.GetMembers())
		}
		return ""
	})
}

// calm ends the trouble of a machine.
func (s *storm) calm(a *agents.Agent) {
	s.Helper()
	if t := s.troubled[a]; t != nil {
		delete(s.troubled, a)
		s.must(t.end())
		s.Logf("calm %s", a.Node)
	}
}
