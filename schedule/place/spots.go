package place

import (
	"slices"

	"starling/cluster"
	"starling/schedule/share"
)

// spots tells how many more instances of each task may go where, for those whose pool divides its virtual peers by
// machines.
type spots map[cluster.TaskKey]*spot

// spot is one task's. left is by the groups of the ground.
type spot struct {
	ground *share.Ground
	left   []uint32
}

// of returns the spots of a lane's task, nil if it may go anywhere.
func (s spots) of(key cluster.TaskKey) *spot {
	id, task := key.Split()
	return s[cluster.KeyOf(id, task)]
}

// fork returns the spots of a job's tasks, to be tried without being taken.
func (s spots) fork(j *cluster.Job) spots {
	fork := spots{}
	for task := range j.Tasks {
		if key := cluster.KeyOf(j.ID, task); s[key] != nil {
			fork[key] = &spot{s[key].ground, slices.Clone(s[key].left)}
		}
	}
	return fork
}

// join takes over what is left of them after a trial.
func (s spots) join(others spots, j *cluster.Job) {
	for task := range j.Tasks {
		if key := cluster.KeyOf(j.ID, task); others[key] != nil {
			s[key] = others[key]
		}
	}
}

// at returns how many more may go to a node, at most most.
func (s *spot) at(n cluster.NodeIndex, most uint32) uint32 {
	if s == nil {
		return most
	}
	group := s.ground.Of(n)
	if group < 0 {
		return 0
	}
	return min(most, s.left[group])
}

// take notes that some went to a node.
func (s *spot) take(n cluster.NodeIndex, count uint32) {
	if s != nil {
		s.left[s.ground.Of(n)] -= count
	}
}
