package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/reconcile"
	"starling/rollout"
	"starling/terms"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// change brings a new version of a job and begins the update to it; one that runs is over.
func (m *Model) change(j *Job, v facts.JobVersion) {
	from, paused := j.version(), j.update.State == facts.Paused && j.newest().Scales(v.Spec)
	if j.updating() {
		m.conclude(j, facts.UpdateAborted)
	}
	m.endCanaries(j)
	m.addVersion(j, v)
	m.retry(j)
	m.loseOutputs(j)
	m.beginUpdate(j, from)
	if paused && j.update.State != facts.Paused {
		j.update.State, j.update.Before = facts.Paused, j.update.State
	}
	m.changed = append(m.changed, j)
}

// retry gives what is as good as the newest version another try.
func (m *Model) retry(j *Job) {
	j.each(func(s *seat) {
		newest := s.Version == j.version() || s.Version == 0 && s.Phase == facts.Waiting
		if s.kind != facts.MainSeat || !newest || !s.slot.wanted() {
			return
		}
		switch s.Phase {
		case facts.Failed:
			row := s.Slot
			row.Cause = facts.ByUpdate
			m.settle(s, row, func(c *reconcile.Candidate) { c.Told, c.Again = true, true })
			return
		case facts.Stopping, facts.Stopped, facts.Succeeded:
			return
		}
		row := s.Slot
		if row.Health != facts.Unhealthy {
			return
		}
		row.Health, row.Failures = facts.Starting, 0
		if limit := j.newest().Update.HealthyDeadlineMillis; limit > 0 && row.Phase == facts.Running {
			row.Deadline = m.time + terms.Time(limit)
		}
		m.put(s, row)
	})
}

func (j *Job) updating() bool { return j.update.State != facts.NoUpdate && !j.update.State.Final() }

func (m *Model) beginUpdate(j *Job, from uint32) {
	m.daemons(j)
	policy := &j.newest().Update
	j.update = facts.Update{
		State: facts.RollingForward, From: from, To: j.version(), Began: m.index, BeganAt: m.time, ProgressAt: m.time,
		Promoted: policy.Canaries == 0 || len(j.outdated()) == 0,
	}
	if policy.StartPaused && from != 0 {
		j.update.State, j.update.Before = facts.Paused, facts.RollingForward
	}
	j.touched = true
}

// conclude ends the update, and notes how with the version that it brought.
func (m *Model) conclude(j *Job, state facts.UpdateState) {
	j.update.State, j.update.Before, j.update.EndedAt, j.update.LookedAt = state, facts.NoUpdate, m.time, 0
	j.versions = slices.Clone(j.versions)
	for i := range j.versions {
		if j.versions[i].Number == j.update.To {
			j.versions[i].Outcome = state
		}
	}
}

// endUpdate ends the update of a job that ended or was stopped.
func (m *Model) endUpdate(j *Job) {
	switch {
	case !j.updating():
	case j.stop:
		m.conclude(j, facts.UpdateAborted)
	default:
		m.succeedUpdate(j)
	}
}

func (m *Model) succeedUpdate(j *Job) {
	state := facts.UpdateSucceeded
	if j.update.State == facts.RollingBackward {
		state = facts.RolledBack
	}
	m.conclude(j, state)
}

// deadline is by when the update must get on; 0 if it need not.
func (j *Job) deadline() terms.Time {
	limit, keep := j.newest().Update.ProgressDeadlineMillis, j.newest().KeepMillis
	switch {
	case !j.expired && j.finished != 0 && keep > 0:
		return j.finishedAt + terms.Time(keep)
	case j.expired || j.finished != 0 || limit == 0 || !j.update.State.Rolls(),
		j.update.ProgressAt == 0 || j.suspended || len(j.awaits) > 0 || j.update.Tried: // it waits for room, or its user
		return 0
	}
	return j.update.ProgressAt + terms.Time(limit)
}

// standing returns how a main seat counts: whether it has the newest version, or is on its way to it, and its health.
func (s *seat) standing() (newest bool, health facts.Health) {
	switch {
	case s.Phase == facts.Succeeded || s.Phase == facts.Stopped:
		return true, facts.Healthy
	case s.Phase == facts.Stopping && s.Cause == facts.ByUpdate:
		return true, facts.Starting
	}
	return s.Version == 0 || s.Version == s.job().version(), s.condition()
}

