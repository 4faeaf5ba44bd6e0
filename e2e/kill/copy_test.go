package kill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/e2e/agents"
	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/journaltest/engines"
	"starling/journal/zookeeper/ensemble"
	"starling/terms"
)

// place is where a journal may be, as the settings of an agent say it.
type place struct {
	name     string
	settings func(*agents.Agent) string
}

// copied is a cluster whose journal moves.
type copied struct {
	*trial
	folder string
	now    place
}

// TestJournalMoves moves the journal of a cluster from one engine to the next, and back, while jobs come in: no task
// ends, none runs twice, and every job that was acknowledged runs once. Once the move is killed in the middle.
func TestJournalMoves(t *testing.T) {
	if testing.Short() {
		t.Skip("starts engines")
	}
	ensemble.Need(t)
	t.Parallel()
	tr := prepare(t, 4*time.Second, []string{"a", "b", "c"})
	listen := map[string]string{}
	for _, a := range tr.Agents {
		listen[a.Node] = "{listen: " + a.Endpoint + ", peer: https://" + freeAddress(t) + "}"
	}
	own := place{"etcd of the machines", func(a *agents.Agent) string { return "etcd: " + listen[a.Node] }}
	c := &copied{trial: tr, folder: t.TempDir(), now: own}
	for _, a := range tr.Agents {
		c.settle(a, own)
		a.Configure(c.file(a, "now"))
	}
	tr.must(tr.Start(tr.soon()))
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	tr.submit(tr.stateful("db", "data"))
	slots := append(tr.awaitRunning(tr.Agents[0], "web"), tr.awaitRunning(tr.Agents[0], "db")...)
	for _, slot := range slots[3:] {
		tr.awaitBeat(slot)
	}
	before := tr.wantTasks(slots)
	ctx, stop := context.WithCancel(t.Context())
	seed := seedOf(t)
	comes := &submitter{trial: tr, name: "x", random: rand.New(rand.NewPCG(seed, 1)), pace: 400 * time.Millisecond}
	var working sync.WaitGroup
	working.Go(func() { comes.run(ctx) })

	at := externalEtcd(t)
	c.refuses(at)
	c.move(place{"etcd of others", func(*agents.Agent) string { return etcdAt(at, "flock/") }})
	c.broken(zookeeperPlace(t))
	c.move(own)
	stop()
	working.Wait()

	after := tr.processes()
	for id, is := range before {
		if after[id] != is {
			t.Errorf("%s is process %+v, was %+v: the move of the journal is no reason to end a task", id, after[id], is)
		}
	}
	tr.wantNeverTwo()
	for _, name := range []terms.JobName{"web", "db"} {
		_, err := tr.asked().KillJob(tr.soon(), name, 0)
		tr.must(err)
	}
	tr.judge([]*submitter{comes})
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	tr.wantWhole()
}

// file is where an agent's settings are, or were.
func (c *copied) file(a *agents.Agent, which string) string {
	return filepath.Join(c.folder, a.Node+"."+which+".yaml")
}

// settle writes the settings of an agent for a place.
func (c *copied) settle(a *agents.Agent, at place) {
	c.Helper()
	text := fmt.Sprintf("node: %s\ndata: %s\npulse_ttl: 4s\n%s\n", a.Node, a.Folder(), at.settings(a))
	c.must(os.WriteFile(c.file(a, "now")+".new", []byte(text), 0o600))
	c.must(os.Rename(c.file(a, "now")+".new", c.file(a, "now")))
}

// begin writes the new settings of all agents, keeps the old ones of the first, and returns the command.
func (c *copied) begin(to place) *exec.Cmd {
	c.Helper()
	first := c.Agents[0]
	old, err := os.ReadFile(c.file(first, "now"))
	c.must(err)
	c.must(os.WriteFile(c.file(first, "old"), old, 0o600))
	for _, a := range c.Agents {
		c.settle(a, to)
	}
	return exec.CommandContext(c.soon(), os.Getenv(binaryVariable), "journal", "copy", "--from", c.file(first, "old"),
		"--to", c.file(first, "now"))
}

// move moves the journal, and waits until all go on.
func (c *copied) move(to place) {
	c.Helper()
	command, began := c.begin(to), time.Now()
	said, err := command.CombinedOutput()
	for end := began.Add(timeout); strings.Contains(string(said), "address already in use") && time.Now().Before(end); {
		// The member that this agent had before it moved the last time has not quite ended.
		command, began = exec.CommandContext(c.soon(), command.Path, command.Args[1:]...), time.Now()
		said, err = command.CombinedOutput()
	}
	c.Logf("to %s in %v:\n%s", to.name, time.Since(began), said)
	if err != nil {
		c.Fatalf("move the journal to %s: %v", to.name, err)
	}
	c.goesOn(to)
}

