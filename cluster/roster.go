package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
)

// regroup notes that the list of a job's members may have changed.
func (s *State) regroup(j *Job) {
	told := len(j.Spec.Plugins) > 0 || j.Roster != facts.Roster{}
	if told && (len(s.regrouped) == 0 || s.regrouped[len(s.regrouped)-1] != j.ID) {
		s.regrouped = append(s.regrouped, j.ID)
	}
}

// TakeRegrouped returns the jobs with plugins whose list of members may have changed since it was asked last, each once, in the
// order of age.
func (s *State) TakeRegrouped() []terms.JobID {
	if len(s.regrouped) == 0 {
		return nil
	}
	all := s.regrouped
	s.regrouped = nil
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(id terms.JobID) bool { return s.Job(id) == nil })
}

// SetRoster notes the hash of the list of a job's members; if it is another, this entry has made the list what it is.
func (s *State) SetRoster(id terms.JobID, sum uint64) {
	j := s.Job(id)
	switch {
	case len(j.Spec.Plugins) == 0:
		s.changeJob(id, func(j *Job) { j.Roster = facts.Roster{} })
	case j.Roster.Sum != sum || j.Roster.Version == 0:
		s.changeJob(id, func(j *Job) { j.Roster = facts.Roster{Version: s.Index, Sum: sum} })
	}
}
