package promises

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/rules"
)

// checkUnsuited checks of tasks that wait and need resources alone that they ask their pools for room if some node that
// takes work could run them if it were empty, and only then. What waited before the rules had it is asked about when
// something changes.
func (p *Watch) checkUnsuited(s *cluster.State) {
	if s.Rules < rules.Unsuited {
		p.unasked = s.Index
		return
	}
	s.EachJob(func(j *workload.Job) bool {
		if j.Finished != 0 || j.Spec.Type == terms.Daemon || j.HasGang() || j.Spec.Within != "" ||
			j.Changed <= p.unasked+1 {
			return true
		}
		for task, t := range j.Tasks {
			spec := j.TaskSpecOf(task, j.Version)
			if spec == nil || len(spec.Constraints)+len(spec.Devices) > 0 || t.Waits() == 0 || j.Idle(task) {
				continue
			}
			if could := couldRun(s, spec); misjudged(t, could) {
				p.fail("%s.%s waits, could run on an empty node: %t, and asks for no room: %t", j.Name(), t.Name, could, t.Unsuited)
			}
		}
		return true
	})
}

// misjudged tells whether a task asks for room although no node could run it, or for none although one could. What may
// not run beside others asks for none.
func misjudged(t *workload.Task, could bool) bool {
	return could == t.Unsuited && (could || t.Asks() > 0)
}

// couldRun tells whether a node that takes work has the resources of a task.
func couldRun(s *cluster.State, spec *terms.Task) bool {
	for n := range facts.NodeIndex(s.Nodes()) {
		if offer := s.Node(n).Offer; s.Eligible(n) && !offer.Exclusive() && spec.Resources.Fits(&offer.Capacity) {
			return true
		}
	}
	return false
}
