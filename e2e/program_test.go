package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// timeout bounds every wait; what is waited for usually comes within milliseconds.
const timeout = 20 * time.Second

// untilTimeout bounds the waits of scripts for what they ask again and again; some of it is several machines' work.
const untilTimeout = time.Minute

// timeoutFailed is the least status by which timeout(1) says that it could not run the program.
const timeoutFailed = 125

// programsKey finds the programs that a script has started.
type programsKey struct{}

// failureKey finds what fails the test when its script is over already.
type failureKey struct{}

// failedKey finds what tells whether a script has failed.
type failedKey struct{}

// program is one that runs beside a script; what it writes can be waited for.
type program struct {
	command *exec.Cmd
	ended   chan struct{}

	mu      sync.Mutex
	out     bytes.Buffer
	changed chan struct{}
}

// Write takes what the program writes.
func (p *program) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.out.Write(data)
}

// state returns what was written so far, and a channel that is closed when there is more.
func (p *program) state() (string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String(), p.changed
}

// launch starts a program in the script's folder and environment, and ends it with the script.
func launch(ts *testscript.TestScript, args []string) *program {
	p := &program{ended: make(chan struct{}), changed: make(chan struct{})}
	path, err := exec.LookPath(args[0])
	if args[0] == "starling" {
		path, err = binaryFolder()+"/starling", nil
	}
	ts.Check(err)
	p.command = exec.Command(path, args[1:]...)
	p.command.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "STARLING_ADDRESS"} {
		p.command.Env = append(p.command.Env, name+"="+ts.Getenv(name))
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_BSP_SCHEDULE_DELAY"} {
		if value := ts.Getenv(name); value != "" {
			p.command.Env = append(p.command.Env, name+"="+value)
		}
	}
	p.command.Stdout, p.command.Stderr = p, p
	ts.Check(p.command.Start())
	go func() {
		_ = p.command.Wait() // ends asks the state
		close(p.ended)
	}()
	ts.Defer(func() {
		p.stop(ts)
		if ts.Value(failedKey{}).(func() bool)() {
			text, _ := p.state()
			ts.Logf("%q: %s, and wrote:\n%s", args, p.command.ProcessState, text)
		}
	})
	return p
}

// stop ends a program that still runs, and fails the script if it does not want to.
func (p *program) stop(ts *testscript.TestScript) {
	select {
	case <-p.ended:
		return
	default:
	}
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may just have ended
	select {
	case <-p.ended:
	case <-time.After(timeout):
		_ = p.command.Process.Signal(syscall.SIGQUIT)
		<-p.ended
		text, _ := p.state()
		ts.Value(failureKey{}).(func(string, ...any))("%s: %q did not end on SIGTERM:\n%s", ts.Name(), p.command.Args, text)
	}
}

// await waits until the program has written what matches.
func (p *program) await(pattern string) error {
	wanted, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	late := time.After(timeout)
	for {
		text, changed := p.state()
		if wanted.MatchString(text) {
			return nil
		}
		select {
		case <-changed:
		case <-p.ended:
			if text, _ := p.state(); wanted.MatchString(text) {
				return nil
			}
			return fmt.Errorf("it ended without writing %q:\n%s", pattern, text)
		case <-late:
			return fmt.Errorf("it has not written %q within %s:\n%s", pattern, timeout, text)
		}
	}
}

func programs(ts *testscript.TestScript) map[string]*program {
	return ts.Value(programsKey{}).(map[string]*program)
}

func programOf(ts *testscript.TestScript, name string) *program {
	p := programs(ts)[name]
	if p == nil {
		ts.Fatalf("nothing called %s was started", name)
	}
	return p
}

// start starts a program beside the script under a name: start follower starling logs -f web.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME PROGRAM [ARGUMENT...]")
	}
	programs(ts)[args[0]] = launch(ts, args[1:])
}

