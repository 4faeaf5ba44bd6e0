// Package peer is the runtime: it reads the journal into the inbox, folds, and performs the reactions.
//
// Core is the part without clock, goroutine or I/O: it takes events and returns what is to be done, so that the
// simulator steps the same code. Peer drives one Core with a real journal, driver and clock, in one loop.
package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"starling/cluster"
	"starling/command"
	"starling/driver"
	"starling/journal"
	"starling/peer/contact"
	"starling/peer/identity"
	"starling/peer/inbox"
	"starling/peer/outbox"
	"starling/peer/pace"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/secret"
	"starling/terms"
	"starling/terms/access"
)

// Config is what a peer is made of.
type Config struct {
	Node    terms.NodeName
	Journal journal.Journal
	Driver  driver.Driver
	// Offer is what the node gives, with the address at which others reach this peer's API.
	Offer terms.Offer
	// Identity remembers the incarnation over restarts of the process.
	Identity identity.Keeper
	// PulseTTL is how long the peer is taken to live after its last sign of life; at least a second.
	PulseTTL time.Duration
	// Fetch reads an output from the peer at the address, as SendOutput writes it there; the error is os.ErrNotExist if
	// that has none.
	Fetch func(ctx context.Context, address string, output terms.OutputSet) (io.ReadCloser, error)
	// Key names the node's key, zero for none.
	Key access.Key
	// Private makes what an instance of the task finds in its private folder; nil for none. An error says why it cannot
	// be started yet.
	Private func(context.Context, terms.AllocationID, *terms.Task) ([]driver.File, error)
	// OwnUsers gives each job a user of its own, whose tasks name none: this peer may make processes of any.
	OwnUsers bool
	// HostPaths are the folders that this machine offers, by their names, without symbolic links.
	HostPaths map[string]string
	// Reports is the folder for bug reports, Version is the program's, which stands in them.
	Reports, Version string
	// Archive keeps what is folded; nil for none.
	Archive Archive
	// Meter counts what the peer does; nil for none.
	Meter Meter
	// Now is the machine's clock, as far as it counts; nil is the clock itself.
	Now func() time.Time
	// Secret is the cluster's, from which the keys of jobs come; nil refuses what needs some.
	Secret *secret.Secret
	// Limits are those of the cluster: alike for all of its peers.
	Limits terms.Limits
	Log    *slog.Logger
}

// Peer is one running peer. It is safe for concurrent use.
type Peer struct {
	config Config
	log    *slog.Logger
	core   *Core
	offer  *terms.Offer
	// Only the loop touches what is above; calls reach it through do.
	calls  chan func()
	inbox  chan delivery
	pulses chan pulseNews
	lives  chan life

	// reader numbers the reader of the journal of which the loop takes what it brings; stopFollow ends it.
	reader     int
	stopFollow context.CancelFunc
	doubt      doubt

	life     life
	living   bool
	watching map[terms.PeerID]context.CancelFunc
	waiting  []stateWaiter
	// frozen is the value as it was handed out last.
	frozen  cluster.Frozen
	history history
	// contact belongs to callers.
	contact contact.Contact
	goal    journal.Index
	checked checked
	// proving tells that a proof was asked for and is not there yet.
	proving bool
	// refusalTold is the life in which the refusal of the offer was logged, phaseTold the last phase that was looked at.
	refusalTold terms.PeerID
	phaseTold   Phase
	// deleting tells that volumes are being deleted; undone are those that are set aside instead.
	deleting bool
	undone   []terms.VolumeSet
	outputs  *outputs
	pace     pace.Pace
	// waits are the allocations that cannot be started before others have nodes.
	waits []reaction.Wait
	// starts has a place for every start of a task that the driver does.
	starts chan struct{}

	self  atomic.Pointer[terms.PeerID]
	known atomic.Pointer[known]
	// lived is closed when the first life begins.
	lived   chan struct{}
	group   sync.WaitGroup
	cancel  context.CancelFunc
	stopped chan struct{}
	failure error
}

type stateWaiter struct {
	least terms.Index
	reply chan cluster.Frozen
}

