package replica

import (
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/reconcile"
	"starling/replica/report"
	"starling/rollout"
	"starling/terms"
	"starling/terms/rules"
)

// update brings a new version of a job and begins to move its instances there. An update that runs is over.
func (f *fold) update(j *workload.Job, v facts.JobVersion) {
	from, paused := j.Version, j.Update.State == facts.Paused && j.Spec.Scales(v.Spec)
	if !j.Update.State.Final() && j.Update.State != facts.NoUpdate {
		f.setUpdate(j, rollout.End(j.Update, facts.UpdateAborted, "a newer update took its place", f.s.Time))
	}
	f.endCanaries(j)
	f.s.AddVersion(j.ID, v, f.suits)
	f.retry(j.ID)
	f.loseOutputs(j.ID)
	f.begin(f.s.Job(j.ID), from)
	if u := f.s.Job(j.ID).Update; paused && u.State != facts.Paused {
		// Who scales does not mean to let go on what somebody has paused.
		u.State, u.Before, u.Reason = facts.Paused, u.State, "the update before was paused when the job was scaled"
		f.setUpdate(f.s.Job(j.ID), u)
	}
	f.touch(j.ID)
}

// retry gives what is as good as the newest version another try: what failed for good looks for a node, and what is
// unhealthy is judged anew.
func (f *fold) retry(id terms.JobID) {
	for task, t := range f.s.Job(id).Tasks {
		if t.Counts[facts.Failed]+t.New[facts.Unhealthy] == 0 {
			continue
		}
		var again []facts.SlotRef
		f.s.EachSlot(id, task, func(r facts.SlotRef, slot facts.Slot) bool {
			f.s.Visit(1)
			newest := slot.Version == f.s.Job(id).Version || slot.Version == 0 && slot.Phase == facts.Waiting
			sick := slot.Health == facts.Unhealthy && !slot.Phase.Final() && slot.Phase != facts.Stopping
			if newest && (sick || slot.Phase == facts.Failed) && r.Index < t.Desired && r.Seat == facts.MainSeat {
				again = append(again, r)
			}
			return true
		})
		for _, r := range again {
			if slot, _ := f.s.SlotAt(r); slot.Phase == facts.Failed {
				slot.Cause = facts.ByUpdate
				f.settle(r, slot, func(c *reconcile.Candidate) { c.Told, c.Again = true, true })
			} else {
				f.trust(r, slot)
			}
		}
	}
}

// trust forgets that an instance is unhealthy, and gives it the time to be healthy that an update gives a new one.
func (f *fold) trust(r facts.SlotRef, slot facts.Slot) {
	slot.Health, slot.Failures = facts.Starting, 0
	if limit := f.s.Job(r.Job).Spec.Update.HealthyDeadlineMillis; limit > 0 && slot.Phase == facts.Running {
		slot.Deadline = f.s.Time + terms.Time(limit)
	}
	f.s.SetSlot(r, slot)
}

// begin starts the update to the newest version.
func (f *fold) begin(j *workload.Job, from uint32) {
	f.daemons(j.ID)
	j = f.s.Job(j.ID)
	outdated := slices.ContainsFunc(j.Tasks, func(t *workload.Task) bool { return sum(&t.Old) > 0 })
	u := facts.Update{From: from, To: j.Version, Began: f.s.Index,
		Promoted: j.Spec.Update.Canaries == 0 || !outdated}
	policy := j.Spec.Update
	policy.StartPaused = policy.StartPaused && from != 0
	f.setUpdate(j, rollout.Begin(u, &policy, f.s.Time))
	f.touch(j.ID)
}

// setUpdate keeps the record, with the deadline that follows from it.
func (f *fold) setUpdate(j *workload.Job, u facts.Update) {
	waits, before := j.Suspended || len(j.Awaits) > 0 || u.Tried, j.Update.State
	f.s.SetUpdate(j.ID, u, rollout.Deadline(&u, &j.Spec.Update, waits))
	if u.State != before && f.explain {
		f.outcome.Effects = append(f.outcome.Effects, report.Effect{
			Kind: report.Updating, Slot: terms.SlotName{Job: j.Name()}, Reason: fmt.Sprintf("to version %d: %s", u.To, u.State),
		})
	}
}

