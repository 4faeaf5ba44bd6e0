package reconcile

// Reconcile decides about a task. The slots are those to be looked at, ascending; rest sums up the others. It fills out
// anew.
func Reconcile(t *Task, slots []Slot, rest Tally, out *Result) {
	out.reset()
	g := grant{t: t, out: out, sum: rest}
	for i := range slots {
		d := Decide(t, &slots[i], out)
		g.sum.Add(d.Weight)
		if d.Main.urgent() {
			g.urgent++
		}
		out.Decisions = append(out.Decisions, d)
	}
	g.conclude()
}

// grant is what a task as a whole allows its slots.
type grant struct {
	t   *Task
	out *Result
	sum Tally
	// urgent are the placements that cannot wait.
	urgent int32
	// tokens are the seats that may be replaced still.
	tokens int32
}

// conclude grants what the slots ask for, and finds what becomes of the update.
func (g *grant) conclude() {
	g.out.Counts.Ignore = g.sum.Ignored
	if g.hold(); g.t.Count > 0 {
		g.canaries()
		g.tokens = g.free()
		for i := range g.out.Decisions {
			g.settle(&g.out.Decisions[i])
		}
	}
	g.out.Counts.Disconnect, g.out.Counts.Reconnect = int32(len(g.out.Disconnects)), int32(len(g.out.Reconnects))
	g.out.Update.Promotable = g.trying() && g.sum.CanariesHealthy >= int32(g.out.Update.Canaries)
	g.out.Update.Complete = g.complete()
}

// trying tells that canaries of the task are to be promoted before anything else goes on.
func (g *grant) trying() bool { return g.out.Update.Canaries > 0 && !g.t.Update.Promoted }

// canaries finds how many canaries are wanted, and places what is missing into the lowest slots: beside what is
// outdated, then beside what moves or is empty. Beside what was lost or failed they come last: that is filled first.
func (g *grant) canaries() {
	g.out.Update.Canaries = min(g.t.Update.Canaries, g.t.Count)
	missing := int32(g.out.Update.Canaries) - g.sum.Canaries
	if !g.trying() || g.sum.Outdated == 0 || g.t.paused() || g.t.failed() {
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
	case g.t.Update.Trying:
		g.out.Held = AwaitsPromotion
	}
}

// free returns how many seats may be replaced: as many as may be in the balance at once, less those that are.
func (g *grant) free() int32 {
	switch {
	case g.t.Policy.BatchSize == 0:
		return g.sum.Outdated
	case g.sum.Unhealthy > 0:
		return 0
	}
	return max(0, int32(g.t.Policy.BatchSize)-g.sum.Unjudged-g.urgent-g.sum.Vacant)
}

// settle grants or holds what a slot asks for.
func (g *grant) settle(d *Decision) {
	switch v := &d.Main; v.Action {
	case Place:
		g.place(d, v)
	case Replace:
		g.replace(d, v)
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
	if (v.Reason == NeverFilled || v.Reason == Emptied) && g.out.Held != NoReason && !g.t.Daemon {
		v.Action, v.Reason = Keep, g.out.Held
		return
	}
	g.out.Placements = append(g.out.Placements, Placement{Index: d.Index, Reason: v.Reason, Previous: v.Holder})
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
	g.notice(d, v)
}

// replace takes a token for an outdated seat, if there is one. What is healthy leaves tokens to those that are ill.
func (g *grant) replace(d *Decision, v *Verdict) {
	may := g.out.Held == NoReason && g.tokens > 0 && (v.ill || g.tokens > g.sum.Ill)
	room := !may || g.t.Room == nil || g.t.Room(d.Index)
	if may && room {
		if g.tokens--; v.ill {
			g.sum.Ill--
		}
		g.out.Counts.Replace++
		g.out.Counts.Ignore--
		g.out.Replacements = append(g.out.Replacements, Reference{d.Index, v.Holder})
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
	case g.sum.Unhealthy > 0:
		v.Reason = HeldByUnhealthy
	default:
		v.Reason = AwaitsTurn
	}
	g.notice(d, v)
}

// notice writes down what is to be known of a holder.
func (g *grant) notice(d *Decision, v *Verdict) {
	if v.disconnects {
		g.out.Disconnects = append(g.out.Disconnects, Reference{d.Index, v.Holder})
	}
	if v.returns {
		g.out.Reconnects = append(g.out.Reconnects, Reference{d.Index, v.Holder})
	}
}

// complete tells whether nothing is left to do for the present update.
func (g *grant) complete() bool {
	update := &g.t.Update
	switch {
	case update.ID == 0 || g.t.failed() || g.sum.Waiting > 0:
		return false
	case g.t.Count == 0:
		return true
	case g.sum.Outdated+g.sum.Vacant+g.urgent+int32(len(g.out.Placements)) > 0 || g.trying():
		return false
	}
	return g.sum.Healthy >= int32(min(update.Total, g.t.Count))
}
