package peer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/peer/clock"
	"starling/peer/outbox"
	"starling/peer/plant"
	"starling/replica"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// Phase is how far a peer is.
type Phase string

// The phases of a peer.
const (
	// Reading: it folds what the journal already holds.
	Reading Phase = "reading"
	// Joining: it has read everything and is not a member yet.
	Joining Phase = "joining"
	// Member: it is one.
	Member Phase = "member"
	// Left: the value says that this incarnation has left; it needs a new life.
	Left Phase = "left"
	// Removed: a user has removed its node from the cluster; it ends what runs here and does nothing any more.
	Removed Phase = "removed"
	// Diverged: its value differs from others'; it does nothing any more but to say that it is away.
	Diverged Phase = "diverged"
	// Halted: its program cannot fold what comes next; it does nothing any more.
	Halted Phase = "halted"
)

// Core is one peer without clock, goroutine and I/O. It is not safe for concurrent use. Every method takes the peer's
// own clock where it needs the time.
type Core struct {
	self   terms.PeerID
	state  *cluster.State
	outbox outbox.Outbox
	clock  clock.Clock
	offer  *terms.Offer
	// backAt is the time before which a peer that was away does not say that it is back.
	backAt terms.Time
	// memberSince is since when this life is a member, in the peer's own time; 0 before.
	memberSince terms.Time
	// offerRefusal is why the fold has refused the offer in this life, or would; "" if it takes it.
	offerRefusal string
	// caughtUp tells that everything was folded that the journal held when this life began.
	caughtUp bool
	diverged string
	// halted is why nothing more is folded, nil if it is.
	halted error
	// folding is the record that is being folded, nil between two; digest is that of the value before it.
	folding *journal.Record
	digest  uint64
	// gone are the watched peers whose pulse has ended.
	gone []terms.PeerID
	// local is what the driver has; starting what it was told to start and has not answered; refused what it could not;
	// arriving the volumes that are copied here, until it is known whether they are here now; of those in doubt it is
	// known when the entry that is under way has been folded.
	local    []reaction.LocalTask
	volumes  []terms.VolumeSet
	arriving []terms.VolumeSet
	inDoubt  []terms.VolumeSet
	outputs  []terms.OutputSet
	starting map[terms.AllocationID]bool
	refused  map[terms.AllocationID]string
	// unwell are the allocations of which a check failed too often, with the reason.
	unwell map[terms.AllocationID]string
	// StartsMax bounds how many starts are under way: what is asked of a peer is not to wait for those of thousands.
	StartsMax int
	// lost are the allocations of which this node should have the outputs and has not.
	lost map[terms.AllocationID]bool
	// stopping are the allocations that the driver was told to end, with the grace told.
	stopping map[terms.AllocationID]uint32
	// Renewing tells that the driver is replacing files.
	Renewing bool
	// Pulseless tells that the life's pulse was lost and is not back: another may lead the life meanwhile, so that nothing
	// is started.
	Pulseless bool
	// DoubtMillis is for how long yet the end of a pulse says nothing about the peer that had it.
	DoubtMillis int64
	// Key names the node's key, zero for none.
	Key access.Key
	// Folder returns where an allocation finds the files about its job's members.
	Folder func(terms.AllocationID) string
	// Explain asks the fold for effects.
	Explain bool
	// marked is the value of which a snapshot is due.
	marked marked
	// trimmed is the entry up to which the journal was trimmed, as far as this peer knows; snapshotBusy tells that
	// something is being done for a snapshot.
	trimmed      terms.Index
	snapshotBusy bool
	// Knows is the newest version of the rules by which this program folds.
	Knows rules.Number
}

// StartsMax bounds those starts under way that wait for nothing but their turn.
const StartsMax = 64

// NewCore returns a core before the first entry of a cluster with the given limits. It does nothing until Begin.
func NewCore(limits terms.Limits) *Core {
	s := cluster.NewStateWithin(limits)
	return &Core{
		state: s, digest: s.Digest(), Knows: RulesNewest, StartsMax: StartsMax, starting: map[terms.AllocationID]bool{},
		refused: map[terms.AllocationID]string{}, stopping: map[terms.AllocationID]uint32{},
		unwell: map[terms.AllocationID]string{}, lost: map[terms.AllocationID]bool{},
	}
}