// endUpdate ends the update of a job that ended or was stopped.
func (f *fold) endUpdate(j *workload.Job) {
	switch {
	case j.Update.State == facts.NoUpdate || j.Update.State.Final():
	case j.Stop:
		f.setUpdate(j, rollout.End(j.Update, facts.UpdateAborted, "the job was stopped", f.s.Time))
	default:
		f.setUpdate(j, rollout.Succeed(j.Update, f.s.Time))
	}
}

func sum(counts *[facts.HealthCount]uint32) (all uint32) {
	for _, n := range counts {
		all += n
	}
	return all
}

// progressed notes that an instance became healthy.
func (f *fold) progressed(j *workload.Job, slot *facts.Slot) {
	f.touch(j.ID)
	if u := j.Update; u.State.Rolls() && slot.Version == u.To {
		u.ProgressAt = f.s.Time
		f.setUpdate(f.s.Job(j.ID), u)
	}
}

// updateDue fails an update that has not got on in time. A first deployment that waits for room has not failed, nor has
// one that only changes how many instances there are: its time counts only while there is some. Another of what runs
// fails then as well, for it may go back to what had room.
// A job that has ended was kept for as long as it says.
func (f *fold) updateDue(id terms.JobID) {
	if f.s.Job(id).Finished != 0 {
		f.s.Expire(id)
		return
	}
	j := f.s.Job(id)
	u := j.Update
	patient := u.From == 0 || f.s.Rules >= rules.ScalesWait && j.SpecOf(u.From).Scales(j.Spec)
	switch at, tried := f.roomSince(j); {
	case patient && !tried:
		u.ProgressAt = 0
	case patient && at > u.ProgressAt:
		u.ProgressAt = at
	default:
		f.fail(f.s.Job(id), fmt.Sprintf("no instance became healthy for %d s",
			f.s.Job(id).Spec.Update.ProgressDeadlineMillis/1000))
		return
	}
	f.setUpdate(f.s.Job(id), u)
}

// roomSince returns since when what an update tries and is not healthy has had room: from the last start of an instance
// that has not failed, 0 if there is none. Nothing is tried if all of that waits for a node.
func (f *fold) roomSince(j *workload.Job) (at terms.Time, tried bool) {
	waits := false
	for task, t := range j.Tasks {
		waits = waits || t.Counts[facts.Waiting]+t.Secondary[facts.Waiting] > 0
		f.s.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
			if slot.Version != j.Version || slot.Health == facts.Healthy || !slot.Phase.Found() {
				return true
			}
			if tried = true; slot.Failures == 0 {
				at = max(at, slot.Since)
			}
			return true
		})
	}
	return at, tried || !waits
}

// gotRoom lets the time of an update that waited for room run again with the first news of an instance that has some.
func (f *fold) gotRoom(r facts.SlotRef, slot *facts.Slot) {
	j := f.s.Job(r.Job)
	if u := j.Update; slot.Phase == facts.Assigned && u.State.Rolls() && slot.Version == u.To && u.ProgressAt == 0 {
		u.ProgressAt = f.s.Time
		f.setUpdate(j, u)
	}
}

