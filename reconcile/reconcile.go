package reconcile

// Reconcile decides about a task. The slots are those to be looked at, ascending; rest sums up the others. It fills out
// anew.
func Reconcile(t *Task, slots []Slot, rest Tally, out *Result) {
	out.reset()
	g := grant{t: t, out: out, sum: rest}
	for i := range slots {
		g.add(Decide(t, &slots[i], out))
	}
	g.conclude()
}

// grant is what a task as a whole allows its slots.
type grant struct {
	t      *Task
	out    *Result
	sum    Tally
	daemon bool
	// What the listed slots ask for: placements that cannot wait, places that move, changes while they run.
	urgent, moves, alters int32
	// trying tells that canaries are to be promoted before anything else goes on.
	trying, lacksCanaries bool
	// tokens are the seats that may be replaced still.
	tokens int32
}

// add adds the decision about a slot.
func (g *grant) add(d Decision) {
	g.sum.Add(d.Weight)
	g.ask(&d)
	g.out.Decisions = append(g.out.Decisions, d)
}

// conclude grants what the slots ask for, and finds what becomes of the update.
func (g *grant) conclude() {
	g.out.Counts.Ignore = g.sum.Ignored
	g.hold()
	if g.t.closed() {
		g.out.Update.Complete = g.t.current() && g.t.Update.active() && g.sum.Waiting == 0
		return
	}
	if g.daemon {
		g.daemonCanaries()
	} else {
		g.canaries()
	}
	g.open()
	for i := range g.out.Decisions {
		g.settle(&g.out.Decisions[i])
	}
	g.record()
}

// ask counts what a slot asks for.
func (g *grant) ask(d *Decision) {
	switch d.Main.Action {
	case Alter:
		g.alters++
	case Place:
		switch {
		case d.Main.Reason == AfterMove:
			g.moves++
		case d.Main.urgent():
			g.urgent++
		}
	}
}

// canaries finds how many canaries are wanted, and places what is missing into the lowest slots: beside what is
// outdated, then beside what moves or is empty. Beside what was lost or failed they come last, and none is wanted for its
// sake: that is filled first.
func (g *grant) canaries() {
	update, wanted, promoted := &g.t.Update, uint32(0), false
	if g.t.joined() {
		wanted, promoted = min(update.Canaries, g.t.Count), update.Promoted
	}
	outdated := g.sum.Outdated
	if wanted > 0 { // what moves or was lost is placed as it was, and so outdated
		outdated += g.moves + g.urgent
	} else if outdated > 0 && !promoted {
		wanted = min(g.t.Policy.Canaries, uint32(outdated+g.moves+g.sum.Vacant))
	}
	g.out.Update.Canaries = wanted
	g.trying = wanted > 0 && !promoted
	missing := int32(wanted) - g.sum.Canaries
	g.lacksCanaries = g.trying && outdated > 0 && missing > 0
	if !g.lacksCanaries || g.t.paused() || g.t.failed() {
		return
	}
	missing = g.placeCanaries(missing, func(v *Verdict) bool { return v.Action == Replace })
	missing = g.placeCanaries(missing, func(v *Verdict) bool { return v.Action == Place && !v.urgent() })
	g.placeCanaries(missing, (*Verdict).urgent)
}

// placeCanaries places canaries beside the main seats that suit, and returns how many are missing still.
func (g *grant) placeCanaries(missing int32, suits func(*Verdict) bool) int32 {
	for i := range g.out.Decisions {
		d := &g.out.Decisions[i]
		if missing > 0 && d.Canary == (Verdict{}) && suits(&d.Main) {
			d.Canary = Verdict{Action: Place, Reason: AsCanary}
			missing--
		}
	}
	return missing
}

// hold finds what holds the task whatever its slots ask for.
func (g *grant) hold() {
	switch {
	case g.t.paused():
		g.out.Held = HeldByPause
	case g.t.failed():
		g.out.Held = HeldByFailure
	case g.t.Update.Trying && g.t.joined():
		g.out.Held = AwaitsPromotion
	}
}

// open finds how many seats may be replaced.
func (g *grant) open() {
	switch {
	case g.out.Held != NoReason:
	case g.trying && g.daemon && g.lacksCanaries:
		g.tokens = int32(g.out.Update.Canaries) - g.sum.Canaries
	case g.trying:
		g.out.Held = AwaitsPromotion
	default:
		g.tokens = g.free()
	}
}

// free returns how many seats may be replaced: as many as may be in the balance at once, less those that are.
func (g *grant) free() int32 {
	placed := g.urgent + g.sum.Vacant
	if g.daemon { // a new node is no part of the update
		placed = 0
	}
	switch {
	case g.t.Policy.BatchSize == 0:
		return g.sum.Outdated
	case !g.t.current():
		return max(0, int32(g.t.Policy.BatchSize)-placed)
	case g.sum.Unhealthy > 0:
		return 0
	}
	return max(0, int32(g.t.Policy.BatchSize)-g.sum.Unjudged-placed)
}

// settle grants or holds what a slot asks for.
func (g *grant) settle(d *Decision) {
	switch v := &d.Main; v.Action {
	case Place:
		g.place(d, v)
	case Replace:
		g.replace(d, v)
	case Alter:
		g.out.Counts.Change++
		g.out.Counts.Ignore--
		g.out.Changes = append(g.out.Changes, Reference{d.Index, v.Holder})
		v.Reason = ChangedInPlace
		g.notice(d, v)
	case Keep:
		g.notice(d, v)
	}
	if v := &d.Canary; v.Action == Place {
		g.placeCanary(d, v)
	} else {
		g.notice(d, v)
	}
}

