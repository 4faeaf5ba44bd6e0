package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"starling/cluster/facts"
	"starling/command"
	"starling/plugin/roster"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/sim/wishes"
	"starling/terms"
	"starling/terms/rules"
)

// running is an allocation that the driver has.
type running struct {
	reaction.LocalTask
	stopping bool
	// stopAfter and grace are what its supervisor was told, proved tells that somebody proves it wanted now, and lapses
	// counts how often that ended.
	stopAfter, grace uint32
	proved           bool
	lapses           int
	// volumes are those that it has, if it has any.
	volumes terms.VolumeSet
}

// find returns where the allocation is among the tasks, or would be.
func (m *machine) find(id terms.AllocationID) (at int, found bool) {
	return slices.BinarySearchFunc(m.tasks, id, func(t *running, id terms.AllocationID) int { return t.ID.Compare(id) })
}

func (m *machine) driverChanged() {
	m.stale = false
	local := make([]reaction.LocalTask, len(m.tasks))
	for i, t := range m.tasks {
		local[i] = t.LocalTask
	}
	m.core.DriverHas(local)
	m.core.DriverKeeps(slices.Clone(m.volumes.Sets), nil)
}

// start lets the driver begin an allocation. A simulated program is told by its command how many milliseconds it takes;
// 0 is for ever. A process that crashes meanwhile may have begun it or not. Only the life that has ordered it can prove
// that it is wanted.
func (m *machine) start(order reaction.Order) {
	run, power, self := m.run, m.power, m.core.Self()
	m.w.after(m.w.between(1, 30), func() {
		unproved := order.Spec.StopsItself() && (m.core.Self() != self || !m.canProve())
		if unproved && m.run == run {
			m.later(500, func() {
				m.core.DriverStarted(order.ID, "")
				m.notice()
			})
		}
		if unproved {
			return
		}
		refused := m.w.chance(failStart)
		if m.power != power || m.run != run && (refused || m.w.rng.IntN(2) == 0) {
			return
		}
		if _, found := m.find(order.ID); !refused && !found {
			m.exec(order)
		}
		if m.run == run {
			refusal := ""
			if refused {
				refusal = "no such program" + strings.Repeat(" ☠", m.w.between(0, 200))
			}
			m.core.DriverStarted(order.ID, refusal)
			m.notice()
		}
	})
}

// failures are the ways in which a program fails.
var failures = [...]facts.Ending{facts.ByItself, facts.BySignal, facts.OutOfMemory, facts.OutOfDisk, facts.NotThere}

func (m *machine) exec(order reaction.Order) {
	m.w.checkAlone(m, &order)
	m.w.disks.Opened(m.core.State(), &m.volumes, &order)
	t := &running{LocalTask: reaction.LocalTask{ID: order.ID, Files: order.Members},
		stopAfter: order.Spec.Disconnect.StopAfterMillis, grace: order.Spec.StopGraceMillis, proved: true}
	if len(order.Spec.Volumes) > 0 {
		t.volumes = order.Volumes
	}
	at, _ := m.find(order.ID)
	m.tasks = slices.Insert(m.tasks, at, t)
	m.w.clients.ran(order.ID)
	m.tell("starts %s", order.ID)
	lasts, _ := strconv.Atoi(order.Spec.Command[1])
	if m.w.chance(slowTask) {
		lasts *= 10
	}
	fares := ""
	if len(order.Spec.Command) > 2 {
		fares = order.Spec.Command[2]
	}
	m.readySoon(t, order.Spec, fares)
	switch {
	case fares == wishes.FaresBadly && (!m.w.calm || m.w.now < m.w.calmAt+repairMillis):
		m.w.after(m.w.between(0, 1000), func() { m.end(t, facts.ByItself, 1) })
	case m.w.chance(failTask):
		how := failures[m.w.rng.IntN(len(failures))]
		m.w.after(m.w.between(0, 2000), func() { m.end(t, how, 1) })
	case len(order.Spec.Checks) > 0 && !order.Spec.AsksReadiness() && m.w.chance(failedCheck):
		m.w.after(m.w.between(0, 3000), func() { m.end(t, facts.CheckFailed, 1) })
	case lasts > 0:
		m.w.after(lasts, func() { m.end(t, facts.ByItself, 0) })
	}
}

