package peer

import (
	"context"
	"errors"
	"fmt"

	"starling/journal"
	"starling/peer/digests"
	"starling/peer/inbox"
	"starling/replica/report"
	"starling/terms"
)

// doubtsMax is how often in a row a peer whose value differs from others' may find it right. After that its program
// folds otherwise than theirs, and it counts who has what.
const doubtsMax = 3

// doubt is what a peer knows of its own value where others have another.
type doubt struct {
	// checking tells that the journal is being folded anew.
	checking bool
	// right is how often in a row the value was found right, proven up to where.
	right  int
	proven terms.Index
}

// judge looks who of all that live has another value than this peer, which then does nothing until it has folded the
// journal anew and knows who is wrong. Where that does not tell, because each is right by its own program, this one is
// wrong if at least half of all have another value: of two that differ both stop.
func (p *Peer) judge(views []report.PulseView) {
	living, against, at := 0, 0, terms.Index(0)
	for _, view := range views {
		living++
		if view.Peer != p.core.Self() && view.Index > p.doubt.proven && p.history.Differs(view.Index, view.Digest) {
			against++
			at = view.Index
		}
	}
	if against == 0 || p.doubt.right == doubtsMax && 2*against < living {
		return
	}
	reason := fmt.Sprintf("the value of this peer differs from that of %d of %d at entry %d: it does nothing until it has folded "+
		"the journal anew", against, living, at)
	if p.doubt.right == doubtsMax {
		reason = fmt.Sprintf("the program of this peer makes of the journal what those of %d of %d do not, at entry %d: "+
			"it takes nothing new, and what runs here goes on; install the same program everywhere", against, living, at)
		p.core.GoAway(p.now(), terms.AwayMillisMax)
	}
	p.log.Error(reason)
	p.core.Diverge(reason)
}

// check folds anew what the journal keeps, compares the digests with those that the value had, and goes on with what
// comes of it if one differs.
func (p *Peer) check(ctx context.Context) {
	if p.doubt.checking || p.doubt.right == doubtsMax {
		return
	}
	p.doubt.checking = true
	to, known, anew := p.core.state.Index, p.history.Digests, NewCore(p.config.Limits)
	anew.Knows, anew.Explain = p.core.Knows, p.core.Explain
	p.group.Go(func() {
		parted, folded, err := foldTo(ctx, p.config.Journal, anew, &known)
		if err != nil {
			p.log.Warn("the journal could not be folded anew; trying again", "error", err)
			inbox.Pause(ctx, snapshotPause)
		}
		p.post(ctx, func() {
			p.doubt.checking = false
			switch {
			case err != nil:
			case parted == 0:
				p.log.Warn("folded anew the value of this peer is the same: others are wrong", "entry", to)
				p.doubt.right, p.doubt.proven = p.doubt.right+1, to
				p.core.Diverge("")
			default:
				p.log.Error("the value of this peer was wrong; it goes on with that of the journal", "from", parted, "to", to)
				p.adopt(ctx, anew, parted, folded)
			}
		})
	})
}

// errFolded ends the reading.
var errFolded = errors.New("all is folded")

// foldTo lets a core fold the journal up to the last entry of which a digest is known, and returns the first after
// which that is another, 0 if there is none, and what was folded from there on.
func foldTo(ctx context.Context, j journal.Journal, core *Core, known *digests.Digests) (parted terms.Index,
	after []report.Folded, err error) {
	compare := func() {
		if parted == 0 && known.Differs(core.state.Index, core.digest) {
			parted = core.state.Index
		}
	}
	err = inbox.Follow(ctx, j, 1, func(d inbox.Delivery) error {
		if d.Snapshot.Index > 0 {
			core.Restore(inbox.Named(d.Snapshot), d.Data, now())
			compare()
		}
		for _, r := range d.Records {
			if core.state.Index < known.Last && core.Halt() == nil {
				folded, ok := core.Fold(r, now())
				if compare(); ok && parted != 0 {
					after = append(after, folded)
				}
			}
		}
		if core.state.Index >= known.Last || core.Halt() != nil {
			return errFolded
		}
		return nil
	})
	if errors.Is(err, errFolded) {
		err = core.Halt()
	}
	return parted, after, err
}

// adopt goes on with the value of another core, which has folded these entries since they parted, and reads what
// follows it. The digest that the pulse shows is to be replaced although the index may be the same.
func (p *Peer) adopt(ctx context.Context, anew *Core, parted terms.Index, folded []report.Folded) {
	wrong := p.core.state
	p.core.replace(anew.state, p.now())
	p.core.Diverge("")
	p.doubt = doubt{}
	p.frozen = p.core.state.Freeze()
	p.history.forget(parted)
	for _, f := range folded {
		p.history.add(f)
	}
	p.history.Restart(p.core.state.Index, p.core.digest)
	p.history.published = 0
	p.config.Archive.Restored(p.core.state, wrong)
	p.startFollow(ctx, journal.Index(p.core.state.Index)+1)
	p.answerWaiting()
}
