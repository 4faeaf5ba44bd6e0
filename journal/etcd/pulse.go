package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"starling/journal"
)

const (
	// leaseMargin is how much shorter than its time to live a pulse's lease is. A new leader of the engine lets
	// every lease begin anew and adds its election timeout; so the pulse of a machine that died together with
	// the leader on it ends at most an election, that timeout and half a second after its lease would have.
	leaseMargin = time.Second
	// renewalsPerLease is how often a lease is renewed before it would expire.
	renewalsPerLease = 4
)

// pulse is a key attached to a lease. The lease must be younger than the leader of the engine: a leader that was paused
// and goes on, not knowing yet that another leads, revokes all leases that it knows, for none was renewed with it.
type pulse struct {
	journal *Journal
	id      string
	seconds int64 // that a lease lasts
	lost    chan struct{}

	lease atomic.Int64 // what the key is attached to; only run changes it
	// writing is held by who publishes, or moves the key to another lease.
	writing sync.Mutex

	// Only run touches these: the engine's term that the lease is of, 0 if not known, and a lease that was granted to
	// replace it, 0 if none was.
	term uint64
	next clientv3.LeaseID

	ctx     context.Context // until it is given up
	release context.CancelFunc
	stopped chan struct{} // closed when nothing renews it any more
}

// Pulse implements journal.Journal. The time to live is rounded to seconds; two seconds are the least that a busy
// machine keeps to.
func (j *Journal) Pulse(ctx context.Context, id string, ttl time.Duration, adopt bool) (journal.Pulse, error) {
	if err := journal.CheckName(id); err != nil {
		return nil, fmt.Errorf("pulse: %w", err)
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("pulse %s: time to live must be above zero, is %v", id, ttl)
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	granted, err := j.client.Grant(during, leaseSeconds(ttl))
	if err != nil {
		return nil, j.failed(ctx, "pulse "+id, err)
	}
	if err := j.attach(during, id, granted.ID, adopt); err != nil {
		j.drop(granted.ID)
		if errors.Is(err, journal.ErrNoPulse) || errors.Is(err, journal.ErrPulseTaken) {
			return nil, fmt.Errorf("pulse %s: %w", id, err)
		}
		return nil, j.failed(ctx, "pulse "+id, err)
	}
	p := &pulse{
		journal: j, id: id, seconds: granted.TTL, term: granted.GetRaftTerm(),
		lost: make(chan struct{}), stopped: make(chan struct{}),
	}
	p.lease.Store(int64(granted.ID))
	p.ctx, p.release = context.WithCancel(j.ctx)
	if !p.start() {
		return nil, journal.ErrClosed
	}
	return p, nil
}

// attach puts the pulse's key with the lease, or says why it must not.
func (j *Journal) attach(ctx context.Context, id string, lease clientv3.LeaseID, adopt bool) error {
	key := j.keys.pulse(id)
	created := clientv3.CreateRevision(key)
	guard, put := clientv3.Compare(created, "=", 0), clientv3.OpPut(key, "", clientv3.WithLease(lease))
	refusal := journal.ErrPulseTaken
	if adopt {
		// The key moves from its owner's lease to ours in one revision, with its value.
		guard = clientv3.Compare(created, ">", 0)
		put = clientv3.OpPut(key, "", clientv3.WithLease(lease), clientv3.WithIgnoreValue())
		refusal = journal.ErrNoPulse
	}
	done, err := j.client.Txn(ctx).If(guard).Then(put).Commit()
	if err == nil && !done.Succeeded {
		return refusal
	}
	return err
}

// drop revokes a lease of which nothing came. If that fails the lease expires by itself.
func (j *Journal) drop(lease clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(j.ctx, readMax)
	defer cancel()
	_, _ = j.client.Revoke(ctx, lease)
}

// leaseSeconds returns what to ask of the engine for a pulse of that time to live.
func leaseSeconds(ttl time.Duration) int64 {
	lease := ttl - leaseMargin
	return max(1, int64((lease+time.Second-1)/time.Second))
}

// start begins the renewal, unless the journal is closed.
func (p *pulse) start() bool {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	if p.journal.ctx.Err() != nil {
		p.release()
		return false
	}
	p.journal.renewing.Go(p.run)
	return true
}

// run renews the lease until the pulse is given up or lost.
func (p *pulse) run() {
	defer close(p.stopped)
	every := time.Duration(p.seconds) * time.Second / renewalsPerLease
	for pause := every; wait(p.ctx, pause) == nil; {
		began := time.Now()
		kept, err := p.renew()
		if err != nil {
			pause = pauseMin // no answer is no reason to think it lost: the engine may be electing
			continue
		}
		if !kept {
			if p.ctx.Err() == nil {
				close(p.lost)
			}
			return
		}
		pause = max(every-time.Since(began), pauseMin)
	}
}

// renew renews the lease and looks whether the pulse still is attached to it.
func (p *pulse) renew() (kept bool, err error) {
	last := clientv3.LeaseID(p.lease.Load())
	unrenewed := p.keepAlive(last)
	if unrenewed != nil && !errors.Is(unrenewed, rpctypes.ErrLeaseNotFound) {
		return false, unrenewed
	}
	got, err := hedged(p.ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		// Not WithKeysOnly: since 3.7 that leaves the lease out.
		return p.journal.client.Get(ctx, p.journal.keys.pulse(p.id))
	})
	if err != nil {
		return false, err
	}
	switch lease := attached(got.Kvs); {
	case lease == p.next && lease != 0: // moving there was not answered
		p.moved(got.Header.RaftTerm)
	case lease != last:
		return false, nil
	case unrenewed != nil: // by a member that wrongly believes to lead, and does not know the lease
		return false, unrenewed
	case got.Header.RaftTerm > p.term:
		return true, p.move(last, got.Header.RaftTerm)
	}
	return true, nil
}

