package rights

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/pool"
	"starling/terms/rules"
)

// OfTasks says why a version of a job may not be a daemon, or its tasks may not have the users, host paths,
// capabilities and kinds of devices that they name, "" if they may. Admins of the cluster name what they like, others
// what the pool states. A task that stays what it is keeps what it has.
func OfTasks(s *cluster.State, who access.Subject, spec *terms.Job) string {
	if spec.Type == terms.Daemon && s.Rules >= rules.DaemonsByOperators {
		if refusal := Refusal(s, who, Need{access.Operator, ""}); refusal != "" {
			return "a daemon takes room on all nodes, whatever its pool may have: " + refusal
		}
	}
	if s.Rules < rules.Authorities || InCluster(s, who) >= access.Admin {
		return ""
	}
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		if taskOf(s, spec.Name, t.Name).ChangeTo(t) < terms.Replace {
			continue
		}
		if refusal := ofTask(s, spec.Name.Pool(), t); refusal != "" {
			return refusal
		}
	}
	return ""
}

// OfSession says why somebody who is no admin of the cluster may not have a session beside an instance, "" if that is
// allowed: it has the user, host paths, capabilities and devices of the task, and is for who may submit such.
func OfSession(s *cluster.State, id terms.SlotName) string {
	r, found := s.RefOf(id)
	if !found {
		return ""
	}
	slot, _ := s.SlotAt(r)
	t := s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version)
	if t == nil {
		return ""
	}
	if refusal := ofTask(s, id.Job.Pool(), t); refusal != "" {
		return "a session has what its task has, and " + refusal
	}
	return ""
}

func ofTask(s *cluster.State, path terms.PoolPath, t *terms.Task) string {
	if t.User != "" {
		runs := func(p *terms.Pool) (stated, may bool) { return len(p.RunAs) > 0, terms.MayRunAs(p.RunAs, t.User) }
		if by := keptBy(s, path, runs, false); by != "" {
			return fmt.Sprintf("task %s is to run as user %s, which pool %s does not let its jobs: leave user out, so that it runs as "+
				"one of the job's own, or ask an admin to name %s in run_as of the pool, see \"starling pool apply\"",
				t.Name, t.User, by, t.User)
		}
	}
	for _, h := range t.HostPaths {
		has := func(p *terms.Pool) (stated, may bool) {
			return len(p.HostPaths) > 0, slices.Contains(p.HostPaths, h.Name)
		}
		if by := keptBy(s, path, has, false); by != "" {
			return fmt.Sprintf("task %s is to use host path %s, which pool %s does not let its jobs: ask an admin to name it in "+
				"host_paths of the pool, see \"starling pool apply\"", t.Name, h.Name, by)
		}
	}
	if s.Rules < rules.HostPaths { // what follows is older than its right
		return ""
	}
	for _, name := range t.Container.Capabilities {
		has := func(p *terms.Pool) (stated, may bool) {
			return len(p.Capabilities) > 0, slices.Contains(p.Capabilities, name)
		}
		if by := keptBy(s, path, has, false); by != "" {
			return fmt.Sprintf("the container of task %s is to have capability %s, which pool %s does not let its jobs: leave it out, or "+
				"ask an admin to name it in capabilities of the pool, see \"starling pool apply\"", t.Name, name, by)
		}
	}
	for _, d := range t.Devices {
		has := func(p *terms.Pool) (stated, may bool) {
			return len(p.DeviceKinds) > 0, slices.Contains(p.DeviceKinds, d.Kind)
		}
		if by := keptBy(s, path, has, true); by != "" {
			return fmt.Sprintf("task %s asks for devices of kind %s, which pool %s does not let its jobs: ask an admin to name the kind "+
				"in devices of the pool, see \"starling pool apply\"", t.Name, d.Kind, by)
		}
	}
	return ""
}

// keptBy returns the pool that keeps the jobs of a pool from something, "" if none does: all that state some of its
// kind must have that one. Where the outermost states none, its jobs may have it only if what nobody states is free.
func keptBy(s *cluster.State, path terms.PoolPath, has func(*terms.Pool) (stated, may bool),
	isFree bool) (by terms.PoolPath) {
	for path != "" {
		above, _ := pool.Split(path)
		var stated, may bool
		if at, found := s.PoolNumber(path); found {
			stated, may = has(&s.Pools()[at])
		}
		if !may && (stated || above == "" && !isFree) {
			by = path
		}
		path = above
	}
	return by
}

// taskOf returns a task of the newest version of a job that has not finished, nil if there is none.
func taskOf(s *cluster.State, name terms.JobName, task terms.TaskName) *terms.Task {
	j := s.JobOf(name)
	if j == nil || j.Finished != 0 {
		return nil
	}
	at := j.TaskIndex(task)
	if at < 0 {
		return nil
	}
	return j.TaskSpecOf(at, j.Version)
}
