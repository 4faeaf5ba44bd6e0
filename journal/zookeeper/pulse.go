package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// sessionMargin is how much shorter than its time to live the session of a pulse is. The ensemble ends sessions at its
// next tick, and a server tells the leader twice in a tick which of its clients live.
const sessionMargin = time.Second

// sessionTimeout returns for how long the session of a pulse shall outlive its connection.
func sessionTimeout(ttl time.Duration) time.Duration {
	return max(ttl-sessionMargin, ttl/2)
}

// keeps returns ErrRefused if the ensemble has granted less or more than a pulse needs.
func keeps(s *session, ttl time.Duration) error {
	granted := s.timeout()
	other := (granted + sessionMargin).Round(time.Second)
	switch {
	case granted > ttl:
		return fmt.Errorf("%w: sessions last at least %v there, so pulses cannot end after %v: let them live %v, "+
			"or give the servers a lower tickTime or minSessionTimeout", ErrRefused, granted, ttl, other)
	case granted < s.asked:
		return fmt.Errorf("%w: sessions last at most %v there, so pulses cannot live for %v: let them live %v, "+
			"or give the servers a higher tickTime or maxSessionTimeout", ErrRefused, granted, ttl, other)
	}
	return nil
}

// pulse is an ephemeral node, and beside it another that names the session it belongs to. Who adopts the pulse replaces
// both at once; so what its former owner still does, on the condition that the second node is there, is refused.
type pulse struct {
	journal *Journal
	id      string
	session *session
	life    uint64 // the session with which it began, whoever has adopted it since
	owner   string // the node that is there as long as it is this one's
	lost    chan struct{}

	ctx     context.Context // until it is given up
	release context.CancelFunc
	stopped chan struct{} // closed when nothing renews it any more
}

// lifeBytes begin the data of a pulse's node: which life it is of. The value follows.
const lifeBytes = 8

func pulseData(life uint64, value []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, life), value...)
}

// Pulse implements journal.Journal. What keeps it is a session of its own.
func (j *Journal) Pulse(ctx context.Context, id string, ttl time.Duration, adopt bool) (journal.Pulse, error) {
	if err := journal.CheckName(id); err != nil {
		return nil, fmt.Errorf("pulse: %w", err)
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("pulse %s: time to live must be above zero, is %v", id, ttl)
	}
	if over := j.over(ctx); over != nil {
		return nil, over
	}
	p := &pulse{journal: j, id: id, lost: make(chan struct{}), stopped: make(chan struct{})}
	p.ctx, p.release = context.WithCancel(j.ctx)
	if err := p.start(sessionTimeout(ttl)); err != nil {
		p.release()
		return nil, err
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	err := p.session.ready(during)
	if err == nil {
		err = keeps(p.session, ttl)
	}
	if err == nil {
		err = p.begin(during, adopt)
	}
	switch {
	case err == nil:
		j.group.Go(p.run)
		return p, nil
	case errors.Is(err, journal.ErrNoPulse), errors.Is(err, journal.ErrPulseTaken), errors.Is(err, ErrRefused):
		err = fmt.Errorf("pulse %s: %w", id, err)
	default:
		err = j.failed(ctx, "pulse "+id, err)
	}
	p.release()
	return nil, err
}

// start begins the session, unless the journal is closed.
func (p *pulse) start(asked time.Duration) (err error) {
	j := p.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	if p.session, err = newSession(p.ctx, j.config, asked, false); err != nil {
		return err
	}
	j.group.Go(func() { p.session.tend(nil) })
	return nil
}

// begin creates the node within the session of the pulse, or says why that must not be.
func (p *pulse) begin(ctx context.Context, adopt bool) error {
	id := p.session.conn.SessionID()
	p.owner = p.journal.paths.owner(id)
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		found, err := answered(ctx, p.session, p.find)
		absent := errors.Is(err, zk.ErrNoNode)
		switch {
		case err == nil && found.owner == id: // as an earlier attempt that was not answered has made it
			p.life = found.life
			return nil
		case absent && adopt:
			return journal.ErrNoPulse
		case err == nil && !adopt:
			return journal.ErrPulseTaken
		case absent:
			err = p.create(ctx, uint64(id), nil)
		case err == nil:
			err = p.create(ctx, found.life, found.value, &zk.DeleteRequest{Path: p.path(), Version: found.version},
				&zk.DeleteRequest{Path: p.journal.paths.owner(found.owner), Version: -1})
		}
		if err == nil {
			return nil
		}
		if isAnswer(err) && !isRace(err) || p.session.ctx.Err() != nil {
			return err
		}
		if over := wait(ctx, pause); over != nil {
			return err
		}
	}
}

// found is a pulse as its node shows it.
type found struct {
	owner   int64
	life    uint64
	value   []byte
	version int32
}

