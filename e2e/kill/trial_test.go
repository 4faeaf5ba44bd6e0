package kill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/e2e/agents"
	"starling/journal/journaltest/engines"
	"starling/secret"
	"starling/terms"
)

// timeout bounds every wait. What is waited for usually takes a few seconds; it is long only for busy machines.
const timeout = 60 * time.Second

// trial is one test's cluster with its witnesses.
type trial struct {
	*testing.T
	*agents.Flock
	// watched is the folder that tasks write to.
	watched string
	// restarts is how often an instance starts again on its machine: not at all, where none may fail.
	restarts uint32
	// written is the index of the last write: who is asked next must have folded it.
	written terms.Index
	// asker asked last. Its connections are closed when the next asks: an agent lets a user have some hundreds.
	asker atomic.Pointer[client.Client]
}

// begin starts a cluster of three, which ends with the test.
func begin(t *testing.T, ttl time.Duration, flags ...string) *trial {
	t.Helper()
	tr := prepare(t, ttl, []string{"a", "b", "c"}, flags...)
	tr.must(tr.Start(tr.soon()))
	return tr
}

// prepare makes a cluster of which nothing runs yet, and which ends with the test.
func prepare(t *testing.T, ttl time.Duration, nodes []string, flags ...string) *trial {
	t.Helper()
	return prepareOn(t, nil, ttl, nodes, flags...)
}

// prepareOn is prepare with a network of its own for the machines.
func prepareOn(t *testing.T, on *engines.Network, ttl time.Duration, nodes []string, flags ...string) *trial {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("finds processes by Linux's /proc, and counts on a task's end with its supervisor's")
	}
	folder := t.TempDir()
	tr := &trial{T: t, watched: filepath.Join(folder, "watched")}
	if err := os.Mkdir(tr.watched, 0o777); err != nil {
		t.Fatal(err)
	}
	tr.hold(filepath.Join(tr.watched, lockName)) // tasks see by it that the test lives
	secretFile := filepath.Join(folder, "secret")
	_, err := secret.LoadOrMake(secretFile)
	tr.must(err)
	tr.Flock, err = agents.New(agents.Config{
		Binary: os.Getenv(binaryVariable), Folder: folder, Nodes: nodes, PulseTTL: ttl, Network: on,
		External: slices.Contains(flags, "--zookeeper-servers") || slices.Contains(flags, "--etcd-endpoints"),
		Flags:    append([]string{"--capacity-cpu", "4", "--capacity-memory", "2Gi", "--secret-file", secretFile}, flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.end)
	return tr
}

// hold locks a new file in the watched folder until the returned function is called, or the test is gone.
func (tr *trial) hold(path string) (release func()) {
	tr.Helper()
	lock, err := os.Create(path)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	tr.must(err)
	release = func() { lock.Close() }
	tr.Cleanup(release)
	return release
}

// end leaves nothing behind, and tells what the agents logged if the test failed.
func (tr *trial) end() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := tr.Stop(ctx); err != nil {
		tr.Error(err)
	}
	if !tr.Failed() {
		return
	}
	for _, a := range tr.Agents {
		tr.Logf("--- agent %s said:\n%s--- and logged at last:\n%s", a.Node, a.Said(), tail(a.Log(), 60))
	}
}

func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// soon returns a context that ends with the test's timeout.
func (tr *trial) soon() context.Context {
	ctx, cancel := context.WithTimeout(tr.Context(), timeout)
	tr.Cleanup(cancel)
	return ctx
}

// must ends the test on an error.
func (tr *trial) must(err error) {
	tr.Helper()
	if err != nil {
		tr.Fatal(err)
	}
}