// await waits until a started program has written what matches: await follower 'hello'.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await NAME PATTERN")
	}
	ts.Check(programOf(ts, args[0]).await(args[1]))
}

// until runs a program again and again until it succeeds or, behind "!", fails. What it wrote at last is stdout: until
// grep ready log.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: [!] until PROGRAM [ARGUMENT...]")
	}
	for late := time.Now().Add(untilTimeout); ; <-time.After(100 * time.Millisecond) {
		left := fmt.Sprintf("%.3f", max(time.Until(late), time.Millisecond).Seconds())
		err := ts.Exec("timeout", append([]string{left}, args...)...)
		var ended *exec.ExitError
		if err != nil && (!errors.As(err, &ended) || ended.ExitCode() >= timeoutFailed) {
			ts.Fatalf("run %s: %v", args[0], err)
		}
		if time.Now().After(late) {
			ts.Fatalf("not so within %s", untilTimeout)
		}
		if (err != nil) == neg {
			return
		}
	}
}

// signal sends INT, TERM or KILL to a started program: signal follower INT.
func signal(ts *testscript.TestScript, neg bool, args []string) {
	numbers := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	if neg || len(args) != 2 || numbers[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME INT|TERM|KILL")
	}
	ts.Check(programOf(ts, args[0]).command.Process.Signal(numbers[args[1]]))
}

// ends waits for the end of a started program, wants an exit status, and shows what it wrote as stdout: ends follower
// 0.
func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends NAME STATUS")
	}
	p := programOf(ts, args[0])
	select {
	case <-p.ended:
	case <-time.After(timeout):
		text, _ := p.state()
		ts.Fatalf("%s has not ended within %s:\n%s", args[0], timeout, text)
	}
	text, _ := p.state()
	fmt.Fprint(ts.Stdout(), text)
	got := p.command.ProcessState.ExitCode()
	if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		got = 128 + int(status.Signal()) // as shells say it
	}
	if strconv.Itoa(got) != args[1] {
		ts.Fatalf("got exit status %d, want %s; it wrote:\n%s", got, args[1], text)
	}
}

// clusters counts those that were started, so that each gets ports of its own for its tasks.
type clusters struct{ started atomic.Int32 }

const (
	portFirst    = 20000
	portsEach    = 60
	clustersHere = 20 // at most in one run of the tests
	runsApart    = 10 // runs at the same time that do not get into each other's way
)

// ports returns a range that no other cluster of these tests has, and hardly one of other tests on this machine.
func (c *clusters) ports() string {
	run := os.Getpid() % runsApart
	first := portFirst + portsEach*(run*clustersHere+int(c.started.Add(1)-1)%clustersHere)
	return fmt.Sprintf("%d-%d", first, first+portsEach-1)
}

// dev starts "starling dev" with the given flags as the program "dev", waits until it is ready, and lets the script's
// commands find it: dev --peers 3.
func (c *clusters) dev(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: dev [FLAG...]")
	}
	p := launch(ts, append([]string{"starling", "dev", "--address", "127.0.0.1:0", "--ports", c.ports()}, args...))
	programs(ts)["dev"] = p
	ts.Check(p.await("^Ctrl-C"))
	text, _ := p.state()
	found := regexp.MustCompile(`API at (\S+)`).FindStringSubmatch(text)
	if found == nil {
		ts.Fatalf("the banner has no address:\n%s", text)
	}
	ts.Setenv("STARLING_ADDRESS", found[1])
}

// freePort puts the address of a port that nobody listens on into a variable: freeport AT.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: freeport VARIABLE...")
	}
	var held []net.Listener
	for _, name := range args {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		held = append(held, listener)
		ts.Setenv(name, listener.Addr().String())
	}
	for _, listener := range held {
		ts.Check(listener.Close())
	}
}

// lines wants a number of lines on stdout: lines 3.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lines COUNT")
	}
	got := strings.Count(ts.ReadFile("stdout"), "\n")
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("got %d lines, want %s", got, args[0])
	}
}