// Start runs a peer until ctx ends or Stop is called. It returns at once; Ready waits until the peer is a member.
func Start(ctx context.Context, config Config) *Peer {
	ctx, cancel := context.WithCancel(ctx)
	if config.Archive == nil {
		config.Archive = noArchive{}
	}
	if config.Meter == nil {
		config.Meter = noMeter{}
	}
	p := &Peer{
		config: config, log: config.Log.With("node", string(config.Node)), core: NewCore(config.Limits),
		calls: make(chan func()), inbox: make(chan delivery), pulses: make(chan pulseNews), lives: make(chan life),
		watching: map[terms.PeerID]context.CancelFunc{}, cancel: cancel, stopped: make(chan struct{}),
		starts: make(chan struct{}, atOnceMax), lived: make(chan struct{}),
	}
	p.core.Key, p.offer = config.Key, &p.config.Offer
	p.core.Explain, p.frozen = true, p.core.state.Freeze()
	config.Archive.Restored(p.core.state, nil)
	p.core.Folder = func(id terms.AllocationID) string { return config.Driver.FilesFolder(id.String()) }
	p.outputs = newOutputs(&config, func(id terms.AllocationID) { p.post(ctx, func() { p.core.OutputLost(id) }) })
	p.startProber(ctx)
	p.history.init()
	none := terms.PeerID("")
	p.self.Store(&none)
	p.goal = ^journal.Index(0)
	p.contact.Engine, p.contact.Log, p.contact.Pulse = config.Journal, p.log, config.PulseTTL
	p.group.Go(func() { p.contact.Keep(ctx) })
	p.group.Go(func() { p.measure(ctx) })
	p.group.Go(func() { p.measureRoom(ctx) })
	p.startFollow(ctx, 1)
	p.group.Go(func() { p.findGoal(ctx) })
	go p.run(ctx)
	return p
}

// Stop ends the peer and waits for it. Its tasks go on, and its pulse lives on for its time to live: a peer that
// comes back within that moves nothing.
func (p *Peer) Stop() {
	p.cancel()
	<-p.stopped
}

// Done is closed when the peer has stopped; Err then tells why.
func (p *Peer) Done() <-chan struct{} { return p.stopped }

// Err returns why the peer stopped by itself, nil if it was told to. It must be called after Done is closed.
func (p *Peer) Err() error { return p.failure }

// Self returns the identity of the peer's present life, "" before the first.
func (p *Peer) Self() terms.PeerID { return *p.self.Load() }

// delivery is what a reader of the journal brings to the loop.
type delivery struct {
	reader int
	inbox.Delivery
}