func (p *pulse) path() string { return p.journal.paths.pulse(p.id) }

func (p *pulse) find(c *zk.Conn) (found, error) {
	if _, err := c.Sync(p.path()); err != nil {
		return found{}, err
	}
	data, stat, err := c.Get(p.path())
	if err != nil {
		return found{}, err
	}
	life, value, err := decodePulse(data)
	return found{owner: stat.EphemeralOwner, life: life, value: value, version: stat.Version}, err
}

func decodePulse(data []byte) (life uint64, value []byte, err error) {
	if len(data) < lifeBytes {
		return 0, nil, fmt.Errorf("a pulse shows %q: %w", data, errDamaged)
	}
	if len(data) > lifeBytes {
		value = data[lifeBytes:]
	}
	return binary.BigEndian.Uint64(data), value, nil
}

// create creates both nodes after what is to be done first.
func (p *pulse) create(ctx context.Context, life uint64, value []byte, first ...any) error {
	p.life = life
	operations := append(first, p.journal.create(p.owner, nil, zk.FlagEphemeral),
		p.journal.create(p.path(), pulseData(life, value), zk.FlagEphemeral))
	_, err := answered(ctx, p.session, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(operations...) })
	return err
}

// run waits until the pulse is given up or lost. The library renews the session.
func (p *pulse) run() {
	defer close(p.stopped)
	defer p.release()
	for p.ctx.Err() == nil {
		n, err := p.journal.look(p.ctx, p.owner)
		if err == nil && n.stat == nil && errors.Is(p.owned(p.ctx), zk.ErrNoNode) || p.session.ctx.Err() != nil {
			if p.ctx.Err() == nil {
				close(p.lost)
			}
			return
		}
		timer := time.NewTimer(lookEvery)
		select {
		case <-n.changed:
		case <-p.session.ctx.Done():
		case <-timer.C:
		case <-p.ctx.Done():
		}
		timer.Stop()
	}
}

// owned returns nil if the pulse is its owner's now, zk.ErrNoNode if it is not; a quorum takes part.
func (p *pulse) owned(ctx context.Context, also ...any) error {
	operations := append([]any{&zk.CheckVersionRequest{Path: p.owner, Version: -1}}, also...)
	_, err := p.journal.multi(ctx, operations...)
	return err
}

// Publish implements journal.Pulse.
func (p *pulse) Publish(ctx context.Context, value []byte) error {
	if len(value) > journal.ValueBytesMax {
		return fmt.Errorf("publish %d bytes with pulse %s: %w", len(value), p.id, journal.ErrTooLarge)
	}
	return p.do(ctx, "publish with",
		&zk.SetDataRequest{Path: p.path(), Data: pulseData(p.life, value), Version: -1})
}

// Confirm implements journal.Pulse.
func (p *pulse) Confirm(ctx context.Context) error {
	if err := p.do(ctx, "confirm"); err != nil {
		return err
	}
	during, done := p.journal.during(ctx, attemptMax)
	defer done()
	last, err := p.journal.present(during) // after the pulse, so that was there before the seal
	if err == nil && last.To != "" {
		err = journal.ErrSealed
	}
	if err != nil {
		return p.journal.failed(ctx, "confirm pulse "+p.id, err)
	}
	return nil
}

// do does something on the condition that the pulse is its owner's.
func (p *pulse) do(ctx context.Context, what string, operations ...any) error {
	what = fmt.Sprintf("%s pulse %s", what, p.id)
	if over := p.journal.over(ctx); over != nil {
		return over
	}
	refused := fmt.Errorf("%s: %w", what, journal.ErrNoPulse)
	if p.ctx.Err() != nil {
		return refused
	}
	during, done := p.journal.during(ctx, attemptMax)
	defer done()
	switch err := p.owned(during, operations...); {
	case errors.Is(err, zk.ErrNoNode):
		return refused
	case err != nil:
		return p.journal.failed(ctx, what, err)
	}
	return nil
}

// Lost implements journal.Pulse.
func (p *pulse) Lost() <-chan struct{} { return p.lost }

// End implements journal.Pulse.
func (p *pulse) End(ctx context.Context) error {
	if over := p.journal.over(ctx); over != nil {
		return over
	}
	p.Abandon()
	during, done := p.journal.during(ctx, attemptMax)
	defer done()
	// If an attempt that was not answered did it, the next finds nothing.
	err := p.owned(during, &zk.DeleteRequest{Path: p.path(), Version: -1}, &zk.DeleteRequest{Path: p.owner, Version: -1})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return p.journal.failed(ctx, "end pulse "+p.id, err)
	}
	return nil
}

// Abandon implements journal.Pulse.
func (p *pulse) Abandon() {
	p.release()
	<-p.stopped
}
