// Package move lets the journal of a living cluster go on in another engine.
//
//	from:  records ... the last one | seal
//	to:                               snapshot of the value there, pulses of all that live, the cluster's id
//
// The value is folded from the old journal, and its digest compared with those of the peers before anything is changed.
// The seal ends the old journal at one index. The value there is what the new one begins with; it holds a pulse for
// each peer that had one, until that comes and adopts it, so that nobody takes it for dead. The cluster's id is written
// last: before that no agent takes the new journal for its own.
//
// What was broken off anywhere is taken up by doing it again.
package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"starling/cluster/facts"
	"starling/journal"
	"starling/peer"
	"starling/peer/inbox"
	"starling/peer/sign"
	"starling/replica/report"
	"starling/terms"
)

// Errors for which nothing was changed.
var (
	// ErrSame tells that both journals are one.
	ErrSame = errors.New("this is where the journal is already")
	// ErrOther tells that a journal belongs to another cluster.
	ErrOther = errors.New("this is the journal of another cluster")
	// ErrUsed tells that the place is not empty.
	ErrUsed = errors.New("there is another journal already")
	// ErrElsewhere tells that the journal was sealed to go on elsewhere.
	ErrElsewhere = errors.New("the journal was sealed, to go on elsewhere")
	// ErrBegun tells that peers go on with the journal at another place than this one.
	ErrBegun = errors.New("the journal goes on elsewhere already")
	// ErrRoom tells that the place has no room for the journal, or does not take it.
	ErrRoom = errors.New("the new place does not take the journal")
	// ErrDiffers tells that peers have another value than this program has folded.
	ErrDiffers = errors.New("this program makes of the journal what a peer does not")
)

const (
	// again is how long to wait before an engine that gave no answer is asked again.
	again = time.Second
	// compareEvery and compareMax bound the comparison of digests, which peers publish every second.
	compareEvery = 200 * time.Millisecond
	compareMax   = 15 * time.Second
)

// Move says what is to go where.
type Move struct {
	From, To journal.Journal
	// Cluster is the id of the cluster whose journal it is.
	Cluster string
	// Place says for people where To is.
	Place string
	// Founds tells that this machine alone has To yet, and lets others have it when it is whole.
	Founds bool
	// Begun returns ErrBegun if peers go on with a journal behind the entry after which this one was sealed.
	Begun func(context.Context, terms.Index) error
	// Instead goes on although the journal was sealed to go on at another place, where nothing has begun.
	Instead bool
	Limits  terms.Limits
	// Pulse is how long the pulses in the new journal live without this process.
	Pulse time.Duration
	// Tell says how far it is.
	Tell func(format string, a ...any)

	core    *peer.Core
	digests map[terms.Index]uint64
	seal    journal.Seal
	// pulses are those of the peers that are awaited, held those that are held for them, by their ids.
	pulses []journal.PulseState
	held   map[string]journal.Pulse
	// late tells that the journal was sealed before the pulses were listed: some may have ended meanwhile.
	late bool
}

// Check finds out whether the journal may move, and changes nothing.
func (m *Move) Check(ctx context.Context) error {
	id, err := m.From.Cluster(ctx, "")
	if err == nil {
		m.seal, err = m.From.Seal(ctx, "")
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the old journal: %w", err)
	case id != m.Cluster:
		return fmt.Errorf("the old journal is of cluster %q, and this machine of %q: %w", id, m.Cluster, ErrOther)
	case m.seal.To != "" && m.seal.To != m.Place && !m.Instead:
		return fmt.Errorf("%w: at entry %d, to %s", ErrElsewhere, m.seal.Index, m.seal.To)
	}
	there, err := m.checkTarget(ctx)
	if err != nil {
		return err
	}
	if m.seal.To != "" && (m.Founds || !there) {
		if err := m.Begun(ctx, terms.Index(m.seal.Index)); err != nil {
			return err
		}
	}
	if err := m.compare(ctx); err != nil || m.seal.To == m.Place {
		return err // behind the seal it is late to look for room
	}
	return m.checkRoom(ctx)
}