// renew gives tasks that run the files of a newer list of members, after a while. Who is asked meanwhile is asked
// again.
func (m *machine) renew(all []reaction.Renewal) {
	power := m.power
	if len(all) == 0 {
		return
	}
	m.w.after(m.w.between(1, 30), func() {
		for _, one := range all {
			if at, found := m.find(one.ID); found && m.power == power {
				m.tasks[at].Files = max(m.tasks[at].Files, one.Version)
			}
		}
		m.notice()
	})
}

// repairMillis is how long after the end of the faults a bad program stays bad.
const repairMillis = 60_000

// loseOutput lets the peer notice that something has deleted what a task has left here.
func (m *machine) loseOutput() {
	state := m.core.State()
	var left []terms.AllocationID
	for _, id := range state.Workflows() {
		for task := range state.Job(id).Tasks {
			state.EachSlot(id, task, func(r facts.SlotRef, slot facts.Slot) bool {
				if slot.Phase == facts.Succeeded && state.Node(slot.Node).Name == m.name {
					left = append(left, terms.AllocationID{Slot: state.NameOf(r), Order: slot.Order})
				}
				return true
			})
		}
	}
	if len(left) > 0 {
		id := left[m.w.rng.IntN(len(left))]
		m.tell("has lost the output of %s", id)
		m.core.OutputLost(id)
		m.wake()
	}
}

// readySoon lets a task pass its checks after a while, or late, or never.
func (m *machine) readySoon(t *running, spec *terms.Task, fares string) {
	wait := m.w.between(0, 500)
	switch {
	case len(spec.Checks) == 0 || fares == wishes.FaresUnready:
		return
	case m.w.chance(unreadyTask) && m.w.rng.IntN(2) == 0:
		return
	case m.w.chance(unreadyTask):
		wait = m.w.between(2000, 10_000)
	}
	m.w.after(wait, func() {
		t.Ready = t.Ended == facts.NotEnded
		m.notice()
		if t.Ready && spec.AsksReadiness() && m.w.chance(unreadyTask) {
			m.unreadySoon(t, spec, fares)
		}
	})
}

// unreadySoon lets a task that is ready be not ready for a while.
func (m *machine) unreadySoon(t *running, spec *terms.Task, fares string) {
	m.w.after(m.w.between(0, 3000), func() {
		if t.Ended != facts.NotEnded {
			return
		}
		t.Ready, t.Unready = false, "check command check failed once"
		m.notice()
		m.w.after(m.w.between(1, 3000), func() {
			t.Unready = ""
			m.readySoon(t, spec, fares)
		})
	})
}

// deleteVolumes deletes what nobody will come back for.
func (m *machine) deleteVolumes(sets []terms.VolumeSet) {
	for _, set := range sets {
		for _, t := range m.tasks {
			if t.volumes == set && t.Ended == facts.NotEnded {
				m.w.fail("%s deletes the volumes %s while %s runs", m.label, set, t.ID)
			}
		}
		m.tell("deletes the volumes %s", set)
		m.w.disks.Deleted(set, &m.volumes)
		m.stale = true
	}
}

// moves copies volumes that no instance has from one machine to another now and then. It has a source of its own.
func (w *World) moves(rng *rand.Rand) {
	w.after(100+rng.IntN(4000), func() {
		from, to := w.machines[rng.IntN(len(w.machines))], w.machines[rng.IntN(len(w.machines))]
		if w.calm {
			return
		}
		w.moves(rng)
		if to.up && to.begun && from != to && to.core.State().Rules >= rules.MovedVolumes {
			from.copyTo(to, rng)
		}
	})
}

// copyTo copies a set that nobody writes to on this machine to another, which asks to have it from then on.
func (m *machine) copyTo(to *machine, rng *rand.Rand) {
	of := storage.List(to.core.State())
	of = slices.DeleteFunc(of, func(one storage.Volumes) bool {
		writes := func(t *running) bool { return t.volumes == one.Set && t.Ended == facts.NotEnded }
		return slices.ContainsFunc(m.tasks, writes) || one.Node != m.name || one.State == storage.InUse ||
			!slices.Contains(m.volumes.Sets, one.Set)
	})
	if len(of) == 0 || slices.Contains(to.volumes.Sets, of[0].Set) {
		return
	}
	one := of[rng.IntN(len(of))]
	by := m.volumes.Written(one.Set)
	to.later(rng.IntN(2000), func() {
		if slices.Contains(to.volumes.Sets, one.Set) {
			return
		}
		to.w.disks.Copied(one.Set, by, &to.volumes)
		to.tell("has copied the volumes %s from %s", one.Set, m.label)
		move := &command.MoveVolumes{RequestID: fmt.Sprint("moved ", to.w.now), Volumes: one.Set, Order: one.Order}
		to.core.TakeVolumes(one.Set, move, func(report.Receipt, error) { to.notice() })
		to.wake()
	})
}