// startFollow begins to read the journal at an index. Of readers before it nothing is taken any more.
func (p *Peer) startFollow(ctx context.Context, next journal.Index) {
	if p.reader > 0 {
		p.stopFollow()
	}
	p.reader++
	reader := p.reader
	ctx, p.stopFollow = context.WithCancel(ctx)
	p.group.Go(func() {
		err := inbox.Follow(ctx, p.config.Journal, next, func(d inbox.Delivery) error {
			select {
			case p.inbox <- delivery{reader, d}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if ctx.Err() == nil {
			p.post(ctx, func() { p.core.halted = err })
		}
	})
}

// take folds what a reader has brought.
func (p *Peer) take(d delivery) {
	switch {
	case d.reader != p.reader:
	case d.Snapshot.Index > 0:
		p.restored(d.Snapshot, d.Data)
	default:
		p.fold(d.Records)
	}
}

// findGoal learns how far the journal goes, which is what must be read before the peer acts.
func (p *Peer) findGoal(ctx context.Context) {
	for ctx.Err() == nil {
		head, err := p.config.Journal.Head(ctx)
		if err == nil {
			p.post(ctx, func() { p.goal = head })
			return
		}
		p.log.Warn("the journal does not answer", "error", err)
		inbox.Pause(ctx, time.Second)
	}
}

// post lets the loop call act, unless ctx ends before.
func (p *Peer) post(ctx context.Context, act func()) {
	select {
	case p.calls <- act:
	case <-ctx.Done():
	case <-p.stopped:
	}
}

// run is the loop: it alone touches the core.
func (p *Peer) run(ctx context.Context) {
	defer close(p.stopped)
	defer p.group.Wait()
	defer p.checked.prober.Wait()
	defer p.cancel()
	defer p.end()
	publish := time.NewTicker(publishEvery)
	defer publish.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	p.driverChanged(ctx)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case d := <-p.inbox:
			p.take(d)
		case act := <-p.calls:
			act()
		case news := <-p.pulses:
			p.pulseSeen(ctx, news)
		case next := <-p.lives:
			p.begin(next)
			p.prove(ctx) // tasks may have waited for it as long as they can
		case <-p.config.Driver.Changed():
			p.driverChanged(ctx)
		case <-p.checked.news:
			p.driverChanged(ctx)
		case <-publish.C:
			p.publish(ctx)
			p.prove(ctx)
			continue
		case <-timer.C:
		}
		p.drain()
		if p.failure = p.core.Halt(); p.failure != nil {
			p.log.Error("the peer stops; its tasks go on", "error", p.failure)
			return
		}
		p.react(ctx, timer)
	}
}

// drain takes what else has come, so that reactions are computed once for all of it.
func (p *Peer) drain() {
	for range 64 {
		select {
		case d := <-p.inbox:
			p.take(d)
		case act := <-p.calls:
			act()
		default:
			return
		}
	}
}

// end answers everybody who waits, when the loop is over.
func (p *Peer) end() {
	if r := recover(); r != nil {
		stack := debug.Stack()
		p.failure = p.bug(r, stack)
		p.log.Error("the peer stops; its tasks go on", "error", p.failure, "stack", string(stack))
	}
	p.core.Fail(outbox.ErrStopped)
	for _, w := range p.waiting {
		close(w.reply)
	}
	if p.life.pulse != nil {
		p.life.pulse.Abandon()
	}
}

func now() terms.Time { return terms.Time(time.Now().UnixMilli()) }

// now is the machine's clock, as far as it counts.
func (p *Peer) now() terms.Time {
	if p.config.Now == nil {
		return now()
	}
	return terms.Time(p.config.Now().UnixMilli())
}

// fold takes records in order; those that were folded before are passed over.
func (p *Peer) fold(records []journal.Record) {
	for _, r := range records {
		began, catchingUp := time.Now(), !p.core.caughtUp
		folded, ok := p.core.Fold(r, p.now())
		if !ok {
			continue
		}
		if !catchingUp { // what happened before this peer started is no news
			p.config.Meter.Folded(&folded, time.Since(began))
		}
		p.history.add(folded)
		p.config.Archive.Folded(r, p.core.state)
		if folded.Outcome.Dropped != "" {
			p.log.Info("entry dropped", "index", folded.Index, "reason", folded.Outcome.Dropped)
		}
	}
	p.learnKnown()
	p.tellRefusal()
	p.history.wake()
	p.answerWaiting()
}

// tellRefusal logs that the offer is refused, once in a life, and that the node was removed.
func (p *Peer) tellRefusal() {
	phase, why := p.core.Phase()
	if phase == Removed && p.phaseTold != phase {
		p.log.Error("this peer ends its tasks, and does nothing any more", "reason", why)
	}
	p.phaseTold = phase
	if reason := p.core.OfferRefusal(); reason != "" && p.refusalTold != p.core.Self() {
		p.refusalTold = p.core.Self()
		p.log.Error("this node gets no work, because its offer is refused", "peer", p.core.Self(), "reason", reason)
	}
}

// react does what the core asks for.
func (p *Peer) react(ctx context.Context, timer *time.Timer) {
	phase, _ := p.core.Phase()
	reading := phase == Reading && journal.Index(p.core.state.Index) >= p.goal
	if (reading || phase == Left) && !p.living {
		p.startLife(ctx, 0)
		return
	}
	p.abandon()
	if phase == Diverged {
		p.check(ctx)
	}
	p.core.Pulseless = p.pulseless()
	p.core.StartsMax = StartsMax + len(p.outputs.cancel)
	p.core.DoubtMillis = max(time.Until(p.contact.Doubt()).Milliseconds(), 0)
	work := p.core.React(p.now())
	p.waits = work.Waits
	if work.Append != nil {
		p.append(ctx, *work.Append)
	}
	for _, order := range work.Start {
		p.startTask(ctx, order)
	}
	for _, stop := range work.Stop {
		if err := p.config.Driver.Stop(stop.ID.String(), time.Duration(stop.GraceMillis)*time.Millisecond); err != nil {
			p.log.Error("a task could not be stopped", "allocation", stop.ID.String(), "error", err)
		}
	}
	for _, id := range work.Forget {
		if err := p.config.Driver.Forget(id.String()); err != nil {
			p.log.Warn("the remains of a task could not be removed", "allocation", id.String(), "error", err)
		}
	}
	if len(work.Forget) > 0 {
		p.driverChanged(ctx)
	}
	p.deleteSets(ctx, &work)
	p.snapshot(ctx, work.Snapshot)
	p.renew(ctx, work.Renew)
	p.probe(work.Probe)
	p.watch(ctx, work.Watch)
	wait := time.Hour
	if work.AskAgain != 0 {
		wait = time.Duration(work.AskAgain-p.now()) * time.Millisecond
	}
	timer.Reset(max(wait, time.Millisecond))
}

// append writes the record, again and again until it is in. Requests are not kept waiting for that.
func (p *Peer) append(ctx context.Context, r journal.Record) {
	p.group.Go(func() {
		began := time.Now()
		for wait := 50 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 2*time.Second) {
			attempt, cancel := context.WithTimeout(ctx, appendTimeout)
			tried := time.Now()
			err := p.config.Journal.Append(attempt, r)
			p.config.Meter.Appended(time.Since(tried), err)
			cancel()
			if err == nil || errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrSealed) {
				return
			}
			p.log.Warn("append failed; trying again", "seq", r.Seq, "error", err)
			if time.Since(began) >= stallTimeout {
				p.post(ctx, func() { p.core.Stall(r.Seq, err) })
			}
			inbox.Pause(ctx, wait)
		}
	})
}

