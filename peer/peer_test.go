package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/driver"
	"starling/driver/fake"
	"starling/driver/manifest"
	"starling/journal"
	"starling/journal/memory"
	"starling/peer/identity"
	"starling/peer/inbox"
	"starling/peer/outbox"
	"starling/replica/report"
	"starling/terms"
)

// flock is some peers on one journal in memory, each with a machine of its own.
type flock struct {
	t        *testing.T
	shared   *memory.Journal
	machines map[string]*fake.Machine
	ids      map[string]*identity.Memory
	peers    map[string]*Peer
	journals map[string]journal.Journal
	limits   terms.Limits
	// archive and meter are those of the peers that start.
	archive Archive
	meter   Meter
	private func(context.Context, terms.AllocationID, *terms.Task) ([]driver.File, error)
	// lost tells that nobody answers who asks for an output.
	lost atomic.Bool
}

func newFlock(t *testing.T, names ...string) *flock {
	return newFlockWithin(t, terms.DefaultLimits(), names...)
}

// newFlockWithin starts a cluster with limits.
func newFlockWithin(t *testing.T, limits terms.Limits, names ...string) *flock {
	f := &flock{
		t: t, shared: memory.New(), machines: map[string]*fake.Machine{}, ids: map[string]*identity.Memory{},
		peers: map[string]*Peer{}, journals: map[string]journal.Journal{}, limits: limits,
	}
	for _, name := range names {
		f.add(name)
	}
	for _, name := range names {
		f.ready(name)
	}
	if len(names) > 0 { // a cluster that has had a job raises its rules no more by itself
		f.await(names[0], "all rules count", func(s *cluster.State) bool { return s.Rules == RulesNewest })
	}
	return f
}

// add starts a peer on a new machine.
func (f *flock) add(name string) {
	f.machines[name] = fake.NewMachine(script)
	f.machines[name].Volumes = filepath.Join(f.t.TempDir(), name)
	f.ids[name] = &identity.Memory{}
	f.start(name)
}

// script lets a task end with the exit code that its first argument says, or run on without one.
func script(t driver.Task) fake.Behaviour {
	if t.Command[0] == "missing" {
		return fake.Behaviour{Refuse: errors.New("no such program")}
	}
	for _, entry := range t.Env {
		switch name, path, _ := strings.Cut(entry, "="); {
		case name == "STARLING_OUTPUT" && t.Command[0] == "split":
			_ = os.WriteFile(filepath.Join(path, "text"), []byte("one two"), 0o600) // whoever reads it sees whether it is there
		case name == "STARLING_OUTPUT" && t.Command[0] == "grow":
			_ = os.WriteFile(filepath.Join(path, "text"), nil, 0o600)
			_ = os.Truncate(filepath.Join(path, "text"), manifest.BytesMax+1) // a hole
			return fake.Behaviour{}
		case name == "STARLING_OUTPUT" && t.Command[0] == "link":
			_ = os.Symlink("text", filepath.Join(path, "text"))
		}
	}
	b := fake.Behaviour{Stdout: strings.Join(t.Env, "\n"), Ends: len(t.Command) > 1, After: time.Second}
	if b.Ends {
		fmt.Sscan(t.Command[1], &b.ExitCode)
	}
	return b
}

func (f *flock) start(name string) { f.startOn(name, f.shared.Open()) }

func (f *flock) startOn(name string, j journal.Journal) {
	f.journals[name] = j
	f.peers[name] = Start(context.Background(), Config{
		Node: terms.NodeName(name), Journal: f.journals[name], Driver: fake.Open(f.machines[name]), Identity: f.ids[name],
		Offer: terms.Offer{Capacity: terms.Resources{4000, 4 << 30, 1 << 40}, PortFirst: 20000, PortLast: 20100,
			Rules: RulesNewest, Address: name, Attributes: []terms.EnvVar{{Name: "node", Value: name}}},
		PulseTTL: 3 * time.Second, Fetch: f.fetch, Log: slog.New(slog.DiscardHandler), Limits: f.limits,
		Archive: f.archive, Meter: f.meter, Private: f.private,
	})
}

func (f *flock) ready(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.peers[name].Ready(ctx); err != nil {
		f.t.Fatal(err)
	}
}