// condition is the health of what runs; what does not counts as starting, unless it has failed.
func (s *seat) condition() facts.Health {
	if s.Phase == facts.Running || s.Health == facts.Unhealthy {
		return s.Health
	}
	return facts.Starting
}

// standing is how the main seats of the wanted slots and the canaries of a task are.
type standing struct{ newest, old, canaries [facts.HealthCount]uint32 }

func (t *task) standing() (c standing) {
	t.each(func(s *seat) {
		if s.kind == facts.CanarySeat {
			if s.Phase == facts.Stopping {
				c.canaries[facts.Starting]++
			} else {
				c.canaries[s.condition()]++
			}
		}
		if s.kind != facts.MainSeat || s.slot.index >= t.desired {
			return
		}
		if newest, health := s.standing(); newest {
			c.newest[health]++
		} else {
			c.old[health]++
		}
	})
	return c
}

// well returns how many wanted instances of any version are well.
func (c *standing) well() uint32 { return c.newest[facts.Healthy] + c.old[facts.Healthy] }

// outdated returns the main seats of wanted slots that are to be of the newest version and are not on their way.
func (t *task) outdated() []*seat {
	var all []*seat
	for _, slot := range t.slots[:t.desired] {
		if newest, _ := slot.main().standing(); !newest {
			all = append(all, slot.main())
		}
	}
	return all
}

func (j *Job) outdated() []*seat {
	var all []*seat
	for _, t := range j.tasks {
		all = append(all, t.outdated()...)
	}
	return all
}

// spare returns how many well instances may be taken away now: a batch without health, and those that may fail.
func (t *task) spare(batch uint32) uint32 {
	c, policy := t.standing(), &t.job.newest().Update
	if batch == 0 {
		return c.well()
	}
	ill := t.desired - min(t.desired, c.well())
	ill -= min(ill, min(c.newest[facts.Unhealthy], policy.FailuresMax))
	return batch - min(batch, ill)
}

// canaries returns the canary seats that are taken.
func (t *task) canaries() []*seat {
	var all []*seat
	t.each(func(s *seat) {
		if s.kind == facts.CanarySeat {
			all = append(all, s)
		}
	})
	return all
}

// trials returns how many canaries a task is to have.
func (t *task) trials() int {
	below := 0
	for _, s := range t.outdated() {
		if s.slot.index < t.wanted() {
			below++
		}
	}
	return min(int(t.job.newest().Update.Canaries), below)
}

// tried tells whether all canaries are healthy.
func (j *Job) tried() bool {
	for _, t := range j.tasks {
		if c := t.standing(); int(c.canaries[facts.Healthy]) < t.trials() {
			return false
		}
	}
	return true
}

// updateDue fails an update that is late, unless it changes no program, and what it tries has had no room for so long.
func (m *Model) updateDue(j *Job) {
	waits, tried, began := false, false, terms.Time(0)
	for _, t := range j.tasks {
		t.each(func(s *seat) {
			waits = waits || s.Phase == facts.Waiting
			if s.Version != j.version() || s.Health == facts.Healthy || !s.found() {
				return
			}
			if tried = true; s.Failures == 0 {
				began = max(began, s.Since)
			}
		})
	}
	switch patient := j.update.From == 0 || m.rules >= rules.ScalesWait && j.spec(j.update.From).Scales(j.newest()); {
	case patient && waits && !tried:
		j.update.ProgressAt = 0
		return
	case patient && began > j.update.ProgressAt:
		j.update.ProgressAt = began
		return
	}
	m.fail(j)
}

// fail ends an update that cannot succeed: it goes back to the last good version, or the one before, if
// the job asks for that, but only once.
func (m *Model) fail(j *Job) {
	u, good := j.update, j.good(j.update.To)
	if good == 0 {
		good = u.From
	}
	back := u.GoesBack()
	m.conclude(j, facts.UpdateFailed)
	m.dropCanaries(j)
	if !j.newest().Update.Rollback || back || good == 0 {
		return
	}
	m.addVersion(j, facts.JobVersion{Kind: facts.WentBack, Of: good, Spec: j.spec(good)})
	m.retry(j)
	m.daemons(j)
	u.State, u.Before, u.From, u.To = facts.RollingBackward, facts.NoUpdate, u.To, j.version()
	u.ProgressAt, u.LookedAt, u.Promoted, u.Tried = m.time, 0, true, false
	j.update, j.touched = u, true
}

