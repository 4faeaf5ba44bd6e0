package reconcile

import "starling/terms"

// selfStopSlackMillis is the least time that an instance gets to stop itself after it should have.
const selfStopSlackMillis = 5000

// contender is a candidate that may keep the seat.
type contender struct {
	*Candidate
	class Class
	// back tells that it was out of reach and is seen again.
	back bool
}

// decider decides about one slot.
type decider struct {
	t    *Task
	slot *Slot
	out  *Result
	d    Decision
	// lost is the youngest candidate of the seat that was lost; taken tells that the seat ever had any.
	lost  *Candidate
	taken bool
}

// Decide decides about one slot. It adds to out what happens in any case: stops of those that do not keep a seat. What
// the verdicts ask for is for Reconcile to grant.
func Decide(t *Task, slot *Slot, out *Result) Decision {
	d := decider{t: t, slot: slot, out: out, d: Decision{Index: slot.Index}}
	stops := len(out.Stops)
	if t.closed() || slot.Index >= t.Count {
		d.close()
	} else {
		d.d.Main = d.seat(MainSeat)
		d.d.Canary = d.seat(CanarySeat)
	}
	sortStops(out.Stops[stops:])
	return d.d
}

// sortStops orders the few stops of one slot.
func sortStops(stops []Stopping) {
	for i := 1; i < len(stops); i++ {
		for j := i; j > 0 && stops[j-1].Order > stops[j].Order; j-- {
			stops[j-1], stops[j] = stops[j], stops[j-1]
		}
	}
}

// close stops whatever stands in a slot that is not wanted.
func (d *decider) close() {
	d.d.Main.Reason = NotWanted
	for i := range d.slot.Candidates {
		c := &d.slot.Candidates[i]
		if d.dismissed(c) {
			continue
		}
		switch class := Classify(c, &d.t.specOf(c).Disconnect, d.t.Now); {
		case class == Lost || class == Expiring:
			d.stop(c, NodeLost, LostClient)
		default:
			d.stop(c, NotNeeded, NoClient)
		}
	}
}

// dismissed tells whether nothing is to be done about a candidate of a slot that is not wanted.
func (d *decider) dismissed(c *Candidate) bool {
	switch {
	case d.t.Wanted == Stopped:
		return c.terminal()
	case d.t.closed():
		return c.toldToEnd()
	case d.t.Batch && (c.toldToEnd() || c.terminal() && d.t.older(c)):
		if Considered(c, true) {
			d.d.Weight.Ignored++
		}
		return true
	}
	d.count(c)
	return c.toldToEnd() || c.ended() && Occupation(c, d.t.Batch) == Vacates
}

// seat decides about one seat: it goes through the candidates, settles which keeps the seat, and judges it.
func (d *decider) seat(seat Seat) Verdict {
	var room [8]contender
	list := d.gather(seat, room[:0])
	keeper := d.settle(list)
	if lost := d.lost; keeper != nil && lost != nil && keeper.ended() && !d.done(keeper.Candidate) && lost.Order > keeper.Order {
		d.dismiss(keeper) // it failed before the one that was lost took its place
		keeper = nil
	}
	switch {
	case keeper != nil:
		return d.judge(keeper, seat)
	case seat == CanarySeat:
		return Verdict{}
	case d.lost != nil:
		return d.afterLoss(d.lost)
	case d.taken:
		return d.vacant(Emptied)
	}
	return d.vacant(NeverFilled)
}

// gather appends to list the candidates that may keep the seat, and stops those that were lost or are canaries of an
// update that is over.
func (d *decider) gather(seat Seat, list []contender) []contender {
	d.lost, d.taken = nil, false
	for i := range d.slot.Candidates {
		c := &d.slot.Candidates[i]
		if own, wanted := d.t.seatOf(c); own != seat {
			continue
		} else if !wanted {
			d.endCanary(c)
			continue
		}
		d.taken = true
		class, contends := d.admit(c, seat)
		switch {
		case seat == CanarySeat && class == Migrating:
			d.endQuietly(c, Moved, NoClient)
		case contends:
			list = join(list, contender{Candidate: c, class: class})
		default:
			d.leave(c, class, seat)
		}
	}
	return list
}

