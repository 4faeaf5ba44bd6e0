package conformance

import (
	"fmt"
	"slices"
	"strconv"

	"starling/reconcile"
	"starling/terms"
)

// answer is our result, in the words of the files.
type answer struct {
	nomadExpected
	decisions map[string][]reconcile.Decision
}

// answer asks our reconciler about a file.
func (f *reconcileFile) answer() (*answer, error) {
	tasks, err := f.tasks()
	if err != nil {
		return nil, err
	}
	a := &answer{decisions: map[string][]reconcile.Decision{}}
	a.FollowUps, a.Desired = followUpsByGroup{}, map[string]map[string]int32{}
	complete := true
	created := nomadDeployment{Groups: map[string]nomadDeploymentGroup{}}
	for i := range tasks {
		var out reconcile.Result
		reconcile.Reconcile(&tasks[i].task, tasks[i].slots, reconcile.Tally{}, &out)
		a.add(&tasks[i], &out)
		complete = complete && (out.Update.Complete || tasks[i].task.Wanted == reconcile.Removed)
		if out.Update.Begins {
			created.Groups[tasks[i].group] = joins(&out.Update)
		}
	}
	a.Counts = map[string]int{
		"place": len(a.Place), "destructive": len(a.Destructive), "inplace": len(a.Inplace), "stop": len(a.Stop),
		"attribute": len(a.Attributes), "disconnect": len(a.Disconnects), "reconnect": len(a.Reconnects),
	}
	f.record(a, &created, complete)
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

// record tells what becomes of the deployment: whether ours is given up or complete, and which begins.
func (f *reconcileFile) record(a *answer, created *nomadDeployment, complete bool) {
	d, job := f.Input.Deployment, f.Input.Job
	if d != nil {
		task := f.Input.task(nomadGroup{}, wantedOf(job))
		switch task.Standing() {
		case reconcile.AbandonedUpdate, reconcile.SupersededUpdate:
			a.Updates = append(a.Updates, nomadDeploymentUpdate{Deployment: d.ID, Status: "cancelled"})
		case reconcile.CurrentUpdate:
			created.Groups = nil // who joins later joins this one
			if complete {
				a.Updates = append(a.Updates, nomadDeploymentUpdate{Deployment: d.ID, Status: "successful"})
			}
		}
	}
	if len(created.Groups) > 0 {
		a.Created = created
	}
}

// joins returns what the record of an update says of a group that joins it.
func joins(u *reconcile.UpdateChange) nomadDeploymentGroup {
	return nomadDeploymentGroup{DesiredTotal: u.Total, DesiredCanaries: u.Canaries}
}

func wantedOf(job *nomadJob) reconcile.Wanted {
	if job == nil || job.Stop {
		return reconcile.Stopped
	}
	return reconcile.Running
}

// add adds the result of one group.
func (a *answer) add(t *nomadTask, out *reconcile.Result) {
	a.decisions[t.group] = out.Decisions
	for _, p := range out.Placements {
		a.Place = append(a.Place, nomadPlacement{
			Group: t.group, Index: p.Index, Canary: p.Seat == reconcile.CanarySeat, Previous: t.ids[p.Previous],
			Reschedule: p.Reason == reconcile.AfterFailure, Lost: p.Reason == reconcile.AfterLoss, Stable: p.Stable,
			MinVersion: &p.VersionMin,
		})
	}
	for _, r := range out.Replacements {
		a.Destructive = append(a.Destructive, nomadReplacement{t.group, r.Index, t.ids[r.Order]})
	}
	for _, r := range out.Changes {
		a.Inplace = append(a.Inplace, t.ids[r.Order])
	}
	for _, r := range out.Reconnects {
		a.Reconnects = append(a.Reconnects, t.ids[r.Order])
	}
	followUps := a.followUps(t, out)
	for _, s := range out.Stops {
		a.Stop = append(a.Stop, nomadStop{
			Alloc: t.ids[s.Order], Index: s.Index, Why: stopWords[s.Reason], SetClient: clientWords[s.Client], FollowUp: followUps[s.Order],
		})
		delete(followUps, s.Order)
	}
	for _, r := range out.Disconnects {
		a.Disconnects = append(a.Disconnects, nomadMark{Alloc: t.ids[r.Order], SetClient: "unknown", FollowUp: followUps[r.Order]})
		delete(followUps, r.Order)
	}
	for order, id := range followUps {
		a.Attributes = append(a.Attributes, nomadMark{Alloc: t.ids[order], FollowUp: id})
	}
	a.Desired[t.group] = desiredOf(&out.Counts)
}

// followUps numbers the follow-ups of a group, and returns which one each allocation waits for: what is tried again
// soon does not wait until it is lost.
func (a *answer) followUps(t *nomadTask, out *reconcile.Result) map[terms.Index]string {
	all := reconcile.FollowUps(nil, slices.Clone(out.Waits))
	waits := map[terms.Index]string{}
	for i, f := range all {
		trigger := "alloc-reschedule"
		if f.Kind == reconcile.UntilLost {
			trigger = "max-disconnect-timeout"
		}
		id := t.group + strconv.Itoa(i)
		a.FollowUps[t.group] = append(a.FollowUps[t.group], nomadFollowUp{id, offset(f.At - nomadNow), trigger})
		for _, w := range out.Waits {
			covers := w.Kind == f.Kind && w.At >= f.At && (i+1 == len(all) || all[i+1].Kind != f.Kind || w.At < all[i+1].At)
			if covers && (waits[w.Order] == "" || w.Kind != reconcile.UntilLost) {
				waits[w.Order] = id
			}
		}
	}
	return waits
}

func desiredOf(c *reconcile.Counts) map[string]int32 {
	all := map[string]int32{
		"place": c.Place, "destructive": c.Replace, "inplace": c.Change, "stop": c.Stop, "ignore": c.Ignore, "migrate": c.Migrate,
		"canary": c.Canary, "disconnect": c.Disconnect, "reconnect": c.Reconnect, "reschedule_now": c.RetryNow,
		"reschedule_later": c.RetryLater,
	}
	for word, n := range all {
		if n == 0 {
			delete(all, word)
		}
	}
	return all
}

var (
	stopWords = map[reconcile.Reason]string{
		reconcile.NotNeeded: "not_needed", reconcile.Duplicate: "duplicate", reconcile.CanaryOver: "not_needed",
		reconcile.NodeLost: "lost", reconcile.Moved: "migrating", reconcile.Failed: "rescheduled",
		reconcile.FailedAway: "rescheduled", reconcile.ReturnedOutdated: "not_needed", reconcile.OtherKept: "not_needed",
		reconcile.OriginalKept: "reconnected",
	}
	clientWords = map[reconcile.Client]string{reconcile.LostClient: "lost", reconcile.FailedClient: "failed"}
)

// resultDiff compares two results in the words of the files.
type resultDiff struct {
	want, got *nomadExpected
	lines     []string
}

func compareResults(want, got *nomadExpected) []string {
	d := &resultDiff{want: want, got: got}
	for kind, n := range want.Counts {
		if got.Counts[kind] != n {
			d.lines = append(d.lines, fmt.Sprintf("counts: %d %s, want %d", got.Counts[kind], kind, n))
		}
	}
	d.placements()
	d.sets("destructive", describe(want.Destructive), describe(got.Destructive))
	d.sets("inplace", want.Inplace, got.Inplace)
	d.stops()
	d.sets("attribute_updates", want.marks(want.Attributes), got.marks(got.Attributes))
	d.disconnects()
	d.sets("reconnect_updates", want.Reconnects, got.Reconnects)
	d.followUps()
	d.sets("deployment_created", want.created(), got.created())
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

// placements compares what is placed; the least version counts where it is told.
func (d *resultDiff) placements() {
	line := func(p nomadPlacement) string {
		p.MinVersion = nil
		return fmt.Sprintf("%+v", p)
	}
	var want, got []string
	for _, w := range d.want.Place {
		want = append(want, line(w))
		for _, g := range d.got.Place {
			if w.MinVersion != nil && line(w) == line(g) && *w.MinVersion != *g.MinVersion {
				d.lines = append(d.lines, fmt.Sprintf("place: %s has min_version %d, want %d", line(g), *g.MinVersion, *w.MinVersion))
			}
		}
	}
	for _, g := range d.got.Place {
		got = append(got, line(g))
	}
	d.sets("place", want, got)
}

// stops compares what is stopped. A duplicate is one kind of what is not needed, where the file makes no difference;
// which of several is stopped is free where the file says one_of.
func (d *resultDiff) stops() {
	got := slices.Clone(d.got.Stop)
	for _, w := range d.want.Stop {
		at := slices.IndexFunc(got, func(g nomadStop) bool {
			named := w.Alloc == g.Alloc || slices.Contains(w.OneOf, g.Alloc)
			why := w.Why == g.Why || w.Why == "not_needed" && g.Why == "duplicate"
			followUp := w.FollowUp == "" || d.want.followUp(w.FollowUp) == d.got.followUp(g.FollowUp)
			return named && why && followUp && w.Index == g.Index && w.SetClient == g.SetClient
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

// disconnects compares what goes out of reach; the follow-up counts where it is told.
func (d *resultDiff) disconnects() {
	got := slices.Clone(d.got.Disconnects)
	for i := range got {
		at := slices.IndexFunc(d.want.Disconnects, func(w nomadMark) bool { return w.Alloc == got[i].Alloc })
		if at >= 0 && d.want.Disconnects[at].FollowUp == "" {
			got[i].FollowUp = ""
		}
	}
	d.sets("disconnect_updates", d.want.marks(d.want.Disconnects), d.got.marks(got))
}

// followUps compares when is looked again; what triggers it counts where it is told.
func (d *resultDiff) followUps() {
	lines := func(of followUpsByGroup, triggers bool) []string {
		var all []string
		for group, list := range of {
			for _, f := range list {
				line := group + " " + f.At.String()
				if triggers {
					line += " " + f.trigger()
				}
				all = append(all, line)
			}
		}
		return all
	}
	told := true
	for _, list := range d.want.FollowUps {
		for _, f := range list {
			told = told && f.Trigger != ""
		}
	}
	d.sets("followup_evals", lines(d.want.FollowUps, told), lines(d.got.FollowUps, told))
}

func (d *resultDiff) desired() {
	lines := func(of map[string]map[string]int32) []string {
		var all []string
		for group, counts := range of {
			for word, n := range counts {
				all = append(all, fmt.Sprintf("%s %s=%d", group, word, n))
			}
		}
		return all
	}
	d.sets("desired_tg_updates", lines(d.want.Desired), lines(d.got.Desired))
	d.sets("desired_tg_updates", sortedKeys(d.want.Desired), sortedKeys(d.got.Desired))
}

// followUp returns when and why a follow-up comes, whatever its ID. One that stands alone may have none.
func (e *nomadExpected) followUp(id string) string {
	for _, list := range e.FollowUps {
		for _, f := range list {
			if f.ID == id || f.ID == "" && len(list) == 1 {
				return f.At.String() + " " + f.trigger()
			}
		}
	}
	return ""
}

// trigger returns what a follow-up waits for. The peer's words for the first one that tries again and for those after it
// are not told apart.
func (f *nomadFollowUp) trigger() string {
	if f.Trigger == "alloc-failure" {
		return "alloc-reschedule"
	}
	return f.Trigger
}

// marks describes marked allocations with what they wait for.
func (e *nomadExpected) marks(all []nomadMark) []string {
	var lines []string
	for _, m := range all {
		line := m.Alloc + " " + m.SetClient
		if m.FollowUp != "" {
			line += " " + e.followUp(m.FollowUp)
		}
		lines = append(lines, line)
	}
	return lines
}

// created describes the groups of an update that begins. The rest of its record is copied from the file.
func (e *nomadExpected) created() []string {
	if e.Created == nil {
		return nil
	}
	lines := []string{"a deployment"}
	for name, g := range e.Created.Groups {
		lines = append(lines, fmt.Sprintf("%s %d with %d canaries", name, g.DesiredTotal, g.DesiredCanaries))
	}
	return lines
}

// ends describes which updates end, and how.
func (e *nomadExpected) ends() (lines []string) {
	for _, u := range e.Updates {
		lines = append(lines, u.Deployment+" "+u.Status)
	}
	return lines
}
