package peer

import (
	"context"
	"time"

	"starling/cluster/facts"
	"starling/driver"
	"starling/driver/uptime"
	"starling/journal"
	"starling/replica/reaction"
	"starling/terms"
)

// Proofs keep a slot from having two instances that live. The fold gives the place of an instance with stop_after to
// another no earlier than that time, its grace and some slack after the entry with which its node left; and nobody
// writes that entry before he saw the pulse of the node's peer end. So a moment at which a peer asked whether its pulse
// lives, and heard yes, lies before that entry. The supervisor stops the task stop_after after the last such moment,
// whatever has become of the peer, and so in time.
//
// A pulse that ended and was brought back proves nothing, because the entry may be on its way: see Remembered.

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

// proofsOf says which proofs the supervisor of a task wants.
func proofsOf(order *reaction.Order) driver.Proofs {
	return driver.Proofs{
		StopAfter: time.Duration(order.Spec.Disconnect.StopAfterMillis) * time.Millisecond,
		StopGrace: time.Duration(order.Spec.StopGraceMillis) * time.Millisecond,
	}
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
