package kill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/e2e/agents"
	"starling/journal/journaltest/engines"
	"starling/journal/zookeeper/ensemble"
	"starling/terms"
)

// TestZooKeeperKeepsTheJournal has three agents whose journal is in a ZooKeeper. A machine dies, and its work moves;
// the ZooKeeper is killed and comes back meanwhile, and nothing else moves.
func TestZooKeeperKeepsTheJournal(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for pulses to end")
	}
	ensemble.Need(t)
	t.Parallel()
	servers, err := ensemble.New(t.TempDir(), engines.At("127.0.0.1", 1)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Kill)
	if err := servers.Start(); err != nil {
		t.Fatal(err)
	}
	auth := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(auth, []byte("flock:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := servers.Servers[0].Address + "/a/flock"
	tr := begin(t, 4*time.Second, "--zookeeper-servers", at, "--zookeeper-auth-file", auth)
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	before := tr.wantTasks(tr.awaitRunning(tr.Agents[0], "web"))

	t.Logf("the ZooKeeper restarts")
	servers.Kill()
	tr.must(servers.Start())
	tr.submit(tr.job("during", terms.Batch, witnessRole, 3))
	tr.awaitDone(tr.Agents[1], "during")
	for id, is := range tr.wantTasks(tr.awaitRunning(tr.Agents[2], "web")) {
		if before[id] != is {
			t.Errorf("the restart moved %s: it is process %+v, was %+v", id, is, before[id])
		}
	}

	victim := tr.Agents[0]
	t.Logf("the machine of agent %s dies, and the ZooKeeper restarts before that is known", victim.Node)
	tr.must(victim.Crash(tr.soon()))
	servers.Kill()
	tr.must(servers.Start())
	other := tr.others(victim)[0]
	tr.awaitPeer(other, victim, "has left", hasLeft)
	slots := tr.awaitRunning(other, "web")
	tr.wantElsewhere(slots, victim)
	for id, is := range tr.wantTasks(slots) {
		if was, lived := before[id]; lived && was != is {
			t.Errorf("%s was not on the machine that died, and is process %+v, was %+v", id, is, was)
		}
	}
	tr.must(victim.Start())
	tr.must(victim.Ready(tr.soon()))
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), victim)
	tr.awaitDone(victim, "after")
	tr.judgeJob(other, tr.status(other, "during").GetJob())
	tr.wantWhole()
}

// TestZooKeeperRefused starts agents whose ZooKeeper does not answer, or cannot serve them: they say which, and why.
func TestZooKeeperRefused(t *testing.T) {
	ensemble.Need(t)
	t.Parallel()
	servers, err := ensemble.New(t.TempDir(), engines.At("127.0.0.1", 1)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Kill)
	at := servers.Servers[0].Address
	tr := &trial{T: t}
	start := func(ttl time.Duration, flags ...string) *agents.Agent {
		t.Helper()
		flock, err := agents.New(agents.Config{Binary: os.Getenv(binaryVariable), Folder: t.TempDir(), Nodes: []string{"a"},
			PulseTTL: ttl, External: true, Flags: append([]string{"--zookeeper-servers", at}, flags...)})
		tr.must(err)
		tr.must(flock.Agents[0].Start())
		t.Cleanup(func() { _ = flock.Agents[0].Kill() })
		return flock.Agents[0]
	}
	waiting := start(4 * time.Second)
	tr.eventually("an agent says which server does not answer", func() string {
		if said := waiting.Said(); !strings.Contains(said, "nobody answers at "+at) {
			return said
		}
		return ""
	})
	tr.must(servers.Start())
	tr.must(waiting.Ready(tr.soon()))

	auth := filepath.Join(t.TempDir(), "auth")
	tr.must(os.WriteFile(auth, []byte("flock:secret\n"), 0o600))
	owner := start(4*time.Second, "--zookeeper-servers", at+"/owned", "--zookeeper-auth-file", auth)
	tr.must(owner.Ready(tr.soon()))
	for _, c := range []struct {
		ttl   time.Duration
		below string
		want  string
	}{
		{time.Minute, "/owned", "sessions last at most 10s there, so pulses cannot live for 1m0s: let them live 11s"},
		{4 * time.Second, "/owned", "is for another user"},
	} {
		refused := start(c.ttl, "--zookeeper-servers", at+c.below)
		status, err := refused.Ended(tr.soon())
		tr.must(err)
		if said := refused.Said(); status != 2 || !strings.Contains(said, c.want) {
			t.Errorf("with a pulse of %v it ended with %d and said %q, want %q", c.ttl, status, said, c.want)
		}
	}
}