// leave deals with a candidate that has no claim to the seat.
func (d *decider) leave(c *Candidate, class Class, seat Seat) {
	lost := class == Lost || class == Expiring
	switch {
	case lost && seat == CanarySeat:
		d.endQuietly(c, NodeLost, LostClient)
	case lost:
		d.stop(c, NodeLost, LostClient)
	}
	if (lost || c.Client == LostClient) && (d.lost == nil || d.lost.Order < c.Order) {
		d.lost = c
	}
}

// join adds a contender, the oldest first.
func join(list []contender, c contender) []contender {
	list = append(list, c)
	for i := len(list) - 1; i > 0 && list[i-1].Order > list[i].Order; i-- {
		list[i-1], list[i] = list[i], list[i-1]
	}
	return list
}

// admit returns the class of a candidate of a wanted seat, and whether it may keep the seat.
func (d *decider) admit(c *Candidate, seat Seat) (Class, bool) {
	if d.t.Batch && c.terminal() && d.t.older(c) {
		d.d.Weight.Ignored++
		return Ignored, false
	}
	if !Considered(c, d.t.Batch) {
		return Ignored, false
	}
	d.count(c)
	if c.toldToEnd() {
		contends := Occupation(c, d.t.Batch) != Vacates
		if !contends {
			d.d.Weight.Ignored++
		}
		return Untouched, contends
	}
	if c.Next == 0 && d.finished(c) {
		return Untouched, true
	}
	class := Classify(c, &d.t.specOf(c).Disconnect, d.t.Now)
	switch {
	case class == Reconnecting && c.Client == UnknownClient: // its node is back, but nothing was seen of it
		class = Untouched
	case class == Migrating && c.ended() && seat == MainSeat: // it is no canary any more
		class = Untouched
	}
	switch class {
	case Ignored, Lost, Expiring:
		return class, false
	case Untouched:
		return class, Occupation(c, d.t.Batch) != Vacates
	}
	return class, true
}

// count counts an allocation of the task's present version.
func (d *decider) count(c *Candidate) {
	if c.Version == d.t.Version && c.Instance == d.t.Instance {
		d.d.Weight.OfVersion++
	}
}

// endCanary stops a canary whose update is over.
func (d *decider) endCanary(c *Candidate) {
	if !c.toldToEnd() {
		d.count(c)
		d.stop(c, CanaryOver, NoClient)
	}
}

// endQuietly stops a candidate without counting it: its seat is filled again, or it counts as something else.
func (d *decider) endQuietly(c *Candidate, reason Reason, client Client) {
	d.stop(c, reason, client)
	d.out.Counts.Stop--
}

// stop stops a candidate.
func (d *decider) stop(c *Candidate, reason Reason, client Client) {
	d.out.Counts.Stop++
	d.out.Stops = append(d.out.Stops, Stopping{Reference: d.reference(c), Reason: reason, Client: client})
}

// wait writes down that the slot is looked at again for the candidate's sake.
func (d *decider) wait(c *Candidate, at terms.Time, kind WaitKind) {
	d.out.Waits = append(d.out.Waits, Wait{Reference: d.reference(c), At: at, Kind: kind})
}

func (d *decider) reference(c *Candidate) Reference { return Reference{d.slot.Index, c.Order} }

// until makes sure that the slot is looked at again at the given time.
func (d *decider) until(at terms.Time) {
	if d.d.Until == 0 || at < d.d.Until {
		d.d.Until = at
	}
}

// vacant asks for the seat to be filled.
func (d *decider) vacant(reason Reason) Verdict {
	d.d.Weight.Vacant++
	return Verdict{Action: Place, Reason: reason}
}

// afterLoss asks for a seat to be filled whose last instance was lost, once that has stopped itself if it does.
func (d *decider) afterLoss(c *Candidate) Verdict {
	spec, since := d.t.specOf(c), c.LostSince
	if since == 0 {
		since = d.t.Now
	}
	at := since + terms.Time(spec.Disconnect.StopAfterMillis) + terms.Time(max(selfStopSlackMillis, spec.StopGraceMillis))
	if spec.StopsItself() && at > d.t.Now && (!c.ended() || c.LostSince != 0) {
		d.d.Weight.Waiting++
		d.until(at)
		if !c.ended() {
			d.wait(c, at, UntilStopped)
		}
		return Verdict{Holder: c.Order, Version: c.Version, Reason: WaitsForStop, Until: at}
	}
	if c.terminal() {
		return d.vacant(Emptied)
	}
	return Verdict{Action: Place, Reason: AfterLoss, Holder: c.Order, Version: c.Version}
}
