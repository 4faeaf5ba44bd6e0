// Package containertest runs a real containerd and a registry on this machine for tests, and fills the registry with
// images that are made of nothing.
package containertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
)

// startTimeout is how long containerd has to answer.
const startTimeout = 30 * time.Second

// Containerd is one with a folder and a socket of its own.
type Containerd struct {
	// Socket is where it listens.
	Socket string

	folder  string
	process *exec.Cmd
	said    *bytes.Buffer
}

// Missing tells why containers cannot run here; "" if they can. Tests say so when they are skipped.
func Missing() string {
	if os.Getuid() != 0 {
		return "only root may run containers"
	}
	for _, program := range []string{"containerd", "runc", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("%s is missing: apt-get install containerd runc util-linux", program)
		}
	}
	return ""
}

// Start starts containerd with all it has in the folder, which must be on a real file system, and returns when it
// answers.
func Start(folder string) (*Containerd, error) {
	c := &Containerd{Socket: filepath.Join(folder, "containerd.sock"), folder: folder}
	config := fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = %q
[ttrpc]
address = %q
`, filepath.Join(folder, "root"), filepath.Join(folder, "state"), c.Socket, filepath.Join(folder, "ttrpc.sock"))
	if err := os.WriteFile(c.config(), []byte(config), 0o600); err != nil {
		return nil, err
	}
	return c, c.Restart()
}

func (c *Containerd) config() string { return filepath.Join(c.folder, "config.toml") }

// Restart starts it, after Kill, over the same folder.
func (c *Containerd) Restart() error {
	c.said = &bytes.Buffer{}
	c.process = exec.Command("containerd", "--config", c.config())
	c.process.Stdout, c.process.Stderr = c.said, c.said
	c.process.SysProcAttr = endsWithParent()
	begun := make(chan error)
	go func() { // it is killed when the thread that started it ends, as those do on which sessions begin
		runtime.LockOSThread()
		begun <- c.process.Start()
		select {}
	}()
	if err := <-begun; err != nil {
		return err
	}
	client, err := containerd.New(c.Socket)
	if err != nil {
		return err
	}
	defer client.Close()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
		if _, err = os.Stat(c.Socket); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
			_, err = client.Version(ctx)
			cancel()
		}
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			c.Kill()
			return fmt.Errorf("containerd does not answer: %w\n%s", err, c.said)
		}
	}
}

// Hang has it answer nothing until Resume is called.
func (c *Containerd) Hang() error { return c.process.Process.Signal(syscall.SIGSTOP) }

// Resume has it go on.
func (c *Containerd) Resume() error { return c.process.Process.Signal(syscall.SIGCONT) }

// Kill ends it as a crash does.
func (c *Containerd) Kill() {
	_ = c.process.Process.Kill()
	_ = c.process.Wait()
}

// Client is one of the containerd, as its administrator has it.
func (c *Containerd) Client(t testing.TB) *containerd.Client {
	t.Helper()
	client, err := containerd.New(c.Socket, containerd.WithDefaultNamespace("starling"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
