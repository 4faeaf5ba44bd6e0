package reaction

import (
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/plugin"
	"starling/ring"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// Observed is what a peer sees around it that is not in the value.
type Observed struct {
	// Now is the cluster's time by the peer's own clock.
	Now terms.Time
	// Gone are the watched peers whose pulse has ended, ordered; until Doubt that may be the engine's fault.
	Gone  []terms.PeerID
	Doubt terms.Time
	// Local are the allocations that the node's driver has.
	Local []LocalTask
	// Starts is how many more may be started now.
	Starts int
	// Volumes are the sets of volumes that its driver keeps.
	Volumes []terms.VolumeSet
	// Outputs are the outputs that it keeps, of instances that ran here or elsewhere.
	Outputs []terms.OutputSet
	// Lost are the allocations of which the node should have the outputs and has not, ordered.
	Lost []terms.AllocationID
	// Offer is what the node gives; nil for none.
	Offer *terms.Offer
	// Snapshot is about the snapshot that is due.
	Snapshot Snapshot
	// Renewing tells that files are being replaced: no others are asked for until that is done.
	Renewing bool
	// Key names the node's key, zero for none; Full tells that the journal has little room left.
	Key  access.Key
	Full bool
	// Folder returns where an allocation finds the files about its job's members; nil is nowhere.
	Folder func(terms.AllocationID) string
}

// LocalTask is an allocation as the driver has it.
type LocalTask struct {
	ID terms.AllocationID
	// Ended is NotEnded while it runs.
	Ended    facts.Ending
	ExitCode int32
	// Starting tells that the driver was told to start it and has not answered: it may run, now or in a moment.
	Starting bool
	// Ready tells that it runs and has passed all its checks; without checks it need not be told.
	Ready bool
	// Files is the version of the list of members that its files tell of, once it has been told; 0 without files.
	Files terms.Index
	// CheckFailure says why a check of it failed too often, "" if none did. It is ended for that.
	CheckFailure string
	// Unready says why a check that asks no more than whether it is ready failed too often, "" if each passes, or has
	// not been asked often enough.
	Unready string
	// Detail says more about a failure; what is too long or no UTF-8 is left out of the report.
	Detail string
}

// Order tells the driver to run an allocation.
type Order struct {
	ID        terms.AllocationID
	Spec      *terms.Task
	Instances uint32
	Ports     []facts.PortUse
	Devices   []facts.DeviceUse
	// Job is the number of its job, Volumes the set of the slot's volumes.
	Job     terms.JobID
	Volumes terms.VolumeSet
	// Environment is what it starts with because of its job's plugins, of the list of members in version Members; 0
	// without plugins.
	Environment plugin.Environment
	Members     terms.Index
	// Refusal says why it cannot be started, "" if it can.
	Refusal string
}

// StopOrder tells the driver to end an allocation.
type StopOrder struct {
	ID          terms.AllocationID
	GraceMillis uint32
}

// Reactions are what a peer must do so that what is becomes what the value asks for.
type Reactions struct {
	// Commands to append, all in one entry.
	Commands []command.Command
	Start    []Order
	// Queued is how many others are to start, and come later.
	Queued int
	Stop   []StopOrder
	Renew  []Renewal
	// Waits are the allocations that cannot be started before others have nodes, and those that run and are not ready.
	Waits []Wait
	// Probe lists all instances that run here and are to be asked whether they are well.
	Probe []Order
	// Forget lists ended allocations whose end the value knows, or does not care for.
	Forget []terms.AllocationID
	// DeleteVolumes lists the sets of volumes that nobody will come back for.
	DeleteVolumes []terms.VolumeSet
	// DeleteOutputs lists the outputs that nobody will ask for.
	DeleteOutputs []terms.OutputSet
	Snapshots     Snapshots
	// Watch lists all pulses that must be watched now, ordered.
	Watch []terms.PeerID
	// AskAgain is the time at which to ask again although nothing changed; 0 for never.
	AskAgain terms.Time
}

// ReportsMax bounds the news in one entry, so that they fit into it whatever their details say; the rest goes with the
// next.
const ReportsMax = 1024

// Wait says what an allocation waits for that has its node.
type Wait struct {
	ID     terms.AllocationID
	Reason string
}

// graceOrphanMillis is the grace of allocations that the value knows nothing of any more.
const graceOrphanMillis = 5000

// React lists what self must do now. It compares levels: asked again before anything changed, it answers the same.
func React(self terms.PeerID, s *cluster.State, o *Observed) Reactions {
	r := &reacting{self: self, s: s, o: o}
	if s.Registry().IsGone(self.Node()) {
		r.removed()
		return r.out
	}
	r.membership()
	r.admission()
	r.offer()
	r.rules()
	r.tasks()
	r.volumes()
	r.outputs()
	r.snapshot()
	r.time()
	return r.out
}

// removed ends all that runs on a node that was removed. It writes nothing: all of that would be dropped.
func (r *reacting) removed() {
	for i := range r.o.Local {
		switch task := &r.o.Local[i]; {
		case task.Starting:
		case task.Ended == facts.NotEnded:
			r.out.Stop = append(r.out.Stop, StopOrder{task.ID, graceOrphanMillis})
		default:
			r.out.Forget = append(r.out.Forget, task.ID)
		}
	}
}

type reacting struct {
	self terms.PeerID
	s    *cluster.State
	o    *Observed
	out  Reactions
	// queue are the allocations that are to start.
	queue []*Assignment
	// lists are the members of jobs, as far as somebody has asked.
	lists map[terms.JobID]*plugin.Roster
}

func (r *reacting) askAgain(at terms.Time) {
	if r.out.AskAgain == 0 || at < r.out.AskAgain {
		r.out.AskAgain = at
	}
}

func (r *reacting) membership() {
	watch := ring.Watches(r.s, r.self)
	for _, p := range ring.Probes(r.s, r.self) {
		if !slices.Contains(watch, p) {
			watch = append(watch, p)
		}
	}
	slices.Sort(watch)
	r.out.Watch = watch
	for _, step := range ring.Duties(r.s, r.self) {
		switch step.Duty {
		case ring.MustNotify:
			r.write(&command.NotifyJoin{Joiner: step.Joiner, Attempt: step.Attempt})
		case ring.MustAccept:
			r.write(&command.AcceptJoin{Joiner: step.Joiner, Observer: step.Observer, Attempt: step.Attempt})
		case ring.MustAbort:
			r.write(&command.AbortJoin{Joiner: step.Joiner, Attempt: step.Attempt})
		case ring.MustPrepare:
			ready, at := ring.Ready(r.s, r.self, r.o.Now)
			if !ready {
				if at != 0 {
					r.askAgain(at)
				}
				continue
			}
			r.write(&command.PrepareJoin{Joiner: step.Joiner, Attempt: step.Attempt})
		}
	}
	for _, p := range r.o.Gone {
		if !slices.Contains(watch, p) || !r.known(r.self) {
			continue
		}
		if until := max(ring.AwayUntil(r.s, p), r.o.Doubt); until > r.o.Now {
			r.askAgain(until)
			continue
		}
		r.write(&command.Leave{Peer: p})
	}
}

// known tells whether entries of the peer are taken: it has written before.
func (r *reacting) known(p terms.PeerID) bool {
	name, incarnation := p.Split()
	node := r.s.NodeOf(name)
	return node != nil && node.LastSeq(incarnation) > 0
}

func (r *reacting) write(c command.Command) { r.out.Commands = append(r.out.Commands, c) }

// offer repeats what the node gives whenever the value has something else. An offer that would be refused is not
// written: it would be again and again.
func (r *reacting) offer() {
	if r.o.Offer == nil || !r.s.IsMember(r.self) || r.o.Offer.Problem() != "" {
		return
	}
	if have := r.s.NodeOf(r.self.Node()).Offer; have == nil || !have.Equal(r.o.Offer) {
		r.write(&command.Volunteer{Peer: r.self, Offer: *r.o.Offer})
	}
}

// takeBacksMax bounds the instances that one entry ends for slack; the rest goes with the next.
const takeBacksMax = 64

// takeBack ends an instance that has more of the node's slack than it offers: those to which it was promised use it.
func (r *reacting) takeBack(a *Assignment) {
	if a.Spec.Slack() == 0 || r.s.Rules < rules.Slack || a.Phase == facts.Stopping ||
		len(r.out.Commands) >= takeBacksMax {
		return
	}
	offered := r.s.NodeOf(r.self.Node()).DeviceOf(terms.Slack).Count
	if slices.ContainsFunc(a.Devices,
		func(u facts.DeviceUse) bool { return u.Kind == terms.Slack && u.Number >= offered }) {
		r.write(&command.EndAllocation{Slot: a.ID.Slot, Order: a.ID.Order, Elsewhere: true})
	}
}

// tasks compares what the node holds in the value with what its driver has.
func (r *reacting) tasks() {
	local := make(map[terms.AllocationID]*LocalTask, len(r.o.Local))
	for i := range r.o.Local {
		local[r.o.Local[i].ID] = &r.o.Local[i]
	}
	reports := &command.ReportTasks{Peer: r.self}
	view, member := ViewOf(r.s, r.self), r.s.IsMember(r.self)
	for i := range view {
		a := &view[i]
		task := local[a.ID]
		if task != nil {
			delete(local, a.ID) // what is left is not wanted
		}
		if !member {
			continue
		}
		r.takeBack(a)
		runs := task != nil && !task.Starting && task.Ended == facts.NotEnded
		if runs && a.Phase != facts.Stopping && len(a.Spec.Checks) > 0 {
			r.out.Probe = append(r.out.Probe, a.order())
		}
		r.renew(a, task)
		if news, ok := r.allocation(a, task); ok && len(reports.Reports) < ReportsMax {
			reports.Reports = append(reports.Reports, news)
		}
	}
	r.startSome()
	reports.Reports = append(reports.Reports, r.lostOutputs(ReportsMax-len(reports.Reports))...)
	if len(reports.Reports) > 0 {
		r.write(reports)
	}
	r.endOrphans(local)
}

// endOrphans ends what the driver has and the node is not to run.
func (r *reacting) endOrphans(orphans map[terms.AllocationID]*LocalTask) {
	for i := range r.o.Local {
		task := &r.o.Local[i]
		switch {
		case orphans[task.ID] == nil || task.Starting:
		case task.Ended == facts.NotEnded:
			r.out.Stop = append(r.out.Stop, StopOrder{task.ID, graceOrphanMillis})
		default:
			r.out.Forget = append(r.out.Forget, task.ID)
		}
	}
}

// allocation starts or stops one allocation, or returns the news of it.
func (r *reacting) allocation(a *Assignment, task *LocalTask) (news command.Report, ok bool) {
	news = command.Report{Slot: a.Slot, Order: a.ID.Order}
	if r.tellEnd(a, task, &news); news.Ended != facts.NotEnded {
		return news, true
	}
	ready := task != nil && (task.Ready || len(a.Spec.Checks) == 0)
	switch {
	case task == nil:
		r.queue = append(r.queue, a)
	case task.Starting:
	case a.Phase == facts.Stopping && task.CheckFailure == "" && r.o.Now < a.SignalAt:
		r.askAgain(a.SignalAt)
	case a.Phase == facts.Stopping || task.CheckFailure != "":
		r.out.Stop = append(r.out.Stop, StopOrder{a.ID, a.grace()})
	case a.Phase != facts.Running || ready && !a.Health.Ready():
		news.Ready = ready
		return news, true
	case task.Unready != "":
		return news, r.unready(a, task, &news)
	}
	return news, false
}

// readyMillisMin is how long what became ready stays so in the value, so that a check that fails every other time costs
// few entries.
const readyMillisMin = 1000

// unready says why a running allocation is not ready, and returns whether the value does not know it and is to be told
// now.
func (r *reacting) unready(a *Assignment, task *LocalTask, news *command.Report) bool {
	if at := a.Since + readyMillisMin; a.Health.Ready() && r.o.Now < at {
		r.askAgain(at)
		return false
	}
	news.Detail = clipped(task.Unready)
	return a.Health.Ready()
}

// tellEnd completes the news of an allocation that has ended.
func (r *reacting) tellEnd(a *Assignment, task *LocalTask, news *command.Report) {
	switch {
	case task != nil && task.CheckFailure != "" && task.Ended != facts.NotEnded && task.Ended != facts.NodeLost:
		news.Ended, news.ExitCode, news.Detail = facts.CheckFailed, task.ExitCode, clipped(task.CheckFailure)
	case task != nil:
		news.Ended, news.ExitCode, news.Detail = task.Ended, task.ExitCode, clipped(task.Detail)
		switch { // as what older rules take it
		case task.Ended == facts.OutOfDisk && r.s.Rules < rules.DiskLimits:
			news.Ended = facts.BySignal
		case task.Ended == facts.NotThere && r.s.Rules < rules.Lacks:
			news.Ended = facts.NotStarted
		}
	case a.Phase == facts.Stopping:
		news.Ended = facts.OnRequest
	case a.Phase == facts.Unknown:
		news.Ended = facts.NodeLost
	}
}

// clipped makes what a node says fit into a report: an entry that nobody can decode would stay under way for ever.
func clipped(detail string) string {
	return strings.ToValidUTF8(detail[:min(len(detail), facts.FailureDetailBytesMax)], "")
}

// Limits of the turns by which peers tell the time: each later turn waits one step longer, up to the last.
const (
	turnMillis = 250
	turnsMax   = 8
)

// time tells the time when a deadline of the value has passed. Whose turn it is follows from the deadline and the
// order of the members; the next in turn speaks when that one is silent.
func (r *reacting) time() {
	at, ok := r.s.NextDeadline()
	if !ok || !r.s.IsMember(r.self) {
		return
	}
	members := r.s.Members()
	turn := (r.s.Rank(r.self) - int(uint64(at)%uint64(members)) + members) % members
	at += terms.Time(min(turn, turnsMax) * turnMillis)
	if r.o.Now < at {
		r.askAgain(at)
		return
	}
	if len(r.out.Commands) == 0 {
		r.write(&command.TellTime{})
	}
}

// Assignment is an allocation that the value gives to a node.
type Assignment struct {
	ID        terms.AllocationID
	Slot      facts.SlotRef
	Phase     facts.Phase
	Health    facts.Health
	Since     terms.Time
	Version   uint32
	Spec      *terms.Task
	Instances uint32
	Ports     []facts.PortUse
	Devices   []facts.DeviceUse
	// Volumes is the set of the slot's volumes.
	Volumes terms.VolumeSet
	// SignalAt is when an instance in phase Stopping is sent its signal. The entry that put it there took it off all
	// lists of addresses; until then it serves those who have read them before. AtOnce tells that it is killed instead.
	SignalAt terms.Time
	AtOnce   bool
}

// grace is how long after its signal it is killed.
func (a *Assignment) grace() uint32 {
	if a.AtOnce {
		return 0
	}
	return a.Spec.StopGraceMillis
}

// order tells the driver to run it.
func (a *Assignment) order() Order {
	return Order{
		ID: a.ID, Spec: a.Spec, Instances: a.Instances, Ports: a.Ports, Devices: a.Devices,
		Job: a.Slot.Job, Volumes: a.Volumes,
	}
}

// OrderOf returns how an allocation of the peer's node was told to run; ok is false if it has no such.
func OrderOf(s *cluster.State, self terms.PeerID, id terms.AllocationID,
	folder func(terms.AllocationID) string) (o Order, ok bool) {
	for _, a := range ViewOf(s, self) {
		if a.ID != id {
			continue
		}
		o = a.order()
		r := &reacting{self: self, s: s, o: &Observed{Folder: folder}}
		if set, list, member := r.told(&a); set != nil {
			o.Environment, _ = set.OnInstanceCreate(list, &member) // it runs, so whatever is missing now was there
		}
		return o, true
	}
	return o, false
}

// ViewOf returns all that a machine has to know of the value to do its part: the allocations it is to run or to end.
// A peer that is not a member yet has those of the node's earlier life: it may go on with them once it is.
func ViewOf(s *cluster.State, self terms.PeerID) []Assignment {
	node := s.NodeOf(self.Node())
	if node == nil {
		return nil
	}
	view := make([]Assignment, 0, len(node.Held))
	for _, ref := range node.Held {
		slot, _ := s.SlotAt(ref)
		if slot.Phase == facts.BackingOff {
			continue
		}
		j := s.Job(ref.Job)
		a := Assignment{
			ID: terms.AllocationID{Slot: s.NameOf(ref), Order: slot.Order}, Slot: ref, Phase: slot.Phase, Health: slot.Health,
			Since:   slot.Since,
			Version: slot.Version,
			Spec:    j.TaskSpecOf(int(ref.Task), slot.Version), Instances: j.Tasks[ref.Task].Desired,
		}
		if len(a.Spec.Ports)+len(a.Spec.Devices) > 0 {
			a.Ports = selected(node.Ports, func(u facts.PortUse) bool { return u.Slot == ref })
			a.Devices = selected(node.Devices, func(u facts.DeviceUse) bool { return u.Slot == ref })
		}
		if len(a.Spec.Volumes) > 0 {
			a.Volumes, _, _ = s.Volumes().Of(a.ID.Slot, ref.Job)
		}
		if a.AtOnce = slot.AtOnce(); slot.Phase == facts.Stopping && !a.AtOnce {
			a.SignalAt = slot.Since + a.Spec.StopDelay(j.Spec.Type)
		}
		view = append(view, a)
	}
	return view
}

func selected[T any](all []T, wanted func(T) bool) []T {
	var some []T
	for _, one := range all {
		if wanted(one) {
			some = append(some, one)
		}
	}
	return some
}
