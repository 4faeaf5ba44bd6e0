package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"starling/docs"
	"starling/journal/journaltest/engines"
)

// hourMachines have addresses in this order, as the documents give them.
var hourMachines = []string{"a", "b", "c", "d"}

// bootTimeout bounds the start of a machine, which takes a second or two.
const bootTimeout = time.Minute

// TestHour is a newcomer's first hour: the package, installed by apt, started by systemd and followed through the
// documents, from the first steps on one machine to a cluster of three that loses one, is upgraded, goes on from its
// backup and is taken apart. The machines have a network, files and processes of their own.
func TestHour(t *testing.T) {
	if testing.Short() {
		t.Skip("builds packages and boots machines")
	}
	network := engines.NeedNetwork(t, len(hourMachines))
	h := &hourglass{t: t, network: network, folder: t.TempDir(), pids: map[string]string{}}
	h.need("/lib/systemd/systemd", "/usr/sbin/sshd", "apt", "ssh-keygen", "nsenter", "timeout")
	told := map[string][]section{}
	for _, d := range docs.Topics() {
		told[d.Name] = sectionsOf(d.Text)
	}
	install := sectionAt(told["operating"], "Install") + 1
	h.promises = h.promised()
	for heading := range h.promises {
		if sectionAt(told["operating"], heading) < install {
			t.Errorf("docs/operating.md has no section %q, whose promise this looks at", heading)
		}
	}
	started := time.Now()
	h.build()
	h.boot()
	t.Logf("%v for packages and machines", time.Since(started).Round(time.Second/10))
	s := h.story(t, func(machine string) string { return machine })
	h.follow(t, s, "operating", told["operating"][:install])
	t.Run("documents", func(t *testing.T) {
		t.Run("first-steps", func(t *testing.T) { // on the machine that the other document needs last
			t.Parallel()
			first := h.story(t, func(string) string { return "d" })
			h.follow(t, first, "first-steps", told["first-steps"])
		})
		t.Run("operating", func(t *testing.T) {
			t.Parallel()
			h.follow(t, s, "operating", told["operating"][install:])
		})
	})
}

// section is a part of a document.
type section struct {
	heading string
	blocks  []block
}

func sectionsOf(text string) []section {
	all := []section{{}}
	blocks := blocksOf(text)
	for i, line := range strings.Split(text, "\n") {
		if heading, found := strings.CutPrefix(line, "## "); found {
			all = append(all, section{heading: heading})
		}
		for len(blocks) > 0 && blocks[0].line == i+1 {
			last := &all[len(all)-1]
			last.blocks, blocks = append(last.blocks, blocks[0]), blocks[1:]
		}
	}
	return all
}

// sectionAt tells which of the sections has a heading.
func sectionAt(sections []section, heading string) int {
	return slices.IndexFunc(sections, func(p section) bool { return p.heading == heading })
}

// story returns one on the machines, with a say on which.
func (h *hourglass) story(t *testing.T, on func(machine string) string) *story {
	t.Helper()
	s := newStory(t)
	t.Cleanup(s.end)
	s.place, s.has = func(machine string, _ int) place { return h.place(on(machine)) }, hourHas
	return s
}

// follow does what sections of a document say, and looks at what they promise.
func (h *hourglass) follow(t *testing.T, s *story, name string, sections []section) {
	t.Helper()
	for _, p := range sections {
		started := time.Now()
		keeps := func() {}
		if promise := h.promises[p.heading]; promise != nil {
			keeps = promise(t)
		}
		if err := s.tell(p.blocks); err != nil {
			t.Fatalf("docs/%s.md:%v", name, err)
		}
		keeps()
		t.Logf("%v for %s, %q", time.Since(started).Round(time.Second/10), name, p.heading)
	}
}