// fail ends an update that cannot succeed: if the job asks for that, it goes back to the last version that was good, or
// to the one before if none has had the time to be.
func (f *fold) fail(j *workload.Job, reason string) {
	u := j.Update
	f.setUpdate(j, rollout.End(u, facts.UpdateFailed, reason, f.s.Time))
	if !u.Promoted {
		f.endCanaries(j)
	}
	good := j.Good(u.To)
	if good == 0 {
		good = u.From
	}
	if !j.Spec.Update.Rollback || u.GoesBack() || good == 0 {
		return
	}
	f.s.AddVersion(j.ID, facts.JobVersion{Kind: facts.WentBack, Of: good, Spec: j.SpecOf(good)}, f.suits)
	f.retry(j.ID)
	f.daemons(j.ID)
	j = f.s.Job(j.ID)
	u.State, u.Before, u.Reason = facts.RollingBackward, facts.NoUpdate, reason
	u.From, u.To, u.ProgressAt = u.To, j.Version, f.s.Time
	u.LookedAt, u.Promoted, u.Tried = 0, true, false
	f.setUpdate(j, u)
	f.touch(j.ID)
}

// endCanaries ends all canaries. Even promoted ones whose places are not free yet are none of another version.
func (f *fold) endCanaries(j *workload.Job) {
	for task := range j.Tasks {
		for _, r := range f.seats(j, task, facts.CanarySeat) {
			f.stop(r, facts.ByRival)
		}
	}
}

// inheritAll asks about the slots of promoted canaries, as long as there are any: what is to have the main seat, and
// what ends. Who only comes there is not asked about before it runs.
func (f *fold) inheritAll(id terms.JobID) {
	j := f.s.Job(id)
	for task, t := range j.Tasks {
		if sum(&t.Canaries) == 0 {
			continue
		}
		for _, r := range f.seats(j, task, facts.CanarySeat) {
			main := seatOf(r, facts.MainSeat)
			if slot, _ := f.s.SlotAt(main); slot.Phase != facts.Assigned || slot.Version != j.Version {
				f.settle(main, slot, func(*reconcile.Candidate) {})
			}
		}
	}
}

// seats returns the seats of one kind that a task has beside the main ones.
func (f *fold) seats(j *workload.Job, task int, seat facts.Seat) []facts.SlotRef {
	var all []facts.SlotRef
	f.s.Job(j.ID).Tasks[task].EachSecondary(j.ID, task, func(r facts.SlotRef, _ facts.Slot) bool {
		if r.Seat == seat {
			all = append(all, r)
		}
		return true
	})
	return all
}

// steerUpdate lets a user steer the update that he saw.
func (f *fold) steerUpdate(c *command.SteerUpdate) report.Result {
	return f.onJob(c.RequestID, c.Job, 0, func(j *workload.Job) report.Result {
		if c.Version != j.Update.To {
			return refused(facts.Conflict, "the latest update of job %s is that to version %d, not %d", c.Job, j.Update.To,
				c.Version)
		}
		u, reason := rollout.Steer(j.Update, c.Steering, f.s.Time)
		if reason != "" {
			return refused(facts.Conflict, "job %s: %s", c.Job, reason)
		}
		switch {
		case c.Steering == command.Fail:
			f.fail(j, "a user failed it")
		case c.Steering == command.Promote && !f.tried(j):
			return refused(facts.Conflict, "job %s: its canaries are not all healthy yet", c.Job)
		case c.Steering == command.Promote:
			f.promote(j)
		default:
			if f.setUpdate(j, u); c.Steering == command.Abort && !u.Promoted {
				f.endCanaries(j)
			}
		}
		f.touch(j.ID)
		return report.Result{Job: c.Job}
	})
}

// promote lets canaries take the places beside which they were tried. One that is not well takes none that is filled.
func (f *fold) promote(j *workload.Job) {
	u := j.Update
	u.Promoted, u.Tried, u.ProgressAt = true, false, f.s.Time
	f.setUpdate(j, u)
	for task := range j.Tasks {
		for _, r := range f.seats(j, task, facts.CanarySeat) {
			main, _ := f.s.SlotAt(seatOf(r, facts.MainSeat))
			canary, _ := f.s.SlotAt(r)
			well := canary.Phase == facts.Running && canary.Health == facts.Healthy
			if main.Phase.Holds() && !well && canary.Phase != facts.Stopping {
				f.stop(r, facts.ByRival)
			}
		}
	}
	f.inheritAll(j.ID)
}

