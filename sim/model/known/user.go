package known

import (
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/pool"
	"starling/terms/rules"
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

// Ask is what somebody asks for, under a number of the rules.
type Ask struct {
	Who     access.Subject
	Command command.Command
	Rules   rules.Number
	Time    terms.Time
}

// MayKeep tells whether pools may have as much room for specs as somebody wants for them.
func (t *Twin) MayKeep(a Ask, tree []terms.Pool) bool {
	c, ok := a.Command.(*command.ChangePools)
	return !ok || a.Rules < rules.PoolShares || t.Role(a.Who, "", nil) == access.Admin ||
		!slices.ContainsFunc(c.Pools, func(p terms.Pool) bool {
			above, _ := pool.Split(p.Path)
			return p.SpecBytesMost() > max(specsOf(tree, p.Path), specsOf(tree, above))
		})
}

// specsOf is how much the specs of a pool may take.
func specsOf(tree []terms.Pool, path terms.PoolPath) int64 {
	at := slices.IndexFunc(tree, func(p terms.Pool) bool { return p.Path == path })
	if at < 0 {
		return terms.SpecBytesDefault
	}
	return tree[at].SpecBytesMost()
}

// MayAsk tells whether somebody has the roles that a command needs, and may bring a version of a job with what its
// tasks name: an admin may, and others if each task is as in the newest of the kept versions but for numbers, or has
// what the pools let it have.
func (t *Twin) MayAsk(a Ask, kept func(terms.JobName) (ofOpen, ofAny []facts.JobVersion),
	tree []terms.Pool) bool {
	if t.now = 0; a.Rules >= rules.OneRole {
		t.now = a.Time
	}
	if !t.May(a.Who, a.Command, tree) {
		return false
	}
	var next *terms.Job
	switch c := a.Command.(type) {
	case *command.SubmitJob:
		next = &c.Spec
	case *command.RevertJob:
		_, versions := kept(c.Job)
		for _, version := range versions {
			if version.Number == c.To || c.To == 0 { // that is the newest
				next = version.Spec
			}
		}
	}
	if !t.mayBe(a, next) {
		return false
	}
	if next == nil || a.Rules < rules.Authorities || t.Role(a.Who, "", nil) == access.Admin {
		return true
	}
	now, _ := kept(next.Name)
	for _, task := range next.Tasks {
		if !stays(task, now) && !letsHave(string(next.Name.Pool()), task, tree, a.Rules) {
			return false
		}
	}
	return true
}

// mayBe tells whether somebody may bring a job of such a type, if that is one.
func (t *Twin) mayBe(a Ask, next *terms.Job) bool {
	return next == nil || next.Type != terms.Daemon || a.Rules < rules.DaemonsByOperators ||
		t.Role(a.Who, "", nil) >= access.Operator
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

// letsHave tells whether the pools on the way to one let its jobs have the user, host paths, capabilities and devices
// of a task.
func letsHave(path string, task terms.Task, tree []terms.Pool, in rules.Number) bool {
	way := wayTo(path, tree)
	users := func(p terms.Pool) []string { return p.RunAs }
	as := func(list []string) bool {
		return slices.Contains(list, task.User) || slices.Contains(list, "*") && task.User != "root"
	}
	may := task.User == "" || len(way[0].RunAs) > 0 && let(way, users, as)
	for _, h := range task.HostPaths {
		of := func(p terms.Pool) []string { return p.HostPaths }
		may = may && len(way[0].HostPaths) > 0 && let(way, of, has(h.Name))
	}
	if in < rules.HostPaths {
		return may
	}
	for _, name := range task.Container.Capabilities {
		of := func(p terms.Pool) []string { return p.Capabilities }
		may = may && len(way[0].Capabilities) > 0 && let(way, of, has(name))
	}
	for _, d := range task.Devices {
		may = may && let(way, func(p terms.Pool) []string { return p.DeviceKinds }, has(d.Kind))
	}
	return may
}

// wayTo returns the pools from the outermost to one, empty ones for those that are not there.
func wayTo(path string, tree []terms.Pool) (way []terms.Pool) {
	var names []string
	for _, name := range strings.Split(path, "/") {
		names = append(names, name)
		var one terms.Pool
		for _, p := range tree {
			if string(p.Path) == strings.Join(names, "/") {
				one = p
			}
		}
		way = append(way, one)
	}
	return way
}

func has(name string) func([]string) bool {
	return func(list []string) bool { return slices.Contains(list, name) }
}

// let tells whether all pools whose list names some have what is asked for.
func let(way []terms.Pool, of func(terms.Pool) []string, has func([]string) bool) bool {
	return !slices.ContainsFunc(way, func(p terms.Pool) bool { return len(of(p)) > 0 && !has(of(p)) })
}
