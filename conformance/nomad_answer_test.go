package conformance

import (
	"fmt"
	"slices"

	"starling/reconcile"
	"starling/terms"
)

// answer is our result, in the words of the files.
type answer struct {
	nomadExpected
	decisions map[string][]reconcile.Decision
	// waits are the allocations that wait, and until when.
	waits []nomadMark
}

// answer asks our reconciler about a file.
func (f *reconcileFile) answer() (*answer, error) {
	tasks, err := f.tasks()
	if err != nil {
		return nil, err
	}
	a := &answer{decisions: map[string][]reconcile.Decision{}}
	a.Desired = map[string]map[string]int32{}
	complete := true
	for i := range tasks {
		var out reconcile.Result
		reconcile.Reconcile(&tasks[i].task, tasks[i].slots, reconcile.Tally{}, &out)
		a.add(&tasks[i], &out)
		complete = complete && (out.Update.Complete || tasks[i].task.Count == 0)
	}
	a.Counts = map[string]int{
		"place": len(a.Place), "destructive": len(a.Destructive), "stop": len(a.Stop),
		"disconnect": len(a.Disconnects), "reconnect": len(a.Reconnects),
	}
	if f.Input.current() && complete {
		a.Updates = append(a.Updates, nomadDeploymentUpdate{Deployment: f.Input.Deployment.ID, Status: "successful"})
	}
	return a, nil
}

// untold lists slots without a reason.
func (a *answer) untold() []string {
	var lines []string
	for group, decisions := range a.decisions {
		for _, d := range decisions {
			if d.Main.Reason == reconcile.NoReason {
				lines = append(lines, fmt.Sprintf("%s[%d] has no reason", group, d.Index))
			}
		}
	}
	return lines
}

// add adds the result of one group.
func (a *answer) add(t *nomadTask, out *reconcile.Result) {
	a.decisions[t.group] = out.Decisions
	for _, p := range out.Placements {
		a.Place = append(a.Place, nomadPlacement{
			Group: t.group, Index: p.Index, Canary: p.Seat == reconcile.CanarySeat, Previous: t.ids[p.Previous],
			Reschedule: p.Reason == reconcile.AfterFailure, Lost: p.Reason == reconcile.AfterLoss,
		})
	}
	for _, r := range out.Replacements {
		a.Destructive = append(a.Destructive, nomadReplacement{t.group, r.Index, t.ids[r.Order]})
	}
	for _, r := range out.Reconnects {
		a.Reconnects = append(a.Reconnects, t.ids[r.Order])
	}
	for _, s := range out.Stops {
		if t.task.Count == 0 && t.ended(s.Reference) {
			continue // told to nobody
		}
		a.Stop = append(a.Stop, nomadStop{Alloc: t.ids[s.Order], Index: s.Index, Why: stopWords[s.Reason],
			SetClient: clientWords[s.Client]})
	}
	for _, r := range out.Disconnects {
		a.Disconnects = append(a.Disconnects, nomadMark{Alloc: t.ids[r.Order], SetClient: "unknown"})
	}
	a.Desired[t.group] = map[string]int32{
		"place": out.Counts.Place, "destructive": out.Counts.Replace, "ignore": out.Counts.Ignore,
		"migrate": out.Counts.Migrate,
		"canary":  out.Counts.Canary, "disconnect": out.Counts.Disconnect, "reconnect": out.Counts.Reconnect,
	}
	for _, d := range out.Decisions {
		for _, v := range []reconcile.Verdict{d.Main, d.Canary} {
			if v.Until != 0 {
				a.waits = append(a.waits, nomadMark{Alloc: t.ids[v.Holder], until: v.Until})
			}
		}
	}
}

// ended tells whether an allocation has ended.
func (t *nomadTask) ended(r reconcile.Reference) bool {
	for _, s := range t.slots {
		for _, c := range s.Candidates {
			if s.Index == r.Index && c.Order == r.Order {
				return c.Client == reconcile.CompleteClient || c.Client == reconcile.FailedClient
			}
		}
	}
	return false
}

var (
	stopWords = map[reconcile.Reason]string{
		reconcile.NotNeeded: "not_needed", reconcile.Outdated: "not_needed", reconcile.Duplicate: "duplicate",
		reconcile.CanaryOver: "not_needed",
		reconcile.NodeLost:   "lost", reconcile.Moved: "migrating", reconcile.Failed: "rescheduled",
		reconcile.FailedAway: "rescheduled", reconcile.ReturnedOutdated: "not_needed", reconcile.OtherKept: "not_needed",
		reconcile.OriginalKept: "reconnected",
	}
	clientWords = map[reconcile.Client]string{reconcile.LostClient: "lost", reconcile.FailedClient: "failed"}
)

// resultDiff compares two results in the words of the files.
type resultDiff struct {
	want  *nomadExpected
	got   *answer
	lines []string
}

