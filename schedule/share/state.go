package share

import (
	"starling/cluster"
	"starling/schedule/entitle"
	"starling/terms"
)

// PoolOf returns the leaf at a number of the tree as admission sees it; the ceiling is that of the work that asks.
func PoolOf(s *cluster.State, number int, e *entitle.Entitlement, ceiling *terms.Amounts) *Pool {
	spec, account := &s.Pools()[number], s.Account(number)
	p := &Pool{Entitlement: *e, Ceiling: ceiling, Allocated: account.Held, Lasting: account.Lasting}
	for k := range terms.AmountCount {
		p.Firm[k], p.ControllerLimit[k] = e.Firm[k], spec.ControllerMost(k)
	}
	return p
}

// GangOf returns a job's work that needs so much each time, as admission sees it.
func GangOf(j *cluster.Job, need terms.Amounts, count uint32) *Gang {
	return &Gang{
		Need: need, Count: count, Revocable: j.Spec.Revocable, NonPreemptible: j.Spec.NonPreemptible(), Controller: j.Spec.Controller,
	}
}