// crash ends a peer as kill -9 would: its pulse goes on until its time is over, its tasks for ever.
func (f *flock) crash(name string) {
	f.peers[name].Stop()
	f.journals[name].Close()
	delete(f.peers, name)
}

func (f *flock) stop() {
	for _, p := range f.peers {
		p.Stop()
	}
}

// await waits until the value as the named peer sees it is as wanted.
func (f *flock) await(name, what string, wanted func(*cluster.State) bool) *cluster.State {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for least := terms.Index(0); ; {
		s, err := f.peers[name].State(ctx, least)
		if err != nil {
			f.t.Fatalf("waiting until %s: %v", what, err)
		}
		if wanted(s) {
			return s
		}
		least = s.Index + 1
	}
}

func (f *flock) submit(name string, spec terms.Job) report.Receipt {
	f.t.Helper()
	receipt, err := f.peers[name].Submit(context.Background(), &command.SubmitJob{Spec: spec})
	if err != nil || receipt.Refusal.Code != facts.OK {
		f.t.Fatalf("submit %s: %v %v", spec.Name, err, receipt.Refusal)
	}
	return receipt
}

func job(name string, kind terms.JobType, instances uint32, program ...string) terms.Job {
	return terms.Job{Name: terms.JobName(name), Type: kind, Tasks: []terms.Task{{
		Name: "main", Instances: instances, Command: program, Resources: terms.Resources{500, 1 << 20, 0},
		Placement:       terms.Spread,
		Restart:         terms.Restart{AttemptsMax: 2, DelayMillis: 1000, DelayMaxMillis: 60_000, ResetMillis: 60_000},
		StopGraceMillis: 5000,
	}}}
}

func statusIs(name string, want workload.Status) func(*cluster.State) bool {
	return func(s *cluster.State) bool {
		j := s.JobOf(terms.JobName(name))
		return j != nil && j.Status() == want
	}
}

func running(name string, want uint32) func(*cluster.State) bool {
	return func(s *cluster.State) bool {
		return s.JobOf(terms.JobName(name)).Tasks[0].Counts[facts.Running] == want
	}
}

func TestBatchJobRunsToItsEndAndIsSeenFromEveryPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b", "c")
		defer f.stop()
		receipt := f.submit("a", job("count", terms.Batch, 6, "run", "0"))
		f.await("b", "it succeeded", statusIs("count", workload.StatusSucceeded))
		s, err := f.peers["c"].State(context.Background(), receipt.Index)
		if err != nil || s.JobOf("count") == nil {
			t.Fatalf("job at the index of its receipt: %v, %v", s.JobOf("count"), err)
		}
	})
}

func TestFailingBatchJobIsRestartedWithBackOffAndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		before := time.Now()
		f.submit("a", job("bad", terms.Batch, 1, "run", "7"))
		s := f.await("a", "it failed", statusIs("bad", workload.StatusFailed))
		slot := s.JobOf("bad").Tasks[0].Slots.At(0)
		if slot.Failures != 3 || slot.ExitCode != 7 {
			t.Errorf("slot %+v, want 3 failures with exit code 7", slot)
		}
		// Three runs of a second, delays of one and two seconds.
		if took := time.Since(before); took < 6*time.Second || took > 9*time.Second {
			t.Errorf("took %v, want a little more than 6s", took)
		}
	})
}

func TestRefusedOfferIsToldToEveryPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		log := bytes.Buffer{}
		odd := Start(context.Background(), Config{
			Node: "b", Journal: f.shared.Open(), Driver: fake.Open(fake.NewMachine(script)), Identity: &identity.Memory{},
			Offer: terms.Offer{Address: "b:1",
				Devices: []terms.DeviceOffer{{Kind: "gpu", Count: 1}, {Kind: "gpu", Count: 2}}},
			PulseTTL: 3 * time.Second, Limits: f.limits, Fetch: f.fetch, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		f.await("a", "b is a member", func(s *cluster.State) bool { return s.IsMember("b~1") })
		inbox.Pause(context.Background(), 3*publishEvery)
		const want = "devices of kind gpu are given twice: give each kind once"
		if got := odd.Status(context.Background()); got.OfferRefusal != want ||
			!strings.Contains(strings.Join(got.Warnings, "\n"), want) {
			t.Errorf("its own status is %+v", got)
		}
		views, err := f.peers["a"].Pulses(context.Background())
		if err != nil || len(views) != 2 || views[1].OfferRefusal != want || views[1].Address != "b:1" ||
			views[0].OfferRefusal != "" {
			t.Errorf("pulses %+v, %v", views, err)
		}
		odd.Stop()
		if lines := strings.Count(log.String(), want); lines != 1 {
			t.Errorf("%d lines about it in the log:\n%s", lines, &log)
		}
	})
}

