package known

import (
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
)

// May tells whether somebody has the roles, in a tree of pools, that a command needs.
func (t *Twin) May(who access.Subject, c command.Command, tree []terms.Pool) bool {
	role, in := Needs(c)
	for _, path := range in {
		if t.Role(who, path, tree) < role {
			return false
		}
	}
	return true
}

// MayHave tells whether somebody may bring a version of a job with what its tasks name: an admin may, and others if
// each task is as in the newest of the kept versions but for numbers, or has what the pools let it have.
func (t *Twin) MayHave(who access.Subject, c command.Command, kept func(terms.JobName) []facts.JobVersion,
	tree []terms.Pool) bool {
	var next *terms.Job
	switch c := c.(type) {
	case *command.SubmitJob:
		next = &c.Spec
	case *command.RevertJob:
		for _, version := range kept(c.Job) {
			if version.Number == c.To {
				next = version.Spec
			}
		}
	}
	if next == nil || t.Role(who, "", nil) == access.Admin {
		return true
	}
	for _, task := range next.Tasks {
		if !stays(task, kept(next.Name)) && !letsHave(string(next.Name.Pool()), task, tree) {
			return false
		}
	}
	return true
}

// stays tells whether instances of the newest version go on as ones of this task.
func stays(task terms.Task, kept []facts.JobVersion) bool {
	if len(kept) == 0 {
		return false
	}
	tasks := kept[len(kept)-1].Spec.Tasks
	at := slices.IndexFunc(tasks, func(other terms.Task) bool { return other.Name == task.Name })
	return at >= 0 && tasks[at].ChangeTo(&task) != terms.Replace
}

// letsHave tells whether the pools on the way to one let its jobs have the user, host paths and devices of a task.
func letsHave(path string, task terms.Task, tree []terms.Pool) bool {
	var users, folders, kinds [][]string // of each pool on the way
	var names []string
	for _, name := range strings.Split(path, "/") {
		names = append(names, name)
		var one terms.Pool
		for _, p := range tree {
			if string(p.Path) == strings.Join(names, "/") {
				one = p
			}
		}
		users, folders, kinds = append(users, one.RunAs), append(folders, one.HostPaths), append(kinds, one.DeviceKinds)
	}
	may := task.User == "" || len(users[0]) > 0 && let(users, func(list []string) bool {
		return slices.Contains(list, task.User) || slices.Contains(list, "*") && task.User != "root"
	})
	for _, h := range task.HostPaths {
		may = may && len(folders[0]) > 0 && let(folders, func(list []string) bool { return slices.Contains(list, h.Name) })
	}
	for _, d := range task.Devices {
		may = may && let(kinds, func(list []string) bool { return slices.Contains(list, d.Kind) })
	}
	return may
}

// let tells whether all lists that name some have what is asked for.
func let(lists [][]string, has func([]string) bool) bool {
	return !slices.ContainsFunc(lists, func(list []string) bool { return len(list) > 0 && !has(list) })
}