// advance lets the updates of the jobs that were touched go on as far as they may, and the drains.
func (f *fold) advance() {
	f.lookForRoom()
	f.drains()
	slices.Sort(f.touched)
	for _, id := range slices.Compact(f.touched) {
		j := f.s.Job(id)
		if j == nil || j.Finished != 0 || j.Stop {
			continue
		}
		f.beginAnew(id)
		if f.enough(id) {
			continue
		}
		if j = f.s.Job(id); j.Update.State.Rolls() {
			f.roll(j)
		}
		if j.Spec.Type == terms.Batch {
			f.hearCompletions(id)
			f.finish(id) // it may have waited for the update
		}
	}
	f.touched = f.touched[:0]
}

// roll takes the next step of an update.
func (f *fold) roll(j *workload.Job) {
	if reason := rollout.Failing(j); reason != "" {
		f.fail(j, reason)
		if j = f.s.Job(j.ID); !j.Update.State.Rolls() {
			return
		}
	}
	if !j.Update.Promoted && !f.tryCanaries(j) {
		return
	}
	f.inheritAll(j.ID)
	done, sick, lost := f.rollTasks(j)
	switch j = f.s.Job(j.ID); {
	case !j.Update.State.Rolls():
	case done && sick == 0:
		f.setUpdate(j, rollout.Succeed(j.Update, f.s.Time))
	case done && lost:
		f.fail(j, fmt.Sprintf("instances that it went back to and that failed: %d", sick))
	case f.lacking || j.Update.LookedAt != 0:
		f.looked(j)
	}
	f.finish(j.ID)
}

// rollTasks takes the next steps of all tasks, and tells whether nothing is left to do. What an update goes back to is
// to be healthy, whatever failures the way forward bears: sick counts what is not, and lost tells that some of that
// failed for good.
func (f *fold) rollTasks(j *workload.Job) (done bool, sick uint32, lost bool) {
	f.lacking, done = false, true
	for task, t := range j.Tasks {
		if j.Update.State == facts.RollingBackward && t.New[facts.Unhealthy] > 0 {
			sick, lost = sick+t.New[facts.Unhealthy], lost || t.Counts[facts.Failed] > 0
		}
		done = f.rollTask(j.ID, task) && done
	}
	return done, sick, lost
}

// looked notes that an update has looked for room, and whether it lacks some.
func (f *fold) looked(j *workload.Job) {
	u, others := j.Update, slices.DeleteFunc(slices.Clone(f.s.LackRoom), func(id terms.JobID) bool { return id == j.ID })
	if u.LookedAt = 0; f.lacking {
		u.LookedAt, others = f.s.Index, append(others, j.ID)
	}
	if f.s.LackRoom = others; u != j.Update {
		f.setUpdate(j, u)
	}
}

// lookForRoom lets one of the updates that lack room look for it, with every entry that which has not looked for the
// longest time: what an entry costs does not grow with their number.
func (f *fold) lookForRoom() {
	for ; len(f.s.LackRoom) > 0; f.s.LackRoom = f.s.LackRoom[1:] {
		if j := f.s.Job(f.s.LackRoom[0]); j != nil && j.Update.LookedAt != 0 {
			f.touch(j.ID)
			return
		}
	}
}

// tryCanaries puts canaries beside the lowest slots that are to change, and promotes them once all are healthy, if
// nobody else is to. It returns true if it did.
func (f *fold) tryCanaries(j *workload.Job) bool {
	for task := range j.Tasks {
		f.rollTask(j.ID, task)
	}
	u, tried := f.s.Job(j.ID).Update, f.tried(j)
	if !tried && u.Tried {
		u.ProgressAt = f.s.Time // while it waited for its user nothing could get on
	}
	if u.Tried = tried; !j.Spec.Update.AutoPromote || !tried {
		f.setUpdate(f.s.Job(j.ID), u)
		return false
	}
	f.promote(f.s.Job(j.ID))
	return true
}

