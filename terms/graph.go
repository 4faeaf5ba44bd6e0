package terms

import (
	"slices"
	"strconv"
	"strings"
)

// HasGang tells whether some instances of the job start together.
func (s *Job) HasGang() bool {
	return s.MinAvailable > 0 || slices.ContainsFunc(s.Tasks, func(t Task) bool { return t.MinAvailable > 0 })
}

// graphProblems adds what is wrong with the order of the tasks.
func (s *Job) graphProblems(p *problems) {
	sound, gang := len(p.found) == 0, s.HasGang()
	for i := range s.Tasks {
		p.path = "tasks[" + strconv.Itoa(i) + "]"
		switch t := &s.Tasks[i]; {
		case len(t.After) == 0:
			continue
		case len(t.After) > TasksMax:
			p.add("after", "must have at most %d elements, has %d", TasksMax, len(t.After))
			sound = false
			continue
		case s.Type != Batch:
			p.add("after", "needs a batch job: only its tasks come to an end")
		case gang:
			p.add("after", "excludes min_available: a gang starts together, and this begins later")
		}
		sound = s.afterProblems(p, s.Tasks[i].After) && sound
	}
	if p.path = ""; !sound {
		return
	}
	if _, circle := s.Order(); len(circle) > 0 {
		first := slices.IndexFunc(s.Tasks, func(t Task) bool { return t.Name == circle[0] })
		p.add("tasks["+strconv.Itoa(first)+"].after", "goes round in a circle: %s",
			strings.Join(circleNames(circle), " after "))
	}
}

// followProblems adds what is wrong with the names of the jobs that the job comes after.
func (s *Job) followProblems(p *problems) {
	if len(s.After) > JobsAfterMax {
		p.add("after", "must have at most %d elements, has %d", JobsAfterMax, len(s.After))
		return
	}
	if len(s.After) > 0 && s.Type == Daemon {
		p.add("after", "excludes daemon: daemons belong to their machines")
	}
	for k, name := range s.After {
		field := "after[" + strconv.Itoa(k) + "]"
		switch reason := name.Problem(); {
		case reason != "":
			p.add(field, "%s", reason)
		case name == s.Name:
			p.add(field, "is the job itself")
		case slices.Contains(s.After[:k], name):
			p.add(field, "is there twice")
		}
	}
}

// JobsAfterMax bounds the jobs that a job comes after.
const JobsAfterMax = 64

// afterProblems adds what is wrong with the names of the tasks that one comes after. It returns false if some is none.
func (s *Job) afterProblems(p *problems, after []TaskName) (sound bool) {
	sound = true
	for k, name := range after {
		field := "after[" + strconv.Itoa(k) + "]"
		switch {
		case slices.Contains(after[:k], name):
			p.add(field, "is there twice")
		case !slices.ContainsFunc(s.Tasks, func(t Task) bool { return t.Name == name }):
			var names []string
			for i := range s.Tasks {
				names = append(names, string(s.Tasks[i].Name))
			}
			p.add(field, "there is no task %q in the job: it has %s", string(name), strings.Join(names, ", "))
			sound = false
		}
	}
	return sound
}

func circleNames(circle []TaskName) (names []string) {
	for _, name := range circle {
		names = append(names, string(name))
	}
	return append(names, names[0])
}

// Order returns the numbers of the tasks, each behind those that it comes after and otherwise as they stand. If there
// is no such order, it returns a circle of tasks, each of which comes after the next.
func (s *Job) Order() (order []int, circle []TaskName) {
	number := make(map[TaskName]int, len(s.Tasks))
	for i := range s.Tasks {
		number[s.Tasks[i].Name] = i
	}
	done, path := make([]bool, len(s.Tasks)), []TaskName(nil)
	var visit func(i int) bool
	visit = func(i int) bool {
		name := s.Tasks[i].Name
		if at := slices.Index(path, name); at >= 0 {
			circle = slices.Clone(path[at:])
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
			return nil, circle
		}
	}
	return order, nil
}
