package terms

import "slices"

// HasGang tells whether some instances of the job start together.
func (s *Job) HasGang() bool {
	return s.MinAvailable > 0 || slices.ContainsFunc(s.Tasks, func(t Task) bool { return t.MinAvailable > 0 })
}

// JobsAfterMax bounds the jobs that a job comes after.
const JobsAfterMax = 64

// Order returns the numbers of the tasks, each behind those that it comes after and otherwise as they stand. If there
// is no such order, it returns a cycle of tasks, each of which comes after the next.
func (s *Job) Order() (order []int, cycle []TaskName) {
	number := make(map[TaskName]int, len(s.Tasks))
	for i := range s.Tasks {
		number[s.Tasks[i].Name] = i
	}
	done, path := make([]bool, len(s.Tasks)), []TaskName(nil)
	var visit func(i int) bool
	visit = func(i int) bool {
		name := s.Tasks[i].Name
		if at := slices.Index(path, name); at >= 0 {
			cycle = slices.Clone(path[at:])
			return false
		}
		if done[i] {
			return true
		}
		path = append(path, name)
		for _, before := range s.Tasks[i].After {
			if !visit(number[before]) {
				return false
			}
		}
		path = path[:len(path)-1]
		done[i] = true
		order = append(order, i)
		return true
	}
	for i := range s.Tasks {
		if !visit(i) {
			return nil, cycle
		}
	}
	return order, nil
}