// end lets a task end; the peer learns of it if it runs.
func (m *machine) end(t *running, how facts.Ending, code int32) {
	if t.Ended != facts.NotEnded {
		return
	}
	t.Ended, t.ExitCode = how, code
	if code == 1 {
		t.Detail = strings.Repeat("☠", m.w.between(0, 200))
	}
	m.w.workedAt = m.w.now
	m.tell("has %s end: %s %d", t.ID, how, code)
	if how == facts.ByItself && code == 0 {
		m.w.clients.succeeded[t.ID] = true
	}
	m.notice()
}

// stop ends a task, at once or when it has used up its grace.
func (m *machine) stop(order reaction.StopOrder) {
	if at, found := m.find(order.ID); found && !m.tasks[at].stopping {
		t := m.tasks[at]
		m.checkUnlisted(t)
		t.stopping = true
		m.w.after(m.w.between(1, int(order.GraceMillis)+1), func() { m.end(t, facts.OnRequest, 143) })
	}
}

// checkUnlisted checks that an instance is on no list of addresses any more when it is sent its signal, and that it is
// sent none because it is not ready.
func (m *machine) checkUnlisted(t *running) {
	s, id := m.core.State(), t.ID
	j := s.JobOf(id.Slot.Job)
	if j == nil {
		return
	}
	r := facts.SlotRef{Job: j.ID, Task: uint16(j.TaskIndex(id.Slot.Task)), Index: id.Slot.Index}
	switch _, slot, _ := s.SeatOf(r, id.Order); {
	case slot.Phase == facts.BackingOff:
		return // it was reported as failed, by a life that knew no better
	case slot.Phase == facts.Running && t.Unready != "":
		m.w.fail("%s stops %s, of which nothing more is known than that it is not ready", m.label, id)
	}
	for _, member := range roster.Members(s, j, j.TaskIndex(id.Slot.Task)) {
		if member.Index == id.Slot.Index && member.Order == id.Order {
			m.w.fail("%s sends %s its signal while others are told to find it at %s", m.label, id, member.Address)
		}
	}
}

// canProve tells whether the machine could prove at this moment that its peer is still a member: it asks the engine
// whether its pulse lives, and that has never been interrupted.
func (m *machine) canProve() bool {
	return m.up && m.begun && !m.claimed && !m.cutRead && !m.cutWrite && m.w.now >= m.w.outageUntil &&
		!m.disk.interrupted && m.w.pulseOf(m.self()).alive
}

// prove tells the supervisors of tasks with stop_after whether they are still wanted. One that nobody tells so stops
// its task when that time is over, whatever has become of the peer.
func (m *machine) prove() {
	var guarded []terms.AllocationID
	if m.canProve() {
		guarded = m.core.Guarded()
	}
	for _, t := range m.tasks {
		if t.stopAfter == 0 {
			continue
		}
		proved := slices.Contains(guarded, t.ID)
		if t.proved && !proved {
			t.lapses++
			lapses := t.lapses
			m.w.after(int(t.stopAfter), func() {
				if !t.proved && t.lapses == lapses {
					m.w.after(m.w.between(1, int(t.grace)+1), func() { m.end(t, facts.NodeLost, 137) })
				}
			})
		}
		t.proved = proved
	}
}

// mustMoveOn tells whether the machine needs another life because the pulse of this one was interrupted, and it has
// tasks for which nothing else could prove that they are wanted.
func (m *machine) mustMoveOn() bool {
	return m.disk.interrupted && !m.cutRead && !m.cutWrite && len(m.core.Guarded()) > 0
}

// checkAlone checks that no program of the slot lives anywhere when one of a stateful job begins. It is promised as
// long as clocks run on, names are not given twice, and nobody says of the living that they left.
func (w *World) checkAlone(m *machine, order *reaction.Order) {
	j := m.core.State().JobOf(order.ID.Slot.Job)
	excused := w.fired[clockJump] + w.fired[twinName] + w.fired[falseDeath] + w.fired[leaveGracefully]
	if j == nil || j.Spec.Type != terms.Stateful || excused > 0 {
		return
	}
	for _, other := range w.machines {
		for _, t := range other.tasks {
			if t.ID.Slot == order.ID.Slot && t.Ended == facts.NotEnded {
				w.fail("%s begins on %s while %s lives on %s", order.ID, m.label, t.ID, other.label)
			}
		}
	}
}
