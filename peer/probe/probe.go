// Package probe asks instances again and again whether they are well.
//
// An instance is ready once each of its checks has passed. When one of them fails more often in a row than it may, the
// instance has failed, and is asked no more; or it is not ready before that check passes again, if no more than that is
// asked. Whoever watches an instance is told when that changes, and asks State how it stands.
package probe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"starling/cluster/facts"
	"starling/terms"
)

// firstWait is the longest time before the first question: a program needs a moment to listen, and whoever waits for it
// does not want to wait for a whole interval.
const firstWait = 200 * time.Millisecond

// Config is what a Prober needs.
type Config struct {
	// Run runs a command where the instance runs, with its environment, and returns nil if it exits with 0. It ends the
	// command when ctx ends.
	Run func(ctx context.Context, id terms.AllocationID, command []string) error
	// Failed is told each time that a check fails. It must not wait for anything.
	Failed func()
	// Changed is told when State has something new to say of an allocation. It must not wait for anything.
	Changed func(id terms.AllocationID)
}

// Prober asks the instances of one machine. It is safe for concurrent use.
type Prober struct {
	ctx     context.Context
	config  Config
	running sync.WaitGroup
	lock    sync.Mutex
	watched map[terms.AllocationID]*watched
}

// watched is an instance with the questions that it is asked.
type watched struct {
	stop context.CancelFunc
	// passed tells of each check whether it has, and has not failed too often since; inRow how often it has failed since
	// it did last, unready why that is too often for the instance to be ready; failing how it failed if it did last.
	passed  []bool
	inRow   []uint32
	unready []string
	failing []string
	// since is when it was first asked.
	since time.Time
	// failure is why the instance has failed; it may be empty.
	failure string
}

// New returns a Prober that watches nothing yet. It asks until ctx ends; Wait returns when it does not any more.
func New(ctx context.Context, config Config) *Prober {
	return &Prober{ctx: ctx, config: config, watched: map[terms.AllocationID]*watched{}}
}

// Wait returns when no question is under way. The context of New must have ended.
func (p *Prober) Wait() {
	p.lock.Lock()
	//lint:ignore SA2001 Whoever gets the lock knows that a Watch that has begun before the end is over.
	p.lock.Unlock()
	p.running.Wait()
}

// Watch begins to ask an instance, unless it is watched already.
func (p *Prober) Watch(id terms.AllocationID, checks []terms.Check, ports []facts.PortUse) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.watched[id] != nil || p.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(p.ctx)
	w := &watched{stop: stop, since: time.Now(), passed: make([]bool, len(checks)), inRow: make([]uint32, len(checks)),
		unready: make([]string, len(checks)), failing: make([]string, len(checks))}
	p.watched[id] = w
	for i := range checks {
		check := checks[i]
		question := p.question(id, &check, ports)
		p.running.Go(func() {
			p.ask(ctx, &check, question, func(err error) { p.answered(ctx, id, answer{w, i, &check, err}) })
		})
	}
}

// Forget ends the questions to an instance. Afterwards State knows nothing of it.
func (p *Prober) Forget(id terms.AllocationID) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if w := p.watched[id]; w != nil {
		w.stop()
		delete(p.watched, id)
	}
}

// State is how an instance stands.
type State struct {
	// Ready tells that all its checks have passed. Without checks it is ready as soon as it is watched.
	Ready bool
	// Failure is why it has failed, Unready why a check keeps it from being ready; "" if none does.
	Failure, Unready string
}

// State tells how an instance stands; of one that is not watched nothing is known.
func (p *Prober) State(id terms.AllocationID) State {
	p.lock.Lock()
	defer p.lock.Unlock()
	w := p.watched[id]
	if w == nil {
		return State{}
	}
	return State{w.ready(), w.failure, cmp.Or(w.unready...)}
}

// Failing tells of each instance that is not ready which of its checks failed when it was last asked, if one did.
func (p *Prober) Failing() map[terms.AllocationID]string {
	p.lock.Lock()
	defer p.lock.Unlock()
	all := map[terms.AllocationID]string{}
	for id, w := range p.watched {
		if why := cmp.Or(w.failing...); why != "" && !w.ready() {
			all[id] = why
		}
	}
	return all
}

func (w *watched) ready() bool { return w.failure == "" && !slices.Contains(w.passed, false) }

// ask puts one question again and again, and gives the answers to tell.
func (p *Prober) ask(ctx context.Context, check *terms.Check, question func(context.Context) error, tell func(error)) {
	interval := time.Duration(check.IntervalMillis) * time.Millisecond
	timeout := time.Duration(check.TimeoutMillis) * time.Millisecond
	next := time.NewTimer(min(interval, firstWait))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		next.Reset(interval)
		limited, cancel := context.WithTimeout(ctx, timeout)
		err := question(limited)
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("no answer within %s", timeout)
		}
		cancel()
		tell(err)
	}
}

// answer is what one question came to.
type answer struct {
	w      *watched
	number int
	check  *terms.Check
	err    error
}

// answered notes an answer, and tells if the instance is ready or has failed with it.
func (p *Prober) answered(ctx context.Context, id terms.AllocationID, a answer) {
	if a.err != nil && ctx.Err() == nil {
		p.config.Failed()
	}
	if p.note(ctx, a) {
		p.config.Changed(id)
	}
}

// note returns whether an answer changes how the instance stands.
func (p *Prober) note(ctx context.Context, a answer) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if ctx.Err() != nil {
		return false // it is forgotten, or has failed by another check
	}
	if a.err == nil {
		before := a.w.ready()
		changed := a.w.unready[a.number] != ""
		a.w.passed[a.number], a.w.inRow[a.number], a.w.unready[a.number], a.w.failing[a.number] = true, 0, "", ""
		return changed || a.w.ready() != before
	}
	a.w.failing[a.number] = fmt.Sprintf("check %s fails: %v", name(a.check), a.err)
	if !a.w.passed[a.number] && time.Since(a.w.since) < time.Duration(a.check.StartMillis)*time.Millisecond {
		return false
	}
	a.w.inRow[a.number]++
	if a.w.inRow[a.number] <= a.check.FailuresMax {
		return false
	}
	why := fmt.Sprintf("check %s failed %s: %v", name(a.check), times(a.w.inRow[a.number]), a.err)
	if a.check.OnFailure == terms.UnreadyOnFailure {
		isNews := a.w.unready[a.number] == ""
		if isNews {
			a.w.passed[a.number], a.w.unready[a.number] = false, why
		}
		return isNews
	}
	a.w.failure = why
	a.w.stop()
	return true
}

func times(count uint32) string {
	if count == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", count)
}
