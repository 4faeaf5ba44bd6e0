package process

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"starling/driver"
)

// Limits of programs beside tasks.
const (
	// saidBytesMax bounds what is kept of what they say.
	saidBytesMax = 256
	// besideDrainMax is how long what they leave behind may keep their output open.
	besideDrainMax = time.Second
)

// Run runs a program beside a running task: in its control group, and with no new privileges either.
func (d *Driver) Run(ctx context.Context, t driver.Task) error {
	known, status := d.status(t.ID)
	if known == nil || status.State != driver.Running {
		return fmt.Errorf("run %q beside task %q: it does not run", t.Command, t.ID)
	}
	done := make(chan error, 1)
	d.watching.Go(func() {
		// What is set on this thread the program inherits; the thread ends with this goroutine.
		runtime.LockOSThread()
		done <- d.runBeside(ctx, known, t)
	})
	return <-done
}

func (d *Driver) runBeside(ctx context.Context, known *task, t driver.Task) error {
	account, err := credential(t.User)
	if err != nil {
		return err
	}
	folder := t.WorkDir
	if folder == "" {
		folder = known.folder.work()
	}
	if t.Env, err = makeVolumes(d.volumesDir(), t, account); err != nil {
		return err
	}
	path, err := executable(t, folder)
	if err != nil {
		return err
	}
	said := &beginning{}
	program := exec.CommandContext(ctx, path)
	program.Args, program.Env, program.Dir = t.Command, t.Env, folder
	program.Stdout, program.Stderr, program.WaitDelay = said, said, besideDrainMax
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGKILL) }
	err = known.origin.Place.Open(known.origin.Group).Start(func(a *syscall.SysProcAttr) error {
		a.Setsid, a.Credential = true, account
		if err := (&family{}).prepare(a, nil); err != nil {
			return err
		}
		program.SysProcAttr = a
		return program.Start()
	})
	if err == nil {
		err = program.Wait()
	}
	if words := strings.TrimSpace(said.text.String()); err != nil && words != "" {
		return fmt.Errorf("%w: %s", err, words)
	}
	return err
}

// beginning keeps the first bytes that are written to it.
type beginning struct{ text bytes.Buffer }

// Write takes everything, and keeps what there is room for.
func (b *beginning) Write(text []byte) (int, error) {
	b.text.Write(text[:min(len(text), saidBytesMax-b.text.Len())])
	return len(text), nil
}
