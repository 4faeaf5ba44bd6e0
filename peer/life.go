package peer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"starling/cluster"
	"starling/journal"
	"starling/peer/identity"
	"starling/peer/inbox"
	"starling/peer/outbox"
	"starling/peer/sign"
	"starling/replica/report"
	"starling/terms"
)

// life is an incarnation with its pulse.
type life struct {
	peer  terms.PeerID
	known identity.Remembered
	pulse journal.Pulse
	// fresh tells that it is a new incarnation.
	fresh bool
	err   error
}

// past is what the value knows of a node's lives: the last that left, and the first that it knows nothing of.
type past struct{ departed, next uint32 }

func pastOf(s *cluster.State, name terms.NodeName) past {
	node := s.NodeOf(name)
	if node == nil {
		return past{next: 1}
	}
	known := node.Departed
	for _, session := range node.Sessions {
		known = max(known, session.Incarnation)
	}
	return past{node.Departed, known + 1}
}

// startLife finds the life to lead, and brings it to the loop when its pulse beats. Incarnations up to over are not to
// be led again.
func (p *Peer) startLife(ctx context.Context, over uint32) {
	p.living = true
	before := pastOf(p.core.state, p.config.Node)
	before.departed = max(before.departed, over)
	if old := p.life.pulse; old != nil {
		old.Abandon()
		p.life.pulse = nil
	}
	p.group.Go(func() {
		for ctx.Err() == nil {
			found := p.findLife(ctx, before)
			if found.err == nil && found.fresh {
				before, found.err = p.confirm(ctx, &found)
			}
			if found.err == nil {
				select {
				case p.lives <- found:
				case <-ctx.Done():
					found.pulse.Abandon()
				}
				return
			}
			p.log.Warn("no pulse yet; trying again", "error", found.err)
			inbox.Pause(ctx, time.Second)
		}
	})
}

// findLife takes up the remembered life if its pulse still beats and is this node's own, and the value knows no end of
// it; otherwise it begins a new one, which is remembered before anybody hears of it. What another process with the same
// name has created must not be taken up: two machines would be one peer.
func (p *Peer) findLife(ctx context.Context, before past) life {
	known, err := p.config.Identity.Load()
	if err != nil {
		return life{err: err}
	}
	if known.Incarnation > before.departed && known.Starts > 0 {
		id := terms.NewPeerID(p.config.Node, known.Incarnation)
		mine, err := p.ownsPulse(ctx, id, known.Token)
		if err != nil {
			return life{err: err}
		}
		known.Starts++
		if err := p.config.Identity.Save(known); err != nil {
			return life{err: err}
		}
		if mine {
			pulse, err := p.config.Journal.Pulse(ctx, string(id), p.config.PulseTTL, true)
			if !errors.Is(err, journal.ErrNoPulse) {
				return life{peer: id, known: known, pulse: pulse, err: err}
			}
		}
		if known.Away {
			if found := p.takeUp(ctx, id, known); found.pulse != nil || found.err != nil {
				return found
			}
		}
	}
	return p.newLife(ctx, identity.Remembered{Incarnation: max(known.Incarnation+1, before.next), Token: known.Token})
}

// newLife begins an incarnation. Its pulse shows at once whose it is.
func (p *Peer) newLife(ctx context.Context, known identity.Remembered) life {
	if known.Token == "" {
		known.Token = rand.Text()
	}
	if err := p.config.Identity.Save(known); err != nil {
		return life{err: err}
	}
	id := terms.NewPeerID(p.config.Node, known.Incarnation)
	pulse, err := p.newPulse(ctx, id, known.Token)
	return life{peer: id, known: known, pulse: pulse, fresh: true, err: err}
}

// newPulse lets the pulse of a life begin, or begin again.
func (p *Peer) newPulse(ctx context.Context, id terms.PeerID, token string) (journal.Pulse, error) {
	pulse, err := p.config.Journal.Pulse(ctx, string(id), p.config.PulseTTL, false)
	if err != nil {
		return nil, fmt.Errorf("pulse of %s: %w", id, err)
	}
	if err := pulse.Publish(ctx, sign.Of(token, &report.PulseView{Address: p.config.Offer.Address})); err != nil {
		pulse.Abandon()
		return nil, fmt.Errorf("pulse of %s: %w", id, err)
	}
	return pulse, nil
}

// takeUp brings back the pulse of a life that was left with notice, and takes the life up if it is a member's yet when
// the journal was read up to that moment. It returns nothing if it is to be given up for a new one.
func (p *Peer) takeUp(ctx context.Context, id terms.PeerID, known identity.Remembered) life {
	pulse, err := p.newPulse(ctx, id, known.Token)
	if errors.Is(err, journal.ErrPulseTaken) {
		return life{}
	}
	if err != nil {
		return life{err: err}
	}
	known.Interrupted = true
	s, err := p.present(ctx)
	if err == nil && s.IsMember(id) {
		if err = p.config.Identity.Save(known); err == nil {
			return life{peer: id, known: known, pulse: pulse}
		}
	}
	pulse.Abandon()
	return life{err: err}
}