// promised are what sections of the documents promise beside what they show: each is asked before its section, and what
// it returns looks behind it.
func (h *hourglass) promised() map[string]func(*testing.T) func() {
	return map[string]func(*testing.T) func(){
		"Restart an agent": func(t *testing.T) func() { return h.restarted(t, "b") },
		"Upgrade": func(t *testing.T) func() {
			restarted := h.restarted(t, "b")
			return func() {
				restarted()
				if now := h.run(t, "b", "dpkg-query --show starling"); !strings.Contains(now, versions[1]) {
					t.Errorf("after the upgrade b has %s", now)
				}
			}
		},
		"Shrink, and end it": func(t *testing.T) func() { return func() { h.wantGone(t, "c") } },
	}
}

// restarted returns what wants a machine to have another agent by then, and the same tasks.
func (h *hourglass) restarted(t *testing.T, machine string) func() {
	t.Helper()
	const task, main = "pidof sleep", "systemctl show --property MainPID starling"
	tasks, agent := h.run(t, machine, task), h.run(t, machine, main)
	return func() {
		t.Helper()
		if now := h.run(t, machine, task+" || true"); now != tasks {
			t.Errorf("the tasks on %s are now processes %q, and were %q", machine, now, tasks)
		}
		if now := h.run(t, machine, main); now == agent {
			t.Errorf("the agent of %s is still the same: %s", machine, now)
		}
	}
}

// wantGone wants nothing of Starling to run on a machine, nor its program to be there.
func (h *hourglass) wantGone(t *testing.T, machine string) {
	t.Helper()
	const left = "grep -xE 'starling|supervise|sleep' /proc/[0-9]*/comm || true"
	if found := h.run(t, machine, left); found != "" {
		t.Errorf("when its package was removed from %s there were left:\n%s", machine, found)
	}
	h.run(t, machine, "test ! -e /usr/bin/starling && test -d /var/lib/starling")
}

// hourglass is the machines of the hour.
type hourglass struct {
	t       *testing.T
	network *engines.Network
	folder  string
	pids    map[string]string // of their first processes
	// promises are those of sections, by heading.
	promises map[string]func(*testing.T) func()
}

// need skips the test where a program is missing, but for the machine that checks everything.
func (h *hourglass) need(programs ...string) {
	h.t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			h.t.Fatalf("%s is missing", program)
		}
		h.t.Skipf("%s is missing: the machines are Debian's, with systemd and openssh-server", program)
	}
}

// versions are those of the packages.
var versions = []string{"0.0.1", "0.0.2"}

// build makes the packages of the binary that all tests here have, as .ci/release does.
func (h *hourglass) build() {
	h.t.Helper()
	program, parts := binaryFolder()+"/starling", h.folder+"/parts"
	h.do(nil, "../.ci/parts", program, parts)
	var building sync.WaitGroup
	for _, version := range versions {
		building.Go(func() {
			h.do([]string{"PROGRAM=" + program, "PARTS=" + parts, "PACKAGE_VERSION=" + version,
				"PACKAGE_ARCH=" + runtime.GOARCH}, "go", "-C", "..", "tool", "-modfile=.ci/release.mod", "nfpm", "package",
				"-f", ".ci/package/nfpm.yaml", "-p", "deb", "-t", h.deb(version))
		})
	}
	building.Wait()
	if h.t.Failed() {
		h.t.FailNow()
	}
}

// deb is the package of a version.
func (h *hourglass) deb(version string) string {
	return fmt.Sprintf("%s/starling-%s-linux-%s.deb", h.folder, version, runtime.GOARCH)
}

// do runs a program of this machine.
func (h *hourglass) do(environment []string, program string, arguments ...string) {
	h.t.Helper()
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), environment...)
	if out, err := command.CombinedOutput(); err != nil {
		h.t.Errorf("%s: %v\n%s", strings.Join(command.Args, " "), err, out)
	}
}

