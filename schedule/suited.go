package schedule

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/workload"
	"starling/schedule/place"
	"starling/terms/rules"
)

// judge asks whether nodes could run what began to wait, or all for which what they offer may have decided that.
func judge(s *cluster.State) {
	for _, id := range s.TakeDoubted() {
		j := s.Job(id)
		if s.Visit(1); s.Rules < rules.Unsuited || j == nil || j.Finished != 0 || j.Account() == 0 || j.Spec.Shares() {
			continue
		}
		for task := range j.Tasks {
			s.SetUnsuited(id, task, false)
		}
		for task, unsuited := range unsuited(s, s.Job(id)) {
			s.SetUnsuited(id, task, unsuited)
		}
	}
	s.TakeDoubted() // nothing else was asked about
}

// unsuited tells of each task of a job whether it waits, and no node could run it even if it were empty: none an
// instance, or all together not what is to begin together.
func unsuited(s *cluster.State, j *workload.Job) []bool {
	all, state := make([]bool, len(j.Tasks)), j.GangState()
	impossible := (state == gang.Absent || state == gang.Growing) && !possibleGang(s, j, true)
	for task, t := range j.Tasks {
		spec := j.TaskSpecOf(task, j.Version)
		all[task] = spec != nil && t.Waits() > 0 &&
			(impossible || place.NewSearch(s, facts.KeyOf(j.ID, task), nil).Could(nil, 1, true) == 0)
	}
	return all
}
