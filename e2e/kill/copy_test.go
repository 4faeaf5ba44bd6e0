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

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/journaltest/engines"
	"starling/journal/zookeeper/ensemble"
	"starling/terms"
	"starling/trust"
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
	ttl    time.Duration
}

// TestJournalMoves moves the journal of a cluster from one engine to the next, and back, while jobs come in: no task
// ends, none runs twice, and every job that was acknowledged runs once. Once the move is killed in the middle.
func TestJournalMoves(t *testing.T) {
	if testing.Short() {
		t.Skip("starts engines")
	}
	ensemble.Need(t)
	t.Parallel()
	c := newCopied(t, 4*time.Second)
	tr, own := c.trial, c.now
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
	c.broken(zookeeperPlace(t), func() {})
	c.refusesInstead(place{"third", func(*agents.Agent) string { return etcdAt(at, "third/") }})
	c.broken(own, c.refusesSecondFounder)
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
		_, err := tr.asked().KillJob(tr.soon(), name, 0, false)
		tr.must(err)
	}
	tr.judge([]*submitter{comes})
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	tr.wantWhole()
}

// TestJournalMoveTakenUpLate takes up a move that was broken off after the seal, when all pulses have ended: all peers
// go on with their lives, and what runs does not run twice.
func TestJournalMoveTakenUpLate(t *testing.T) {
	if testing.Short() {
		t.Skip("starts engines")
	}
	t.Parallel()
	c := newCopied(t, 2*time.Second)
	tr, at := c.trial, externalEtcd(t)
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	before := tr.wantTasks(tr.awaitRunning(tr.Agents[0], "web"))

	to := place{"new", func(*agents.Agent) string { return etcdAt(at, "new/") }}
	command := c.begin(to)
	keys, err := trust.Load(filepath.Join(tr.Agents[0].Folder(), trust.Folder))
	c.must(err)
	old, err := etcd.Open(c.soon(), etcd.ClientConfig{Endpoints: []string{tr.Agents[0].Endpoint},
		TLS: trust.ClientTLS(keys.Shows)})
	c.must(err)
	defer old.Close()
	_, err = old.Seal(c.soon(), "etcd at "+at+" below new/")
	c.must(err)
	tr.eventually("all pulses have ended", func() string {
		left, err := old.Pulses(c.soon())
		if err != nil || len(left) > 0 {
			return fmt.Sprint(left, err)
		}
		return ""
	})
	said, err := command.CombinedOutput()
	c.Logf("taken up:\n%s", said)
	c.must(err)
	c.goesOn(to)
	after := tr.processes()
	for id, is := range before {
		if after[id] != is {
			t.Errorf("%s is process %+v, was %+v: the move of the journal is no reason to end a task", id, after[id], is)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d tasks run, and %d did", len(after), len(before))
	}
}

// TestRestartBeforeTheMove restarts an agent between the change of its settings and the move: it goes on with the old
// journal, as a member of its quorum, and follows when that moves.
func TestRestartBeforeTheMove(t *testing.T) {
	if testing.Short() {
		t.Skip("starts engines")
	}
	t.Parallel()
	c := newCopied(t, 10*time.Second)
	at, early := externalEtcd(t), c.Agents[1]
	to := place{"new", func(*agents.Agent) string { return etcdAt(at, "new/") }}
	command := c.begin(to)
	c.must(early.Terminate(c.soon()))
	c.must(early.Start())
	c.must(early.Ready(c.soon()))
	if said := early.Said(); !strings.Contains(said, "goes on with the etcd of the cluster's own machines") {
		t.Errorf("the agent says %q", said)
	}
	c.must(c.AwaitQuorum(c.soon(), c.Agents...))
	said, err := command.CombinedOutput()
	c.Logf("to %s:\n%s", to.name, said)
	c.must(err)
	c.goesOn(to)
}

// TestAwayDuringTheMove has a machine come back that was dead while the journal moved: it says what is wrong, does not
// begin a second cluster by recover, and follows when its settings are changed.
func TestAwayDuringTheMove(t *testing.T) {
	if testing.Short() {
		t.Skip("starts engines")
	}
	t.Parallel()
	c := newCopied(t, 2*time.Second)
	at, away := externalEtcd(t), c.Agents[2]
	c.must(away.Kill())
	c.awaitPeer(c.Agents[0], away, "left", func(p *starlingv1.Peer) bool { return p.GetState() == "left" })
	to := place{"new", func(*agents.Agent) string { return etcdAt(at, "new/") }}
	command := c.begin(to)
	c.must(os.Rename(c.file(away, "old"), c.file(away, "now")))
	said, err := command.CombinedOutput()
	c.must(err)
	if want := "no agent ran on c: its settings must say what"; !strings.Contains(string(said), want) {
		t.Errorf("the copy says nothing of %q:\n%s", want, said)
	}
	for _, a := range c.Agents[:2] {
		c.must(a.Ready(c.soon()))
		c.awaitPeer(c.Agents[0], a, "goes on", isMember)
	}
	c.must(away.Start())
	c.eventually("it says what is wrong", func() string {
		if said := away.Said(); !strings.Contains(said, "its machines do not keep the journal any more") {
			return said
		}
		return ""
	})
	c.must(away.Terminate(c.soon()))
	c.wantRecover(away, 4, "others than its machines keep the journal by now", "--yes", "--config", c.file(away, "now"))
	c.must(away.Start())
	c.settle(away, to) // it reads that by itself
	c.must(away.Ready(c.soon()))
	c.awaitPeer(c.Agents[0], away, "goes on", isMember)
}

// TestThereAndBack moves the journal to an etcd of others and back at once, when the members of the machines' quorum
// have just ended: no agent ends, and no task.
func TestThereAndBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts engines")
	}
	t.Parallel()
	c := newCopied(t, 4*time.Second)
	tr, own, at := c.trial, c.now, externalEtcd(t)
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	before := tr.wantTasks(tr.awaitRunning(tr.Agents[0], "web"))
	c.move(place{"etcd of others", func(*agents.Agent) string { return etcdAt(at, "flock/") }})
	c.move(own)
	after := tr.processes()
	for id, is := range before {
		if after[id] != is {
			t.Errorf("%s is process %+v, was %+v: the move of the journal is no reason to end a task", id, after[id], is)
		}
	}
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	tr.wantWhole()
}