// boot starts all machines. They have the packages as files, know each other's names, and let each other in.
func (h *hourglass) boot() {
	h.t.Helper()
	h.do(nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", h.folder+"/key")
	hosts := "127.0.0.1 localhost\n"
	for i, name := range hourMachines {
		hosts += h.network.Address(i) + " " + name + "\n"
	}
	if err := os.WriteFile(h.folder+"/hosts", []byte(hosts), 0o644); err != nil {
		h.t.Fatal(err)
	}
	for i, name := range hourMachines {
		h.start(i, name)
	}
	for _, name := range hourMachines {
		told := h.run(h.t, name, "timeout 60 systemctl is-system-running --wait || systemctl --failed --no-pager")
		h.t.Logf("%s is %s", name, told)
		root := fmt.Sprintf("/proc/%s/root/root/", h.pids[name])
		for i, version := range versions {
			to := root + []string{"", "newer/"}[i]
			h.do(nil, "mkdir", "-p", to)
			h.do(nil, "cp", h.deb(version), to)
		}
	}
}

// start starts the first process of a machine.
func (h *hourglass) start(number int, name string) {
	h.t.Helper()
	folder, group := filepath.Join(h.folder, name), "starling-"+h.network.Namespace(number)
	if err := os.Mkdir(folder, 0o755); err != nil {
		h.t.Fatal(err)
	}
	said, err := os.Create(folder + ".out")
	if err != nil {
		h.t.Fatal(err)
	}
	defer said.Close()
	first := exec.Command("bash", "testdata/machine.sh", "boot", name, group, h.network.Namespace(number), folder)
	first.Stdout, first.Stderr = said, said
	first.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := first.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = first.Wait()
		close(ended)
	}()
	h.t.Cleanup(func() { h.bury(first, ended, name, group) })
	children := fmt.Sprintf("/proc/%d/task/%d/children", first.Process.Pid, first.Process.Pid)
	for late := time.After(bootTimeout); ; {
		text, _ := os.ReadFile(children)
		pid := strings.TrimSpace(string(text))
		if running, _ := os.ReadFile("/proc/" + pid + "/comm"); string(running) == "systemd\n" {
			h.pids[name] = pid
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-ended:
		case <-late:
		}
		out, _ := os.ReadFile(folder + ".out")
		h.t.Fatalf("machine %s does not start:\n%s", name, out)
	}
}

// bury ends a machine with all that runs there, and tells what happened there if the test failed.
func (h *hourglass) bury(first *exec.Cmd, ended <-chan struct{}, name, group string) {
	if pid := h.pids[name]; pid != "" && h.t.Failed() {
		out, _ := h.command(context.Background(), name, "-c", "journalctl --no-pager --unit starling --lines 30; "+
			"tail -n 30 /var/lib/starling/starling.log").CombinedOutput()
		h.t.Logf("--- on %s:\n%s", name, out)
	}
	_ = first.Process.Kill() // and with it, as it is its child, all of the machine
	<-ended
	for late := time.Now().Add(timeout); ; <-time.After(20 * time.Millisecond) {
		out, err := exec.Command("bash", "testdata/machine.sh", "bury", name, group).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(late) {
			h.t.Errorf("the control groups of %s are still used: %v\n%s", name, err, out)
			return
		}
	}
}

// inMachine is what every shell in a machine does first: it leaves the control groups of the test.
const inMachine = `
cd
for group in /sys/fs/cgroup /sys/fs/cgroup/*; do
	[ -e $group/cgroup.procs ] || continue
	mkdir -p $group/shell
	echo $$ 2>/dev/null >$group/shell/cgroup.procs || echo $$ >$group/cgroup.procs
	[ $group != /sys/fs/cgroup ] || break
done
`

// command returns one of a shell in a machine.
func (h *hourglass) command(ctx context.Context, machine string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "nsenter", append([]string{"--target", h.pids[machine], "--all", "bash"},
		arguments...)...)
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	return command
}

// run runs a script in a machine, and returns what it wrote.
func (h *hourglass) run(t *testing.T, machine, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	out, err := h.command(ctx, machine, "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("on %s: %s: %v\n%s", machine, script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// place is a shell of a machine; only the addresses are not those of the documents.
func (h *hourglass) place(machine string) place {
	return place{command: h.command(context.Background(), machine, "-s"), root: "/proc/" + h.pids[machine] + "/root",
		folder: "/root", prologue: "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n" + inMachine,
		swap: strings.NewReplacer("10.0.0.", strings.TrimSuffix(h.network.Address(0), "1"))}
}