// tried tells whether all canaries of a job are healthy.
func (f *fold) tried(j *workload.Job) bool {
	for task := range j.Tasks {
		var answer reconcile.Result
		question, rest := f.taskQuestion(f.s.Job(j.ID), task)
		reconcile.Reconcile(&question, nil, rest, &answer)
		if answer.Update.Canaries > 0 && !answer.Update.Promotable {
			return false
		}
	}
	return true
}

// rollTask takes the next steps of an update for one task, and tells whether nothing is left to do. How many slots
// there are changes at once: that takes nothing away that is to stay.
func (f *fold) rollTask(id terms.JobID, task int) (complete bool) {
	for {
		var answer reconcile.Result
		question, rest := f.taskQuestion(f.s.Job(id), task)
		if reconcile.Reconcile(&question, nil, rest, &answer); answer.Held == reconcile.NoReason {
			f.resize(f.s.Job(id), task, question.Count)
		}
		question, rest = f.taskQuestion(f.s.Job(id), task)
		trial := &succession{f: f, trial: f.s}
		question.Room = func(index uint32) bool {
			return trial.succeeds(facts.SlotRef{Job: id, Task: uint16(task), Index: index})
		}
		reconcile.Reconcile(&question, f.changeable(f.s.Job(id), task, &question, &rest), rest, &answer)
		f.lacking = f.lacking || trial.lacks > 0
		for _, p := range answer.Placements {
			r := facts.SlotRef{Job: id, Task: uint16(task), Index: p.Index, Seat: facts.CanarySeat}
			f.empty(r)
			f.s.SetSlot(r, facts.Slot{Version: question.Version})
		}
		for _, r := range answer.Replacements {
			f.stop(facts.SlotRef{Job: id, Task: uint16(task), Index: r.Index}, facts.ByUpdate)
		}
		// What goes without holding anything is gone at once, and no peer will report it: the next may follow.
		if t := f.s.Job(id).Tasks[task]; len(answer.Replacements) == 0 || t.New[facts.Starting]+t.New[facts.Ready] > 0 {
			return answer.Update.Complete && len(answer.Replacements) == 0
		}
	}
}

// taskQuestion returns what reconcile must know of a task as a whole while its update rolls, and the sum of its slots.
// Instances that an update may lose count as if they were well.
func (f *fold) taskQuestion(j *workload.Job, task int) (reconcile.Task, reconcile.Tally) {
	t, u, policy := j.Tasks[task], &j.Update, &j.Spec.Update
	q := f.question(j, task)
	q.Count, q.Policy = f.wanted(j, task), policy
	q.Update.Total, q.Update.Trying = q.Count, !u.Promoted
	borne := min(t.New[facts.Unhealthy], policy.FailuresMax)
	rest := reconcile.Tally{
		Outdated: int32(sum(&t.Old)), Ill: int32(sum(&t.Old) - t.Old[facts.Healthy]),
		Vacant:   int32(q.Count - min(t.Desired, q.Count)),
		Unjudged: int32(t.New[facts.Starting] + t.New[facts.Ready]),
		Healthy:  int32(t.New[facts.Healthy] + borne), Unhealthy: int32(t.New[facts.Unhealthy] - borne),
		Waiting: int32(uint32(t.Slots.Len()) - t.Desired), // until what is too many has ended
	}
	if u.Promoted {
		rest.Waiting += int32(sum(&t.Canaries)) // until they have taken their places
		return q, rest
	}
	// What will be removed needs no canaries, and as many as are tried is all that counts of the others.
	rest.Canaries, rest.CanariesHealthy, rest.Outdated = int32(sum(&t.Canaries)), int32(t.Canaries[facts.Healthy]), 0
	t.EachOutdated(false, 0, func(index uint32) bool {
		if index < q.Count {
			rest.Outdated++
		}
		return index < q.Count && uint32(rest.Outdated) < policy.Canaries
	})
	q.Update.Canaries = uint32(rest.Outdated)
	return q, rest
}