// Begin gives the core its identity: an incarnation, and how often the process has started under it. It is called
// when the journal was read as far as it went at the start, and again for every new life.
func (c *Core) Begin(self terms.PeerID, start uint32, offer *terms.Offer) {
	c.self, c.offer, c.offerRefusal, c.caughtUp = self, offer, offer.Problem(), true
	c.outbox.TakeBack()
	c.outbox.Seq = outbox.Sequence(start)
	c.gone, c.backAt, c.memberSince = nil, 0, 0
}

// Offer has the node offer something else, in this life.
func (c *Core) Offer(offer *terms.Offer) {
	if c.offer != nil {
		offer.AwayUntil = c.offer.AwayUntil
	}
	c.offer, c.offerRefusal = offer, offer.Problem()
}

// backMillis is how long a peer that was away waits before it says that it is back. Its pulse may have ended meanwhile:
// by then whoever watches it knows that it beats again, and does not say that the peer has left.
const backMillis = 2000

// ComeBack tells, after Begin, that the process had ended with notice.
func (c *Core) ComeBack(own terms.Time) { c.backAt = c.clock.Now(own) + backMillis }

// GoAway gives notice, with the next entry, that the process ends and will be back within some milliseconds: until then
// what runs here stays its own. It returns false if there can be none: of no member, or under rules without it.
func (c *Core) GoAway(own terms.Time, within uint32) bool {
	if phase, _ := c.Phase(); phase != Member || c.offer == nil || c.state.Rules < rules.Volumes {
		return false
	}
	away := *c.offer
	away.AwayUntil = c.clock.Now(own) + terms.Time(within)
	c.offer = &away
	return true
}

// NextIncarnation returns the lowest incarnation of a node that the value knows nothing of, nor of any above.
func (c *Core) NextIncarnation(node terms.NodeName) uint32 { return pastOf(c.state, node).next }

// Self returns the identity of the present life, "" before the first.
func (c *Core) Self() terms.PeerID { return c.self }

// State returns the value; it must only be read, and only until the next call.
func (c *Core) State() *cluster.State { return c.state }

// Phase returns how far the peer is, and why if it diverged.
func (c *Core) Phase() (Phase, string) {
	name, incarnation := c.self.Split()
	node := c.state.NodeOf(name)
	switch {
	case c.halted != nil:
		return Halted, c.halted.Error()
	case c.diverged != "":
		return Diverged, c.diverged
	case !c.caughtUp:
		return Reading, ""
	case c.state.Registry().IsGone(name):
		return Removed, fmt.Sprintf("node %s was removed from the cluster: stop the agent, and delete its data directory", name)
	case node != nil && incarnation <= node.Departed:
		return Left, ""
	case c.state.IsMember(c.self):
		return Member, ""
	}
	return Joining, ""
}

// Fold takes the next record of the journal and returns what it did. A record that was folded before is passed over,
// with ok false, and so is all that comes after Halt has an answer; one that does not follow the last is a gap, which
// the journal must never show.
func (c *Core) Fold(r journal.Record, own terms.Time) (folded report.Folded, ok bool) {
	if terms.Index(r.Index) <= c.state.Index || c.halted != nil {
		return report.Folded{}, false
	}
	c.folding = &r // it stays there if the fold panics
	if folded, ok = c.fold(&r, own); ok {
		c.digest = folded.Digest
	}
	c.folding = nil
	return folded, ok
}

// fold folds the next record.
func (c *Core) fold(r *journal.Record, own terms.Time) (folded report.Folded, ok bool) {
	index := terms.Index(r.Index)
	folded = report.Folded{Index: index, Bytes: len(r.Payload)}
	e, err := command.Decode(r.Payload, c.state.Rules)
	if errors.Is(err, command.ErrPreRelease) && c.state.Nodes() == 0 {
		// The whole journal is of that time. Where others have written before it is garbage as any other.
		c.halted = fmt.Errorf("%w: its journal was begun by a program from before the first release, in format 1: "+
			"start a new cluster with empty data folders, or run the program that wrote it", ErrProgram)
		return report.Folded{}, false
	}
	if err != nil {
		folded.Outcome = replica.Skip(c.state, index, len(r.Payload), err.Error())
		c.mark()
		if r.Writer == string(c.self) {
			c.outbox.Unreadable(r.Seq, err)
		}
		folded.Digest = c.state.Digest()
		return folded, true
	}
	folded.Entry = e
	folded.Outcome = replica.Apply(c.state, index, e, c.Explain)
	c.mark()
	plant.Bug(c.self, c.state, e)
	folded.Digest = c.state.Digest()
	c.clock.Heard(c.state.Time, own)
	if e.Writer == c.self {
		name, incarnation := c.self.Split()
		last := uint64(0)
		if node := c.state.NodeOf(name); node != nil {
			last = node.LastSeq(incarnation)
		}
		c.outbox.Folded(e, &folded.Outcome, last)
		c.offered(&folded)
	}
	if now := c.state.Rules; now > c.Knows {
		c.halted = fmt.Errorf("%w: that has version %d of the rules after entry %d, and this program knows up to version %d: "+
			"install a newer one and start it; tasks go on meanwhile", ErrProgram, now, index, c.Knows)
	}
	return folded, true
}