func compareResults(want *nomadExpected, got *answer) []string {
	d := &resultDiff{want: want, got: got}
	for kind, n := range want.Counts {
		if _, compared := got.Counts[kind]; compared && got.Counts[kind] != n {
			d.lines = append(d.lines, fmt.Sprintf("counts: %d %s, want %d", got.Counts[kind], kind, n))
		}
	}
	d.placements()
	d.sets("destructive", describe(want.Destructive), describe(got.Destructive))
	d.stops()
	d.waits()
	d.sets("disconnect_updates", marks(want.Disconnects), marks(got.Disconnects))
	d.sets("reconnect_updates", want.Reconnects, got.Reconnects)
	d.sets("deployment_updates", want.ends(), got.ends())
	d.desired()
	return d.lines
}

func describe[T any](all []T) []string {
	var lines []string
	for _, one := range all {
		lines = append(lines, fmt.Sprintf("%+v", one))
	}
	return lines
}

// sets compares two lists in which order has no meaning.
func (d *resultDiff) sets(section string, want, got []string) {
	missing, extra := without(want, got), without(got, want)
	if len(missing)+len(extra) > 0 {
		d.lines = append(d.lines, fmt.Sprintf("%s: missing %v, not expected %v", section, missing, extra))
	}
}

// without returns what of the first list is not in the second, counted.
func without(list, other []string) []string {
	rest, left := slices.Clone(other), []string(nil)
	for _, line := range list {
		if at := slices.Index(rest, line); at >= 0 {
			rest = slices.Delete(rest, at, at+1)
		} else {
			left = append(left, line)
		}
	}
	slices.Sort(left)
	return left
}

// placements compares what is placed.
func (d *resultDiff) placements() {
	line := func(p nomadPlacement) nomadPlacement {
		p.MinVersion, p.Stable = nil, false
		return p
	}
	var want []nomadPlacement
	for _, w := range d.want.Place {
		want = append(want, line(w))
	}
	d.sets("place", describe(want), describe(d.got.Place))
}

// desired compares the counts of what is done. What is ignored is counted otherwise, as a slot has no past; but where
// the peer leaves something alone, so do we.
func (d *resultDiff) desired() {
	for group, want := range d.want.Desired {
		for _, word := range []string{"place", "destructive", "migrate", "canary", "disconnect", "reconnect", "ignore"} {
			if got := d.got.Desired[group][word]; got != want[word] && (word != "ignore" || got == 0 && want[word] > 1) {
				d.lines = append(d.lines, fmt.Sprintf("desired_tg_updates: %s %d %s, want %d", group, got, word, want[word]))
			}
		}
	}
}

// stops compares what is stopped. A duplicate is one kind of what is not needed, where the file makes no difference;
// which of several is stopped is free where the file says one_of.
func (d *resultDiff) stops() {
	got := slices.Clone(d.got.Stop)
	for _, w := range d.want.Stop {
		at := slices.IndexFunc(got, func(g nomadStop) bool {
			named := w.Alloc == g.Alloc || slices.Contains(w.OneOf, g.Alloc)
			why := w.Why == g.Why || w.Why == "not_needed" && g.Why == "duplicate"
			return named && why && w.Index == g.Index && w.SetClient == g.SetClient
		})
		if at < 0 {
			d.lines = append(d.lines, fmt.Sprintf("stop: missing %+v", w))
			continue
		}
		got = slices.Delete(got, at, at+1)
	}
	for _, g := range got {
		d.lines = append(d.lines, fmt.Sprintf("stop: not expected %+v", g))
	}
}

// followUpWindowMillis is how far apart waits may be that share a follow-up of the peer.
const followUpWindowMillis = 5000

// waits compares until when allocations wait of which the file tells it. The peer looks at several together, with the
// first of them.
func (d *resultDiff) waits() {
	for _, m := range slices.Concat(d.want.Attributes, d.want.Disconnects) {
		at, told := d.want.followUp(m.FollowUp)
		waits := slices.ContainsFunc(d.got.waits, func(w nomadMark) bool {
			return w.Alloc == m.Alloc && w.until >= at && w.until < at+followUpWindowMillis
		})
		if told && !waits {
			d.lines = append(d.lines, fmt.Sprintf("attribute_updates: %s does not wait until %d", m.Alloc, at-nomadNow))
		}
	}
}

// followUp returns when a follow-up comes, whatever its ID. One that stands alone may have none.
func (e *nomadExpected) followUp(id string) (at terms.Time, told bool) {
	for _, list := range e.FollowUps {
		for _, f := range list {
			if id != "" && (f.ID == id || f.ID == "" && len(list) == 1) {
				return f.At.time(), true
			}
		}
	}
	return 0, false
}

// marks describes marked allocations.
func marks(all []nomadMark) []string {
	var lines []string
	for _, m := range all {
		lines = append(lines, m.Alloc+" "+m.SetClient)
	}
	return lines
}

// ends describes which updates end, and how. That one of another version is over needs no word here.
func (e *nomadExpected) ends() (lines []string) {
	for _, u := range e.Updates {
		if u.Status == "successful" {
			lines = append(lines, u.Deployment+" "+u.Status)
		}
	}
	return lines
}