// changeable returns the slots that an update may change now, and takes them out of the sum of the others: those beside
// which canaries are missing, or first those that are not well, then others, of each as many as may be under way and
// may lack room. If the first lacked some, each look begins with others.
func (f *fold) changeable(j *workload.Job, task int, q *reconcile.Task, rest *reconcile.Tally) (all []reconcile.Slot) {
	t := j.Tasks[task]
	add := func(index uint32) {
		f.s.Visit(1)
		slot := t.Slots.At(int(index))
		c := reconcile.Candidate{Order: slot.Order, Version: slot.Version, Client: reconcile.RunningClient, Outdated: true}
		if rest.Outdated--; slot.Phase == facts.Running && slot.Health == facts.Healthy {
			c.Health = reconcile.Healthy
		} else {
			rest.Ill--
		}
		all = append(all, reconcile.Slot{Index: index, Candidates: []reconcile.Candidate{c}})
	}
	if q.Update.Trying {
		missing := int(q.Update.Canaries) - int(rest.Canaries)
		t.EachOutdated(false, 0, func(index uint32) bool {
			canary := facts.SlotRef{Job: j.ID, Task: uint16(task), Index: index, Seat: facts.CanarySeat}
			if _, taken := f.s.SlotAt(canary); !taken && index < q.Count && len(all) < missing {
				add(index)
			}
			return len(all) < missing && index < q.Count
		})
		return all
	}
	most := int(t.Desired)
	if batch := q.Policy.BatchSize; batch > 0 {
		most = int(batch - min(batch, uint32(rest.Unjudged)))
	}
	if most == 0 {
		return nil
	}
	most += int(f.s.Limits.Trials)
	from := rollout.LookFrom(f.s.Index, &j.Update, t.Desired)
	t.EachOutdated(true, from, func(index uint32) bool {
		add(index)
		return len(all) < most
	})
	most += len(all)
	t.EachOutdated(false, from, func(index uint32) bool {
		if slot := t.Slots.At(int(index)); slot.Phase == facts.Running && slot.Health == facts.Healthy {
			add(index)
		}
		return len(all) < most
	})
	return all
}

// resizes tells whether an update has instances to add, or, while it goes on, to take away: a task is complete without
// those.
func (f *fold) resizes(j *workload.Job) bool {
	u := &j.Update
	if j.Stop || !u.State.Rolls() && u.State != facts.Paused {
		return false
	}
	for task := range j.Tasks {
		has, wanted := j.Tasks[task].Desired, f.wanted(j, task)
		if has < wanted || has > wanted && u.State.Rolls() {
			return true
		}
	}
	return false
}

// wanted returns how many slots the newest version wants of a task.
func (f *fold) wanted(j *workload.Job, task int) uint32 {
	spec := j.TaskSpecOf(task, j.Version)
	switch {
	case spec == nil:
		return 0
	case j.Spec.Type == terms.Daemon:
		return j.Tasks[task].Desired
	case slices.Contains(j.Unreachable(), task):
		return 0
	}
	return j.Wants(task)
}

// resize gives a task so many slots. Those that are too many go, the highest first.
func (f *fold) resize(j *workload.Job, task int, count uint32) {
	t := j.Tasks[task]
	if count == t.Desired {
		return
	}
	f.s.SetDesired(j.ID, task, count)
	var gone []facts.SlotRef
	for index := count; index < uint32(f.s.Job(j.ID).Tasks[task].Slots.Len()); index++ {
		gone = append(gone, facts.SlotRef{Job: j.ID, Task: uint16(task), Index: index})
	}
	f.s.Job(j.ID).Tasks[task].EachSecondary(j.ID, task, func(r facts.SlotRef, _ facts.Slot) bool {
		if r.Index >= count {
			gone = append(gone, r)
		}
		return true
	})
	slices.Reverse(gone)
	for _, r := range gone {
		if slot, ok := f.s.SlotAt(r); ok && slot.Phase.Holds() {
			f.stop(r, facts.ByScale)
		}
	}
}
