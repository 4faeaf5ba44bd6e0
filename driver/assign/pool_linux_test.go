package assign_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"starling/driver/assign"
)

// put has a process, which sleeps, wait for a task.
func put(t *testing.T, p *assign.Pool) *assign.Owner {
	t.Helper()
	line, input, err := assign.NewLine()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	o := &assign.Owner{Line: line, Generation: p.Generation()}
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	o.Process = command.Process
	p.Put(o)
	return o
}

func isGone(o *assign.Owner) bool { return o.Process.Signal(unix.Signal(0)) != nil }

// TestPoolEndsWhatDoesNotKnowTheMounts changes the mounts of this process.
func TestPoolEndsWhatDoesNotKnowTheMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	var p assign.Pool
	defer p.Close()
	folder := t.TempDir()
	for range 100 { // other programs of this machine may mount, too
		put(t, &p)
		if o := p.Take(); o != nil {
			p.Put(o)
			if err := unix.Mount("tmpfs", folder, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
			defer unix.Unmount(folder, unix.MNT_DETACH)
			if again := p.Take(); again != nil || !isGone(o) {
				t.Errorf("got process %v, want none: it does not know what is mounted", again)
			}
			return
		}
	}
	t.Error("no process waited for a task")
}

// TestPoolIsBounded puts many, and closes the pool: all are ended.
func TestPoolIsBounded(t *testing.T) {
	var p assign.Pool
	var all []*assign.Owner
	waiting := func() (waiting int) {
		for _, o := range all {
			if !isGone(o) {
				waiting++
			}
		}
		return waiting
	}
	for range 100 {
		all = append(all, put(t, &p))
	}
	if got := waiting(); got >= len(all) {
		t.Errorf("all %d processes wait", got)
	}
	p.Close()
	if o := put(t, &p); !isGone(o) || waiting() > 0 {
		t.Errorf("%d processes wait, and one that came later: %t; want none after Close", waiting(), !isGone(o))
	}
}