func TestWorkOfADeadPeerRunsElsewhereWithinItsTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b", "c")
		defer f.stop()
		f.submit("a", job("web", terms.Stateless, 3, "serve"))
		f.await("a", "all run", running("web", 3))
		before := time.Now()
		f.crash("c")
		s := f.await("a", "c is out and all run again", func(s *cluster.State) bool {
			return s.Members() == 2 && running("web", 3)(s)
		})
		if took := time.Since(before); took > 5*time.Second {
			t.Errorf("took %v, want at most the time to live and two seconds", took)
		}
		if lines := s.Audit(); len(lines) > 0 {
			t.Error(lines)
		}
	})
}

func TestRestartWithinTheTimeToLiveMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b", "c")
		defer f.stop()
		f.submit("a", job("web", terms.Stateless, 3, "serve"))
		before := f.await("a", "all run", running("web", 3)).JobOf("web").Tasks[0].Slots
		f.crash("c")
		f.start("c")
		f.ready("c")
		f.submit("c", job("other", terms.Batch, 1, "run", "0"))
		s := f.await("a", "the returned peer works", statusIs("other", workload.StatusSucceeded))
		for i := range 3 {
			if got, want := s.JobOf("web").Tasks[0].Slots.At(i), before.At(i); got != want {
				t.Errorf("slot %d is %+v, was %+v", i, got, want)
			}
		}
		if s.Members() != 3 || f.peers["c"].Self() != "c~1" {
			t.Errorf("%d members, the returned peer is %s", s.Members(), f.peers["c"].Self())
		}
	})
}

func TestPeerThatComesBackLateBeginsANewLifeAndEndsOldWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		f.submit("a", job("web", terms.Stateless, 2, "serve"))
		f.await("a", "all run", running("web", 2))
		f.crash("b")
		f.await("a", "b left", func(s *cluster.State) bool { return s.Members() == 1 && running("web", 2)(s) })
		f.start("b")
		f.ready("b")
		if got := f.peers["b"].Self(); got != "b~2" {
			t.Errorf("the returned peer is %s, want b~2", got)
		}
		synctest.Wait()
		inbox.Pause(context.Background(), 10*time.Second)
		synctest.Wait()
		for _, status := range fake.Open(f.machines["b"]).Tasks() {
			if status.State == driver.Running {
				t.Errorf("%s still runs on b", status.ID)
			}
		}
	})
}

func TestStopEndsAJobAndItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		f.submit("a", job("web", terms.Stateless, 2, "serve"))
		f.await("a", "all run", running("web", 2))
		if _, err := f.peers["b"].Submit(context.Background(), &command.KillJob{Job: "web"}); err != nil {
			t.Fatal(err)
		}
		f.await("a", "it stopped", statusIs("web", workload.StatusStopped))
	})
}

func TestTaskThatCannotStartSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		spec := job("none", terms.Batch, 1, "missing")
		spec.Tasks[0].Restart.AttemptsMax = 0
		f.submit("a", spec)
		s := f.await("a", "it failed", statusIs("none", workload.StatusFailed))
		if got := s.JobOf("none").Tasks[0].Failure; got.Ended != facts.NotStarted ||
			!strings.Contains(got.Detail, "no such program") {
			t.Errorf("failure %+v, want that there is no such program", got)
		}
	})
}

func TestEveryPeerRemembersTheSamePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b", "c")
		defer f.stop()
		f.submit("a", job("count", terms.Batch, 3, "run", "0"))
		last := f.await("a", "it succeeded", statusIs("count", workload.StatusSucceeded)).Index
		digests := map[string][]uint64{}
		for name, p := range f.peers {
			err := p.Follow(context.Background(), 1, func(folded *report.Folded) error {
				digests[name] = append(digests[name], folded.Digest)
				if folded.Index == last {
					return context.Canceled
				}
				return nil
			})
			if err != context.Canceled {
				t.Fatal(err)
			}
		}
		for name := range digests {
			if fmt.Sprint(digests[name]) != fmt.Sprint(digests["a"]) {
				t.Errorf("digests of %s differ from those of a", name)
			}
		}
	})
}

