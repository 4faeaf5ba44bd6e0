package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"starling/driver"
	"starling/driver/process"
	"starling/driver/scope"
	"starling/trust"
)

// Agent is one machine of a flock. It is not safe for concurrent use.
type Agent struct {
	// Node is its name, Address where its API answers, Endpoint where its member of the quorum does, if it has one.
	Node, Address, Endpoint string
	// Flags are given to it after those of its flock.
	Flags []string

	flock     *Flock
	folder    string
	binary    string
	namespace string // of its network, "" for this process's
	arguments []string
	join      []*Agent      // who may admit it, nil for who founds the cluster
	process   *os.Process   // of the present or last run; nil before the first
	ended     chan struct{} // closed when that has ended
	status    int           // with which it ended
}

// Start starts the process; Ready waits until it is of use.
func (a *Agent) Start() error {
	if a.Runs() {
		return fmt.Errorf("agent %s runs already", a.Node)
	}
	if err := a.admit(); err != nil {
		return fmt.Errorf("start agent %s: %w", a.Node, err)
	}
	said, err := os.OpenFile(a.file("said"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start agent %s: %w", a.Node, err)
	}
	defer said.Close()
	program := append(append([]string{a.binary}, a.arguments...), a.Flags...)
	if a.namespace != "" { // and nothing else changes: "ip netns exec" would hide the control groups
		program = append([]string{"nsenter", "--net=/run/netns/" + a.namespace}, program...)
	}
	if len(a.join) > 0 {
		program = append(program, "--join", a.file("token"))
	}
	command := exec.Command(program[0], program[1:]...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "STARLING_") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Stdout, command.Stderr = said, said
	command.SysProcAttr = dieWithParent()
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// What dies with its parent dies with the thread that forked it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		started <- command.Start()
		_ = command.Wait() // how it ended is its own affair, and an error if it never began
		a.status = command.ProcessState.ExitCode()
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start agent %s: %w", a.Node, err)
	}
	a.process, a.ended = command.Process, ended
	return nil
}

// file returns where something about the process is kept, beside its data.
func (a *Agent) file(name string) string {
	return filepath.Join(a.flock.config.Folder, a.Node+"."+name)
}

// Runs tells whether the process runs, which it also does while it is paused.
func (a *Agent) Runs() bool {
	if a.process == nil {
		return false
	}
	select {
	case <-a.ended:
		return false
	default:
		return true
	}
}

