// Package rights says what somebody may ask the cluster for: by the role in the whole cluster that a credential gives,
// and by the roles that pools give to users, for themselves and all below them.
package rights

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/pool"
	"starling/terms/rules"
)

// Need is what a request asks for: a role, in a pool or, with an empty path, in the whole cluster.
type Need struct {
	Role access.Role
	Pool terms.PoolPath
}

// RoleIn returns the role of somebody in a pool: the highest of that in the whole cluster and those that the pool and
// all above it give. The empty path is the whole cluster.
func RoleIn(s *cluster.State, who access.Subject, path terms.PoolPath) access.Role {
	return max(InCluster(s, who), ByPools(s, who, path))
}

// ByPools returns the highest role that a pool and all above it give somebody.
func ByPools(s *cluster.State, who access.Subject, path terms.PoolPath) (role access.Role) {
	if who.Kind != access.OfUser || len(s.Registry().Of(who)) == 0 {
		return access.NoRole
	}
	for path != "" {
		if at, found := s.PoolNumber(path); found {
			role = max(role, given(&s.Pools()[at], who.Name))
		}
		path, _ = pool.Split(path)
	}
	return role
}

// InCluster returns the role of somebody in the whole cluster.
func InCluster(s *cluster.State, who access.Subject) access.Role {
	if s.Rules < rules.OneRole {
		return s.Registry().Role(who, 0)
	}
	return s.Registry().Role(who, s.Time)
}

// InPool is a role that a pool gives.
type InPool struct {
	Pool terms.PoolPath `json:"pool"`
	Role string         `json:"role"`
}

// InPools lists the roles that pools give to somebody, in the order of the tree.
func InPools(s *cluster.State, who access.Subject) (all []InPool) {
	if who.Kind != access.OfUser || len(s.Registry().Of(who)) == 0 {
		return nil
	}
	pools := s.Pools()
	for i := range pools {
		if role := given(&pools[i], who.Name); role != access.NoRole {
			all = append(all, InPool{pools[i].Path, role.String()})
		}
	}
	return all
}

// given returns the role that a pool gives to a user.
func given(p *terms.Pool, user string) access.Role {
	switch {
	case slices.Contains(p.Owners, user):
		return access.Admin
	case slices.Contains(p.Operators, user):
		return access.Operator
	case slices.Contains(p.Submitters, user):
		return access.Submitter
	case slices.Contains(p.Viewers, user):
		return access.Viewer
	}
	return access.NoRole
}

// Refusal says why somebody may not do what needs a role, "" if that one may.
func Refusal(s *cluster.State, who access.Subject, need Need) string {
	return RefusalWith(s, who, need, RoleIn(s, who, need.Pool))
}

// RefusalWith says why somebody with a role may not do what needs one, "" if that one may.
func RefusalWith(s *cluster.State, who access.Subject, need Need, role access.Role) string {
	switch {
	case role >= need.Role:
		return ""
	case who.Kind != access.OfUser && who.Kind != access.OfLocal:
		return fmt.Sprintf("%s may not ask for this", who)
	case len(s.Registry().Of(who)) == 0:
		return fmt.Sprintf("%s has no credentials that count any more", who)
	case need.Pool == "":
		return needed(who, need, role)
	}
	return needed(who, need, role) + ": its owners may give that, see \"starling pool apply\""
}

// needed says which role somebody needs, and which that one has.
func needed(who access.Subject, need Need, has access.Role) string {
	place := "the whole cluster"
	if need.Pool != "" {
		place = "pool " + string(need.Pool)
	}
	return fmt.Sprintf("this needs the role %s in %s, and %s is %s there", need.Role, place, who, title(has))
}

// title says which role it is in a sentence.
func title(role access.Role) string {
	if role == access.NoRole {
		return "nobody"
	}
	return role.String()
}

// OfCommand says why somebody may not have a command obeyed, "" if that one may.
func OfCommand(s *cluster.State, who access.Subject, c command.Command) string {
	if seal, ok := c.(*command.SealTask); ok && who.Kind == access.OfInstance {
		if own := (terms.AllocationID{Slot: seal.Slot, Order: seal.Order}); own.String() == who.Name {
			return ""
		}
		return fmt.Sprintf("%s may seal only its own task", who)
	}
	for _, need := range needs(c) {
		if refusal := Refusal(s, who, need); refusal != "" {
			return refusal
		}
	}
	switch c := c.(type) {
	case *command.SubmitJob:
		return OfTasks(s, who, &c.Spec)
	case *command.RevertJob:
		if j := s.JobOf(c.Job); j != nil && j.SpecOf(c.To) != nil {
			return OfTasks(s, who, j.SpecOf(c.To))
		}
	case *command.ChangePools:
		return ofSpecs(s, who, c)
	}
	return ""
}

// ofSpecs says why somebody who is no admin of the cluster may not let pools keep more specs than the pools above them,
// for all peers hold them.
func ofSpecs(s *cluster.State, who access.Subject, c *command.ChangePools) string {
	if s.Rules < rules.PoolShares || InCluster(s, who) >= access.Admin {
		return ""
	}
	most := func(path terms.PoolPath) int64 {
		at, found := s.PoolNumber(path)
		if !found {
			return terms.SpecBytesDefault
		}
		return s.Pools()[at].SpecBytesMost()
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		above, _ := pool.Split(p.Path)
		if wants, may := p.SpecBytesMost(), max(most(p.Path), most(above)); wants > may {
			return fmt.Sprintf("pool %s is to keep specs of %s, and may keep %s as the pool above it: ask an admin of the cluster",
				p.Path, terms.Disk.Text(wants), terms.Disk.Text(may))
		}
	}
	return ""
}

// needs returns all that a command asks for.
func needs(c command.Command) []Need {
	switch c := c.(type) {
	case *command.SubmitJob:
		return ofJob(access.Submitter, c.Spec.Name)
	case *command.KillJob:
		return ofJob(access.Submitter, c.Job)
	case *command.SteerUpdate:
		return ofJob(access.Submitter, c.Job)
	case *command.RevertJob:
		return ofJob(access.Submitter, c.Job)
	case *command.RestartJob:
		return ofJob(access.Submitter, c.Job)
	case *command.SuspendJob:
		return ofJob(access.Submitter, c.Job)
	case *command.SealTask:
		return ofJob(access.Submitter, c.Slot.Job)
	case *command.EndAllocation:
		return ofJob(access.Operator, c.Slot.Job)
	case *command.RemoveVolumes:
		return ofJob(access.Operator, c.Volumes.Slot.Job)
	case *command.MoveVolumes:
		return ofJob(access.Operator, c.Volumes.Slot.Job)
	case *command.PutSecret:
		return []Need{{access.Submitter, c.Secret.Pool}}
	case *command.RemoveSecret:
		return []Need{{access.Submitter, c.Pool}}
	case *command.DrainNode:
		return []Need{{access.Operator, ""}}
	case *command.ChangePools:
		return ofPools(c)
	}
	return []Need{{access.Admin, ""}}
}

func ofJob(role access.Role, job terms.JobName) []Need { return []Need{{role, job.Pool()}} }

// ofPools returns what a change of the tree needs: who may change a pool is who rules the one above it, so that nobody
// raises an own limit.
func ofPools(c *command.ChangePools) (all []Need) {
	add := func(path terms.PoolPath) {
		above, _ := pool.Split(path)
		all = append(all, Need{access.Admin, above})
	}
	for i := range c.Pools {
		add(c.Pools[i].Path)
	}
	for _, path := range c.Gone {
		add(path)
	}
	return all
}