// dropCanaries ends the canaries that were not promoted.
func (m *Model) dropCanaries(j *Job) {
	if !j.update.Promoted {
		m.endCanaries(j)
	}
}

func (m *Model) endCanaries(j *Job) {
	for _, t := range j.tasks {
		for _, s := range t.canaries() {
			m.stop(s, facts.ByRival)
		}
	}
}

// steer lets a user steer the update that he saw.
func (m *Model) steer(j *Job, version uint32, how command.Steering) bool {
	u := &j.update
	switch {
	case version != u.To || !j.updating():
		return false
	case how == command.Pause && u.State == facts.Paused, how == command.Resume && u.State != facts.Paused,
		how == command.Promote && (u.Promoted || !j.tried()):
		return false
	}
	switch how {
	case command.Pause:
		u.State, u.Before, u.LookedAt = facts.Paused, u.State, 0
	case command.Resume:
		u.State, u.Before, u.ProgressAt = u.Before, facts.NoUpdate, m.time
	case command.Promote:
		m.promote(j)
	case command.Fail:
		m.fail(j)
	case command.Abort:
		m.conclude(j, facts.UpdateAborted)
		m.dropCanaries(j)
	}
	j.touched = true
	return true
}

// promote lets canaries take the places beside which they were tried; one that is not well takes none that is filled.
func (m *Model) promote(j *Job) {
	j.update.Promoted, j.update.Tried, j.update.ProgressAt = true, false, m.time
	for _, t := range j.tasks {
		for _, s := range t.canaries() {
			well := s.Phase == facts.Running && s.Health == facts.Healthy
			if s.slot.main().Phase.Holds() && !well && s.Phase != facts.Stopping {
				m.stop(s, facts.ByRival)
			}
		}
	}
	m.inheritAll(j)
}

// advance lets drains go on, and the updates of the jobs to which something happened.
func (m *Model) advance() {
	m.lookForRoom()
	m.drains()
	m.changed = nil
	for _, j := range slices.Clone(m.Jobs) {
		if !j.touched || j.finished != 0 || j.stop {
			continue
		}
		m.beginAnew(j)
		if j.enough() {
			j.state.Outcome = facts.Completed
			j.state.Last = facts.PolicyAction{Entry: m.index, At: m.time, Action: lifecycle.Complete}
			m.kill(j)
			continue
		}
		if j.update.State.Rolls() {
			m.roll(j)
		}
		for _, t := range j.tasks {
			if j.newest().Type == terms.Batch && m.completed(t) {
				m.completionDue(t)
				m.beginAnew(j)
			}
		}
	}
}

// roll takes the next step of an update.
func (m *Model) roll(j *Job) {
	failed, lost := uint32(0), false
	for _, t := range j.tasks {
		c := t.standing()
		failed += c.newest[facts.Unhealthy] + c.canaries[facts.Unhealthy]
		for _, s := range t.canaries() {
			lost = lost || s.Phase == facts.Failed && !j.update.Promoted
		}
	}
	if most := j.newest().Update.FailuresMax; lost || most != terms.RestartsUnlimited && failed > most {
		if m.fail(j); !j.update.State.Rolls() {
			return
		}
	}
	if !j.update.Promoted {
		m.tryCanaries(j)
		tried := j.tried()
		if !tried && j.update.Tried {
			j.update.ProgressAt = m.time
		}
		if j.update.Tried = tried; !j.newest().Update.AutoPromote || !tried {
			return
		}
		m.promote(j)
	}
	m.inheritAll(j)
	m.rollTasks(j)
}

// rollTasks takes the next steps of all tasks, and ends the update if none is left.
func (m *Model) rollTasks(j *Job) {
	m.lacking = false
	done, sick, lost := true, false, false
	for _, t := range j.tasks {
		if j.update.State == facts.RollingBackward && t.standing().newest[facts.Unhealthy] > 0 {
			sick = true
			t.each(func(s *seat) { lost = lost || s.kind == facts.MainSeat && s.Phase == facts.Failed })
		}
		done = m.rollTask(t) && done
	}
	if j.update.LookedAt = 0; done && !sick {
		m.succeedUpdate(j)
	} else if done && lost {
		m.fail(j)
	} else if m.lacking {
		j.update.LookedAt = m.index
	}
}

