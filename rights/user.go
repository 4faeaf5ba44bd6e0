package rights

import (
	"fmt"

	"starling/cluster"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/pool"
	"starling/terms/rules"
)

// OfUsers says why the tasks of a version of a job may not have the users that it names, "" if they may. Admins of the
// cluster name whom they like, others whom the pool states. A task that stays what it is keeps its user.
func OfUsers(s *cluster.State, who access.Subject, spec *terms.Job) string {
	if s.Rules < rules.Authorities || s.Registry().Role(who) >= access.Admin {
		return ""
	}
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		if t.User == "" || taskOf(s, spec.Name, t.Name).ChangeTo(t) < terms.Replace {
			continue
		}
		if by := notAs(s, spec.Name.Pool(), t.User); by != "" {
			return fmt.Sprintf("task %s is to run as user %s, which pool %s does not let its jobs: leave user out, so that it runs as "+
				"one of the job's own, or ask an admin to name %s in run_as of the pool, see \"starling pool apply\"",
				t.Name, t.User, by, t.User)
		}
	}
	return ""
}

// notAs returns the pool that keeps the jobs of a pool from running as a user, "" if none does: all that state users
// must have that one, and the outermost must state some.
func notAs(s *cluster.State, path terms.PoolPath, user string) (by terms.PoolPath) {
	for path != "" {
		above, _ := pool.Split(path)
		var stated []string
		if at, found := s.PoolNumber(path); found {
			stated = s.Pools()[at].RunAs
		}
		if (len(stated) > 0 || above == "") && !terms.MayRunAs(stated, user) {
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
