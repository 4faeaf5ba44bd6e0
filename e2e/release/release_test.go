// Package release tries what is released: in a fresh Debian it is installed, runs a job, is upgraded and removed.
package release

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// within bounds each wait; what is waited for usually takes a second.
const within = time.Minute

// TestRelease builds the packages for this machine twice, which must be the same, and lives with the one for Debian,
// then with the one for Red Hat, which rpm of Debian installs.
func TestRelease(t *testing.T) {
	switch {
	case os.Getenv("STARLING_TRY_RELEASE") == "":
		t.Skip("make packages has it build packages, beside which tests that count seconds fail")
	case runtime.GOOS != "linux" || os.Geteuid() != 0:
		t.Skip("only root on Linux has a fresh root folder")
	}
	folder, err := os.MkdirTemp("", "rel-") // short: a socket lives below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	root := filepath.Join(folder, "root")
	made := make(chan error, 1)
	go func() {
		out, err := exec.Command("debootstrap", "--variant=minbase", "--include=rpm", "bookworm", root).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("debootstrap: %w\n%s", err, out)
		}
		made <- err
	}()
	first := build(t, filepath.Join(folder, "first"))
	if second := build(t, filepath.Join(folder, "second")); second != first {
		t.Errorf("two builds of one commit differ:\n%s\n%s", first, second)
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	m := boot(t, root)
	live(t, m, packageOf(t, filepath.Join(folder, "first"), "deb"))
	liveWithRPM(t, m, packageOf(t, filepath.Join(folder, "first"), "rpm"))
}

// build builds the release for this machine, and returns the checksums.
func build(t *testing.T, out string) string {
	t.Helper()
	run(t, exec.Command("../../.ci/release", out, "linux/"+runtime.GOARCH))
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"tar.gz", "deb", "rpm", "cdx.json"} {
		if strings.Count(string(sums), "."+kind+"\n") != 1 {
			t.Errorf("the release has no %s:\n%s", kind, sums)
		}
	}
	return string(sums)
}

func packageOf(t *testing.T, folder, kind string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*."+kind))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

func run(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command.Args, " "), err, out)
	}
	return string(out)
}

// machine is a Debian in namespaces of its own, so that nothing of it outlives the test.
type machine struct {
	t    *testing.T
	root string
	pid  string // of its first process
}

// boot starts the first process of a machine, which does nothing.
func boot(t *testing.T, root string) *machine {
	t.Helper()
	first := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc="+root+"/proc",
		"chroot", root, "sleep", "infinity")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = first.Process.Kill() // and with it, as it is its child, all of the machine
		_ = first.Wait()
	})
	m := &machine{t: t, root: root}
	children := fmt.Sprintf("/proc/%d/task/%d/children", first.Process.Pid, first.Process.Pid)
	m.until("the machine has started", func() bool {
		text, err := os.ReadFile(children)
		m.pid = strings.TrimSpace(string(text))
		name, _ := os.ReadFile("/proc/" + m.pid + "/comm")
		return err == nil && string(name) == "sleep\n"
	})
	return m
}

// command returns one that runs in the machine, in a shell.
func (m *machine) command(script string) *exec.Cmd {
	command := exec.Command("nsenter", "--target", m.pid, "--mount", "--pid", "--root", "--wd", "sh", "-ec", script)
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "DEBIAN_FRONTEND=noninteractive"}
	return command
}

func (m *machine) run(script string) string {
	m.t.Helper()
	return run(m.t, m.command(script))
}