// checkRoom refuses a place whose quota is too small: what is written before the seal and what the journal begins with
// are there at once, and the cluster must not begin full.
func (m *Move) checkRoom(ctx context.Context) error {
	room, err := m.To.Room(ctx)
	if err != nil {
		return fmt.Errorf("look at the new place: %w", err)
	}
	size := int64(0)
	_, chunks := peer.SeedOf(m.core.State())
	for _, chunk := range chunks {
		size += int64(len(chunk))
	}
	used := room.Used
	if room.Used += 2 * size; room.Full() {
		return fmt.Errorf("%w: it holds %d bytes of the %d that its quota allows, and twice the value is %d more", ErrRoom, used,
			room.Quota, 2*size)
	}
	return nil
}

// try writes into the new place what shows that it takes the journal, as long as there is a way back: the value as it
// is now, and the pulses. Without a seal nothing comes of it.
func (m *Move) try(ctx context.Context) error {
	kept, chunks := peer.SeedOf(m.core.State())
	err := inbox.Put(ctx, m.To, kept, chunks)
	if err == nil {
		err = m.hold(ctx)
	}
	if err == nil {
		err = m.checkRoom(ctx)
	}
	if err != nil && !errors.Is(err, ErrRoom) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrRoom, err)
	}
	return err
}

// checkTarget refuses a place that is not empty, unless it was begun to be filled for this very seal. It tells whether
// the journal is there already.
func (m *Move) checkTarget(ctx context.Context) (there bool, err error) {
	head, err := m.To.Head(ctx)
	var id string
	var seal journal.Seal
	var stands journal.Snapshot
	if err == nil {
		id, err = m.To.Cluster(ctx, "")
	}
	if err == nil {
		seal, err = m.To.Seal(ctx, "")
	}
	if err == nil {
		stands, err = m.To.Snapshot(ctx)
	}
	begun := m.seal.To != "" && stands.Index == m.seal.Index && head == m.seal.Index
	switch {
	case err != nil:
		return false, fmt.Errorf("look at the new place: %w", err)
	case id != "" && id != m.Cluster:
		return false, fmt.Errorf("%w: that of cluster %s", ErrOther, id)
	case seal.To != "":
		return false, fmt.Errorf("%w: it was sealed at entry %d and went on at %s", ErrUsed, seal.Index, seal.To)
	case id != "" && m.seal.To == "":
		return false, ErrSame
	case id != "" && head < m.seal.Index:
		return false, fmt.Errorf("%w: an older one of this cluster, which ends at entry %d", ErrUsed, head)
	case id == "" && head > 0 && !begun:
		return false, fmt.Errorf("%w: it has entry %d", ErrUsed, head)
	}
	return id != "", nil
}

// compare folds the old journal, and compares the digests with those that the living peers show.
func (m *Move) compare(ctx context.Context) error {
	m.core, m.digests = peer.NewCore(m.Limits), map[terms.Index]uint64{}
	for end := time.Now().Add(compareMax); ; inbox.Pause(ctx, compareEvery) {
		head, err := m.From.Head(ctx)
		if err == nil {
			err = m.foldTo(ctx, terms.Index(head))
		}
		if err == nil {
			m.pulses, err = m.From.Pulses(ctx)
		}
		if err != nil {
			return fmt.Errorf("read the old journal: %w", err)
		}
		same, differs := 0, error(nil)
		for _, state := range m.pulses {
			view, _ := sign.ViewOf(state)
			switch own, known := m.digests[view.Index]; {
			case known && own == view.Digest:
				same++
			case known:
				differs = fmt.Errorf("%w: peer %s has digest %016x after entry %d, and here it is %016x", ErrDiffers, view.Peer,
					view.Digest, view.Index, own)
			}
		}
		switch {
		case differs != nil:
			return differs
		case ctx.Err() != nil:
			return ctx.Err()
		case len(m.pulses) == 0:
			m.Tell("no peer shows its value, so that this program's, at entry %d, is compared with none", m.core.State().Index)
			return nil
		case same == len(m.pulses):
			m.Tell("%d peers live, and have the value that this program makes of the journal, at entry %d", same, m.core.State().Index)
			return nil
		case time.Now().After(end) && same > 0:
			m.Tell("%d of %d peers that live show the value that this program makes of the journal; the others have not read as far",
				same, len(m.pulses))
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%w: none of %d has shown a digest in %v", ErrDiffers, len(m.pulses), compareMax)
		}
	}
}

