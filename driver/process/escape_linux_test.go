package process_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"starling/driver"
	"starling/driver/confine"
	"starling/driver/process"
	"starling/driver/scope"
)

// escape is what a task must not be able to do. Its script succeeds if it can.
type escape struct{ name, script string }

// escapes are those that every task tries. What would do harm is done in a form that does not, were it possible.
var escapes = []escape{
	{"kill a process of the machine", `kill -CONT $OUTSIDE`},
	{"trace a process of the machine", `cat /proc/$OUTSIDE/environ`},
	{"make namespaces", `unshare --user true`},
	{"make mounts in namespaces of users", `unshare --user --map-root-user --mount true`},
	{"enter the namespaces of a process", `nsenter --target 1 --mount true`},
	{"mount", `mount -t tmpfs none /mnt`},
}

// rootEscapes are those that only a task of root could do.
var rootEscapes = []escape{
	{"see a process of the machine", `ls -d /proc/$OUTSIDE`},
	{"see what its supervisor sees", `ls /proc/1/root/`},
	{"mount again what is read-only", `mount -o remount,rw,bind /usr`},
	{"unmount what is read-only", `umount -l /sys`},
	{"change programs of the system", `touch /usr/bin/true`},
	{"change settings of the system", `touch /etc/passwd`},
	{"change settings of the kernel", `now=$(cat /proc/sys/kernel/core_pattern); echo "$now" > /proc/sys/kernel/core_pattern`},
	{"ask the kernel for what only its console may", `echo h > /proc/sysrq-trigger`},
	{"make a control group", `d=$(find /sys/fs/cgroup -name tasks -o -name cgroup.procs | head -1); mkdir "$(dirname "$d")/escape"`},
	{"leave its control group", `for f in $(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs); do echo $$ > $f && exit; done; false`},
	{"find a disk", `find /dev -type b | grep .`},
	{"make the device of a disk", `mknod disk b 254 0`},
	{"find the memory of the machine", `ls /dev/mem || ls /dev/kmsg`},
	{"find what the peer keeps", `cat "$FOLDER/secret"`},
	{"find the folders of other tasks", `test $(ls "$FOLDER/tasks" | wc -l) -gt 1`},
	{"put files where the peer keeps its own", `touch "$FOLDER/file"`},
	{"say what containers find of devices", `touch /run/cdi/escape`},
	{"find a socket that takes orders from root", `test -S "$ENGINE/engine.sock"`},
	{"find a folder of such", `test -e "$ENGINE/run/engine.sock"`},
	{"have capabilities over the machine", `grep '^CapBnd' /proc/self/status | grep -v 00000000a00405fb`},
}

// withEngine opens the driver again on a machine with sockets that take orders, in the folder that is returned.
func (b *bench) withEngine(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	covered := []string{filepath.Join(folder, "engine.sock"), filepath.Join(folder, "run"), filepath.Join(folder, "none")}
	err := os.Mkdir(covered[1], 0o755)
	for _, path := range []string{covered[0], filepath.Join(covered[1], "engine.sock")} {
		socket, listening := net.Listen("unix", path)
		if err = errors.Join(err, listening); err == nil {
			t.Cleanup(func() { socket.Close() })
		}
	}
	if err = errors.Join(err, b.Close()); err == nil {
		b.Driver, err = process.Open(process.Config{Dir: b.folder, Hidden: b.folder, Covered: covered,
			Supervisor: []string{testBinary(t), superviseWord}, LeaveScope: scope.Leave})
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	b := newBenchFor(t, 10*testTimeout) // there are many
	outside := exec.Command("sleep", "1000")
	if err := outside.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outside.Process.Kill(); _ = outside.Wait() })
	if err := os.WriteFile(filepath.Join(b.folder, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	engine := b.withEngine(t)
	b.run(t, "other", "sleep")

	namespaces := os.Getuid() == 0 && !strings.Contains(strings.Join(b.Warnings(), "\n"), "namespaces")
	missing := strings.Join(confine.Missing(namespaces), "\n")
	tried := escapes
	switch {
	case namespaces:
		tried = append(tried, rootEscapes...)
	case os.Getuid() == 0 || strings.Contains(missing, "Landlock"):
		tried = tried[2:] // root may do to a process whatever it likes
	}
	for i, e := range tried {
		id := fmt.Sprintf("task-%d", i)
		env := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "FOLDER=" + b.folder, "ENGINE=" + engine,
			fmt.Sprintf("OUTSIDE=%d", outside.Process.Pid)}
		b.start(t, driver.Task{ID: id, Command: []string{"sh", "-c", e.script}, Env: env})
		if got := b.exited(t, id); got.ExitCode == 0 || got.Error != "" {
			t.Errorf("a task could %s: it ended with %d %s, and wrote %q", e.name, got.ExitCode, got.Error,
				b.output(t, id, driver.Stdout))
		}
		beside := driver.Task{ID: "other", Command: []string{"sh", "-c", e.script}, Env: env}
		said := &strings.Builder{}
		if code, err := b.Exec(t.Context(), beside, driver.Session{Output: said, Errors: said}); code == 0 || err != nil {
			t.Errorf("a program beside a task could %s: it ended with %d, %v, and wrote %q", e.name, code, err, said)
		}
	}
}

// TestConfinedTasksDoWhatTheyDid has a task do what is usual.
func TestConfinedTasksDoWhatTheyDid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	volume := driver.Volume{Set: "web[0]", Name: "data", Variable: "DATA"}
	for _, script := range []string{
		`echo here > file && test "$(cat file)" = here`,
		`echo here > "$DATA/file" && test "$(cat "$DATA/file")" = here`,
		`echo x > /dev/null && head -c 1 /dev/urandom && test -c /dev/tty && test -d /dev/pts`,
		`f=$(mktemp) && rm "$f"`,
		`f=$(mktemp /dev/shm/XXXXXX) && rm "$f"`,
		`test -r /etc/passwd && test -e /proc/self/status && test -e /sys/kernel`,
		`(sleep 1000 & kill $!)`,
		`test "$(id -u)" != 0 || { touch mine && chown 1:1 mine && chmod 600 mine && cat mine; }`,
	} {
		b.start(t, driver.Task{ID: script[:12], Command: []string{"sh", "-c", script}, Volumes: []driver.Volume{volume},
			Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}})
		if got := b.exited(t, script[:12]); got.ExitCode != 0 {
			t.Errorf("%s: got %+v, it says %q", script, got, b.output(t, script[:12], driver.Stderr))
		}
	}
}
