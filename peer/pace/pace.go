// Package pace slows the starts of what fails as soon as it is started: a start costs a machine more than most programs
// that fail at once, and nobody is charged for it.
package pace

import (
	"context"
	"fmt"
	"sync"
	"time"

	"starling/terms"
)

const (
	// soon is within how long of its start an instance ends that fails at once, and the least time before it is started
	// again when it has done so freely often in a row.
	soon   = time.Second
	freely = 5
	// each is how much of the time the starts of all such instances of a pool are apart on one machine.
	each = 100 * time.Millisecond
	// forgotten is after which time, or twice that, it counts no more that an instance has failed.
	forgotten = time.Minute
)

// failures is how often in a row an instance has failed at once, the last time when.
type failures struct {
	count int
	last  time.Time
}

// Pace knows what has failed on this machine. Its zero value is ready for use, by several goroutines.
type Pace struct {
	mu    sync.Mutex
	slots map[terms.SlotName]failures
	swept time.Time
}

// Saw takes the news, as often as there is any, that an instance which was started has ended, or could not be started.
func (p *Pace) Saw(slot terms.SlotName, started, ended time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	before := p.slots[slot]
	switch {
	case !ended.After(before.last): // that is known, or it runs
	case ended.Sub(started) > soon:
		delete(p.slots, slot)
	default:
		if p.slots == nil {
			p.slots = map[terms.SlotName]failures{}
		}
		p.slots[slot] = failures{before.count + 1, ended}
	}
}

// Refused takes the news that an instance could not be started, for a reason; "" is that it could.
func (p *Pace) Refused(slot terms.SlotName, why string) {
	if now := time.Now(); why != "" {
		p.Saw(slot, now, now)
	}
}

// Slows tells whether an instance is to wait before it is started, with why.
func (p *Pace) Slows(slot terms.SlotName) (until time.Time, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.slots[slot]
	if own.count < freely {
		return time.Time{}, ""
	}
	alike := 0
	for other, f := range p.slots {
		if f.count >= freely && other.Job.Pool() == slot.Job.Pool() {
			alike++
		}
	}
	why = fmt.Sprintf("a later start: it has ended within %s of its start %d times in a row", soon, own.count)
	if alike > 1 {
		why += fmt.Sprintf(", one of %d of its pool here", alike)
	}
	return own.last.Add(max(soon, time.Duration(alike)*each)), why
}

// sweep forgets, now and then, what has not failed for long.
func (p *Pace) sweep() {
	if time.Since(p.swept) < forgotten {
		return
	}
	p.swept = time.Now()
	for slot, f := range p.slots {
		if time.Since(f.last) > forgotten {
			delete(p.slots, slot)
		}
	}
}

// Await waits until an instance may be started, and tells why it does, and then "" when it is over. It is false if ctx
// ends before.
func (p *Pace) Await(ctx context.Context, slot terms.SlotName, tell func(why string)) bool {
	until, why := p.Slows(slot)
	if !time.Now().Before(until) {
		return true
	}
	tell(why)
	defer tell("")
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
