package command

import (
	"math"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/codec"
)

func peer(c *codec.Coder, p *terms.PeerID) { codec.Text(c, p, terms.PeerIDBytesMax) }

func (m *PrepareJoin) code(c *codec.Coder) {
	peer(c, &m.Joiner)
	codec.Integer(c, &m.Attempt, math.MaxUint32)
}

func (m *NotifyJoin) code(c *codec.Coder) {
	peer(c, &m.Joiner)
	codec.Integer(c, &m.Attempt, math.MaxUint32)
}

func (m *AcceptJoin) code(c *codec.Coder) {
	peer(c, &m.Joiner)
	peer(c, &m.Observer)
	codec.Integer(c, &m.Attempt, math.MaxUint32)
}

func (m *AbortJoin) code(c *codec.Coder) {
	peer(c, &m.Joiner)
	codec.Integer(c, &m.Attempt, math.MaxUint32)
}

func (m *Leave) code(c *codec.Coder) { peer(c, &m.Peer) }

func (m *Volunteer) code(c *codec.Coder) {
	peer(c, &m.Peer)
	m.Offer.Code(c)
}

func (m *SubmitJob) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	codec.Integer(c, &m.Against, math.MaxUint32)
	m.Spec.Code(c)
}

func (m *KillJob) code(c *codec.Coder) {
	request(c, &m.RequestID, &m.Job)
	codec.Integer(c, &m.Against, math.MaxUint32)
	if c.Version >= killsNow {
		codec.Flags(c, &m.Now)
	}
}

// request codes how a command about a job begins.
func request(c *codec.Coder, id *string, job *terms.JobName) {
	requestID(c, id)
	codec.Text(c, job, terms.JobNameBytesMax)
}

func (m *SteerUpdate) code(c *codec.Coder) {
	request(c, &m.RequestID, &m.Job)
	codec.Integer(c, &m.Version, math.MaxUint32)
	codec.Integer(c, &m.Steering, uint64(Abort))
}

func (m *RevertJob) code(c *codec.Coder) {
	request(c, &m.RequestID, &m.Job)
	codec.Integer(c, &m.Against, math.MaxUint32)
	codec.Integer(c, &m.To, math.MaxUint32)
}

func (m *RestartJob) code(c *codec.Coder) {
	request(c, &m.RequestID, &m.Job)
	codec.Integer(c, &m.Against, math.MaxUint32)
	codec.Text(c, &m.Task, terms.NameBytesMax)
}

func (m *SuspendJob) code(c *codec.Coder) {
	request(c, &m.RequestID, &m.Job)
	codec.Integer(c, &m.Against, math.MaxUint32)
	codec.Flags(c, &m.Resume)
}

func (m *SealTask) code(c *codec.Coder) {
	request(c, &m.RequestID, &m.Slot.Job)
	codec.Text(c, &m.Slot.Task, terms.NameBytesMax)
	codec.Integer(c, &m.Slot.Index, math.MaxUint32)
	codec.Integer(c, &m.Order, math.MaxUint64)
}

func (m *EndAllocation) code(c *codec.Coder) {
	request(c, &m.RequestID, &m.Slot.Job)
	codec.Text(c, &m.Slot.Task, terms.NameBytesMax)
	codec.Integer(c, &m.Slot.Index, math.MaxUint32)
	codec.Integer(c, &m.Order, math.MaxUint64)
	codec.Flags(c, &m.Elsewhere)
	if c.Version >= withoutVolumes {
		codec.Flags(c, &m.WithoutVolumes)
	}
	if c.Version >= endsNow {
		codec.Flags(c, &m.Now)
	}
}

func (m *RemoveVolumes) code(c *codec.Coder) { volumes(c, &m.RequestID, &m.Volumes) }

func (m *MoveVolumes) code(c *codec.Coder) {
	volumes(c, &m.RequestID, &m.Volumes)
	codec.Integer(c, &m.Order, math.MaxUint64)
}

func volumes(c *codec.Coder, id *string, set *terms.VolumeSet) {
	request(c, id, &set.Slot.Job)
	codec.Text(c, &set.Slot.Task, terms.NameBytesMax)
	codec.Integer(c, &set.Slot.Index, math.MaxUint32)
	codec.Integer(c, &set.Job, math.MaxUint32)
}

func (m *DrainNode) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	codec.Text(c, &m.Node, terms.NameBytesMax)
	codec.Flags(c, &m.Drain)
	codec.Integer(c, &m.DeadlineMillis, math.MaxUint32)
}

func (m *ReportTasks) code(c *codec.Coder) {
	peer(c, &m.Peer)
	codec.List(c, &m.Reports, CommandsMax, report)
}

func (m *TellTime) code(*codec.Coder) {}

func (m *RaiseRules) code(c *codec.Coder) { codec.Integer(c, &m.Version, math.MaxUint32) }

func (m *VouchSnapshot) code(c *codec.Coder) { m.Snapshot.Code(c) }

func report(c *codec.Coder, r *Report) {
	codec.Integer(c, &r.Slot.Job, math.MaxUint32)
	codec.Integer(c, &r.Slot.Task, math.MaxUint16)
	codec.Integer(c, &r.Slot.Index, math.MaxUint32)
	codec.Integer(c, &r.Slot.Seat, uint64(facts.UnknownSeat))
	codec.Integer(c, &r.Order, math.MaxUint64)
	last := [...]facts.Ending{facts.OutputLost, withOutOfDisk: facts.OutOfDisk, withNotThere: facts.NotThere}
	codec.Integer(c, &r.Ended, uint64(max(last[0], last[c.Version])))
	c.Signed(&r.ExitCode)
	codec.Flags(c, &r.Ready)
	codec.Text(c, &r.Detail, facts.FailureDetailBytesMax)
}
