// Package kill shows with real processes that whatever is killed, nothing that was acknowledged is lost, and that work
// which is told to give way has its turn again.
//
// Each test has a cluster of three agents with an etcd quorum among them. Tasks are this test's own binary in a role:
// a witness leaves files behind that prove which allocation ran and that it ended, a worker does so until its gate is
// opened or it is told to end, a server runs until it is stopped, a database tells again and again that it lives.
package kill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/e2e/agents"
)

// The roles of this binary, as its first argument. Each is followed by the folder that the test watches.
const (
	witnessRole  = "witness"
	workerRole   = "work"
	stubbornRole = "work on"
	serverRole   = "serve"
	databaseRole = "database"
	// webRole is followed by a version instead.
	webRole = "web"
)

// What a witness or a worker leaves behind for an allocation.
const (
	begunSuffix = ".begun"
	doneSuffix  = ".done"
	toldSuffix  = ".told"
	twiceSuffix = ".twice"
)

// lockName is the file in the watched folder that is locked as long as the test lives.
const lockName = "test-lives"

// binaryVariable names the binary under test, for all tests of the package.
const binaryVariable = "KILL_BINARY"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		roles := map[string]func(string) int{
			witnessRole: witness, workerRole: worker, stubbornRole: stubborn, serverRole: serve, webRole: web,
			databaseRole: database,
		}
		if role := roles[os.Args[1]]; role != nil {
			os.Exit(role(os.Args[2]))
		}
	}
	os.Exit(withBinary(m))
}

// withBinary builds the binary once for all tests.
func withBinary(m *testing.M) int {
	folder, err := os.MkdirTemp("", "starling-kill-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	binary, err := agents.Build(context.Background(), folder)
	if err == nil {
		err = os.Setenv(binaryVariable, binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// work is how long a witness takes between its files.
const work = 200 * time.Millisecond

// witness is a batch instance: it proves that it began, works a while, and proves that it came to its end.
func witness(folder string) int {
	err := leave(folder, begunSuffix)
	if os.IsExist(err) {
		err = leave(folder, twiceSuffix)
	}
	if err == nil {
		time.Sleep(work)
		err = leave(folder, doneSuffix)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	return 0
}

// leave leaves a new file of a kind for the allocation that runs here.
func leave(folder, suffix string) error {
	file, err := os.OpenFile(proofOf(folder, os.Getenv("STARLING_ALLOCATION"), suffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		0o644)
	if err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

// proofOf returns where the file of a kind for an allocation, or a job, is. Names of pools become one with what
// follows.
func proofOf(folder, name, suffix string) string {
	return filepath.Join(folder, strings.ReplaceAll(name, "/", "%")+suffix)
}

// serve is an instance of a service: it runs until it is told to end, or the test is gone.
func serve(folder string) int {
	fmt.Fprintln(os.Stderr, "the test is gone:", awaitUnlocked(filepath.Join(folder, lockName)))
	return 9
}

// awaitUnlocked waits until nobody holds the lock of a file.
func awaitUnlocked(path string) error {
	lock, err := os.Open(path)
	if err != nil {
		return err
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_SH)
}
