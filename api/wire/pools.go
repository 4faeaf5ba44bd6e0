package wire

import (
	"fmt"
	"math"
	"slices"

	starlingv1 "starling/api/v1"
	"starling/terms"
	"starling/terms/pool"
)

// Pool returns the message of a pool.
func Pool(s *terms.Pool) *starlingv1.PoolSpec {
	slack := uint32(s.SlackLimit)
	m := &starlingv1.PoolSpec{Path: string(s.Path), SlackLimit: &slack, PreemptionDelayMillis: &s.PreemptionDelayMillis,
		Owners: s.Owners, Operators: s.Operators, Submitters: s.Submitters, Viewers: s.Viewers, RunAs: s.RunAs,
		HostPaths: s.HostPaths, DeviceKinds: s.DeviceKinds, Capabilities: s.Capabilities,
		JobScheduler: s.JobScheduler.String(), SpecBytes: s.SpecBytes}
	if s.ControllerLimit != terms.NoPercent {
		controllers := uint32(s.ControllerLimit)
		m.ControllerLimit = &controllers
	}
	for k, q := range s.Quotas {
		quota := &starlingv1.Quota{Kind: terms.Kind(k).String(), Reservation: q.Reservation, Share: &q.Share,
			Static: q.Static}
		if q.Limit != terms.Unlimited {
			quota.Limit = &q.Limit
		}
		m.Quotas = append(m.Quotas, quota)
	}
	return m
}

// Pools returns the messages of pools.
func Pools(all []terms.Pool) []*starlingv1.PoolSpec {
	messages := make([]*starlingv1.PoolSpec, len(all))
	for i := range all {
		messages[i] = Pool(&all[i])
	}
	return messages
}

// PoolOf returns the pool of a message, and the problems that it has as a message, with paths that begin with the
// pool's. Whether it fits into a tree, that tells.
func PoolOf(m *starlingv1.PoolSpec) (terms.Pool, []terms.Problem) {
	s := terms.NewPool(terms.PoolPath(m.GetPath()))
	s.Owners, s.Operators, s.Submitters, s.Viewers = m.GetOwners(), m.GetOperators(), m.GetSubmitters(), m.GetViewers()
	s.RunAs, s.SpecBytes = m.GetRunAs(), m.GetSpecBytes()
	s.HostPaths, s.DeviceKinds, s.Capabilities = m.GetHostPaths(), m.GetDeviceKinds(), m.GetCapabilities()
	problems := unknownFields(m.ProtoReflect(), m.GetPath())
	percent := func(field string, given *uint32, into *terms.Percent) {
		switch {
		case given == nil:
		case *given > 100:
			problems = append(problems, terms.Problem{Path: m.GetPath() + "." + field,
				Reason: fmt.Sprintf("must be 0 to 100, is %d", *given)})
		default:
			*into = terms.Percent(*given)
		}
	}
	percent("controller_limit", m.ControllerLimit, &s.ControllerLimit)
	percent("slack_limit", m.SlackLimit, &s.SlackLimit)
	if m.PreemptionDelayMillis != nil {
		s.PreemptionDelayMillis = m.GetPreemptionDelayMillis()
	}
	if word := m.GetJobScheduler(); word != "" {
		at := slices.Index(terms.JobSchedulers(), word)
		if s.JobScheduler = terms.JobScheduler(max(at, 0)); at < 0 {
			problems = append(problems, terms.Problem{Path: m.GetPath() + ".job_scheduler",
				Reason: "must be priority, greedy, round-robin or percentage"})
		}
	}
	given := [terms.AmountCount]bool{}
	for _, one := range m.GetQuotas() {
		k, known := pool.Kind(one.GetKind())
		path := m.GetPath() + "." + one.GetKind()
		switch {
		case !known:
			problems = append(problems, terms.Problem{Path: path, Reason: "must be cpu, memory, disk, gpu or peers"})
			continue
		case given[k]:
			problems = append(problems, terms.Problem{Path: path, Reason: "is there twice"})
		}
		given[k] = true
		s.Quotas[k] = quotaOf(one)
	}
	return s, problems
}

func quotaOf(m *starlingv1.Quota) terms.Quota {
	q := terms.Quota{Reservation: m.GetReservation(), Limit: terms.Unlimited, Share: 1, Static: m.GetStatic()}
	if m.Limit != nil {
		// One who writes that there is none must leave it out, so that no number means two things.
		if q.Limit = m.GetLimit(); q.Limit == terms.Unlimited {
			q.Limit = math.MaxInt64
		}
	}
	if m.Share != nil {
		q.Share = m.GetShare()
	}
	return q
}

// PoolsOf returns the pools of messages, with all their problems.
func PoolsOf(all []*starlingv1.PoolSpec) ([]terms.Pool, []terms.Problem) {
	var specs []terms.Pool
	var problems []terms.Problem
	for _, m := range all {
		spec, found := PoolOf(m)
		specs, problems = append(specs, spec), append(problems, found...)
	}
	return specs, problems
}
