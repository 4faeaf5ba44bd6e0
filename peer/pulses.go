package peer

import (
	"context"
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/driver"
	"starling/driver/uptime"
	"starling/journal"
	"starling/peer/inbox"
	"starling/peer/sign"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
)

// pulseNews is what a watched pulse showed.
type pulseNews struct {
	peer  terms.PeerID
	state journal.PulseState
}

// watch makes the watched pulses those of the list.
func (p *Peer) watch(ctx context.Context, all []terms.PeerID) {
	for _, id := range all {
		if p.watching[id] != nil {
			continue
		}
		watching, cancel := context.WithCancel(ctx)
		p.watching[id] = cancel
		p.group.Go(func() {
			err := p.config.Journal.WatchPulse(watching, string(id), func(state journal.PulseState) {
				select {
				case p.pulses <- pulseNews{id, state}:
				case <-watching.Done():
				}
			})
			if watching.Err() == nil {
				p.log.Error("watching a pulse ended", "peer", id, "error", err)
			}
		})
	}
	for id, cancel := range p.watching {
		if !slices.Contains(all, id) {
			cancel()
			delete(p.watching, id)
			p.core.PulseSeen(id, true)
		}
	}
}

// pulseSeen passes the news on, and compares the digest that a living pulse shows.
func (p *Peer) pulseSeen(ctx context.Context, news pulseNews) {
	if p.watching[news.peer] == nil {
		return
	}
	p.core.PulseSeen(news.peer, news.state.Alive)
	if view, _ := sign.ViewOf(news.state); view.Alive && p.history.Differs(view.Index, view.Digest) {
		p.log.Warn("a digest differs; asking the others", "peer", news.peer, "index", view.Index)
		p.group.Go(func() {
			// By then everybody has published what was folded when this difference was seen.
			inbox.Pause(ctx, 2*publishEvery)
			if views, err := p.Pulses(ctx); err == nil {
				p.post(ctx, func() { p.judge(views) })
			}
		})
	}
}

// pulseless tells whether the life's pulse was lost and is not back.
func (p *Peer) pulseless() bool {
	if p.life.pulse == nil {
		return true
	}
	select {
	case <-p.life.pulse.Lost():
		return true
	default:
		return false
	}
}

// publish shows the position and the digest with the pulse, when they changed since last time, and notices a lost
// pulse.
func (p *Peer) publish(ctx context.Context) {
	pulse := p.life.pulse
	if pulse == nil {
		return
	}
	if p.pulseless() {
		p.revive(ctx)
		return
	}
	index := p.core.state.Index
	if index == p.history.published {
		return
	}
	p.history.published = index
	value := sign.Of(p.life.known.Token, &report.PulseView{Index: index, Digest: p.core.state.Digest(),
		Address: p.config.Offer.Address, OfferRefusal: p.core.OfferRefusal()})
	p.group.Go(func() {
		short, cancel := context.WithTimeout(ctx, publishEvery)
		defer cancel()
		if err := pulse.Publish(short, value); err != nil && ctx.Err() == nil {
			p.log.Warn("the pulse could not be published", "error", err)
			p.post(ctx, func() { p.history.published = 0 }) // so it is tried again although nothing more may be folded
		}
	})
}

// Pulses lists the peers that live, with what they published last.
func (p *Peer) Pulses(ctx context.Context) ([]report.PulseView, error) {
	states, err := p.config.Journal.Pulses(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the pulses: %w", err)
	}
	views := make([]report.PulseView, len(states))
	for i, state := range states {
		views[i], _ = sign.ViewOf(state)
	}
	return views, nil
}

// Proofs keep a slot from having two instances that live. The fold gives the place of an instance with stop_after to
// another no earlier than that time, its grace and some slack after the entry with which its node left; and nobody
// writes that entry before he saw the pulse of the node's peer end. So a moment at which a peer asked whether its pulse
// lives, and heard yes, lies before that entry. The supervisor stops the task stop_after after the last such moment,
// whatever has become of the peer, and so in time.
//
// A pulse that ended and was brought back proves nothing, because the entry may be on its way: see identity.Remembered.

// prove asks for a proof, and passes it on to the supervisors of all tasks that want it.
func (p *Peer) prove(ctx context.Context) {
	pulse := p.life.pulse
	if pulse == nil || p.living || p.proving || len(p.core.Guarded()) == 0 {
		return
	}
	if p.life.known.Interrupted {
		p.log.Warn("a new incarnation begins: the pulse of this one has ended, so tasks with stop_after would stop themselves",
			"peer", p.life.peer)
		_, over := p.life.peer.Split()
		p.startLife(ctx, over)
		return
	}
	p.proving = true
	p.group.Go(func() {
		at, err := proof(ctx, pulse)
		p.post(ctx, func() {
			p.proving = false
			if err != nil {
				p.log.Warn("no proof that this peer is still a member", "error", err)
			} else if p.life.pulse == pulse {
				p.proved(at)
			}
		})
	})
}

// proof returns a moment before which the pulse certainly has not ended.
func proof(ctx context.Context, pulse journal.Pulse) (uptime.Moment, error) {
	short, cancel := context.WithTimeout(ctx, publishEvery)
	defer cancel()
	at := uptime.Now()
	return at, pulse.Confirm(short)
}

func (p *Peer) proved(at uptime.Moment) {
	for _, id := range p.core.Guarded() {
		if err := p.config.Driver.Prove(id.String(), at); err != nil {
			p.log.Error("a task could not be proved wanted", "allocation", id.String(), "error", err)
		}
	}
}

// firstProof completes a task that wants proofs; false if it must not be started now.
func (p *Peer) firstProof(ctx context.Context, pulse journal.Pulse, task *driver.Task) bool {
	if task.Proofs.StopAfter == 0 {
		return true
	}
	if pulse == nil {
		return false
	}
	at, err := proof(ctx, pulse)
	task.Proofs.First = at
	return err == nil
}

// provingPulse is the pulse that may prove tasks wanted; nil if there is none now.
func (p *Peer) provingPulse() journal.Pulse {
	if p.life.known.Interrupted {
		return nil
	}
	return p.life.pulse
}

// Guarded returns the allocations of this peer whose supervisors want proofs that it is still a member. Those that an
// earlier life left are not among them before the value says that they are this one's.
func (c *Core) Guarded() []terms.AllocationID {
	if !c.state.IsMember(c.self) {
		return nil
	}
	var guarded []terms.AllocationID
	for _, a := range reaction.ViewOf(c.state, c.self) {
		if a.Spec.StopsItself() && a.Phase != facts.Unknown {
			guarded = append(guarded, a.ID)
		}
	}
	return guarded
}