// eventually looks until there is nothing to complain of any more, and fails with the last complaint.
func (tr *trial) eventually(what string, complaint func() string) {
	tr.Helper()
	deadline := time.Now().Add(timeout)
	for {
		text := complaint()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			tr.Fatalf("%s: not within %v: %s", what, timeout, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// asked returns a client of these agents, of all if none is named, that reads what the test has written.
func (tr *trial) asked(order ...*agents.Agent) *client.Client {
	c := tr.Client(order...)
	tr.Cleanup(c.Close)
	if last := tr.asker.Swap(c); last != nil {
		last.Close()
	}
	c.See(tr.written)
	return c
}

// others returns the agents but this one.
func (tr *trial) others(one *agents.Agent) []*agents.Agent {
	return slices.DeleteFunc(slices.Clone(tr.Agents), func(a *agents.Agent) bool { return a == one })
}

// peers returns what an agent tells of all peers.
func (tr *trial) peers(a *agents.Agent) (map[string]*starlingv1.Peer, error) {
	ctx, cancel := context.WithTimeout(tr.Context(), 3*time.Second)
	defer cancel()
	api := tr.Client(a)
	defer api.Close()
	answer, err := api.AllPeers(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask agent %s for the peers: %w", a.Node, err)
	}
	return byNode(answer), nil
}

func byNode(answer *starlingv1.ListPeersResponse) map[string]*starlingv1.Peer {
	peers := map[string]*starlingv1.Peer{}
	for _, p := range answer.GetPeers() {
		peers[p.GetNode()] = p
	}
	return peers
}

// awaitPeer waits until an agent tells of another what is wanted.
func (tr *trial) awaitPeer(from, of *agents.Agent, what string, wanted func(*starlingv1.Peer) bool) *starlingv1.Peer {
	tr.Helper()
	var p *starlingv1.Peer
	tr.eventually(fmt.Sprintf("agent %s sees that %s %s", from.Node, of.Node, what), func() string {
		peers, err := tr.peers(from)
		if err != nil {
			return err.Error()
		}
		if p = peers[of.Node]; !wanted(p) {
			return protojson.Format(p)
		}
		return ""
	})
	return p
}

func isMember(p *starlingv1.Peer) bool { return p.GetState() == "member" && p.GetCapacity() != nil }
func hasLeft(p *starlingv1.Peer) bool  { return p.GetState() == "left" }

// wantWhole waits until all peers are members of one ring and agree on the value, as "starling peers" tells.
func (tr *trial) wantWhole() {
	tr.Helper()
	for _, a := range tr.Agents {
		tr.eventually("agent "+a.Node+" sees one flock", func() string {
			ctx, cancel := context.WithTimeout(tr.Context(), 5*time.Second)
			defer cancel()
			command := exec.CommandContext(ctx, os.Getenv(binaryVariable), "peers", "-o", "json", "--address", a.Address)
			out, err := command.Output()
			if err != nil {
				return fmt.Sprintf("%v: %v", command, err)
			}
			answer := &starlingv1.ListPeersResponse{}
			if err := protojson.Unmarshal(out, answer); err != nil {
				return err.Error()
			}
			return rift(answer, len(tr.Agents))
		})
	}
	tr.wantOneJournal()
}

// rift says why these peers are not one flock of the size, "" if they are.
func rift(answer *starlingv1.ListPeersResponse, size int) string {
	if len(answer.GetPeers()) == 0 {
		return "it has folded nothing yet"
	}
	ring := map[string]*starlingv1.Peer{}
	for _, p := range answer.GetPeers() {
		if !isMember(p) || !p.GetAlive() || p.GetLag() != 0 || p.DigestAgrees == nil || !p.GetDigestAgrees() {
			return "it is no living member with an equal digest: " + protojson.Format(p)
		}
		ring[p.GetPeer()] = p
	}
	at := answer.GetPeers()[0].GetPeer()
	for range size {
		next := ring[at].GetWatches()
		delete(ring, at)
		at = next
	}
	if len(ring) > 0 || at != answer.GetPeers()[0].GetPeer() {
		return "they are not one ring: " + protojson.Format(answer)
	}
	return ""
}

// wantOneJournal compares the digests that all peers had after every entry that they remember.
func (tr *trial) wantOneJournal() {
	tr.Helper()
	compared := 0
	first := map[uint64]string{}
	for _, a := range tr.Agents {
		err := tr.asked(a).TailJournal(tr.soon(), &starlingv1.TailJournalRequest{From: 1},
			func(answer *starlingv1.TailJournalResponse) error {
				e := answer.GetEntry()
				if e == nil {
					return nil
				}
				if other, known := first[e.GetIndex()]; !known {
					first[e.GetIndex()] = e.GetDigest()
				} else if compared++; other != e.GetDigest() {
					tr.Errorf("at entry %d agent %s has digest %s, another %s: %s", e.GetIndex(), a.Node, e.GetDigest(), other,
						protojson.Format(e))
				}
				return nil
			})
		tr.must(err)
	}
	tr.Logf("%d entries, %d digests compared, all peers are one ring", len(first), compared)
}

// submit brings a job and ends the test if that fails.
func (tr *trial) submit(spec *terms.Job, to ...*agents.Agent) {
	tr.Helper()
	api := tr.asked(to...)
	_, err := api.SubmitJob(tr.soon(), spec, 0)
	tr.must(err)
	tr.written = api.Seen()
}

// job is one of this binary in a role, as the user of the test, which alone may reach the binary.
func (tr *trial) job(name string, kind terms.JobType, role string, instances uint32) *terms.Job {
	binary, err := os.Executable()
	tr.must(err)
	self, err := user.Current()
	tr.must(err)
	return &terms.Job{Name: terms.JobName(name), Type: kind, Tasks: []terms.Task{{
		Name: "main", Instances: instances, Command: []string{binary, role, tr.watched}, User: self.Username,
		Resources: terms.Resources{terms.CPU: 200, terms.Memory: 128 << 20}, Placement: terms.Spread,
		Restart:         terms.Restart{AttemptsMax: tr.restarts, DelayMillis: 100, DelayMaxMillis: 1000, ResetMillis: 10_000},
		StopGraceMillis: 1000,
	}}}
}

// status returns how a job stands for an agent.
func (tr *trial) status(a *agents.Agent, job string) *starlingv1.JobStatusResponse {
	tr.Helper()
	status, err := tr.asked(a).JobStatus(tr.soon(), &starlingv1.JobStatusRequest{Job: job})
	tr.must(err)
	return status
}

// awaitRunning waits until all slots of a service run, for an agent, and returns them. Of what they replaced, or what
// was to replace them, nothing is left then: the value keeps it in a seat beside until it knows that it ended.
func (tr *trial) awaitRunning(a *agents.Agent, job string) []*starlingv1.Slot {
	tr.Helper()
	var slots []*starlingv1.Slot
	err := tr.asked(a).FollowJob(tr.soon(), &starlingv1.JobStatusRequest{Job: job},
		func(status *starlingv1.JobStatusResponse) (bool, error) {
			slots = status.GetSlots()
			desired := status.GetJob().GetCounts().GetDesired()
			return status.GetJob().GetCounts().GetRunning() == desired && len(slots) == int(desired), nil
		})
	if err != nil {
		tr.Fatalf("agent %s waits until %s runs: %v; slots are %v", a.Node, job, err, slots)
	}
	return slots
}

// wantTasks waits until exactly the slots' allocations run, one process each, and returns the processes.
func (tr *trial) wantTasks(slots []*starlingv1.Slot) map[string]agents.Process {
	tr.Helper()
	var want []string
	for _, s := range slots {
		want = append(want, s.GetAllocation())
	}
	slices.Sort(want)
	var found map[string]agents.Process
	tr.eventually("exactly the value's allocations run", func() string {
		found = tr.processes()
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			return fmt.Sprintf("got %v, want %v", got, want)
		}
		return ""
	})
	return found
}

// processes returns the process of every allocation that runs on any machine; one must not have two.
func (tr *trial) processes() map[string]agents.Process {
	tr.Helper()
	tasks, err := tr.Tasks()
	tr.must(err)
	found := map[string]agents.Process{}
	for _, p := range tasks {
		if other, taken := found[p.Allocation]; taken {
			tr.Errorf("%s has two processes: %+v and %+v", p.Allocation, p, other)
		}
		found[p.Allocation] = p
	}
	return found
}

// leads tells whether the agent holds the leader of the quorum.
func (tr *trial) leads(a *agents.Agent) bool {
	leads, err := a.Leads(tr.soon())
	tr.must(err)
	return leads
}

// memberThat returns an agent whose member leads the quorum, or one whose member follows.
func (tr *trial) memberThat(leads bool) *agents.Agent {
	tr.Helper()
	return tr.memberOf(tr.Agents, leads)
}

// codeOf returns the code of a client's error, "" for none.
func codeOf(err error) wire.Code {
	var failure *wire.Failure
	if errors.As(err, &failure) {
		return failure.Code
	}
	return ""
}

// awaitDone waits until a batch job has succeeded, for an agent.
func (tr *trial) awaitDone(a *agents.Agent, job string) {
	tr.Helper()
	err := tr.asked(a).FollowJob(tr.soon(), &starlingv1.JobStatusRequest{Job: job},
		func(status *starlingv1.JobStatusResponse) (bool, error) {
			if status.GetJob().GetFinal() && status.GetJob().GetStatus() != "succeeded" {
				return true, fmt.Errorf("it %s: %v", status.GetJob().GetStatus(), status.GetSlots())
			}
			return status.GetJob().GetFinal(), nil
		})
	if err != nil {
		tr.Fatalf("agent %s waits for job %s: %v", a.Node, job, err)
	}
}