// present returns the value at the end that the journal has now.
func (p *Peer) present(ctx context.Context) (*cluster.State, error) {
	head, err := p.config.Journal.Head(ctx)
	if err != nil {
		return nil, err
	}
	return p.State(ctx, terms.Index(head))
}

// GoAway gives notice that this process is to end and will be back within a time, and returns when that counts: until
// then what runs here stays its own, and nothing new comes.
func (p *Peer) GoAway(ctx context.Context, within time.Duration) error {
	given := make(chan error, 1)
	p.post(ctx, func() {
		p.life.known.Away = true
		if p.life.pulse == nil || !p.core.GoAway(p.now(), uint32(within.Milliseconds())) {
			given <- errors.New("it is no member, or the cluster's rules know no notice")
			return
		}
		given <- p.config.Identity.Save(p.life.known)
	})
	select {
	case err := <-given:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	case <-p.stopped:
		return outbox.ErrStopped
	}
	for least := terms.Index(0); ; {
		s, err := p.State(ctx, least)
		if err != nil {
			return err
		}
		if row := s.NodeOf(p.config.Node); row.Offer != nil && !row.Offer.Open() {
			return nil
		}
		if s.Registry().IsGone(p.config.Node) {
			return errors.New("the node was removed")
		}
		least = s.Index + 1
	}
}

// ownsPulse tells whether the peer's pulse beats and shows the token, or is kept for the one process that has led this
// life.
func (p *Peer) ownsPulse(ctx context.Context, id terms.PeerID, token string) (bool, error) {
	states, err := p.config.Journal.Pulses(ctx)
	if err != nil {
		return false, fmt.Errorf("listing the pulses: %w", err)
	}
	return slices.ContainsFunc(states, func(state journal.PulseState) bool {
		_, shown := sign.ViewOf(state)
		return state.ID == string(id) && (shown == token || shown == sign.Kept)
	}), nil
}

// confirm reads the journal up to the moment at which the new life's pulse began, and gives the life up if another node
// of this name has led it before. It returns what the value knows by then. Only from then on is the life remembered as
// one to take up.
func (p *Peer) confirm(ctx context.Context, found *life) (past, error) {
	s, err := p.present(ctx)
	if err != nil {
		found.pulse.Abandon()
		return past{}, err
	}
	known := pastOf(s, p.config.Node)
	if known.next > found.known.Incarnation {
		found.pulse.Abandon()
		return known, fmt.Errorf("another node with the name %s has been %s: give each machine a name of its own",
			p.config.Node, found.peer)
	}
	if err := found.pulse.Confirm(ctx); err != nil { // while the journal was read another may have had it
		found.pulse.Abandon()
		return known, fmt.Errorf("pulse of %s: %w", found.peer, err)
	}
	found.known.Starts = firstStart()
	if err := p.config.Identity.Save(found.known); err != nil {
		found.pulse.Abandon()
		return known, err
	}
	return known, nil
}

// firstStart draws how many starts a new life is taken to have had. Somebody may have led it before and written nothing
// that counted, with a disk that was emptied since: his records have their names, and the journal takes no name twice.
func firstStart() uint32 { return 1 + mathrand.Uint32N(1<<20) }

// begin leads the life that was found.
func (p *Peer) begin(next life) {
	p.life, p.living = next, false
	if p.self.Swap(&next.peer); p.core.Self() == "" {
		close(p.lived)
	}
	p.core.Begin(next.peer, next.known.Starts, p.offer)
	p.findUndone()
	p.learnKnown()
	if next.known.Away {
		p.core.ComeBack(p.now())
		p.life.known.Away = false
	}
	p.log.Info("joined the journal", "peer", next.peer, "starts", next.known.Starts, "entry", p.core.state.Index)
}

// revive brings back a pulse that ended although its peer lives. If another node has it now, that one has this life,
// and a new one is found.
func (p *Peer) revive(ctx context.Context) {
	p.log.Warn("the pulse was lost: the journal could not be reached in time", "peer", p.life.peer)
	p.life.pulse, p.life.known.Interrupted = nil, true
	lost := p.life
	p.group.Go(func() {
		for ctx.Err() == nil {
			err := p.config.Identity.Save(lost.known)
			if err == nil {
				var pulse journal.Pulse
				pulse, err = p.config.Journal.Pulse(ctx, string(lost.peer), p.config.PulseTTL, false)
				if err == nil || errors.Is(err, journal.ErrPulseTaken) {
					p.post(ctx, func() { p.revived(ctx, lost.peer, pulse) })
					return
				}
			}
			p.log.Warn("the pulse is not back yet; trying again", "peer", lost.peer, "error", err)
			inbox.Pause(ctx, time.Second)
		}
	})
}

func (p *Peer) revived(ctx context.Context, id terms.PeerID, pulse journal.Pulse) {
	present := p.life.peer == id && p.life.pulse == nil && !p.living
	switch {
	case present && pulse != nil:
		p.life.pulse = pulse
		p.history.published = 0
	case present:
		p.log.Error("another process has this peer's pulse: is there a second machine with this name?", "peer", id)
		_, over := id.Split()
		p.startLife(ctx, over)
	case pulse != nil:
		pulse.Abandon()
	}
}
