package assign

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
)

// idleMax is how long a process waits for another task.
const idleMax = time.Second

// Owner is a process, a child of this one, that owns one task at a time.
type Owner struct {
	Process *os.Process
	Line    *Line
	// Generation is that of the pool from before the process was forked.
	Generation int
	// Used tells that it has had a task before.
	Used bool

	expiry *time.Timer
}

// Pool has the processes that wait for another task: they own nothing, so that they can be ended at any time. Its zero
// value is ready for use.
type Pool struct {
	mu     sync.Mutex
	idle   []*Owner
	closed bool
	ending sync.WaitGroup

	mounts     *os.File // whose readers are woken by each change
	generation int
}

// Generation is a number that changes with the mounts of this process: one that was forked earlier may not have them.
// It is negative where that cannot be told.
func (p *Pool) Generation() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

func (p *Pool) now() int {
	if p.mounts == nil && p.generation == 0 {
		p.mounts = openMounts()
	}
	switch changed, err := haveChanged(p.mounts); {
	case err != nil:
		p.generation = -1
	case changed && p.generation >= 0:
		p.generation++
	}
	return p.generation
}

// Take returns the process that has waited for the shortest time; nil if none waits. It may have died.
func (p *Pool) Take() *Owner {
	p.mu.Lock()
	var old []*Owner
	if len(p.idle) > 0 && p.idle[len(p.idle)-1].Generation != p.now() {
		old, p.idle = p.idle, nil
	}
	var o *Owner
	if last := len(p.idle) - 1; last >= 0 {
		o = p.idle[last]
		p.idle = p.idle[:last]
		o.expiry.Stop()
	}
	p.mu.Unlock()
	for _, one := range old {
		one.End()
	}
	return o
}

// Put has a process wait for another task, unless enough do.
func (p *Pool) Put(o *Owner) {
	p.mu.Lock()
	keeps := !p.closed && len(p.idle) < 4*runtime.NumCPU() && p.now() >= 0 && o.Generation == p.generation
	if keeps {
		o.Used = true
		p.idle = append(p.idle, o)
		o.expiry = time.AfterFunc(idleMax, func() { p.expire(o) })
	}
	p.mu.Unlock()
	if !keeps {
		o.End()
	}
}

// expire ends a process that nothing has taken.
func (p *Pool) expire(o *Owner) {
	p.mu.Lock()
	at := slices.Index(p.idle, o)
	if at < 0 || p.closed {
		p.mu.Unlock()
		return
	}
	p.idle = slices.Delete(p.idle, at, at+1)
	p.ending.Add(1)
	p.mu.Unlock()
	defer p.ending.Done()
	o.End()
}

// Close ends all that wait, and all that are put from now on.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mounts.Close()
	p.mu.Unlock()
	for _, o := range idle {
		o.End()
	}
	p.ending.Wait()
}

// End kills the process and awaits its end.
func (o *Owner) End() {
	o.Kill()
	o.Wait()
}

// Kill sends the process SIGKILL, unless it was reaped.
func (o *Owner) Kill() { _ = o.Process.Kill() }

// Wait reaps the process, which is to get no other task. When it returns, the namespace of which the process was the
// first is gone, too.
func (o *Owner) Wait() {
	_ = o.Line.Close()
	_, _ = o.Process.Wait()
}
