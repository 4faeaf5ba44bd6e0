// Package engines runs the programs of engines that others make for tests, as processes of their own, each at a place
// on the network.
package engines

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
)

// Place is an address of a server, and the network namespace that has it, by its name; "" for this process's own.
type Place struct{ Host, Namespace string }

// At returns places for so many servers at one address of this machine.
func At(host string, count int) []Place { return slices.Repeat([]Place{{Host: host}}, count) }

// IsFree tells whether a port can be had there: in a namespace of a server's own all can.
func (p Place) IsFree(port int) bool {
	if p.Namespace != "" {
		return true
	}
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", p.Host, port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Process is a server's program. It ends with this process at the latest. It is not safe for concurrent use.
type Process struct {
	Place
	// Said is the file to which it writes what it says.
	Said string

	process *os.Process   // nil if none runs
	ended   chan struct{} // closed when it has ended
}

// Run starts a program, unless it runs.
func (p *Process) Run(program string, arguments ...string) error {
	if p.process != nil && !p.HasEnded() {
		return nil
	}
	said, err := os.OpenFile(p.Said, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	if p.Namespace != "" {
		program, arguments = "nsenter", append([]string{"--net=/run/netns/" + p.Namespace, program}, arguments...)
	}
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr, command.SysProcAttr = said, said, dieWithParent()
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// What dies with its parent dies with the thread that forked it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		started <- command.Start()
		_ = command.Wait() // it is killed, or tells why not in what it has said
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	p.process, p.ended = command.Process, ended
	return nil
}

// HasEnded tells whether the program that was started last has ended by itself.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Kill ends the server as a crash would.
func (p *Process) Kill() {
	if p.process == nil {
		return
	}
	_ = p.process.Kill() // it may have ended
	<-p.ended
	p.process = nil
}

// Pause stops the server where it is, until Resume.
func (p *Process) Pause() error { return p.process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (p *Process) Resume() error { return p.process.Signal(syscall.SIGCONT) }