// offered notes a refusal of this peer's offer. The offer is not written again: it would be refused again.
func (c *Core) offered(f *report.Folded) {
	for i, result := range f.Outcome.Results {
		if f.Entry.Commands[i].Kind() == command.KindVolunteer && result.Refusal.Code != facts.OK {
			c.offer, c.offerRefusal = nil, result.Refusal.Reason
		}
	}
}

// OfferRefusal returns why the fold has refused what this peer's node offers, or would; "" if it takes it.
func (c *Core) OfferRefusal() string { return c.offerRefusal }

// ErrProgram tells that the cluster needs another program.
var ErrProgram = errors.New("this program does not fit the cluster")

// Halt returns why this program can fold nothing more, nil if it can. The value is that of all peers at its index.
func (c *Core) Halt() error { return c.halted }

// Request takes a command from a client; answer is called once, maybe at once.
func (c *Core) Request(one command.Command, answer func(report.Receipt, error)) {
	c.outbox.Add(outbox.Request{Command: one, Answer: answer})
}

// Fail answers everybody who waits with an error.
func (c *Core) Fail(err error) { c.outbox.Fail(err) }

// Stall answers everybody who waits, and everybody who comes, with an error as long as the journal does not take the
// entry with the number.
func (c *Core) Stall(seq uint64, why error) { c.outbox.Stall(seq, why) }

// SetRoom tells how full the journal is: of a full one the rest is for what trims it, and for reports.
func (c *Core) SetRoom(room journal.Room) { c.outbox.Room = room }

// Full says that the journal is full and what to do, "" if it is not.
func (c *Core) Full() string { return c.outbox.Full() }

// Stalled returns why no requests are taken, nil if they are.
func (c *Core) Stalled() error { return c.outbox.Stalled }

// Diverge makes the peer passive, because its value differs from others'.
func (c *Core) Diverge(reason string) { c.diverged = reason }

// PulseSeen takes the news of a pulse that was asked to be watched.
func (c *Core) PulseSeen(p terms.PeerID, alive bool) {
	at, found := slices.BinarySearch(c.gone, p)
	switch {
	case found && alive:
		c.gone = slices.Delete(c.gone, at, at+1)
	case !found && !alive:
		c.gone = slices.Insert(c.gone, at, p)
	}
}

// DriverHas replaces what the driver has.
func (c *Core) DriverHas(local []reaction.LocalTask) { c.local = local }

// ExpectVolumes keeps volumes that are copied here from being deleted, until DropVolumes or what becomes of
// TakeVolumes. It is false if they are expected already.
func (c *Core) ExpectVolumes(set terms.VolumeSet) bool {
	if slices.Contains(c.arriving, set) || slices.Contains(c.inDoubt, set) {
		return false
	}
	c.arriving = append(c.arriving, set)
	return true
}

// DropVolumes has volumes that were expected be deleted, unless they belong here.
func (c *Core) DropVolumes(set terms.VolumeSet) {
	c.arriving = slices.DeleteFunc(c.arriving, func(one terms.VolumeSet) bool { return one == set })
}

// TakeVolumes asks for volumes that were copied here, as Request does. They are not deleted as long as it is not known
// what came of that.
func (c *Core) TakeVolumes(set terms.VolumeSet, ask command.Command, answer func(report.Receipt, error)) {
	c.ExpectVolumes(set)
	c.Request(ask, func(r report.Receipt, err error) {
		if errors.Is(err, report.ErrUnknown) {
			c.inDoubt = append(c.inDoubt, set)
		}
		c.DropVolumes(set)
		answer(r, err)
	})
}

// DriverKeeps replaces the sets of volumes and the outputs that the driver keeps.
func (c *Core) DriverKeeps(sets []terms.VolumeSet, outputs []terms.OutputSet) {
	c.volumes, c.outputs = sets, outputs
}

