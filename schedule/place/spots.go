package place

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/share"
)

// Spots tells how many more instances of each task may go where, for those whose pool divides its virtual peers by
// machines.
type Spots map[facts.TaskKey]*Spot

// Spot is one task's. left is by the groups of nodes, nil if nothing is allowed.
type Spot struct {
	groups *share.NodeGroups
	left   []uint32
}

// of returns the spots of the task, nil if it may go anywhere.
func (s Spots) of(key facts.TaskKey) *Spot {
	id, task := key.Split()
	return s[facts.KeyOf(id, task)]
}

// Bound lets none of a task go anywhere, but for what is allowed later.
func (s Spots) Bound(key facts.TaskKey, groups *share.NodeGroups) {
	s[key] = &Spot{groups: groups}
}

// Allow lets so many more of a task go to a group.
func (s Spots) Allow(key facts.TaskKey, group int, count uint32) {
	spot := s[key]
	if spot.left == nil {
		spot.left = make([]uint32, spot.groups.Groups())
	}
	spot.left[group] += count
}

// Fork returns the spots of a job's tasks, to be tried without being taken.
func (s Spots) Fork(j *workload.Job) Spots {
	fork := Spots{}
	for task := range j.Tasks {
		if key := facts.KeyOf(j.ID, task); s[key] != nil {
			fork[key] = &Spot{s[key].groups, slices.Clone(s[key].left)}
		}
	}
	return fork
}

// Join takes over what is left of them after a trial.
func (s Spots) Join(others Spots, j *workload.Job) {
	for task := range j.Tasks {
		if key := facts.KeyOf(j.ID, task); others[key] != nil {
			s[key] = others[key]
		}
	}
}

// at returns how many more may go to a node, at most most.
func (s *Spot) at(n facts.NodeIndex, most uint32) uint32 {
	if s == nil {
		return most
	}
	group := s.groups.Of(n)
	if group < 0 || s.left == nil {
		return 0
	}
	return min(most, s.left[group])
}

// among returns those of the pages on which any may go, or all.
func (s *Spot) among(pages []int) (some []int) {
	if s == nil || !s.groups.Each() {
		return pages
	}
	for group, left := range s.left {
		page := int(s.groups.First(group)) / cluster.NodesPerPage
		if _, given := slices.BinarySearch(pages, page); left > 0 && given && (len(some) == 0 || some[len(some)-1] != page) {
			some = append(some, page)
		}
	}
	return some
}

// take notes that some went to a node.
func (s *Spot) take(n facts.NodeIndex, count uint32) {
	if s != nil {
		s.left[s.groups.Of(n)] -= count
	}
}