// errFolded ends the reading.
var errFolded = errors.New("all is folded")

// foldTo folds the old journal up to an entry, or to its end if it is sealed.
func (m *Move) foldTo(ctx context.Context, to terms.Index) error {
	own := func() terms.Time { return terms.Time(time.Now().UnixMilli()) }
	next := journal.Index(m.core.State().Index) + 1
	if m.core.State().Index >= to && m.seal.To == "" {
		return nil
	}
	err := inbox.Follow(ctx, m.From, next, func(d inbox.Delivery) error {
		if d.Snapshot.Index > 0 {
			m.core.Restore(inbox.Named(d.Snapshot), d.Data, own())
		}
		for _, r := range d.Records {
			m.core.Fold(r, own())
			m.digests[m.core.State().Index] = m.core.State().Digest()
		}
		m.digests[m.core.State().Index] = m.core.State().Digest()
		if m.core.Halt() != nil || m.core.State().Index >= to && m.seal.To == "" {
			return errFolded
		}
		return nil
	})
	if errors.Is(err, errFolded) || errors.Is(err, journal.ErrSealed) {
		err = m.core.Halt()
	}
	return err
}

// Do seals the old journal and lets the new one begin. An engine that does not answer is asked again and again: once
// sealed there is no way back. It returns the entry at which the journal goes on.
func (m *Move) Do(ctx context.Context) (terms.Index, error) {
	id, err := m.To.Cluster(ctx, "")
	if err != nil {
		return 0, fmt.Errorf("look at the new place: %w", err)
	}
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"seal the old journal", m.end},
		{"read the old journal to its end", func(ctx context.Context) error {
			return m.foldTo(ctx, terms.Index(m.seal.Index))
		}},
		{"let the new journal begin", func(ctx context.Context) error {
			return peer.Seed(ctx, m.To, m.core.State())
		}},
		{"hold the pulses of the peers", m.hold},
		{"say whose the new journal is", func(ctx context.Context) error {
			_, err := m.To.Cluster(ctx, m.Cluster)
			return err
		}},
	}
	m.held = map[string]journal.Pulse{}
	if id == m.Cluster {
		m.Tell("the journal is there already")
		if m.pulses, err = m.To.Pulses(ctx); err != nil {
			return 0, fmt.Errorf("look at the new place: %w", err)
		}
		return terms.Index(m.seal.Index), nil
	}
	if m.seal.To == "" {
		if err := m.try(ctx); err != nil {
			return 0, err
		}
	}
	for _, step := range steps {
		if err := m.insist(ctx, step.what, step.do); err != nil {
			return 0, err
		}
	}
	return m.core.State().Index, nil
}

// insist does something until it is done, or ctx ends, or trying again would not help.
func (m *Move) insist(ctx context.Context, what string, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrElsewhere) || m.core.Halt() != nil {
			return wrapped(what, err)
		}
		m.Tell("%s: trying again: %v", what, err)
		inbox.Pause(ctx, again)
	}
}

func wrapped(what string, err error) error {
	if err == nil || errors.Is(err, ErrElsewhere) {
		return err
	}
	return fmt.Errorf("%s: %w\nhint: do it again; what is done already is not done twice", what, err)
}

// end seals the old journal. Who lived just before is to live on.
func (m *Move) end(ctx context.Context) (err error) {
	if m.seal, err = m.From.Seal(ctx, ""); err != nil {
		return err
	}
	if m.late = m.seal.To != ""; !m.late {
		if m.pulses, err = m.From.Pulses(ctx); err == nil {
			m.seal, err = m.From.Seal(ctx, m.Place)
		}
	}
	if err == nil && m.seal.To != m.Place && !m.Instead {
		err = fmt.Errorf("%w: at entry %d, to %s", ErrElsewhere, m.seal.Index, m.seal.To)
	}
	if err == nil {
		m.Tell("sealed after entry %d", m.seal.Index)
	}
	return err
}