// CheckFailed takes the news that a check of an allocation that runs failed too often.
func (c *Core) CheckFailed(id terms.AllocationID, why string) { c.unwell[id] = why }

// OutputLost takes the news that the output of an allocation that has succeeded here is not there any more.
func (c *Core) OutputLost(id terms.AllocationID) { c.lost[id] = true }

// DriverStarted takes the driver's answer to a start: refusal is why it does not have the allocation, "" if it has.
func (c *Core) DriverStarted(id terms.AllocationID, refusal string) {
	delete(c.starting, id)
	if refusal != "" {
		c.refused[id] = refusal
	}
}

// Work is what the world must do for a core.
type Work struct {
	// Append is the record to append, again and again until that succeeds or a new life begins; nil for none.
	Append *journal.Record
	Start  []reaction.Order
	Stop   []reaction.StopOrder
	// Waits are the allocations that cannot be started before others have nodes.
	Waits []reaction.Wait
	// Renew are the files to replace.
	Renew  []reaction.Renewal
	Forget []terms.AllocationID
	// Probe are all instances that are to be asked from now on whether they are well.
	Probe []reaction.Order
	// DeleteVolumes are the sets of volumes to delete.
	DeleteVolumes []terms.VolumeSet
	// DeleteOutputs are the outputs to delete.
	DeleteOutputs []terms.OutputSet
	// Snapshot is to be done for a snapshot; nil for nothing.
	Snapshot *SnapshotWork
	// Watch lists all pulses that must be watched from now on.
	Watch []terms.PeerID
	// AskAgain is the peer's own time at which to call React again although nothing happened; 0 for never.
	AskAgain terms.Time
}

// settled are the volumes that the driver keeps, but for those of which it is not known yet whether they are here.
func (c *Core) settled() []terms.VolumeSet {
	if !c.outbox.IsUnderWay() {
		c.inDoubt = nil
	}
	return slices.DeleteFunc(slices.Clone(c.volumes), func(set terms.VolumeSet) bool {
		return slices.Contains(c.arriving, set) || slices.Contains(c.inDoubt, set)
	})
}

// React returns what is to be done now. Nothing is asked for twice unless it had no effect.
func (c *Core) React(own terms.Time) Work {
	phase, _ := c.Phase()
	if phase == Diverged {
		return Work{Append: c.stayAway(c.clock.Now(own))}
	}
	if phase != Joining && phase != Member && phase != Removed {
		return Work{}
	}
	now := c.clock.Now(own)
	r := reaction.React(c.self, c.state,
		&reaction.Observed{Now: now, Gone: c.gone, Doubt: now + terms.Time(c.DoubtMillis), Local: c.seen(),
			Starts: c.StartsMax - len(c.starting), Volumes: c.settled(), Outputs: c.outputs, Lost: c.missing(),
			Snapshot: c.marked.Snapshot,
			Offer:    c.offerAt(now), Folder: c.Folder, Renewing: c.Renewing, Key: c.Key, Full: c.outbox.Room.Full()})
	w := Work{Watch: r.Watch, Waits: r.Waits, Probe: r.Probe, Renew: r.Renew, Forget: c.forget(r.Forget),
		DeleteVolumes: r.DeleteVolumes, DeleteOutputs: r.DeleteOutputs, Snapshot: c.snapshotWork(&r.Snapshots)}
	if at := c.askAgain(r.AskAgain, now); at != 0 {
		w.AskAgain = own + max(at-now, 1)
	}
	before := len(c.refused)
	if w.Start = c.start(r.Start); len(c.refused) > before || len(w.Start) > 0 && r.Queued > 0 {
		w.AskAgain = own + 1 // a refusal is to be told, or the bound is another when it is known what these wait for
	}
	for _, stop := range r.Stop {
		if grace, told := c.stopping[stop.ID]; !told || stop.GraceMillis < grace {
			c.stopping[stop.ID] = stop.GraceMillis
			w.Stop = append(w.Stop, stop)
		}
	}
	wait := c.awaitsRules(own, phase)
	w.AskAgain = earlier(w.AskAgain, wait)
	w.Append = c.next(now, r.Commands, phase == Member && wait == 0)
	return w
}

// start returns what the driver is to start, of what may start.
func (c *Core) start(orders []reaction.Order) (now []reaction.Order) {
	for _, order := range orders {
		switch {
		case order.Refusal != "":
			c.refused[order.ID] = order.Refusal
		case !c.starting[order.ID] && !c.Pulseless:
			c.starting[order.ID] = true
			now = append(now, order)
		}
	}
	return now
}

