package agents

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"starling/api/client"
	"starling/journal/journaltest/engines"
)

// Build builds the binary, with these build tags, into a folder and returns its path. It is for tests two folders below
// the module's root, where they run.
func Build(ctx context.Context, folder string, tags ...string) (binary string, err error) {
	binary = filepath.Join(folder, strings.Join(append([]string{"starling"}, tags...), "-"))
	build := exec.CommandContext(ctx, "../../.ci/build", binary, "-tags", strings.Join(tags, ","))
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, said)
	}
	return binary, nil
}

// Config says what a cluster is made of.
type Config struct {
	// Binary is the program, Folder where the agents keep what they have, Nodes their names. The first one founds the
	// cluster; it and two more keep the journal, or it alone if they are fewer.
	Binary, Folder string
	Nodes          []string
	// PulseTTL is how long a silent peer lives.
	PulseTTL time.Duration
	// External tells that the flags say who keeps the journal, which is not the agents.
	External bool
	// Network is where the agents are, nil for all on this machine's own.
	Network *engines.Network
	// Flags are given to every agent, after the flock's own.
	Flags []string
}

// Flock is a cluster on this machine.
type Flock struct {
	Agents []*Agent
	config Config
}

// New chooses ports and folders; nothing runs yet.
func New(config Config) (*Flock, error) {
	number := flocks.Add(1)
	f := &Flock{config: config}
	ports, err := freePorts(3 * len(config.Nodes))
	if err != nil {
		return nil, err
	}
	for i, node := range config.Nodes {
		host, namespace := "127.0.0.1", ""
		if config.Network != nil {
			host, namespace = config.Network.Address(i), config.Network.Namespace(i)
		}
		at := func(n int) string { return fmt.Sprintf("%s:%d", host, ports[3*i+n]) }
		a := &Agent{Node: node, Address: at(0), Endpoint: "https://" + at(1), flock: f, binary: config.Binary,
			folder: filepath.Join(config.Folder, node), namespace: namespace}
		a.arguments = []string{
			"agent", "--node", a.Node, "--data", a.folder, "--address", a.Address,
			"--pulse-ttl", config.PulseTTL.String(), "--ports", taskPorts(number, i),
		}
		if !config.External {
			a.arguments = append(a.arguments, "--etcd-listen", a.Endpoint, "--etcd-peer", "https://"+at(2))
		}
		if i > 0 {
			a.join = f.Agents[:1]
		}
		a.arguments = append(a.arguments, config.Flags...)
		f.Agents = append(f.Agents, a)
		if err := os.MkdirAll(a.folder, 0o755); err != nil {
			return nil, fmt.Errorf("folder of agent %s: %w", a.Node, err)
		}
	}
	return f, nil
}

// Start starts all agents, or the first ones, and waits until they are members, and as many of them keep the journal as
// are to.
func (f *Flock) Start(ctx context.Context, only ...*Agent) error {
	if len(only) == 0 {
		only = f.Agents
	}
	for i, a := range only {
		if err := a.Start(); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if err := a.Ready(ctx); err != nil { // the others are told by it where the quorum is
			return err
		}
	}
	for _, a := range only {
		if err := a.Ready(ctx); err != nil {
			return err
		}
	}
	if len(only) < quorumSize || f.config.External {
		return nil
	}
	return f.AwaitQuorum(ctx, only[:quorumSize]...)
}

// AwaitQuorum waits until exactly these agents keep the journal, all with a vote, as the first of them tells.
func (f *Flock) AwaitQuorum(ctx context.Context, keepers ...*Agent) error {
	var want []string
	for _, a := range keepers {
		want = append(want, a.Node)
	}
	slices.Sort(want)
	api := f.Client(keepers[0])
	defer api.Close()
	for {
		var got []string
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		answer, err := api.Quorum(short)
		cancel()
		for _, m := range answer.GetMembers() {
			got = append(got, m.GetNode())
			if m.GetState() != "voter" && m.GetState() != "leader" {
				err = fmt.Errorf("%s is %s: %s", m.GetNode(), m.GetState(), answer.GetNext())
			}
		}
		slices.Sort(got)
		if err == nil && slices.Equal(got, want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the quorum is %v, not %v: %w, %v", got, want, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop kills all agents and all that they started, and removes the control groups. What survives that is an error.
func (f *Flock) Stop(ctx context.Context) error {
	var errs []error
	for _, a := range f.Agents {
		errs = append(errs, a.Crash(ctx))
	}
	for _, a := range f.Agents {
		errs = append(errs, a.sweep(ctx))
	}
	return errors.Join(errs...)
}

// Client returns a client that asks the agents in this order, all of them if none is named.
func (f *Flock) Client(order ...*Agent) *client.Client {
	if len(order) == 0 {
		order = f.Agents
	}
	var addresses []string
	for _, a := range order {
		addresses = append(addresses, Socket(a.Address))
	}
	return client.New(addresses)
}

// quorumSize is how many agents keep the journal in a flock that has as many.
const quorumSize = 3

// The ports of agents lie below those that systems give to outgoing connections: while an agent is dead nobody takes
// them by accident. Those that agents give to their tasks lie above them, a range of its own for each.
const (
	portFirst, portCount  = 10_000, 10_000
	taskPortFirst, oneGet = 24_000, 100
	// Flocks that run at a time have different ranges; there are so many, for so many agents each.
	flocksMax, agentsMax = 14, 6
)

// flocks counts those of this process.
var flocks atomic.Int64

func taskPorts(flock int64, agent int) string {
	first := taskPortFirst + (int(flock%flocksMax)*agentsMax+agent)*oneGet
	return fmt.Sprintf("%d-%d", first, first+oneGet-1)
}

// freePorts returns ports on which nobody listens now, from a random place on, lest several flocks choose the same.
func freePorts(count int) ([]int, error) {
	var free []int
	for offset := rand.IntN(portCount); len(free) < count; offset++ {
		port := portFirst + offset%portCount
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return nil, fmt.Errorf("look for free ports: %w", err)
		}
		free = append(free, port)
	}
	return free, nil
}
