package reconcile

// DaemonSlot is the place of one instance of a daemon: a node, and a number below the task's count. Its Index is
// whatever number the caller knows it by. What its candidates say of their node is not read.
type DaemonSlot struct {
	Slot
	Number uint32
	Node   NodeState
	Target Target
}

// Target tells whether a daemon is to run on a node.
type Target uint8

// The values of Target.
const (
	// Targeted nodes run the daemon.
	Targeted Target = iota
	// NotReady nodes would, but take nothing new now.
	NotReady
	// Untargeted nodes do not.
	Untargeted
)

// ReconcileDaemon decides about a task that runs on every node, like Reconcile. Policy.Canaries are percent of what is
// outdated; a canary of a daemon is placed in the stead of what runs, not beside it. Failed instances are placed again
// at once.
func ReconcileDaemon(t *Task, slots []DaemonSlot, rest Tally, out *Result) {
	out.reset()
	g := grant{t: t, out: out, sum: rest, daemon: true}
	for i := range slots {
		g.add(DecideDaemon(t, &slots[i], out))
	}
	g.conclude()
}

// DecideDaemon decides about one slot of a daemon, like Decide.
func DecideDaemon(t *Task, slot *DaemonSlot, out *Result) Decision {
	d := decider{t: t, slot: &slot.Slot, out: out, d: Decision{Index: slot.Index}}
	stops := len(out.Stops)
	var room [8]contender
	list := d.gatherDaemon(slot, room[:0])
	keeper := d.settle(list)
	switch {
	case keeper != nil:
		d.d.Main = d.keepDaemon(slot, keeper)
	case t.closed() || slot.Number >= t.Count:
		d.d.Main.Reason = NotWanted
	case slot.Node != NodeReady || slot.Target != Targeted:
		d.d.Main.Reason = NodeClosed
	default:
		d.d.Main = d.fillDaemon()
	}
	sortStops(out.Stops[stops:])
	return d.d
}

// gatherDaemon appends to list the instances that may keep the seat, and stops those that may not.
func (d *decider) gatherDaemon(slot *DaemonSlot, list []contender) []contender {
	for i := range d.slot.Candidates {
		c := &d.slot.Candidates[i]
		d.count(c)
		if c.terminal() {
			if d.lost == nil || !d.t.older(c) && d.t.older(d.lost) || d.t.older(c) == d.t.older(d.lost) && c.Order > d.lost.Order {
				d.lost = c
			}
			continue
		}
		class, reason := d.daemonClass(slot, c)
		switch reason {
		case NoReason:
			list = join(list, contender{Candidate: c, class: class})
		case NodeLost:
			d.stop(c, reason, LostClient)
		case Moved:
			d.endQuietly(c, reason, NoClient)
			d.out.Counts.Migrate++
		default:
			d.stop(c, reason, NoClient)
		}
	}
	return list
}

// daemonClass returns the class of a live instance, or why it is stopped.
func (d *decider) daemonClass(slot *DaemonSlot, c *Candidate) (Class, Reason) {
	switch {
	case d.t.closed() || slot.Number >= d.t.Count:
		return Ignored, NotNeeded
	case c.Migrate:
		return Migrating, Moved
	case c.expired(&d.t.specOf(c).Disconnect, d.t.Now):
		return Expiring, NodeLost
	case c.Client == UnknownClient:
		return Untouched, NoReason
	case slot.Node == NodeDisconnected && c.Client == RunningClient && d.t.specOf(c).Disconnect.LostAfterMillis > 0:
		return Disconnecting, NoReason
	case slot.Node == NodeDown || slot.Node == NodeGone || slot.Node == NodeDisconnected && c.Client == RunningClient:
		return Lost, NodeLost
	case slot.Node != NodeReady:
		return Untouched, NoReason
	case slot.Target == Untargeted || slot.Target == NotReady && c.Change != NoChange:
		return Ignored, NotNeeded
	case c.returns():
		return Reconnecting, NoReason
	}
	return Untouched, NoReason
}

// keepDaemon decides about the instance that has the seat.
func (d *decider) keepDaemon(slot *DaemonSlot, c *contender) Verdict {
	v := Verdict{Holder: c.Order, Version: c.Version}
	d.reach(c, &v)
	d.d.Weight.Ignored++
	if d.t.placedNow(c.Candidate) {
		d.d.Weight.judge(c.Health)
		if c.CanaryOf == d.t.Update.ID {
			d.d.Weight.Canaries++
			if c.Health == Healthy {
				d.d.Weight.CanariesHealthy++
			}
		}
	}
	if slot.Node == NodeReady && slot.Target == Targeted && c.Client != UnknownClient {
		d.change(c.Candidate, &v)
	}
	return v
}

// fillDaemon decides about a seat that no instance has. Batch work that has ended is not run again by the same version.
func (d *decider) fillDaemon() Verdict {
	last := d.lost
	switch {
	case last == nil:
		return d.vacant(NeverFilled)
	case !d.t.Batch:
		v := d.vacant(Emptied)
		v.Holder, v.Version = last.Order, last.Version
		return v
	}
	d.d.Weight.Ignored++
	v := Verdict{Holder: last.Order, Version: last.Version, Reason: Done}
	if d.t.older(last) || last.Change != NoChange {
		d.d.Weight.Outdated++
		v.Action, v.Reason = Replace, AsAsked
	}
	return v
}

// daemonCanaries finds how many canaries a daemon's update wants, and how many seats may be replaced for them.
func (g *grant) daemonCanaries() {
	update := &g.t.Update
	wanted, joined := uint32(0), g.t.joined()
	if joined {
		wanted = update.Canaries
	}
	promoted := joined && update.Promoted
	if wanted == 0 && !promoted {
		wanted = (g.t.Policy.Canaries*uint32(g.sum.Outdated) + 99) / 100
		if g.t.Policy.BatchSize > 0 {
			wanted = min(wanted, g.t.Policy.BatchSize)
		}
	}
	g.out.Update.Canaries = wanted
	g.trying = wanted > 0 && !promoted
	g.lacksCanaries = g.trying && g.sum.Outdated > 0 && g.sum.Canaries < int32(wanted)
}