// await lists whose pulses are to be held: those that were listed, and, if that was after the seal, all other members.
// Behind a seal pulses end of peers that nobody has declared dead, and nobody can any more. A member that is away with
// notice has none to begin with.
func (m *Move) await() {
	if !m.late {
		return
	}
	s := m.core.State()
	s.EachMember(func(id terms.PeerID) bool {
		offer := s.NodeOf(id.Node()).Offer
		listed := slices.ContainsFunc(m.pulses, func(p journal.PulseState) bool { return p.ID == string(id) })
		if !listed && (offer == nil || offer.Open()) {
			view := report.PulseView{}
			if offer != nil {
				view.Address = offer.Address
			}
			m.pulses = append(m.pulses, journal.PulseState{ID: string(id), Value: sign.Of(sign.Kept, &view)})
		}
		return true
	})
}

// hold begins the pulses of all that live, each with what tells its owner that it is its own. They show no position:
// nobody has read this journal yet.
func (m *Move) hold(ctx context.Context) error {
	m.await()
	for _, state := range m.pulses {
		if m.held[state.ID] != nil {
			continue
		}
		pulse, err := m.To.Pulse(ctx, state.ID, m.Pulse, false)
		if errors.Is(err, journal.ErrPulseTaken) {
			pulse, err = m.adopt(ctx, state.ID)
		}
		if err != nil {
			return err
		}
		if pulse == nil {
			continue
		}
		view, token := sign.ViewOf(state)
		if err := pulse.Publish(ctx, sign.Of(token, &report.PulseView{Address: view.Address})); err != nil {
			return errors.Join(err, pulse.End(ctx))
		}
		m.held[state.ID] = pulse
	}
	return nil
}

// adopt goes on with a pulse that an earlier try has begun, and which would end soon; it returns nil if the peer itself
// may have it, because another try has let all begin.
func (m *Move) adopt(ctx context.Context, id string) (journal.Pulse, error) {
	cluster, err := m.To.Cluster(ctx, "")
	if err != nil || cluster != "" {
		return nil, err
	}
	return m.To.Pulse(ctx, id, m.Pulse, true)
}

// TakeUp is instead of Check and Do for a journal that is at the new place already, whatever has become of the old one:
// Await waits for all that have a pulse there. The error tells that it is not.
func (m *Move) TakeUp(ctx context.Context) error {
	id, err := m.To.Cluster(ctx, "")
	switch {
	case err != nil:
		return err
	case id != m.Cluster:
		return ErrOther
	}
	m.pulses, err = m.To.Pulses(ctx)
	return err
}

// isAway tells whether a peer is away with notice, as far as this process has folded the journal.
func (m *Move) isAway(id string) bool {
	if m.core == nil {
		return false
	}
	node := m.core.State().NodeOf(terms.PeerID(id).Node())
	return node != nil && node.Peer == terms.PeerID(id) && node.Offer != nil && !node.Offer.Open()
}

// Await waits until all whose pulses are held have come, but not for those that are away with notice. It returns how
// many have, and those that have not when ctx ends.
func (m *Move) Await(ctx context.Context) (here int, absent []string) {
	for _, state := range m.pulses {
		if m.isAway(state.ID) {
			m.Tell("%s is away with notice: what runs there stays its own until that is over", state.ID)
			continue
		}
		absent = append(absent, state.ID)
	}
	for ; len(absent) > 0 && ctx.Err() == nil; inbox.Pause(ctx, compareEvery) {
		states, err := m.To.Pulses(ctx)
		if err != nil {
			continue
		}
		reads := map[string]bool{}
		for _, state := range states {
			view, _ := sign.ViewOf(state)
			reads[state.ID] = view.Index > 0
		}
		left := absent[:0]
		for _, id := range absent {
			if reads[id] {
				m.Tell("%s is there", id)
				here++
				continue
			}
			left = append(left, id)
		}
		absent = left
	}
	return here, absent
}

// Dead lists the nodes of the cluster of which no peer lived when the journal was read last.
func (m *Move) Dead() (names []string) {
	if m.core == nil {
		return nil // the copy was taken up when all was there
	}
	s := m.core.State()
	for n := range facts.NodeIndex(s.Nodes()) {
		name := s.Node(n).Name
		lives := slices.ContainsFunc(m.pulses, func(p journal.PulseState) bool { return terms.PeerID(p.ID).Node() == name })
		if !lives && !s.Registry().IsGone(name) {
			names = append(names, string(name))
		}
	}
	return names
}
