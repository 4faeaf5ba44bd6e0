package known

import (
	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/pool"
)

// Needs is the role that a command asks for, and where: in the whole cluster, if there is no pool.
func Needs(c command.Command) (role access.Role, in []terms.PoolPath) {
	switch c := c.(type) {
	case *command.SubmitJob:
		return access.Submitter, []terms.PoolPath{c.Spec.Name.Pool()}
	case *command.KillJob:
		return access.Submitter, []terms.PoolPath{c.Job.Pool()}
	case *command.SteerUpdate:
		return access.Submitter, []terms.PoolPath{c.Job.Pool()}
	case *command.RevertJob:
		return access.Submitter, []terms.PoolPath{c.Job.Pool()}
	case *command.RestartJob:
		return access.Submitter, []terms.PoolPath{c.Job.Pool()}
	case *command.SuspendJob:
		return access.Submitter, []terms.PoolPath{c.Job.Pool()}
	case *command.SealTask:
		return access.Submitter, []terms.PoolPath{c.Slot.Job.Pool()}
	case *command.EndAllocation:
		return access.Operator, []terms.PoolPath{c.Slot.Job.Pool()}
	case *command.RemoveVolumes:
		return access.Operator, []terms.PoolPath{c.Volumes.Slot.Job.Pool()}
	case *command.MoveVolumes:
		return access.Operator, []terms.PoolPath{c.Volumes.Slot.Job.Pool()}
	case *command.DrainNode:
		return access.Operator, []terms.PoolPath{""}
	case *command.ChangePools:
		for i := range c.Pools {
			above, _ := pool.Split(c.Pools[i].Path)
			in = append(in, above)
		}
		for _, path := range c.Gone {
			above, _ := pool.Split(path)
			in = append(in, above)
		}
		return access.Admin, in
	}
	return ofSecret(c)
}

// ofSecret is what a command about a secret asks for, or one that only admins may give.
func ofSecret(c command.Command) (role access.Role, in []terms.PoolPath) {
	switch c := c.(type) {
	case *command.PutSecret:
		return access.Submitter, []terms.PoolPath{c.Secret.Pool}
	case *command.RemoveSecret:
		return access.Submitter, []terms.PoolPath{c.Pool}
	}
	return access.Admin, []terms.PoolPath{""}
}
