package command

import (
	"math"

	"starling/cluster"
	"starling/cluster/constraint"
)

func peer(c *coder, p *cluster.PeerID) { text(c, p, peerBytesMax) }

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
	list(c, &m.Offer.Attributes, cluster.ArgumentsMax, variable)
	list(c, &m.Offer.Devices, cluster.RequestsPerTaskMax, deviceOffer)
	integer(c, &m.Offer.PortFirst, math.MaxUint16)
	integer(c, &m.Offer.PortLast, math.MaxUint16)
	text(c, &m.Offer.Address, cluster.AddressBytesMax)
	integer(c, &m.Offer.Rules, math.MaxUint32)
}

func (m *SubmitJob) code(c *coder) {
	text(c, &m.RequestID, RequestIDBytesMax)
	integer(c, &m.Against, math.MaxUint32)
	text(c, &m.Spec.Name, cluster.JobNameBytesMax)
	integer(c, &m.Spec.Type, uint64(cluster.Daemon))
	integer(c, &m.Spec.Priority, math.MaxUint32)
	flag(c, &m.Spec.NonPreemptible)
	flag(c, &m.Spec.Revocable)
	flag(c, &m.Spec.Controller)
	flag(c, &m.Spec.KillOnPreempt)
	integer(c, &m.Spec.MinAvailable, math.MaxUint32)
	updatePolicy(c, &m.Spec.Update)
	list(c, &m.Spec.Tasks, cluster.TasksMax, task)
}

func (m *KillJob) code(c *coder) {
	request(c, &m.RequestID, &m.Job)
	integer(c, &m.Against, math.MaxUint32)
}

// request codes how a command about a job begins.
func request(c *coder, id *string, job *cluster.JobName) {
	text(c, id, RequestIDBytesMax)
	text(c, job, cluster.JobNameBytesMax)
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
	text(c, &m.Task, cluster.NameBytesMax)
}

func (m *EndAllocation) code(c *coder) {
	request(c, &m.RequestID, &m.Slot.Job)
	text(c, &m.Slot.Task, cluster.NameBytesMax)
	integer(c, &m.Slot.Index, math.MaxUint32)
	integer(c, &m.Order, math.MaxUint64)
	flag(c, &m.Elsewhere)
}

func (m *DrainNode) code(c *coder) {
	text(c, &m.RequestID, RequestIDBytesMax)
	text(c, &m.Node, cluster.NameBytesMax)
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

func task(c *coder, t *cluster.TaskSpec) {
	text(c, &t.Name, cluster.NameBytesMax)
	integer(c, &t.Instances, math.MaxUint32)
	integer(c, &t.MinAvailable, math.MaxUint32)
	integer(c, &t.MaxRunning, math.MaxUint32)
	integer(c, &t.MaxRunMillis, math.MaxUint32)
	list(c, &t.Command, cluster.ArgumentsMax, argument)
	list(c, &t.Env, cluster.ArgumentsMax, variable)
	text(c, &t.WorkDir, cluster.TextBytesMax)
	text(c, &t.User, cluster.TextBytesMax)
	resources(c, &t.Resources)
	list(c, &t.Devices, cluster.RequestsPerTaskMax, deviceRequest)
	list(c, &t.Ports, cluster.RequestsPerTaskMax, port)
	list(c, &t.Constraints, cluster.RequestsPerTaskMax, wholeConstraint)
	list(c, &t.Labels, cluster.RequestsPerTaskMax, variable)
	integer(c, &t.PerNodeMax, math.MaxUint32)
	text(c, &t.SpreadOver, constraint.NameBytesMax)
	integer(c, &t.Placement, uint64(cluster.Defragment))
	integer(c, &t.Restart.AttemptsMax, math.MaxUint32)
	integer(c, &t.Restart.DelayMillis, math.MaxUint32)
	integer(c, &t.Restart.DelayMaxMillis, math.MaxUint32)
	integer(c, &t.Restart.ResetMillis, math.MaxUint32)
	integer(c, &t.StopGraceMillis, math.MaxUint32)
	policies(c, t)
}

func argument(c *coder, a *string) { text(c, a, cluster.TextBytesMax) }

func variable(c *coder, v *cluster.EnvVar) {
	text(c, &v.Name, cluster.NameBytesMax*4)
	text(c, &v.Value, cluster.TextBytesMax)
}

func resources(c *coder, r *cluster.Resources) {
	for k := range r {
		integer(c, &r[k], math.MaxInt64)
	}
}

func deviceOffer(c *coder, d *cluster.DeviceOffer) {
	text(c, &d.Kind, cluster.NameBytesMax)
	text(c, &d.Model, cluster.NameBytesMax)
	integer(c, &d.Count, math.MaxUint32)
}

func deviceRequest(c *coder, d *cluster.DeviceRequest) {
	text(c, &d.Kind, cluster.NameBytesMax)
	integer(c, &d.Amount, math.MaxUint32)
	list(c, &d.Models, cluster.RequestsPerTaskMax, model)
}

func model(c *coder, m *string) { text(c, m, cluster.NameBytesMax) }

func port(c *coder, p *cluster.PortRequest) {
	text(c, &p.Name, cluster.NameBytesMax)
	integer(c, &p.Number, math.MaxUint16)
}
