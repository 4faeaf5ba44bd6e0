package door

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestANumberIsNoProof connects by a process that ends, and gives its number to another of this machine.
func TestANumberIsNoProof(t *testing.T) {
	const last = "/proc/sys/kernel/ns_last_pid"
	if unix.Access(last, unix.W_OK) != nil {
		t.Skip("only root chooses numbers of processes")
	}
	if unix.Access("/usr/bin/python3", unix.X_OK) != nil {
		t.Skip("no python3 is there to connect by")
	}
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for range 100 { // until no other process takes the number meanwhile
		one := exec.Command("/usr/bin/python3", "-c", "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])", path)
		if err := one.Run(); err != nil {
			t.Fatal(err)
		}
		connection, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		number := one.Process.Pid
		if err := os.WriteFile(last, []byte(strconv.Itoa(number-1)), 0); err != nil {
			t.Skip(err)
		}
		other := exec.Command("sleep", "60")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		taken := other.Process.Pid == number
		got, err := credentialsOf(connection.(*net.UnixConn))
		if taken && (err != nil || !got.isTask) {
			t.Errorf("a process that has the number of one that has ended is taken for that: %+v, %v", got, err)
		}
		if err := errors.Join(other.Process.Kill(), connection.Close()); err != nil {
			t.Fatal(err)
		}
		_ = other.Wait()
		if taken {
			return
		}
	}
	t.Fatal("the number was never free")
}

// ordinaryUser is nobody, and the group of it.
const ordinaryUser = 65534

// TestAnotherUserIsNoTask connects as root to a process of an ordinary user, which may not send root's a signal.
func TestAnotherUserIsNoTask(t *testing.T) {
	const at = "STARLING_TEST_SOCKET"
	group, err := user.LookupGroupId(strconv.Itoa(ordinaryUser))
	if err != nil {
		t.Skip(err)
	}
	if path := os.Getenv(at); path != "" {
		listener, err := listenLocal(path, group.Name)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := os.Stat(filepath.Dir(path))
		if err != nil || folder.Mode().Perm() != 0o710 || folder.Sys().(*syscall.Stat_t).Gid != ordinaryUser {
			t.Fatalf("the folder of the socket is %v, %v, and not the group's to enter", folder.Mode(), err)
		}
		fmt.Println("listens")
		connection, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got, err := credentialsOf(connection.(*net.UnixConn))
		fmt.Printf("uid %d, task %v, %v\n", got.uid, got.isTask, err)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root runs a process as another user")
	}
	folder, err := os.MkdirTemp("", "door")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	program, err := os.ReadFile("/proc/self/exe")
	own := filepath.Join(folder, "test")
	err = errors.Join(err, os.WriteFile(own, program, 0o755), os.Chown(folder, ordinaryUser, ordinaryUser))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "own", "socket")
	child := exec.Command(own, "-test.run", "^TestAnotherUserIsNoTask$")
	child.Dir, child.Env = folder, []string{at + "=" + path}
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	says, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	lines := bufio.NewScanner(says)
	lines.Scan()
	connection, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if lines.Scan(); lines.Text() != "uid 0, task false, <nil>" {
		t.Errorf("got %q", lines.Text())
	}
	_ = child.Wait()
}