// urgent tells whether the seat asks to be filled because its last instance was lost or failed.
func (v *Verdict) urgent() bool {
	return v.Action == Place && (v.Reason == AfterLoss || v.Reason == AfterFailure)
}

// place fills a main seat. Only what was never lost, moved or failed can be held.
func (g *grant) place(d *Decision, v *Verdict) {
	if (v.Reason == NeverFilled || v.Reason == Emptied) && g.out.Held != NoReason && !g.daemon {
		v.Action, v.Reason = Keep, g.out.Held
		return
	}
	p := Placement{Index: d.Index, Reason: v.Reason, Previous: v.Holder, Stable: g.trying && !g.daemon}
	if p.Stable {
		p.VersionMin = v.Version
	}
	g.out.Placements = append(g.out.Placements, p)
	if v.Reason != AfterMove {
		g.out.Counts.Place++
	}
	g.leave(d, v)
}

// placeCanary fills a canary seat.
func (g *grant) placeCanary(d *Decision, v *Verdict) {
	g.out.Placements = append(g.out.Placements,
		Placement{Index: d.Index, Seat: CanarySeat, Reason: v.Reason, Previous: v.Holder})
	if v.Reason == AsCanary {
		g.out.Counts.Canary++
	} else {
		g.out.Counts.Place++
	}
	g.leave(d, v)
}

// leave says what becomes of the holder whose seat is filled anew.
func (g *grant) leave(d *Decision, v *Verdict) {
	if v.stop != NoReason {
		g.out.Counts.Stop++
		g.out.Stops = append(g.out.Stops, Stopping{Reference: Reference{d.Index, v.Holder}, Reason: v.stop})
	}
	if v.disconnects {
		g.out.Counts.RetryNow++
	}
	g.notice(d, v)
}

// replace takes a token for an outdated seat, if there is one. During an update what is healthy leaves tokens to those that are ill.
func (g *grant) replace(d *Decision, v *Verdict) {
	may := g.out.Held == NoReason && g.tokens > 0 && (v.ill || g.tokens > g.sum.Ill || !g.t.current())
	room := !may || g.t.Room == nil || g.t.Room(d.Index)
	if may && room {
		if g.tokens--; v.ill {
			g.sum.Ill--
		}
		g.out.Counts.Replace++
		g.out.Counts.Ignore--
		r := Replacement{Reference: Reference{d.Index, v.Holder}}
		if g.trying {
			r.Seat = CanarySeat
		}
		g.out.Replacements = append(g.out.Replacements, r)
		v.Reason, v.Until = Outdated, 0
		return
	}
	v.Action = Keep
	switch {
	case v.Reason != AsAsked:
	case !room:
		v.Reason = LacksRoom
	case g.out.Held != NoReason:
		v.Reason = g.out.Held
	case g.sum.Unhealthy > 0 && g.t.current():
		v.Reason = HeldByUnhealthy
	default:
		v.Reason = AwaitsTurn
	}
	g.notice(d, v)
}

// notice writes down what is to be known of a holder.
func (g *grant) notice(d *Decision, v *Verdict) {
	holder := Reference{d.Index, v.Holder}
	if v.records {
		g.out.Counts.RetryLater++
		g.out.Waits = append(g.out.Waits, Wait{Reference: holder, At: v.Until, Kind: UntilRetry})
	}
	if v.disconnects {
		g.out.Disconnects = append(g.out.Disconnects, holder)
		g.out.Waits = append(g.out.Waits, Wait{Reference: holder, At: v.lostAt, Kind: UntilLost})
	}
	if v.returns {
		g.out.Reconnects = append(g.out.Reconnects, holder)
	}
}

// record finds what becomes of the update's record.
func (g *grant) record() {
	total := uint32(g.sum.Outdated + g.alters + g.urgent + g.sum.Vacant)
	g.out.Counts.Disconnect, g.out.Counts.Reconnect = int32(len(g.out.Disconnects)), int32(len(g.out.Reconnects))
	g.out.Update.Begins = !g.t.joined() && g.t.recorded() && total > 0 &&
		(g.sum.OfVersion == 0 && !g.t.succeeded() || g.sum.Outdated+g.alters > 0)
	if g.out.Update.Begins {
		g.out.Update.Total = total
	}
	g.out.Update.Promotable = g.trying && g.sum.CanariesHealthy >= int32(g.out.Update.Canaries)
	g.out.Update.Complete = g.complete()
}

// complete tells whether nothing is left to do for the present update.
func (g *grant) complete() bool {
	update := &g.t.Update
	if !g.t.current() || !update.active() {
		return false
	}
	left := g.sum.Outdated + g.sum.Vacant + g.sum.Waiting + g.sum.Frozen + g.alters + g.moves + g.urgent
	if left+int32(len(g.out.Placements)) > 0 || g.lacksCanaries {
		return false
	}
	if !update.Joined {
		return true
	}
	wanted := max(min(update.Total, g.t.Count), min(update.Canaries, g.t.Count))
	return g.sum.Healthy >= int32(wanted) && (update.Canaries == 0 || update.Promoted)
}
