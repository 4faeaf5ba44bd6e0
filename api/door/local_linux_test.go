package door

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