// lookForRoom lets the update look for room that lacks some and has not looked for the longest time.
func (m *Model) lookForRoom() {
	var first *Job
	for _, j := range m.Jobs {
		if j.update.LookedAt > 0 && (first == nil || j.update.LookedAt < first.update.LookedAt) {
			first = j
		}
	}
	if first != nil {
		first.touched = true
	}
}

// tryCanaries puts the canaries that are missing beside the lowest slots that are to change.
func (m *Model) tryCanaries(j *Job) {
	for _, t := range j.tasks {
		missing := t.trials() - len(t.canaries())
		for _, main := range t.outdated() {
			if canary := &main.slot.seats[facts.CanarySeat]; missing > 0 && !canary.taken() && main.slot.index < t.wanted() {
				m.emptySeat(canary)
				m.put(canary, facts.Slot{Version: j.version()})
				missing--
			}
		}
	}
}

// rollTask gives a task the slots that the newest version wants, then moves what it may, at most a batch at a time. It
// tells whether nothing is left to do.
func (m *Model) rollTask(t *task) bool {
	if wanted := t.wanted(); wanted != t.desired {
		m.resize(t, wanted)
	}
	for {
		movable := m.movable(t)
		for _, s := range movable {
			m.stop(s, facts.ByUpdate)
		}
		if len(movable) == 0 || t.underWay() > 0 {
			return len(t.outdated()) == 0 && t.underWay() == 0 && len(t.slots) == int(t.desired) && len(t.canaries()) == 0
		}
	}
}

// inheritAll asks about the slots of promoted canaries.
func (m *Model) inheritAll(j *Job) {
	for _, t := range j.tasks {
		for _, s := range t.canaries() {
			if main := s.slot.main(); main.Phase != facts.Assigned || main.Version != j.version() {
				m.settle(main, main.Slot, func(*reconcile.Candidate) {})
			}
		}
	}
}

// wanted returns how many slots the newest version wants.
func (t *task) wanted() uint32 {
	switch spec := t.spec(0); {
	case spec == nil:
		return 0
	case t.job.newest().Type == terms.Daemon:
		return t.desired
	case t.vain():
		return 0
	default:
		return t.wants()
	}
}

// resizes tells whether an update has instances to add, or while it goes on to take away.
func (j *Job) resizes() bool {
	return !j.stop && j.updating() && slices.ContainsFunc(j.tasks, func(t *task) bool {
		return t.desired < t.wanted() || t.desired > t.wanted() && j.update.State.Rolls()
	})
}

// underWay returns how many instances of the newest version are not known to be well or ill.
func (t *task) underWay() uint32 {
	return t.standing().newest[facts.Starting] + t.standing().newest[facts.Ready]
}

// resize gives a task so many slots; those that are too many go.
func (m *Model) resize(t *task, count uint32) {
	m.want(t, count)
	t.each(func(s *seat) {
		if s.slot.index >= t.desired && s.Phase.Holds() {
			m.stop(s, facts.ByScale)
		}
	})
}

// movable returns the outdated seats that may go to the newest version now: those that are not well, then as many
// others as can be spared, as long as there is room for who takes their place. What may run out of reach is left alone.
func (m *Model) movable(t *task) (all []*seat) {
	outdated, trial, batch := t.outdated(), &succession{m: m}, t.job.newest().Update.BatchSize
	defer trial.undo()
	from := rollout.LookFrom(m.index, &t.job.update, t.desired)
	before := func(s *seat) bool { return s.slot.index < from }
	outdated = slices.Concat(slices.DeleteFunc(slices.Clone(outdated), before),
		slices.DeleteFunc(outdated, func(s *seat) bool { return !before(s) }))
	most, spare := len(t.slots), int(t.spare(batch))
	if batch > 0 {
		most = int(batch - min(batch, t.underWay()))
	}
	for _, ill := range []bool{true, false} {
		looked := 0
		for _, s := range outdated {
			healthy := s.condition() == facts.Healthy
			if healthy == ill || looked == most+int(m.limits.Trials) || s.mayLive() {
				continue
			}
			looked++
			if len(all) < most && (ill || spare > 0) && trial.succeeds(s) {
				all = append(all, s)
				if healthy {
					spare--
				}
			}
		}
	}
	m.lacking = m.lacking || trial.lacks > 0
	return all
}
