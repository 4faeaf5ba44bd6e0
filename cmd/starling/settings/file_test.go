package settings

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"starling/terms"
)

// configOf reads a configuration from a file's text and from flags.
func configOf(t *testing.T, text string, args ...string) (*Agent, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var c *Agent
	var err error
	root := &cobra.Command{Use: "starling", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().String("address", "", "")
	agent := &cobra.Command{Use: "agent", Run: func(command *cobra.Command, _ []string) { c, err = Read(command, file) }}
	Declare(agent)
	root.AddCommand(agent)
	root.SetArgs(append([]string{"agent"}, args...))
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return c, err
}

const smallConfig = `
node: a
etcd:
  listen: "https://127.0.0.1:2380"
`

func TestAgentConfig(t *testing.T) {
	c, err := configOf(t, `
node: a
data: here
address: 127.0.0.1:1
pulse_ttl: 3s
etcd:
  listen: https://127.0.0.1:2
  away: 5m
  quota: 512Mi
join: ["10.0.0.1:1", "10.0.0.2:1"]
capacity: {cpu: 1500m, memory: 1Gi, disk: 2G}
attributes: {zone: cellar}
devices: {gpu: "2:A100", disk: 1}
ports: 100-200
log: {file: "-", level: debug}
`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Node != "a" || c.Data != "here" || c.Address != "127.0.0.1:1" || c.Pulse != 3*time.Second ||
		len(c.Join) != 2 || c.Attributes["zone"] != "cellar" || c.PortFirst != 100 || c.PortLast != 200 {
		t.Errorf("got %+v", c)
	}
	c.Etcd.Spread, c.Etcd.Prefix = "", ""
	wantEtcd := Etcd{Listen: "https://127.0.0.1:2", Peer: "https://127.0.0.1:3", AwayMax: 5 * time.Minute,
		QuotaBytes: 512 << 20}
	if !reflect.DeepEqual(c.Etcd, wantEtcd) {
		t.Errorf("etcd: got %+v, want %+v", c.Etcd, wantEtcd)
	}
	if want := (terms.Resources{1500, 1 << 30, 2e9}); c.Capacity != want {
		t.Errorf("capacity: got %v, want %v", c.Capacity, want)
	}
	if len(c.Devices) != 2 || c.Devices[0].Kind != "disk" ||
		c.Devices[1] != (terms.DeviceOffer{Kind: "gpu", Model: "A100", Count: 2}) {
		t.Errorf("devices: got %v", c.Devices)
	}
}

func TestAgentConfigZooKeeper(t *testing.T) {
	auth := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(auth, []byte("flock:se:cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STARLING_ZOOKEEPER_AUTH_FILE", auth)
	c, err := configOf(t, "node: a\nzookeeper: {servers: 'h:1,[::1]:2,h:3/prod/flock', plaintext: yes}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.ZooKeeper; len(got.Servers) != 3 || got.Servers[1] != "[::1]:2" || got.Chroot != "/prod/flock" ||
		got.Auth != "flock:se:cret" {
		t.Errorf("got %+v", got)
	}
	c, err = configOf(t, "node: a", "--zookeeper-servers", "h:1,h:2", "--zookeeper-plaintext", "yes")
	if err != nil || len(c.ZooKeeper.Servers) != 2 ||
		c.ZooKeeper.Chroot != "/starling" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestAgentConfigPrecedence(t *testing.T) {
	file := smallConfig + "ports: 1-2\npulse_ttl: 7s\ndata: file\n"
	t.Setenv("STARLING_PORTS", "3-4")
	t.Setenv("STARLING_DATA", "environment")
	c, err := configOf(t, file, "--ports", "5-6", "--attributes", "x=1,y=2")
	if err != nil {
		t.Fatal(err)
	}
	if c.PortFirst != 5 || c.Data != "environment" || c.Pulse != 7*time.Second || c.Address != "127.0.0.1:7460" {
		t.Errorf("flag > environment > file > default: got ports from %d, data %q, pulse %s, address %s",
			c.PortFirst, c.Data, c.Pulse, c.Address)
	}
	if c.Attributes["y"] != "2" {
		t.Errorf("attributes: got %v", c.Attributes)
	}
}

func TestAgentConfigRefuses(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"unknown key", "nodee: a", `agent.yaml:1:1: unknown key "nodee"; did you mean "node"?`},
		{"unknown inner key", smallConfig + "log:\n  levle: info",
			`:6:3: unknown key "log.levle"; did you mean "log.level"?`},
		{"duplicate", smallConfig + "node: b", "node"},
		{"wrong shape", smallConfig + "data: [a]", ":5:7: data must be a single value"},
		{"no mapping", smallConfig + "capacity: 5", ":5:11: must be a mapping"},
		{"nothing", smallConfig + "data:", ":5:6: data must be a single value"},
		{"node's name", "node: a/b\n" + smallConfig[8:], `:1:7: node: must be of letters`},
		{"listen", "node: a\netcd: {listen: 'h:1'}", `etcd.listen: "h:1" is not a URL`},
		{"join", "node: a\njoin: [b]", `join: "b" is not a line that begins with starling-join-1:, not a file with one, and not a HOST:PORT`},
		{"token", "node: a\njoin: ['starling-join-1:AAAA']", "join: token: the line is damaged"},
		{"plain listen", "node: a\netcd: {listen: 'http://h:1'}", `"http://h:1" is not a URL such as https://`},
		{"certificates", smallConfig + "  cert: c\n  key: k\n  ca: a", "are for an etcd of your own"},
		{"away", "node: a\netcd: {away: 1ms}", "etcd.away: must be at least 1s"},
		{"peer alone", "node: a\njoin: ['h:1']\netcd: {peer: 'https://h:1'}", "etcd.peer needs etcd.listen"},
		{"both", smallConfig + "  endpoints: ['http://h:1']", "etcd.endpoints name an etcd of your own"},
		{"user", "node: a\netcd: {endpoints: ['http://h:1'], user: u}", "belong together"},
		{"etcd and ZooKeeper", smallConfig + "zookeeper: {servers: 'h:2181'}", "one of them keeps the journal"},
		{"user without ZooKeeper", "node: a\nzookeeper: {auth_file: file_test.go}", "must hold one line USER:PASSWORD"},
		{"TLS without ZooKeeper", smallConfig + "zookeeper: {ca: none}", "give zookeeper.servers"},
		{"half of TLS", "node: a\nzookeeper: {servers: 'h:1', ca: none}", "cert, key and ca belong together"},
		{"ZooKeeper's port", "node: a\nzookeeper: {servers: 'h:1,h'}", `:2:22: zookeeper.servers: server "h" must be HOST:PORT`},
		{"ZooKeeper's chroot", "node: a\nzookeeper: {servers: 'h:1/a//b'}", `chroot "/a//b" must be names`},
		{"pulse", smallConfig + "pulse_ttl: 500ms", "pulse_ttl: must be in whole seconds"},
		{"memory", smallConfig + "capacity: {memory: 5}", "capacity.memory: needs a unit"},
		{"ports", smallConfig + "ports: 9-8", `"9-8" is not a range`},
		{"level", smallConfig + "log: {level: loud}", "must be debug, info, warn or error"},
		{"address", smallConfig + "address: here", `"here" is not an IP:PORT`},
		{"device", smallConfig + "devices: {gpu: many}", `"gpu=many" is not a KIND=COUNT`},
		{"ZooKeeper in plain text", "node: a\nzookeeper: {servers: '127.0.0.1:1,10.0.0.2:2181'}",
			"zookeeper: 10.0.0.2:2181 would be reached without TLS"},
		{"etcd in plain text", "node: a\netcd: {endpoints: ['http://localhost:1', 'http://10.0.0.2:2379']}",
			"etcd: http://10.0.0.2:2379 would be reached without TLS"},
		{"neither yes nor no", "node: a\nzookeeper: {servers: '10.0.0.2:2181', plaintext: perhaps}", `"perhaps" is neither yes nor no`},
		{"host path without a name", smallConfig + "host_paths: {a/b: /tmp}", `"a/b=/tmp" is not a NAME=PATH such as data=/srv/data`},
		{"host path that is a file", smallConfig + "host_paths: {hosts: /etc/passwd}", "hosts: /etc/passwd is not a folder"},
		{"host path around the data", smallConfig + "data: /tmp/data\nhost_paths: {all: /}", "neither may lie in the other"},
		{"host path in the data", smallConfig + "data: /\nhost_paths: {all: /tmp}", "neither may lie in the other"},
		{"provider without TLS", smallConfig + "oidc: {issuer: 'http://h'}", `oidc.issuer: "http://h" is not a URL`},
		{"half of a provider", smallConfig + "oidc: {client: c}", "issuer and client belong together"},
		{"secret for all", smallConfig + "oidc: {secret_file: file_test.go}", "others than its owner can read it"},
		{"no YAML", "a: [", "agent.yaml:"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := configOf(t, c.file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestHostPathsAreLookedUp has links on the way to host paths, and to the agent's data, which need not be there yet.
func TestHostPathsAreLookedUp(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := func(name string) string { return filepath.Join(folder, name) }
	if err := errors.Join(os.MkdirAll(below("srv/data"), 0o755), os.Symlink("srv", below("link"))); err != nil {
		t.Fatal(err)
	}
	config := func(data, host string) (*Agent, error) {
		return configOf(t, smallConfig+"data: "+below(data)+"\nhost_paths: {data: "+below(host)+"}")
	}
	c, err := config("own", "link/data")
	if err != nil || c.HostPaths["data"] != below("srv/data") {
		t.Errorf("got %+v, %v, want the folder to which the link leads", c, err)
	}
	for _, data := range []string{"link", "link/data/own", "srv/data/own/deep"} {
		if _, err := config(data, "srv/data"); err == nil || !strings.Contains(err.Error(), "neither may lie in the other") {
			t.Errorf("data in %s: got %v, want it refused", data, err)
		}
	}
}

func TestAgentConfigTellsAllAtOnce(t *testing.T) {
	t.Setenv("STARLING_LOG_LEVEL", "loud")
	_, err := configOf(t, "nodee: a\nports: 1", "--pulse-ttl", "x")
	for _, want := range []string{"nodee", "ports", "STARLING_LOG_LEVEL", "--pulse-ttl"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a word about %q too", err, want)
		}
	}
}

// TestAddressVariable takes the variable that tells commands where to ask as where to listen only if it can be that.
func TestAddressVariable(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:7":                 "127.0.0.1:7",
		"127.0.0.1:7,127.0.0.1:8":     "127.0.0.1:7460",
		"unix:/run/starling/one.sock": "127.0.0.1:7460",
		"":                            "127.0.0.1:7460",
	} {
		t.Setenv("STARLING_ADDRESS", text)
		c, err := configOf(t, smallConfig)
		if err != nil || c.Address != want || (c.Hint == "") != (text == "" || text == want) {
			t.Errorf("%q: got %+v and %v, want to listen at %s, and a hint if that is another", text, c, err, want)
		}
		if c, err := configOf(t, smallConfig+"address: 127.0.0.1:9\n"); err != nil || c.Address != "127.0.0.1:9" {
			t.Errorf("%q: got %+v and %v, want to listen where the file says", text, c, err)
		}
	}
}
