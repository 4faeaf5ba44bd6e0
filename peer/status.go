package peer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"starling/cluster/registry"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// Meter counts what a peer does. Several goroutines call it, and it must not wait for anything.
type Meter interface {
	// Folded takes an entry that was folded, and how long that took; none that the journal held before the peer started.
	Folded(f *report.Folded, took time.Duration)
	// Appended takes how long an attempt to append took, and its error.
	Appended(took time.Duration, err error)
	// CheckFailed counts a check of an instance that failed.
	CheckFailed()
}

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Folded(*report.Folded, time.Duration) {}
func (noMeter) Appended(time.Duration, error)        {}
func (noMeter) CheckFailed()                         {}

// Status tells what the peer knows of itself.
func (p *Peer) Status(ctx context.Context) report.PeerStatus {
	status := make(chan report.PeerStatus, 1)
	p.post(ctx, func() {
		phase, why := p.core.Phase()
		warnings := p.config.Driver.Warnings()
		if why != "" {
			warnings = append([]string{why}, warnings...)
		}
		refusal := p.core.OfferRefusal()
		if refusal != "" {
			warnings = append([]string{"this node gets no work, because its offer is refused: " + refusal}, warnings...)
		}
		if full := p.core.Full(); full != "" {
			warnings = append(warnings, full)
		}
		for _, id := range slices.SortedFunc(maps.Keys(p.outputs.waits), terms.AllocationID.Compare) {
			warnings = append(warnings, fmt.Sprintf("%s is not started yet: %s", id, p.outputs.waits[id]))
		}
		if err := p.core.Stalled(); err != nil {
			warnings = append([]string{err.Error()}, warnings...)
		}
		waits := p.checked.prober.Failing()
		for id, why := range waits {
			waits[id] = "not ready: " + why
		}
		maps.Copy(waits, p.outputs.waits)
		for _, wait := range p.waits {
			waits[wait.ID] = wait.Reason
		}
		status <- report.PeerStatus{Self: p.core.Self(), Phase: string(phase), Index: p.core.state.Index,
			OfferRefusal: refusal, Warnings: warnings, Troubles: p.core.Troubles(), Waits: waits,
			Requests:    p.core.outbox.Waiting(),
			JournalUsed: p.core.outbox.Room.Used, JournalQuota: p.core.outbox.Room.Quota}
	})
	select {
	case s := <-status:
		return s
	case <-ctx.Done():
	case <-p.stopped:
	}
	return report.PeerStatus{Self: p.Self(), Phase: "stopped",
		Troubles: []report.Trouble{{Kind: report.NotMember, Reason: "it has stopped"}}}
}

// known is who is known to the cluster, and whether the rules have that.
type known struct {
	registry *registry.Registry
	inForce  bool
}

// learnKnown keeps who is known, for all that ask. A value of before the journal's end may know those who were removed
// since.
func (p *Peer) learnKnown() {
	if p.core.caughtUp {
		p.known.Store(&known{p.core.state.Registry(), p.core.state.Rules >= rules.Registry})
	}
}

// HasRead tells whether the peer has read the journal to its end since it was started.
func (p *Peer) HasRead() bool { return p.known.Load() != nil }

// Registry is who is known to the cluster, and whether its rules have such a registry; none before the peer has read
// the journal.
func (p *Peer) Registry() (all *registry.Registry, inForce bool) {
	if now := p.known.Load(); now != nil {
		return now.registry, now.inForce
	}
	return nil, false
}

// Troubles are why the peer does not serve as it should, as far as the core knows; none if it does.
func (c *Core) Troubles() (all []report.Trouble) {
	switch phase, why := c.Phase(); phase {
	case Member:
	case Removed:
		all = append(all, report.Trouble{Kind: report.NotMember, Reason: why})
	case Diverged:
		all = append(all, report.Trouble{Kind: report.Diverged, Reason: why})
	default:
		all = append(all, report.Trouble{Kind: report.NotMember, Reason: cmp.Or(why, "it is "+string(phase))})
	}
	if err := c.Stalled(); err != nil {
		all = append(all, report.Trouble{Kind: report.NoQuorum, Reason: err.Error()})
	}
	if full := c.Full(); full != "" {
		all = append(all, report.Trouble{Kind: report.JournalFull, Reason: full})
	}
	return all
}

// Head asks the engine how far the journal goes.
func (p *Peer) Head(ctx context.Context) (terms.Index, error) { return p.contact.Head(ctx) }

// Silence returns when the engine answered last, and why it does not now; a zero time if it does.
func (p *Peer) Silence() (since time.Time, why error) { return p.contact.Silence() }