// Ready waits until the agent is a member that takes work. An agent that ends before is an error, with what it said.
func (a *Agent) Ready(ctx context.Context) error {
	api := a.flock.Client(a)
	defer api.Close()
	for {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		peers, err := api.AllPeers(short)
		cancel()
		for _, p := range peers.GetPeers() {
			if p.GetPeer() == peers.GetSelf() && p.GetState() == "member" && p.GetCapacity() != nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("agent %s is not a member yet: %w, %v\n%s", a.Node, ctx.Err(), err, a.Said())
		case <-a.ended:
			return fmt.Errorf("agent %s has ended:\n%s", a.Node, a.Said())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Install replaces the program, for the next Start.
func (a *Agent) Install(binary string) { a.binary = binary }

// Configure has the agent read from a file where the journal is, from the next Start on; flags do not say it any more.
func (a *Agent) Configure(file string) {
	for _, flag := range []string{"--etcd-listen", "--etcd-peer"} {
		if at := slices.Index(a.arguments, flag); at >= 0 {
			a.arguments = slices.Delete(a.arguments, at, at+2)
		}
	}
	a.arguments = append(a.arguments, "--config", file)
}

// Wipe removes all that the machine has, of which nothing may run. It is told where others are, or begins a cluster.
func (a *Agent) Wipe(join ...*Agent) error {
	if err := os.RemoveAll(a.folder); err != nil {
		return fmt.Errorf("wipe agent %s: %w", a.Node, err)
	}
	a.join = join
	return nil
}

// Folder is where the agent keeps what it has.
func (a *Agent) Folder() string { return a.folder }

// Terminate asks the agent to end in good order, and waits until it has.
func (a *Agent) Terminate(ctx context.Context) error {
	if err := a.signal(syscall.SIGTERM); err != nil {
		return err
	}
	_, err := a.Ended(ctx)
	return err
}

// Ended waits until the process has ended, and returns its exit status.
func (a *Agent) Ended(ctx context.Context) (status int, err error) {
	select {
	case <-a.ended:
		return a.status, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("agent %s has not ended: %w\n%s", a.Node, ctx.Err(), a.Said())
	}
}

// Kill kills the process and nothing else: its tasks go on.
func (a *Agent) Kill() error {
	if !a.Runs() {
		return nil
	}
	if err := a.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill agent %s: %w", a.Node, err)
	}
	<-a.ended
	return nil
}

// Pause stops the process where it is, and with it its member of the quorum, until Resume. Its tasks go on.
func (a *Agent) Pause() error { return a.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (a *Agent) Resume() error { return a.signal(syscall.SIGCONT) }

func (a *Agent) signal(s syscall.Signal) error {
	if err := a.process.Signal(s); err != nil {
		return fmt.Errorf("send %v to agent %s: %w", s, a.Node, err)
	}
	return nil
}

// Crash kills the process and all that it and its earlier runs have started, as if the machine had lost its power.
func (a *Agent) Crash(ctx context.Context) error {
	if err := a.Kill(); err != nil {
		return err
	}
	for {
		left, err := a.everything()
		if err != nil || len(left) == 0 {
			return err
		}
		for _, p := range left {
			if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d of agent %s: %w", p.PID, a.Node, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes of agent %s do not die: %w", len(left), a.Node, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// sweep removes what the kernel keeps of tasks that were killed: it lets a driver find that they are dead.
func (a *Agent) sweep(ctx context.Context) error {
	folder := filepath.Join(a.folder, "driver")
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	d, err := process.Open(process.Config{Dir: folder, Supervisor: []string{a.flock.config.Binary, "supervise"},
		LeaveScope: scope.Leave})
	if err != nil {
		return fmt.Errorf("sweep after agent %s: %w", a.Node, err)
	}
	defer d.Close()
	for {
		left := 0
		for _, status := range d.Tasks() {
			if status.State == driver.Running {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-d.Changed():
		case <-ctx.Done():
			return fmt.Errorf("%d tasks of agent %s seem to run although all was killed: %w", left, a.Node, ctx.Err())
		}
	}
}

// Leads tells whether the agent's member leads the quorum.
func (a *Agent) Leads(ctx context.Context) (bool, error) {
	engine, err := a.Engine()
	if err != nil {
		return false, err
	}
	defer engine.Close()
	status, err := engine.Status(ctx, a.Endpoint)
	if err != nil {
		return false, fmt.Errorf("ask the member of agent %s who leads: %w", a.Node, err)
	}
	return status.Leader == status.Header.MemberId, nil
}

// Engine returns a client of the agent's member.
func (a *Agent) Engine() (*clientv3.Client, error) { return a.EngineOf(a) }

// EngineOf returns a client of another's member, that shows this agent's keys.
func (a *Agent) EngineOf(other *Agent) (*clientv3.Client, error) {
	keys, err := trust.Load(filepath.Join(a.folder, trust.Folder))
	if err != nil {
		return nil, fmt.Errorf("reach the member of agent %s: %w", a.Node, err)
	}
	engine, err := clientv3.New(clientv3.Config{Endpoints: []string{other.Endpoint}, Logger: zap.NewNop(),
		TLS: trust.ClientTLS(keys.Shows)})
	if err != nil {
		return nil, fmt.Errorf("reach the member of agent %s: %w", a.Node, err)
	}
	return engine, nil
}

// Volume returns where a file of a volume lies; "*" matches all sets and names of volumes.
func (a *Agent) Volume(set, file string) string {
	return filepath.Join(a.folder, "driver", "volumes", set, "*", file)
}

// Said returns what the agent wrote to its terminal in all its runs.
func (a *Agent) Said() string { return read(a.file("said")) }

// Log returns the agent's log.
func (a *Agent) Log() string { return read(filepath.Join(a.folder, "starling.log")) }

// read returns a file's text, or why there is none: it is for people.
func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
