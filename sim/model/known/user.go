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

// MayRunAs tells whether somebody may bring a version of a job with its users: an admin may, and others if each task
// names none, is as in the newest of the kept versions but for numbers, or has a user that the pools let it have.
func (t *Twin) MayRunAs(who access.Subject, c command.Command, kept func(terms.JobName) []facts.JobVersion,
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
		if task.User != "" && !stays(task, kept(next.Name)) && !letsRunAs(string(next.Name.Pool()), task.User, tree) {
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

// letsRunAs tells whether the pools on the way to one let its jobs have a user.
func letsRunAs(path, user string, tree []terms.Pool) bool {
	var names []string
	for _, name := range strings.Split(path, "/") {
		names = append(names, name)
		var stated []string
		for _, p := range tree {
			if string(p.Path) == strings.Join(names, "/") {
				stated = p.RunAs
			}
		}
		named := slices.Contains(stated, user) || slices.Contains(stated, "*") && user != "root"
		if !named && (len(names) == 1 || len(stated) > 0) {
			return false
		}
	}
	return true
}
