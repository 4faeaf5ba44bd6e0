package replica

import (
	"starling/cluster"
	"starling/terms"
)

// abandon wants nothing any more of tasks that come after what has failed.
func (f *fold) abandon(j *cluster.Job) {
	for _, task := range j.Vain() {
		if t := f.s.Job(j.ID).Tasks[task]; t.Desired > 0 && t.Live() == 0 && !j.Stop {
			f.s.SetDesired(j.ID, task, 0)
			f.touch(j.ID)
		}
	}
}

// loseOutputs lets instances of a job run again that have succeeded, where their output went with their node and is needed
// still. Then what they read is needed again, and may have gone before.
func (f *fold) loseOutputs(id terms.JobID) {
	if j := f.s.Job(id); j.Stop || j.Finished != 0 {
		return
	}
	for {
		again := false
		for _, task := range f.s.Job(id).Needed() {
			again = f.loseOutputsOf(id, task) || again
		}
		if !again {
			return
		}
	}
}

func (f *fold) loseOutputsOf(id terms.JobID, task int) bool {
	var lost []cluster.SlotRef
	f.s.EachSlot(id, task, func(r cluster.SlotRef, slot cluster.Slot) bool {
		if r.Seat == cluster.MainSeat && slot.Phase == cluster.Succeeded && f.s.Node(slot.Node).Peer == "" {
			lost = append(lost, r)
		}
		return true
	})
	for _, r := range lost {
		slot, _ := f.s.SlotAt(r)
		f.effect(Lost, r, "its output went with its node")
		slot.Ended = cluster.NodeLost
		f.wait(r, slot, cluster.AnyNode)
	}
	if len(lost) > 0 {
		f.touch(id)
	}
	return len(lost) > 0
}