// earlier returns the earlier of two times, of which 0 is never.
func earlier(a, b terms.Time) terms.Time {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// rulesWithin is how long a new member lets requests wait for the rules of a new cluster, in milliseconds.
const rulesWithin = 3000

// awaitsRules returns until when requests wait for the rules to be raised, in the peer's own time; 0 if they need not.
// A new cluster has all rules before its first job, after which they are raised by hand. Its first member raises them,
// and it need not be well.
func (c *Core) awaitsRules(own terms.Time, phase Phase) (until terms.Time) {
	if phase == Member && c.memberSince == 0 {
		c.memberSince = own
	}
	if until = c.memberSince + rulesWithin; !reaction.Rising(c.state) || own >= until {
		return 0
	}
	return until
}

// next returns the next record of reactions, and of what was requested if that is open; nil for none.
func (c *Core) next(now terms.Time, reactions []command.Command, open bool) *journal.Record {
	header := command.Entry{Rules: c.state.Rules, Writer: c.self, Time: now, Cause: c.state.Index}
	payload := c.outbox.Next(header, reactions, open)
	if payload == nil {
		return nil
	}
	return &journal.Record{Writer: string(c.self), Seq: c.outbox.Seq, Payload: payload}
}

// stayAway has a peer that diverged after it gave notice be away on and on, so that its node takes nothing new.
func (c *Core) stayAway(now terms.Time) *journal.Record {
	node := c.state.NodeOf(c.self.Node())
	if node == nil || c.offer == nil || c.offer.AwayUntil == 0 {
		return nil
	}
	if c.offer.AwayUntil < now+terms.AwayMillisMax/2 {
		c.offer.AwayUntil = now + terms.AwayMillisMax // nobody else has this offer
	}
	if node.Offer != nil && node.Offer.Equal(c.offer) {
		return nil
	}
	return c.next(now, []command.Command{&command.Volunteer{Peer: c.self, Offer: *c.offer}}, false)
}

// offerAt returns what the node offers at a time, nil while a peer that was away is not yet to say that it is back.
func (c *Core) offerAt(now terms.Time) *terms.Offer {
	if now < c.backAt {
		return nil
	}
	return c.offer
}

// askAgain returns the earlier of a time, 0 for none, and that at which the peer is to say that it is back.
func (c *Core) askAgain(at, now terms.Time) terms.Time {
	if now < c.backAt {
		return earlier(at, c.backAt)
	}
	return at
}

// missing returns the allocations whose outputs are lost, without those of which the value knows it or does not care.
func (c *Core) missing() []terms.AllocationID {
	maps.DeleteFunc(c.lost, func(id terms.AllocationID, _ bool) bool { return !reaction.IsKept(c.state, id) })
	return slices.SortedFunc(maps.Keys(c.lost), terms.AllocationID.Compare)
}

// seen is what the driver has, with what checks say; what it refused to start as if it had ended; and what it was told
// to start and may have in a moment: nobody may say that this does not run.
func (c *Core) seen() []reaction.LocalTask {
	if len(c.refused)+len(c.unwell)+len(c.starting) == 0 {
		return c.local
	}
	all := slices.Clone(c.local)
	for i := range all {
		all[i].CheckFailure = c.unwell[all[i].ID]
	}
	for id, refusal := range c.refused {
		all = append(all, reaction.LocalTask{ID: id, Ended: facts.NotStarted, Detail: refusal})
	}
	starting := maps.Clone(c.starting)
	for i := range c.local {
		delete(starting, c.local[i].ID)
	}
	for id := range starting {
		all = append(all, reaction.LocalTask{ID: id, Starting: true})
	}
	slices.SortFunc(all, func(a, b reaction.LocalTask) int { return a.ID.Compare(b.ID) })
	return all
}

// forget drops what the core remembers of allocations that are over, and returns those that the driver has.
func (c *Core) forget(over []terms.AllocationID) []terms.AllocationID {
	var known []terms.AllocationID
	for _, id := range over {
		delete(c.stopping, id)
		delete(c.unwell, id)
		if _, refused := c.refused[id]; refused {
			delete(c.refused, id)
			continue
		}
		known = append(known, id)
	}
	return known
}

// Describe says in one line where the core is, for logs.
func (c *Core) Describe() string {
	phase, why := c.Phase()
	return fmt.Sprintf("%s %s %s at %d, digest %016x", c.self, phase, why, c.state.Index, c.state.Digest())
}