func (p *pulse) keepAlive(lease clientv3.LeaseID) error {
	_, err := hedged(p.ctx, func(ctx context.Context) (*clientv3.LeaseKeepAliveResponse, error) {
		return p.journal.client.KeepAliveOnce(ctx, lease)
	})
	return err
}

// attached returns the lease of a key, 0 if there is no key.
func attached(kvs []*mvccpb.KeyValue) clientv3.LeaseID {
	if len(kvs) == 0 {
		return 0
	}
	return clientv3.LeaseID(kvs[0].Lease)
}

// move attaches the key to a new lease, which leaders of earlier terms do not know. The last one expires by itself.
func (p *pulse) move(last clientv3.LeaseID, term uint64) error {
	if p.next != 0 { // an earlier move to it was not answered, and may still happen
		err := p.keepAlive(p.next)
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
		if err != nil {
			p.next = 0
		}
	}
	if p.next == 0 {
		granted, err := hedged(p.ctx, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
			return p.journal.client.Grant(ctx, p.seconds)
		})
		if err != nil {
			return err
		}
		p.next = granted.ID
	}
	if !p.writing.TryLock() {
		return nil // not now: the renewal of the lease must not wait
	}
	defer p.writing.Unlock()
	key, next := p.journal.keys.pulse(p.id), p.next
	done, err := hedged(p.ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return p.journal.client.Txn(ctx).
			If(clientv3.Compare(clientv3.LeaseValue(key), "=", last)).
			Then(clientv3.OpPut(key, "", clientv3.WithLease(next), clientv3.WithIgnoreValue())).
			Commit()
	})
	if err == nil && done.Succeeded {
		p.moved(term)
	}
	return err // what else has become of the pulse the next renewal shows
}

// moved notes that the key has moved to the next lease.
func (p *pulse) moved(term uint64) {
	p.lease.Store(int64(p.next))
	p.next, p.term = 0, term
}

// Publish implements journal.Pulse.
func (p *pulse) Publish(ctx context.Context, value []byte) error {
	if len(value) > journal.ValueBytesMax {
		return fmt.Errorf("publish %d bytes with pulse %s: %w", len(value), p.id, journal.ErrTooLarge)
	}
	refused := fmt.Errorf("publish with pulse %s: %w", p.id, journal.ErrNoPulse)
	if p.ctx.Err() != nil && p.journal.ctx.Err() == nil {
		return refused
	}
	during, done := p.journal.during(ctx, attemptMax)
	defer done()
	p.writing.Lock()
	defer p.writing.Unlock()
	key, lease := p.journal.keys.pulse(p.id), clientv3.LeaseID(p.lease.Load())
	put := clientv3.OpPut(key, string(value), clientv3.WithLease(lease))
	txn, err := p.journal.client.Txn(during).
		If(clientv3.Compare(clientv3.LeaseValue(key), "=", lease)).
		Then(put).
		Commit()
	if errors.Is(err, rpctypes.ErrLeaseNotFound) || err == nil && !txn.Succeeded {
		return refused
	}
	if err != nil {
		return p.journal.failed(ctx, "publish with pulse "+p.id, err)
	}
	return nil
}

// Confirm implements journal.Pulse. A pulse that is just moving to another lease may not be found to be its owner's;
// the next call finds it.
func (p *pulse) Confirm(ctx context.Context) error {
	refused := fmt.Errorf("confirm pulse %s: %w", p.id, journal.ErrNoPulse)
	if p.ctx.Err() != nil && p.journal.ctx.Err() == nil {
		return refused
	}
	during, done := p.journal.during(ctx, attemptMax)
	defer done()
	before := p.lease.Load()
	got, err := hedged(during, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return p.journal.client.Txn(ctx).
			Then(clientv3.OpGet(p.journal.keys.pulse(p.id)), clientv3.OpGet(p.journal.keys.seal)).Commit()
	})
	if err != nil {
		return p.journal.failed(ctx, "confirm pulse "+p.id, err)
	}
	if lease := int64(attached(got.Responses[0].GetResponseRange().Kvs)); lease != before && lease != p.lease.Load() {
		return refused
	}
	if len(got.Responses[1].GetResponseRange().Kvs) > 0 {
		return fmt.Errorf("confirm pulse %s: %w", p.id, journal.ErrSealed)
	}
	return nil
}

// Lost implements journal.Pulse.
func (p *pulse) Lost() <-chan struct{} {
	return p.lost
}

// End implements journal.Pulse.
func (p *pulse) End(ctx context.Context) error {
	p.Abandon()
	during, done := p.journal.during(ctx, attemptMax)
	defer done()
	// It takes the key along, unless another has adopted that.
	_, err := p.journal.client.Revoke(during, clientv3.LeaseID(p.lease.Load()))
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return p.journal.failed(ctx, "end pulse "+p.id, err)
	}
	return nil
}

// Abandon implements journal.Pulse.
func (p *pulse) Abandon() {
	p.release()
	<-p.stopped
}
