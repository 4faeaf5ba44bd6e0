package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"starling/e2e/agents"
)

// fleet is the three agents.
type fleet struct {
	binary string
	agents []*agent
}

// agent is one peer as a process of its own.
type agent struct {
	name, address, folder string
	args                  []string
	binary                string
	log                   *os.File

	mu      sync.Mutex
	process *os.Process
	ended   chan struct{}
}

// portsEach is how many ports each agent gives to tasks, from portsFirst on.
const (
	portsFirst = 22000
	portsEach  = 100
)

// start starts the agents of nodes a, b and c.
func (f *fleet) start(ctx context.Context, folder string) error {
	names := []string{"a", "b", "c"}
	ports, err := freePorts(3 * len(names))
	if err != nil {
		return fmt.Errorf("find free ports: %w", err)
	}
	for i, name := range names {
		a := &agent{name: name, address: ports[3*i+1], folder: filepath.Join(folder, name), binary: f.binary}
		a.args = []string{"agent", "--node", name, "--data", a.folder, "--address", a.address,
			"--etcd-listen", "https://" + ports[3*i+2], "--etcd-peer", "https://" + ports[3*i],
			"--pulse-ttl", pulseTTL.String(), "--capacity-cpu", "2", "--capacity-memory", "4Gi",
			"--ports", fmt.Sprintf("%d-%d", portsFirst+i*portsEach, portsFirst+(i+1)*portsEach-1)}
		if i > 0 {
			line, err := agents.Token(ctx, f.agents[0].address)
			if err != nil {
				return err
			}
			a.args = append(a.args, "--join", line)
		}
		if a.log, err = os.Create(a.folder + ".out"); err != nil {
			return err
		}
		if err := a.launch(); err != nil {
			return err
		}
		f.agents = append(f.agents, a)
	}
	return nil
}

// launch starts the agent's process.
func (a *agent) launch() error {
	command := exec.Command(a.binary, a.args...)
	command.Stdout, command.Stderr = a.log, a.log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the demo, which ends its agents itself
	if err := command.Start(); err != nil {
		return fmt.Errorf("start agent %s: %w", a.name, err)
	}
	ended := make(chan struct{})
	a.mu.Lock()
	a.process, a.ended = command.Process, ended
	a.mu.Unlock()
	go func() {
		_ = command.Wait() // how it ended does not matter, that it did does
		close(ended)
	}()
	return nil
}

// pids returns the agent and all that it has started: supervisors, tasks, and what these started.
func (a *agent) pids() ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	return family(all, func(p process) bool {
		return strings.Contains(p.command, a.folder+"/") || p.pid == a.process.Pid
	}), nil
}

// kill ends the agent and everything on its machine at once, and returns how many processes that were.
func (a *agent) kill() (int, error) {
	killed := map[int]bool{}
	for {
		pids, err := a.pids()
		if err != nil {
			return 0, err
		}
		alive := 0
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
				alive++
				killed[pid] = true
			}
		}
		if alive == 0 {
			<-a.ended
			return len(killed), nil
		}
	}
}

// end stops all agents and what they left behind.
func (f *fleet) end(ctx context.Context) error {
	var errs []error
	for _, a := range f.agents {
		_ = a.process.Signal(syscall.SIGTERM) // it may have ended
	}
	limit, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, a := range f.agents {
		select {
		case <-a.ended:
		case <-limit.Done():
			errs = append(errs, fmt.Errorf("agent %s does not end on SIGTERM", a.name))
		}
		if _, err := a.kill(); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, a.log.Close())
	}
	return errors.Join(errs...)
}

// addresses are where the agents' APIs are.
func (f *fleet) addresses() []string {
	var all []string
	for _, a := range f.agents {
		all = append(all, agents.Socket(a.address))
	}
	return all
}

// printLogs prints what the agents said last, for whoever looks into a failure.
func (f *fleet) printLogs(to io.Writer) {
	const bytesMax = 4 << 10
	for _, a := range f.agents {
		for _, path := range []string{a.log.Name(), filepath.Join(a.folder, "starling.log")} {
			text, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			fmt.Fprintf(to, "--- %s, the end of %s\n%s\n", a.name, filepath.Base(path), text[max(0, len(text)-bytesMax):])
		}
	}
}

// freePorts returns loopback addresses that nobody listens on.
func freePorts(count int) ([]string, error) {
	var all []string
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() // only when all are found, so that all differ
		all = append(all, listener.Addr().String())
	}
	return all, nil
}