func TestHistoryIsBoundedInEntriesAndBytes(t *testing.T) {
	h := &history{}
	h.init()
	for i := range 3 * rememberedMax {
		h.add(report.Folded{Index: terms.Index(i + 1), Bytes: 1})
	}
	if entries, _ := h.since(0); len(entries) > 2*rememberedMax || entries[len(entries)-1].Index != 3*rememberedMax {
		t.Errorf("remembers %d entries up to %d", len(entries), entries[len(entries)-1].Index)
	}
	for i := range 200 {
		h.add(report.Folded{Index: terms.Index(3*rememberedMax + i + 1), Bytes: 1 << 20})
	}
	if h.bytes > 2*rememberedBytesMax {
		t.Errorf("remembers %d bytes", h.bytes)
	}
}

// cut is a journal that appends nothing, and publishes and confirms nothing, while it is cut off.
type cut struct {
	journal.Journal
	off, mute atomic.Bool
}

// muted is a pulse of a cut journal.
type muted struct {
	journal.Pulse
	mute *atomic.Bool
}

func (c *cut) Pulse(ctx context.Context, id string, ttl time.Duration, adopt bool) (journal.Pulse, error) {
	pulse, err := c.Journal.Pulse(ctx, id, ttl, adopt)
	if err != nil {
		return nil, err
	}
	return muted{pulse, &c.mute}, nil
}

func (m muted) Publish(ctx context.Context, value []byte) error {
	if m.mute.Load() {
		return errors.New("no quorum")
	}
	return m.Pulse.Publish(ctx, value)
}

func (m muted) Confirm(ctx context.Context) error {
	if m.mute.Load() {
		return errors.New("no quorum")
	}
	return m.Pulse.Confirm(ctx)
}

func (c *cut) Append(ctx context.Context, r journal.Record) error {
	if c.off.Load() {
		return errors.New("no quorum")
	}
	return c.Journal.Append(ctx, r)
}

func TestRequestIsAnsweredWithoutAJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		f.crash("a")
		journal := &cut{Journal: f.shared.Open()}
		f.startOn("a", journal)
		f.await("a", "it has all rules, until then requests wait", func(s *cluster.State) bool { return s.Rules == RulesNewest })
		journal.off.Store(true)
		before := time.Now()
		submit := &command.SubmitJob{RequestID: "once", Spec: job("count", terms.Batch, 1, "run", "0")}
		for range 2 {
			_, err := f.peers["a"].Submit(context.Background(), submit)
			if took := time.Since(before); !errors.Is(err, outbox.ErrStalled) || took > 2*stallTimeout {
				t.Errorf("got %v after %v, want that the journal stalls", err, took)
			}
		}
		if got := f.peers["a"].Status(context.Background()).Warnings; len(got) != 1 ||
			!strings.Contains(got[0], "no quorum") {
			t.Errorf("got warnings %q, want the journal's", got)
		}
		journal.off.Store(false)
		f.await("a", "the job that was sent before succeeded", statusIs("count", workload.StatusSucceeded))
		receipt, err := f.peers["a"].Submit(context.Background(), submit)
		if err != nil || receipt.Refusal.Code != facts.OK {
			t.Errorf("sent again: %v, %v", receipt, err)
		}
		s := f.await("a", "the job is there", statusIs("count", workload.StatusSucceeded))
		if got := s.JobOf("count").Version; got != 1 {
			t.Errorf("it counted %d times", got)
		}
	})
}

func TestWhatCouldNotBePublishedIsPublishedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		f.crash("a")
		journal := &cut{Journal: f.shared.Open()}
		f.startOn("a", journal)
		f.ready("a")
		journal.mute.Store(true)
		f.submit("a", job("count", terms.Batch, 1, "run", "0"))
		last := f.await("a", "it succeeded", statusIs("count", workload.StatusSucceeded)).Index
		ctx := context.Background()
		inbox.Pause(ctx, 2*publishEvery)
		journal.mute.Store(false)
		inbox.Pause(ctx, 2*publishEvery)
		views, err := f.peers["a"].Pulses(ctx)
		if err != nil || len(views) != 1 || views[0].Index != last {
			t.Errorf("got pulses %+v, %v, want one at entry %d", views, err, last)
		}
	})
}
