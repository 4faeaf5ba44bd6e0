// Package ensemble runs servers of ZooKeeper for tests: Debian's package zookeeper, as processes of their own.
package ensemble

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"starling/journal/journaltest/engines"
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

	engines.Process
	folder string
}

// New chooses ports for a server at each place and writes what they read; none runs yet. All lies in the folder.
func New(folder string, places ...engines.Place) (*Ensemble, error) {
	var ports []int
	var members strings.Builder
	for i, at := range places {
		ports = append(ports, freePorts(at, 3)...)
		if len(places) > 1 {
			fmt.Fprintf(&members, "server.%d=%s:%d:%d\n", i+1, at.Host, ports[3*i+1], ports[3*i+2])
		}
	}
	e := &Ensemble{folder: folder}
	for i, at := range places {
		s := &Server{Address: fmt.Sprintf("%s:%d", at.Host, ports[3*i]), folder: filepath.Join(folder, fmt.Sprint(i+1))}
		s.Process = engines.Process{Place: at, Said: filepath.Join(s.folder, "said")}
		config := fmt.Sprintf("tickTime=%d\ninitLimit=20\nsyncLimit=6\ndataDir=%s\nclientPort=%d\nclientPortAddress=%s\n"+
			"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\nsnapCount=20000\nenforceQuota=true\n%s",
			tickMillis, filepath.Join(s.folder, "data"), ports[3*i], at.Host, members.String())
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
func freePorts(at engines.Place, n int) (free []int) {
	for offset := rand.IntN(portCount); len(free) < n; offset++ {
		if port := portFirst + offset%portCount; at.IsFree(port) {
			free = append(free, port)
		}
	}
	return free
}

// Secure lets servers that do not run yet take clients over TLS, too, and returns where. The files are PEM: the key and
// the certificate of the servers, and those of who signs the clients'.
func (e *Ensemble) Secure(keyStore, trustStore string) ([]string, error) {
	ports := freePorts(engines.Place{Host: "127.0.0.1"}, len(e.Servers))
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
	// It begins in a third of the time if it does not compile what it will hardly run.
	return s.Run("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", library+":"+needed,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "org.apache.zookeeper.server.quorum.QuorumPeerMain",
		filepath.Join(s.folder, "zoo.cfg"))
}

// ready waits until the server serves.
func (s *Server) ready() error {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(lookEvery) {
		if s.mode() != "" {
			return nil
		}
	}
	said, _ := os.ReadFile(s.Said) // it may have said nothing
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