func (m *machine) until(what string, holds func() bool) {
	m.t.Helper()
	for late := time.Now().Add(within); !holds(); {
		if time.Now().After(late) {
			m.t.Fatalf("not so within %s: %s", within, what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// service is the unit's command.
type service struct {
	m       *machine
	command *exec.Cmd
	out     bytes.Buffer
}

// start starts what the unit says, and waits until systemd would know that it is ready.
func (m *machine) start() *service {
	m.t.Helper()
	unit, err := os.ReadFile(filepath.Join(m.root, "usr/lib/systemd/system/starling.service"))
	if err != nil {
		m.t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(unit), "\nExecStart=")
	line, _, _ = strings.Cut(line, "\n")
	const notify = "/run/notify"
	os.Remove(m.root + notify)
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.root + notify, Net: "unixgram"})
	if err != nil {
		m.t.Fatal(err)
	}
	defer listener.Close()
	s := &service{m: m, command: m.command("NOTIFY_SOCKET=" + notify + " exec " + line)}
	s.command.Stdout, s.command.Stderr = &s.out, &s.out
	if err := s.command.Start(); err != nil {
		m.t.Fatal(err)
	}
	said := make([]byte, 100)
	if err := listener.SetReadDeadline(time.Now().Add(within)); err != nil {
		m.t.Fatal(err)
	}
	n, err := listener.Read(said)
	if err != nil || string(said[:n]) != "READY=1" {
		_ = s.command.Process.Kill()
		_ = s.command.Wait()
		m.t.Fatalf("%s said %q (%v) to systemd, want READY=1\n%s", line, said[:n], err, s.out.String())
	}
	return s
}

// stop ends it as systemd does with KillMode=process.
func (s *service) stop() {
	s.m.t.Helper()
	s.m.run("kill $(pidof starling | tr ' ' '\\n' | while read p; do grep -qz agent /proc/$p/cmdline && echo $p; done)")
	if err := s.command.Wait(); err != nil {
		s.m.t.Errorf("the agent ended with %v:\n%s", err, s.out.String())
	}
}

// configure says which node the machine is, in the file that the package has put there.
func (m *machine) configure(node string) {
	m.t.Helper()
	m.run(fmt.Sprintf("printf 'node: %s\\naddress: %s\\netcd: {listen: \"https://%s\", peer: \"https://%s\"}\\n' >/etc/starling/agent.yaml",
		node, free(m.t), free(m.t), free(m.t)))
}

// liveWithRPM installs, uses, replaces and removes the package. The package manager is no part of what is tried: its
// database has nothing else in it, so it is told not to look for what the package needs.
func liveWithRPM(t *testing.T, m *machine, file string) {
	m.run("rm -rf /var/lib/starling")
	run(t, exec.Command("cp", file, m.root+"/one.rpm"))
	m.run("rpm -i --nodeps /one.rpm")
	m.run("test -f /usr/share/man/man1/starling.1.gz && test -f /usr/lib/systemd/system/starling.service")
	m.configure("redhat")
	agent := m.start()
	if got := m.run("starling run -- echo hi"); !strings.Contains(got, "hi\n") {
		t.Errorf("got %q", got)
	}
	m.run("rpm -U --nodeps --replacepkgs /one.rpm")
	if told := m.run("cat /etc/starling/agent.yaml; starling node ls"); !strings.Contains(told, "node: redhat") {
		t.Errorf("after the package was replaced: %s", told)
	}
	agent.stop()
	m.run("rpm -e starling && test ! -e /usr/bin/starling && test -d /var/lib/starling")
}

// live does what an admin does with the package.
func live(t *testing.T, m *machine, file string) {
	run(t, exec.Command("cp", file, m.root+"/one.deb"))
	m.run("dpkg -i /one.deb")
	m.run("test -f /usr/share/man/man1/starling.1.gz && test -f /usr/share/man/man7/starling-operating.7.gz && test -f /usr/share/starling/alerts.yaml")
	commit := strings.TrimSpace(run(t, exec.Command("git", "rev-parse", "HEAD")))
	if told := m.run("starling version"); !strings.Contains(told, commit) || strings.Contains(told, "(devel)") {
		t.Errorf("the program tells this version, and is of commit %s:\n%s", commit, told)
	}
	m.configure("debian")
	agent := m.start()
	if got := m.run("starling run -- echo hi"); !strings.Contains(got, "hi\n") {
		t.Errorf("got %q", got)
	}
	m.run(`printf 'job: long\ntype: stateless\ntasks: [{command: [sleep, "3000"], stop_grace: 1s}]\n' >/long.yaml && starling run /long.yaml`)
	before := m.run("pidof sleep")

	// A package of the next version: the agent is replaced, the task goes on.
	m.run("dpkg-deb -R /one.deb /two && sed -i 's/^Version: .*/Version: 9999/' /two/DEBIAN/control && dpkg-deb -Zgzip -z1 -b /two /two.deb")
	m.run("dpkg -i /two.deb")
	agent.stop()
	agent = m.start()
	if after := m.run("pidof sleep"); after != before {
		t.Errorf("the tasks are processes %s after the upgrade, and were %s", after, before)
	}
	if told := m.run("cat /etc/starling/agent.yaml; starling job status long"); !strings.Contains(told, "node: debian") ||
		!strings.Contains(told, "1 running") {
		t.Errorf("after the upgrade: %s", told)
	}

	m.run("starling stop --yes long")
	agent.stop()
	m.run("dpkg --purge starling && test ! -e /usr/bin/starling && test ! -e /etc/starling/agent.yaml && test -d /var/lib/starling")
}

// free returns an address that nobody listens at.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