// newCopied starts a cluster whose machines keep the journal, and whose settings are in files.
func newCopied(t *testing.T, ttl time.Duration) *copied {
	t.Helper()
	tr := prepare(t, ttl, []string{"a", "b", "c"})
	listen := map[string]string{}
	for _, a := range tr.Agents {
		listen[a.Node] = "{listen: " + a.Endpoint + ", peer: https://" + freeAddress(t) + "}"
	}
	own := place{"etcd of the machines", func(a *agents.Agent) string { return "etcd: " + listen[a.Node] }}
	c := &copied{trial: tr, folder: t.TempDir(), now: own, ttl: ttl}
	for _, a := range tr.Agents {
		c.settle(a, own)
		a.Configure(c.file(a, "now"))
	}
	tr.must(tr.Start(tr.soon()))
	return c
}

// file is where an agent's settings are, or were.
func (c *copied) file(a *agents.Agent, which string) string {
	return filepath.Join(c.folder, a.Node+"."+which+".yaml")
}

// settle writes the settings of an agent for a place.
func (c *copied) settle(a *agents.Agent, at place) {
	c.Helper()
	text := fmt.Sprintf("node: %s\ndata: %s\npulse_ttl: %s\n%s\n", a.Node, a.Folder(), c.ttl, at.settings(a))
	c.must(os.WriteFile(c.file(a, "now")+".new", []byte(text), 0o600))
	c.must(os.Rename(c.file(a, "now")+".new", c.file(a, "now")))
}

// begin writes the new settings of all agents, keeps the old ones, and returns the command.
func (c *copied) begin(to place) *exec.Cmd {
	c.Helper()
	for _, a := range c.Agents {
		old, err := os.ReadFile(c.file(a, "now"))
		c.must(err)
		c.must(os.WriteFile(c.file(a, "old"), old, 0o600))
		c.settle(a, to)
	}
	return c.copyOn(c.Agents[0])
}

// copyOn returns the command on an agent's machine.
func (c *copied) copyOn(a *agents.Agent, more ...string) *exec.Cmd {
	return exec.CommandContext(c.soon(), os.Getenv(binaryVariable), append([]string{"journal", "copy",
		"--from", c.file(a, "old"), "--to", c.file(a, "now")}, more...)...)
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
func (c *copied) broken(to place, meanwhile func()) {
	c.Helper()
	c.begin(to)
	c.eventually("the journal is sealed", func() string {
		// A member that this agent had before may not quite have ended, and then the command ends.
		command := c.copyOn(c.Agents[0])
		said, err := command.StderrPipe()
		c.must(err)
		c.must(command.Start())
		last := ""
		for lines := bufio.NewScanner(said); lines.Scan() && !strings.Contains(last, "sealed after entry"); {
			last = lines.Text()
			c.Logf("it says: %s", last)
		}
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
		if !strings.Contains(last, "sealed after entry") {
			return last
		}
		return ""
	})
	meanwhile()
	text, err := c.copyOn(c.Agents[0]).CombinedOutput()
	c.Logf("again:\n%s", text)
	if err != nil && !strings.Contains(string(text), "has data of a member of the quorum already") { // it was killed too late
		c.Errorf("taken up: %v", err)
	}
	c.goesOn(to)
}

// refusesInstead wants that the journal does not begin at another place, when the agents have gone on at one.
func (c *copied) refusesInstead(third place) {
	c.Helper()
	first := c.Agents[0]
	now, err := os.ReadFile(c.file(first, "now"))
	c.must(err)
	c.settle(first, third)
	command := c.copyOn(first, "--instead")
	said, _ := command.CombinedOutput() // the status is asked for
	if got := command.ProcessState.ExitCode(); got != 4 || !strings.Contains(string(said), "goes on elsewhere already") {
		c.Errorf("instead of where it goes on it says %q, exit status %d", said, got)
	}
	c.must(os.WriteFile(c.file(first, "now"), now, 0o600))
}

// refusesSecondFounder wants that no other machine lets a journal of its own begin: there would be two of one cluster.
func (c *copied) refusesSecondFounder() {
	c.Helper()
	command := c.copyOn(c.Agents[1])
	said, _ := command.CombinedOutput() // the status is asked for
	if got := command.ProcessState.ExitCode(); got != 4 || !strings.Contains(string(said), "begun on a at https://") {
		c.Errorf("on another machine it says %q, exit status %d", said, got)
	}
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