// goesOn waits until all agents are members again, in the lives that they led.
func (c *copied) goesOn(at place) {
	c.Helper()
	c.now = at
	for _, a := range c.Agents {
		c.must(a.Ready(c.soon()))
		p := c.awaitPeer(c.Agents[0], a, "goes on", isMember)
		if p.GetPeer() != a.Node+"~1" {
			c.Errorf("agent %s is %s now: the move has ended its life", a.Node, p.GetPeer())
		}
	}
}

// broken kills the command when it has sealed the journal. No agent can go on then, until it is given again.
func (c *copied) broken(to place) {
	c.Helper()
	command := c.begin(to)
	said, err := command.StderrPipe()
	c.must(err)
	c.must(command.Start())
	for lines := bufio.NewScanner(said); lines.Scan(); {
		c.Logf("it says: %s", lines.Text())
		if strings.Contains(lines.Text(), "sealed after entry") {
			break
		}
	}
	_ = command.Process.Kill()
	_ = command.Wait() // it was killed
	first := c.Agents[0]
	again := exec.CommandContext(c.soon(), os.Getenv(binaryVariable), "journal", "copy", "--from", c.file(first, "old"),
		"--to", c.file(first, "now"))
	text, err := again.CombinedOutput()
	c.Logf("again:\n%s", text)
	c.must(err)
	c.goesOn(to)
}

// refuses wants that the journal cannot be copied onto itself, nor over another: nothing is sealed then.
func (c *copied) refuses(at string) {
	c.Helper()
	theirs := func(prefix string) place {
		return place{prefix, func(*agents.Agent) string { return etcdAt(at, prefix) }}
	}
	for prefix, id := range map[string]string{"other/": "other-cluster", "used/": ""} {
		j, err := etcd.Open(c.soon(), etcd.ClientConfig{Endpoints: []string{at}, Prefix: prefix})
		c.must(err)
		_, err = j.Cluster(c.soon(), id)
		c.must(errors.Join(err, j.Append(c.soon(), journal.Record{Writer: "w", Seq: 1}), j.Close()))
	}
	for _, try := range []struct {
		to     place
		plan   bool
		status int
		want   string
	}{
		{c.now, false, 2, "name the same place"},
		{theirs("other/"), false, 4, "this is the journal of another cluster: that of cluster other-cluster"},
		{theirs("used/"), false, 4, "there is another journal already: it has entry 1"},
		{theirs("flock/"), true, 0, "it can be done, and nothing was changed"},
	} {
		for _, a := range c.Agents {
			c.settle(a, c.now)
		}
		command := c.begin(try.to)
		if try.plan {
			command.Args = append(command.Args, "--plan")
		}
		said, _ := command.CombinedOutput() // the status is asked for
		if got := command.ProcessState.ExitCode(); got != try.status || !strings.Contains(string(said), try.want) {
			c.Errorf("to %s it says %q, exit status %d, want %q, %d", try.to.name, said, got, try.want, try.status)
		}
	}
	for _, a := range c.Agents {
		c.settle(a, c.now)
	}
	c.goesOn(c.now)
}

// externalEtcd is an etcd that others keep.
func externalEtcd(t *testing.T) (at string) {
	t.Helper()
	at = "http://" + freeAddress(t)
	m, err := etcd.Start(t.Context(), etcd.MemberConfig{Name: "theirs", DataDir: t.TempDir(), ClientURL: at,
		PeerURL: "http://127.0.0.1:0"})
	if err == nil {
		t.Cleanup(func() { _ = m.Close() })
		err = m.Ready(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func etcdAt(at, prefix string) string {
	return "etcd: {endpoints: [\"" + at + "\"], prefix: " + prefix + "}"
}

// zookeeperPlace is an ensemble of one.
func zookeeperPlace(t *testing.T) place {
	t.Helper()
	servers, err := ensemble.New(t.TempDir(), engines.At("127.0.0.1", 1)...)
	if err == nil {
		t.Cleanup(servers.Kill)
		err = servers.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	text := "zookeeper: {servers: \"" + servers.Servers[0].Address + "/flock\"}"
	return place{"ZooKeeper", func(*agents.Agent) string { return text }}
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
