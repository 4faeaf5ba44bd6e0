// Package ensemble runs servers of ZooKeeper for tests: Debian's package zookeeper, as processes of their own.
package ensemble

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// library holds ZooKeeper and names most of what it needs: not what TLS does, and what tells standard error of errors.
	library = "/usr/share/java/zookeeper.jar"
	needed  = "/usr/share/java/netty-codec.jar:/usr/share/java/slf4j-simple.jar"
	// patience bounds how long a server may take until it serves.
	patience = 60 * time.Second
	// lookEvery is how often it is looked whether it does.
	lookEvery = 20 * time.Millisecond
	// tickMillis is what the servers measure time in: sessions last two ticks at least, and end with a tick.
	tickMillis = 500
)

// Need skips a test where there is no ZooKeeper. On the machine that checks everything it fails.
func Need(t testing.TB) {
	t.Helper()
	_, err := exec.LookPath("java")
	if err == nil {
		_, err = os.Stat(library)
	}
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("there is no ZooKeeper here: apt-get install zookeeper: %v", err)
	default:
		t.Skipf("there is no ZooKeeper here: apt-get install zookeeper: %v", err)
	}
}

// Ensemble is a number of servers on this machine.
type Ensemble struct {
	Servers []*Server
	folder  string
}

// Server is one of them. It is not safe for concurrent use.
type Server struct {
	// Address is where clients reach it.
	Address string

	folder  string
	process *os.Process   // nil if none runs
	ended   chan struct{} // closed when it has ended
}

// New chooses ports and writes what the servers read; none runs yet. All lies in the folder.
func New(folder string, servers int) (*Ensemble, error) { return NewOn("127.0.0.1", folder, servers) }

// NewOn is New with another address of this machine where clients reach the servers.
func NewOn(host, folder string, servers int) (*Ensemble, error) {
	ports, err := freePorts(3 * servers)
	if err != nil {
		return nil, err
	}
	var members strings.Builder
	for i := range servers {
		if servers > 1 {
			fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[3*i+1], ports[3*i+2])
		}
	}
	e := &Ensemble{folder: folder}
	for i := range servers {
		s := &Server{Address: fmt.Sprintf("%s:%d", host, ports[3*i]), folder: filepath.Join(folder, fmt.Sprint(i+1))}
		config := fmt.Sprintf("tickTime=%d\ninitLimit=20\nsyncLimit=6\ndataDir=%s\nclientPort=%d\nclientPortAddress=%s\n"+
			"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\nsnapCount=20000\n%s",
			tickMillis, filepath.Join(s.folder, "data"), ports[3*i], host, members.String())
		files := map[string]string{"zoo.cfg": config, "data/myid": fmt.Sprintln(i + 1)}
		for name, text := range files {
			path := filepath.Join(s.folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return nil, err
			}
		}
		e.Servers = append(e.Servers, s)
	}
	return e, nil
}

// The ports to choose from: systems give none of them to outgoing connections, so a server that was killed finds its
// own again.
const portFirst, portCount = 11000, 6000

// freePorts returns ports that nobody listens on now, from a random place on, lest several tests choose the same.
func freePorts(n int) ([]int, error) {
	var free []int
	for offset := rand.IntN(portCount); len(free) < n; offset++ {
		port := portFirst + offset%portCount
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return nil, fmt.Errorf("look for free ports: %w", err)
		}
		free = append(free, port)
	}
	return free, nil
}

// Secure lets servers that do not run yet take clients over TLS, too, and returns where. The files are PEM: the key and
// the certificate of the servers, and those of who signs the clients'.
func (e *Ensemble) Secure(keyStore, trustStore string) ([]string, error) {
	ports, err := freePorts(len(e.Servers))
	if err != nil {
		return nil, err
	}
	var addresses []string
	for i, s := range e.Servers {
		config, err := os.OpenFile(filepath.Join(s.folder, "zoo.cfg"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, err
		}
		defer config.Close()
		_, err = fmt.Fprintf(config, "secureClientPort=%d\nsecureClientPortAddress=127.0.0.1\n"+
			"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"+
			"ssl.keyStore.location=%s\nssl.trustStore.location=%s\n", ports[i], keyStore, trustStore)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", ports[i]))
	}
	return addresses, nil
}

// Addresses are where clients reach the servers.
func (e *Ensemble) Addresses() []string {
	var all []string
	for _, s := range e.Servers {
		all = append(all, s.Address)
	}
	return all
}

// Start starts all servers that do not run, and waits until they serve.
func (e *Ensemble) Start() error {
	for _, s := range e.Servers {
		if err := s.Start(); err != nil {
			return err
		}
	}
	return e.Ready()
}

// Ready waits until all servers serve.
func (e *Ensemble) Ready() error {
	for _, s := range e.Servers {
		if err := s.ready(); err != nil {
			return err
		}
	}
	return nil
}

// Kill kills all servers.
func (e *Ensemble) Kill() {
	for _, s := range e.Servers {
		s.Kill()
	}
}

// Leader waits until a server leads, and returns it. Those to leave out are paused, and may believe anything.
func (e *Ensemble) Leader(but ...*Server) (*Server, error) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(lookEvery) {
		for _, s := range e.Servers {
			if mode := s.mode(); !slices.Contains(but, s) && (mode == "leader" || mode == "standalone") {
				return s, nil
			}
		}
	}
	return nil, fmt.Errorf("no server of %v leads within %v", e.Addresses(), patience)
}

// Start starts the server unless it runs.
func (s *Server) Start() error {
	if s.process != nil {
		return nil
	}
	said, err := os.OpenFile(filepath.Join(s.folder, "said"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	// It begins in a third of the time if it does not compile what it will hardly run.
	command := exec.Command("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", library+":"+needed, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.folder, "zoo.cfg"))
	command.Stdout, command.Stderr = said, said
	command.SysProcAttr = dieWithParent()
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// What dies with its parent dies with the thread that forked it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		started <- command.Start()
		_ = command.Wait() // it is killed, or tells why not in what it has said
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start ZooKeeper: %w", err)
	}
	s.process, s.ended = command.Process, ended
	return nil
}

// ready waits until the server serves.
func (s *Server) ready() error {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(lookEvery) {
		if s.mode() != "" {
			return nil
		}
	}
	said, _ := os.ReadFile(filepath.Join(s.folder, "said")) // it may have said nothing
	return fmt.Errorf("ZooKeeper at %s does not serve within %v: %s", s.Address, patience, said)
}

// mode returns what the server is, leader, follower or standalone; "" if it does not serve.
func (s *Server) mode() string {
	_, after, _ := strings.Cut(s.tell("srvr"), "Mode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode
}

// tell returns what the server answers to a word, "" if it does not answer.
func (s *Server) tell(word string) string {
	c, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return ""
	}
	if _, err := c.Write([]byte(word)); err != nil {
		return ""
	}
	answer := make([]byte, 4096)
	n := 0
	for n < len(answer) {
		more, err := c.Read(answer[n:])
		n += more
		if err != nil {
			break
		}
	}
	return string(answer[:n])
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Kill() // it may have ended
	<-s.ended
	s.process = nil
}

// Pause stops the server where it is, until Resume.
func (s *Server) Pause() error { return s.process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.process.Signal(syscall.SIGCONT) }
