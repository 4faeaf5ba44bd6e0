package etcd_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"starling/journal/etcd"
)

// memberVariable holds the configuration of the member that this program is to be, instead of testing.
const memberVariable = "STARLING_TEST_MEMBER"

func TestMain(m *testing.M) {
	if config := os.Getenv(memberVariable); config != "" {
		if err := beMember(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// role is what a member's process does.
type role struct {
	Member etcd.MemberConfig
	// Pulse is owned by the process, with pulseTTL; none if empty.
	Pulse string
}

// beMember runs a member until its standard input ends, or it is killed. It prints a line when it serves.
func beMember(config string) error {
	var r role
	if err := json.Unmarshal([]byte(config), &r); err != nil {
		return err
	}
	ctx, cancel := timeLimit(patience)
	defer cancel()
	m, err := etcd.Start(ctx, r.Member)
	if err != nil {
		return err
	}
	if err := m.Ready(ctx); err != nil {
		return err
	}
	j := m.Journal()
	if r.Pulse != "" {
		if _, err := j.Pulse(ctx, r.Pulse, pulseTTL, false); err != nil {
			return err
		}
	}
	fmt.Println("serving")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	return m.Close()
}

// cluster returns the configurations of members that do not run yet.
func cluster(t testing.TB, names ...string) []etcd.MemberConfig {
	t.Helper()
	peers := make(map[string]string)
	for _, name := range names {
		peers[name] = freeURL(t)
	}
	var members []etcd.MemberConfig
	for _, name := range names {
		members = append(members, etcd.MemberConfig{
			Name: name, DataDir: t.TempDir(), ClientURL: freeURL(t), PeerURL: peers[name],
			InitialCluster: maps.Clone(peers),
		})
	}
	return members
}

// freeURL returns a URL with a port that nobody listens on.
func freeURL(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

func endpoints(members []etcd.MemberConfig) []string {
	var urls []string
	for _, m := range members {
		urls = append(urls, m.ClientURL)
	}
	return urls
}

// startAll runs all members in this process.
func startAll(t testing.TB, configs []etcd.MemberConfig) []*etcd.Member {
	t.Helper()
	var members []*etcd.Member
	for _, c := range configs {
		members = append(members, start(t, c))
	}
	for _, m := range members {
		must(t, m.Ready(limited(t)))
	}
	return members
}

func start(t testing.TB, config etcd.MemberConfig) *etcd.Member {
	t.Helper()
	m, err := etcd.Start(t.Context(), config)
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

// process is a member in a process of its own.
type process struct {
	t       testing.TB
	command *exec.Cmd
	serving chan struct{}
}

// launch starts a member's process. It is killed with the test.
func launch(t testing.TB, r role) *process {
	t.Helper()
	config, err := json.Marshal(r)
	must(t, err)
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), memberVariable+"="+string(config))
	command.Stderr = os.Stderr
	_, err = command.StdinPipe() // open until this process ends, however it does
	must(t, err)
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	p := &process{t: t, command: command, serving: make(chan struct{})}
	go func() {
		if _, err := bufio.NewReader(output).ReadString('\n'); err == nil {
			close(p.serving)
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// ready waits until the member serves.
func (p *process) ready() {
	p.t.Helper()
	select {
	case <-p.serving:
	case <-time.After(patience):
		p.t.Fatal("a member's process does not serve")
	}
}

// kill ends the process as a crash would.
func (p *process) kill() {
	if p.command.ProcessState == nil {
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
	}
}

// raw returns a client of the engine itself.
func raw(t testing.TB, urls ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: urls, Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// leader returns which of the members leads.
func leader(t testing.TB, members []etcd.MemberConfig) int {
	t.Helper()
	urls := endpoints(members)
	c := raw(t, urls...)
	i := slices.IndexFunc(urls, func(url string) bool {
		s, err := c.Status(limited(t), url)
		return err == nil && s.Leader == s.Header.MemberId
	})
	if i < 0 {
		t.Fatal("no member leads")
	}
	return i
}
