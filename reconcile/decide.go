package reconcile

import "starling/terms"

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
	// lost is the youngest candidate of the seat that was lost, told the youngest that another is to follow; taken tells
	// that the seat ever had any.
	lost, told *Candidate
	taken      bool
}

// Decide decides about one slot. It adds to out what happens in any case: stops of those that do not keep a seat. What
// the verdicts ask for is for Reconcile to grant.
func Decide(t *Task, slot *Slot, out *Result) Decision {
	d := decider{t: t, slot: slot, out: out, d: Decision{Index: slot.Index}}
	stops := len(out.Stops)
	if slot.Index >= t.Count {
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
		switch class := Classify(c, &d.t.specOf(c).Disconnect, d.t.Now); {
		case class == Ignored || Occupation(c, d.t.Batch) == Vacates:
			d.d.Weight.Ignored++
		case class == Lost || class == Expiring:
			d.stop(c, NodeLost, LostClient)
		default:
			d.stop(c, NotNeeded, NoClient)
		}
	}
}

// seat decides about one seat: it goes through the candidates, settles which keeps the seat, and judges it.
func (d *decider) seat(seat Seat) Verdict {
	var room [8]contender
	list := d.gather(seat, room[:0])
	keeper := d.settle(list)
	if keeper != nil && d.told != nil && keeper.Client == UnknownClient {
		d.dismiss(keeper) // another was asked for while it is out of reach
		keeper = nil
	}
	switch {
	case keeper != nil:
		return d.judge(keeper, seat)
	case seat == CanarySeat && d.told == nil:
		return Verdict{}
	case d.slot.Closed:
		return Verdict{Reason: NodeClosed}
	case d.lost != nil:
		return Verdict{Action: Place, Reason: AfterLoss, Holder: d.lost.Order}
	case d.told != nil:
		d.d.Weight.Vacant++
		return Verdict{Action: Place, Reason: AfterStop, Holder: d.told.Order}
	case d.taken:
		return d.vacant(Emptied)
	}
	return d.vacant(NeverFilled)
}

// gather appends to list the candidates that may keep the seat, and stops those that were lost or are canaries of an
// update that is over.
func (d *decider) gather(seat Seat, list []contender) []contender {
	d.lost, d.told, d.taken = nil, nil, false
	for i := range d.slot.Candidates {
		c := &d.slot.Candidates[i]
		if own, wanted := d.t.seatOf(c); own != seat {
			continue
		} else if !wanted {
			if !c.Told {
				d.stop(c, CanaryOver, NoClient)
			}
			continue
		}
		if d.taken = true; c.Again && (d.told == nil || d.told.Order < c.Order) {
			d.told = c
		}
		switch class, contends := d.admit(c); {
		case class == Migrating && seat == CanarySeat:
			d.endQuietly(c, Moved, NoClient)
		case contends:
			list = join(list, contender{Candidate: c, class: class})
		case class == Lost || class == Expiring:
			d.leave(c, seat)
		}
	}
	return list
}

// leave stops a candidate that was lost.
func (d *decider) leave(c *Candidate, seat Seat) {
	if seat == CanarySeat {
		d.endQuietly(c, NodeLost, LostClient)
		return
	}
	d.stop(c, NodeLost, LostClient)
	if d.lost == nil || d.lost.Order < c.Order {
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
func (d *decider) admit(c *Candidate) (Class, bool) {
	class := Classify(c, &d.t.specOf(c).Disconnect, d.t.Now)
	if class == Reconnecting && c.Client == UnknownClient { // its node is back, but nothing was seen of it
		class = Untouched
	}
	switch {
	case class == Ignored || d.t.Batch && c.ended() && d.t.older(c) && !c.Final:
		d.d.Weight.Ignored++
		return Ignored, false
	case class == Lost || class == Expiring:
		return class, false
	}
	return class, class != Untouched || Occupation(c, d.t.Batch) != Vacates
}

// endQuietly stops a candidate without counting it: its seat is filled again, or it counts as something else.
func (d *decider) endQuietly(c *Candidate, reason Reason, client Client) {
	d.stop(c, reason, client)
	d.out.Counts.Stop--
}

// stop stops a candidate.
func (d *decider) stop(c *Candidate, reason Reason, client Client) {
	d.out.Counts.Stop++
	d.out.Stops = append(d.out.Stops,
		Stopping{Reference: Reference{d.slot.Index, c.Order}, Reason: reason, Client: client})
}

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