// Limits of time.
const (
	appendTimeout = 5 * time.Second
	// stallTimeout is longer than an election of the journal's engine takes.
	stallTimeout = 5 * time.Second
	publishEvery = time.Second
)

// Submit appends the command and returns when this peer has folded it.
func (p *Peer) Submit(ctx context.Context, c command.Command) (report.Receipt, error) {
	return p.ask(ctx, func(answer func(report.Receipt, error)) { p.core.Request(c, answer) })
}

// ask has the loop ask the core for something, and waits for the answer.
func (p *Peer) ask(ctx context.Context, request func(answer func(report.Receipt, error))) (report.Receipt, error) {
	type answer struct {
		receipt report.Receipt
		err     error
	}
	answers := make(chan answer, 1)
	p.post(ctx, func() {
		request(func(r report.Receipt, err error) { answers <- answer{r, err} })
	})
	select {
	case a := <-answers:
		return a.receipt, a.err
	case <-ctx.Done():
		return report.Receipt{}, fmt.Errorf("waiting for the journal: %w", ctx.Err())
	case <-p.stopped:
		return report.Receipt{}, fmt.Errorf("%w; %w", outbox.ErrStopped, report.ErrUnknown)
	}
}

// State returns the value at an index of at least least, as a copy of the caller's own, and waits for that until ctx
// ends.
func (p *Peer) State(ctx context.Context, least terms.Index) (*cluster.State, error) {
	reply := make(chan cluster.Frozen, 1)
	p.post(ctx, func() {
		p.waiting = append(p.waiting, stateWaiter{least, reply})
		p.answerWaiting()
	})
	select {
	case frozen, ok := <-reply:
		if !ok {
			return nil, outbox.ErrStopped
		}
		return frozen.Copy(), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for entry %d: %w", least, ctx.Err())
	case <-p.stopped:
		return nil, outbox.ErrStopped
	}
}

// answerWaiting gives the value to those whose index has come, frozen once for each index.
func (p *Peer) answerWaiting() {
	kept := p.waiting[:0]
	for _, w := range p.waiting {
		if w.least > p.core.state.Index {
			kept = append(kept, w)
			continue
		}
		if p.frozen.Index() != p.core.state.Index {
			p.frozen = p.core.state.Freeze()
		}
		w.reply <- p.frozen
	}
	p.waiting = kept
}

// Ready waits until the peer is a member and its node takes work.
func (p *Peer) Ready(ctx context.Context) error {
	select {
	case <-p.lived:
	case <-p.stopped:
		return cmp.Or(p.failure, outbox.ErrStopped)
	case <-ctx.Done():
		return fmt.Errorf("%s has not read the journal: %w", p.config.Node, ctx.Err())
	}
	for least := terms.Index(0); ; {
		s, err := p.State(ctx, least)
		if errors.Is(err, outbox.ErrStopped) {
			return cmp.Or(p.Err(), err)
		}
		if err != nil {
			return fmt.Errorf("%s has not joined: %w", p.config.Node, err)
		}
		if node := s.NodeOf(p.config.Node); node != nil && node.Peer != "" && node.Peer == p.Self() && node.Offer != nil {
			return nil
		}
		least = s.Index + 1
	}
}

// Offer has the node offer something else from now on, at the address that it has.
func (p *Peer) Offer(ctx context.Context, offer terms.Offer) {
	p.post(ctx, func() {
		p.offer = &offer
		p.core.Offer(p.offer)
	})
}

// Logs reads the output of an allocation that ran on this node.
func (p *Peer) Logs(ctx context.Context, allocation string, o driver.LogOptions) (io.ReadCloser, error) {
	return p.config.Driver.Logs(ctx, allocation, o)
}

// Folder opens the working folder of an allocation on this machine, as driver.Driver does.
func (p *Peer) Folder(allocation string) (*os.Root, error) { return p.config.Driver.Folder(allocation) }
