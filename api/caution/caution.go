// Package caution tells what a user should know of a job before it runs, although nothing is wrong with it.
package caution

import (
	"cmp"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/storage"
	"starling/terms"
)

// Of returns a line for each thing, for a job that is to be submitted to the value, as seen from a node.
func Of(s *cluster.State, spec *terms.Job, self terms.NodeName) []string {
	return slices.Concat(users(spec, self), secrets(s, spec), volumes(s, spec))
}

// Objection tells why what is asked of a job would do the opposite of what is meant, "" if it would not. What is about
// another version than the value has is left to the fold.
func Objection(s *cluster.State, c command.Command) string {
	switch c := c.(type) {
	case *command.SteerUpdate:
		j := s.JobOf(c.Job)
		if j == nil || c.Steering != command.Fail || c.Version != j.Update.To || !j.Update.GoesBack() {
			return ""
		}
		return fmt.Sprintf("the update of job %s to version %d goes back already; \"starling job update abort %[1]s\" leaves all as it is",
			c.Job, c.Version)
	case *command.RestartJob:
		j := s.JobOf(c.Job)
		if j == nil || c.Against != 0 && c.Against != j.Version {
			return ""
		}
		return restarted(j)
	}
	return ""
}

// restarted tells why a job is not restarted: a user has held its newest version up.
func restarted(j *workload.Job) string {
	others := uint32(0)
	for _, t := range j.Tasks {
		for _, old := range t.Old {
			others += old
		}
	}
	u := &j.Update
	before := cmp.Or(j.Good(u.To), u.From)
	switch {
	case u.State == facts.Paused:
		return fmt.Sprintf("the update of job %s to version %d is paused, and a restart would go on with it: resume it, or go "+
			"back first, as with \"starling job revert %[1]s %[3]d\"", j.Name(), u.To, before)
	case u.State == facts.UpdateAborted && others > 0:
		return fmt.Sprintf("the update of job %s to version %d was aborted, and instances of other versions are left: %d. Restarted, all "+
			"would go to version %[2]d: go back first, as with \"starling job revert %[1]s %[4]d\"", j.Name(), u.To, others, before)
	}
	return ""
}

// secrets tells of secrets that the job's pool does not have yet.
func secrets(s *cluster.State, spec *terms.Job) (all []string) {
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		pool := spec.Name.Pool()
		for _, use := range t.PoolSecrets() {
			switch {
			case s.Registry().Secret(pool, use.Name, use.Version) != nil:
			case s.Registry().Secret(pool, use.Name, 0) != nil:
				all = append(all, fmt.Sprintf("tasks.%s.secrets: pool %s has no version %d of secret %s: instances wait for a new "+
					"version of the job that names another", t.Name, pool, use.Version, use.Name))
			default:
				all = append(all, fmt.Sprintf("tasks.%s.secrets: pool %s has no secret %s: instances wait until \"starling secret put "+
					"%[2]s/%[3]s\"", t.Name, pool, use.Name))
			}
		}
		if pull := t.Container.PullSecret; pull != "" && s.Registry().Secret(pool, pull, 0) == nil {
			all = append(all, fmt.Sprintf("tasks.%s.container.pull_secret: pool %s has no secret %s: machines that do not have the "+
				"image cannot pull it until \"starling secret put %[2]s/%[3]s\"", t.Name, pool, pull))
		}
	}
	return all
}

// users tells of accounts that the node does not have. Others may have them: what their machines know nobody else can
// tell.
func users(spec *terms.Job, self terms.NodeName) (all []string) {
	var seen []string
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		if t.User == "" || t.Container.Image != "" || slices.Contains(seen, t.User) {
			continue
		}
		seen = append(seen, t.User)
		if _, err := user.Lookup(t.User); errors.As(err, new(user.UnknownUserError)) {
			all = append(all, fmt.Sprintf(
				"tasks.%s.user: node %s, which was asked, has no user %s: on machines without it no instance can start", t.Name,
				self, t.User))
		}
	}
	return all
}

// volumesMax bounds how many are named.
const volumesMax = 3

// volumes tells what the job will find that an earlier one of its name has left.
func volumes(s *cluster.State, spec *terms.Job) (all []string) {
	if !slices.ContainsFunc(spec.Tasks, func(t terms.Task) bool { return len(t.Volumes) > 0 }) {
		return nil
	}
	if j := s.JobOf(spec.Name); j != nil && j.Finished == 0 {
		return nil
	}
	var found []string
	for _, v := range storage.List(s) {
		task := slices.IndexFunc(spec.Tasks, func(t terms.Task) bool { return t.Name == v.Set.Slot.Task })
		if v.State == storage.Kept && v.Set.Slot.Job == spec.Name && task >= 0 && len(spec.Tasks[task].Volumes) > 0 &&
			v.Set.Slot.Index < spec.Tasks[task].Instances {
			found = append(found, fmt.Sprintf("%s on node %s", v.Set.Slot, v.Node))
		}
	}
	if len(found) == 0 {
		return nil
	}
	if rest := len(found) - volumesMax; rest > 0 {
		found = append(found[:volumesMax], fmt.Sprintf("%d more", rest))
	}
	return []string{fmt.Sprintf("an earlier job of this name has left volumes, which these instances find, and wait for the "+
		"machines that have them: %s; starling volume ls %s shows them, and starling volume rm begins without", strings.Join(found,
		", "), spec.Name)}
}
