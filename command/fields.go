package command

import (
	"math"

	"starling/cluster"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

func peer(c *coder, p *terms.PeerID) { text(c, p, peerBytesMax) }

func (m *PrepareJoin) code(c *coder) {
	peer(c, &m.Joiner)
	integer(c, &m.Attempt, math.MaxUint32)
}

func (m *NotifyJoin) code(c *coder) {
	peer(c, &m.Joiner)
	integer(c, &m.Attempt, math.MaxUint32)
}

func (m *AcceptJoin) code(c *coder) {
	peer(c, &m.Joiner)
	peer(c, &m.Observer)
	integer(c, &m.Attempt, math.MaxUint32)
}

func (m *AbortJoin) code(c *coder) {
	peer(c, &m.Joiner)
	integer(c, &m.Attempt, math.MaxUint32)
}

func (m *Leave) code(c *coder) { peer(c, &m.Peer) }

func (m *Volunteer) code(c *coder) {
	peer(c, &m.Peer)
	resources(c, &m.Offer.Capacity)
	list(c, &m.Offer.Attributes, terms.ArgumentsMax, variable)
	list(c, &m.Offer.Devices, terms.RequestsPerTaskMax, deviceOffer)
	integer(c, &m.Offer.PortFirst, math.MaxUint16)
	integer(c, &m.Offer.PortLast, math.MaxUint16)
	text(c, &m.Offer.Address, terms.AddressBytesMax)
	integer(c, &m.Offer.Rules, math.MaxUint32)
}

func (m *SubmitJob) code(c *coder) {
	requestID(c, &m.RequestID)
	integer(c, &m.Against, math.MaxUint32)
	text(c, &m.Spec.Name, terms.JobNameBytesMax)
	integer(c, &m.Spec.Type, uint64(terms.Daemon))
	integer(c, &m.Spec.Priority, math.MaxUint32)
	integer(c, &m.Spec.Preemption, uint64(terms.Preemptible))
	flag(c, &m.Spec.Revocable)
	flag(c, &m.Spec.Controller)
	flag(c, &m.Spec.KillOnPreempt)
	integer(c, &m.Spec.TaskScheduler, uint64(terms.TaskColocated))
	integer(c, &m.Spec.Percent, math.MaxUint32)
	integer(c, &m.Spec.Coverage, uint64(terms.CoverageOptional))
	integer(c, &m.Spec.MinAvailable, math.MaxUint32)
	text(c, &m.Spec.Within, constraint.NameBytesMax)
	integer(c, &m.Spec.Grow, uint64(terms.GrowWhole))
	integer(c, &m.Spec.MinSuccess, math.MaxUint32)
	list(c, &m.Spec.Policies, lifecycle.PoliciesMax, lifecyclePolicy)
	integer(c, &m.Spec.MaxRestarts, math.MaxUint32)
	integer(c, &m.Spec.KeepMillis, math.MaxUint32)
	list(c, &m.Spec.After, terms.JobsAfterMax, jobName)
	updatePolicy(c, &m.Spec.Update)
	list(c, &m.Spec.Plugins, terms.PluginsMax, plugin)
	list(c, &m.Spec.Tasks, terms.TasksMax, task)
}

func (m *KillJob) code(c *coder) {
	request(c, &m.RequestID, &m.Job)
	integer(c, &m.Against, math.MaxUint32)
}

// request codes how a command about a job begins.
func request(c *coder, id *string, job *terms.JobName) {
	requestID(c, id)
	text(c, job, terms.JobNameBytesMax)
}

func (m *SteerUpdate) code(c *coder) {
	request(c, &m.RequestID, &m.Job)
	integer(c, &m.Version, math.MaxUint32)
	integer(c, &m.Steering, uint64(Abort))
}

func (m *RevertJob) code(c *coder) {
	request(c, &m.RequestID, &m.Job)
	integer(c, &m.Against, math.MaxUint32)
	integer(c, &m.To, math.MaxUint32)
}

func (m *RestartJob) code(c *coder) {
	request(c, &m.RequestID, &m.Job)
	integer(c, &m.Against, math.MaxUint32)
	text(c, &m.Task, terms.NameBytesMax)
}

func (m *SuspendJob) code(c *coder) {
	request(c, &m.RequestID, &m.Job)
	integer(c, &m.Against, math.MaxUint32)
	flag(c, &m.Resume)
}

func (m *SealTask) code(c *coder) {
	request(c, &m.RequestID, &m.Slot.Job)
	text(c, &m.Slot.Task, terms.NameBytesMax)
	integer(c, &m.Slot.Index, math.MaxUint32)
	integer(c, &m.Order, math.MaxUint64)
}

func (m *EndAllocation) code(c *coder) {
	request(c, &m.RequestID, &m.Slot.Job)
	text(c, &m.Slot.Task, terms.NameBytesMax)
	integer(c, &m.Slot.Index, math.MaxUint32)
	integer(c, &m.Order, math.MaxUint64)
	flag(c, &m.Elsewhere)
	if c.version >= withoutVolumes {
		flag(c, &m.WithoutVolumes)
	}
}

func (m *DrainNode) code(c *coder) {
	requestID(c, &m.RequestID)
	text(c, &m.Node, terms.NameBytesMax)
	flag(c, &m.Drain)
	integer(c, &m.DeadlineMillis, math.MaxUint32)
}

func (m *ReportTasks) code(c *coder) {
	peer(c, &m.Peer)
	list(c, &m.Reports, CommandsMax, report)
}

func (m *TellTime) code(*coder) {}

func (m *RaiseRules) code(c *coder) { integer(c, &m.Version, math.MaxUint32) }

func report(c *coder, r *Report) {
	integer(c, &r.Slot.Job, math.MaxUint32)
	integer(c, &r.Slot.Task, math.MaxUint16)
	integer(c, &r.Slot.Index, math.MaxUint32)
	integer(c, &r.Slot.Seat, uint64(cluster.AwaySeat))
	integer(c, &r.Order, math.MaxUint64)
	integer(c, &r.Ended, uint64(cluster.EndingCount)-1)
	c.signed(&r.ExitCode)
	flag(c, &r.Ready)
	text(c, &r.Detail, cluster.FailureDetailBytesMax)
}

func task(c *coder, t *terms.Task) {
	text(c, &t.Name, terms.NameBytesMax)
	integer(c, &t.Instances, math.MaxUint32)
	integer(c, &t.MinAvailable, math.MaxUint32)
	integer(c, &t.MaxRunning, math.MaxUint32)
	integer(c, &t.Percent, math.MaxUint32)
	integer(c, &t.MaxRunMillis, math.MaxUint32)
	list(c, &t.After, terms.TasksMax, taskName)
	list(c, &t.Command, terms.ArgumentsMax, argument)
	list(c, &t.Env, terms.ArgumentsMax, variable)
	text(c, &t.WorkDir, terms.TextBytesMax)
	text(c, &t.User, terms.TextBytesMax)
	resources(c, &t.Resources)
	list(c, &t.Devices, terms.RequestsPerTaskMax, deviceRequest)
	list(c, &t.Ports, terms.RequestsPerTaskMax, port)
	list(c, &t.Constraints, terms.RequestsPerTaskMax, wholeConstraint)
	list(c, &t.Labels, terms.RequestsPerTaskMax, variable)
	integer(c, &t.PerNodeMax, math.MaxUint32)
	text(c, &t.SpreadOver, constraint.NameBytesMax)
	integer(c, &t.Placement, uint64(terms.Defragment))
	integer(c, &t.Restart.AttemptsMax, math.MaxUint32)
	integer(c, &t.Restart.DelayMillis, math.MaxUint32)
	integer(c, &t.Restart.DelayMaxMillis, math.MaxUint32)
	integer(c, &t.Restart.ResetMillis, math.MaxUint32)
	integer(c, &t.StopGraceMillis, math.MaxUint32)
	policies(c, t)
	integer(c, &t.OnMembersChange, uint64(terms.SignalUser2))
	if c.version >= stopDelays {
		integer(c, &t.StopDelayMillis, math.MaxUint32)
	}
}

func plugin(c *coder, q *terms.PluginRequest) {
	text(c, &q.Name, terms.NameBytesMax)
	list(c, &q.Arguments, terms.PluginsMax, variable)
}

func jobName(c *coder, n *terms.JobName) { text(c, n, terms.JobNameBytesMax) }

func taskName(c *coder, n *terms.TaskName) { text(c, n, terms.NameBytesMax) }

func argument(c *coder, a *string) { text(c, a, terms.TextBytesMax) }

func variable(c *coder, v *terms.EnvVar) {
	text(c, &v.Name, terms.NameBytesMax*4)
	text(c, &v.Value, terms.TextBytesMax)
}

func resources(c *coder, r *terms.Resources) {
	for k := range r {
		integer(c, &r[k], math.MaxInt64)
	}
}

func deviceOffer(c *coder, d *terms.DeviceOffer) {
	text(c, &d.Kind, terms.NameBytesMax)
	text(c, &d.Model, terms.NameBytesMax)
	integer(c, &d.Count, math.MaxUint32)
}

func deviceRequest(c *coder, d *terms.DeviceRequest) {
	text(c, &d.Kind, terms.NameBytesMax)
	integer(c, &d.Amount, math.MaxUint32)
	list(c, &d.Models, terms.RequestsPerTaskMax, model)
}

func model(c *coder, m *string) { text(c, m, terms.NameBytesMax) }

func port(c *coder, p *terms.PortRequest) {
	text(c, &p.Name, terms.NameBytesMax)
	integer(c, &p.Number, math.MaxUint16)
}
