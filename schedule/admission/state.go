package admission

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/entitle"
	"starling/terms"
)

// PoolOf returns the leaf at a number of the tree as admission sees it; its ancestor limit is that of the work that
// asks.
func PoolOf(s *cluster.State, number int, e *entitle.Entitlement, ancestorLimit *terms.Amounts) Pool {
	spec, account := &s.Pools()[number], s.Account(number)
	p := Pool{Entitlement: *e, AncestorLimit: ancestorLimit, Allocated: account.Held, Lasting: account.Lasting,
		Now: s.Time}
	for k := range terms.AmountCount {
		p.Firm[k], p.ControllerLimit[k] = e.Firm[k], spec.ControllerMost(k)
	}
	return p
}

// GangOf returns a job's work that needs so much each time, as admission sees it.
func GangOf(j *workload.Job, need terms.Amounts, count uint32) *Gang {
	return &Gang{
		Need: need, Count: count, Revocable: j.Spec.Revocable, NonPreemptible: j.Spec.NonPreemptible(),
		Controller: j.Spec.Controller,
		RunsAtMost: j.Spec.RunsAtMost(),
	}
}

// UnitsOf returns what runs in the pool at a number of the tree and ends by itself.
func UnitsOf(s *cluster.State, number int) (units []Unit) {
	s.EachJob(func(j *workload.Job) bool {
		if j.Finished != 0 || j.Spec.Type != terms.Batch || s.PoolOf(j) != number {
			return true
		}
		whole, held, known := Unit{}, false, true
		for task, t := range j.Tasks {
			if t.Live() == 0 {
				continue
			}
			s.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
				if s.Visit(1); !slot.Phase.Holds() {
					return true
				}
				one, spec := Unit{}, j.TaskSpecOf(task, slot.Version)
				need := spec.Amounts()
				if most := spec.RunsAtMost(); slot.Phase == facts.Running && most > 0 {
					one.Ends = slot.Since + most
				}
				held, known = true, known && one.Ends > 0
				whole.Ends = max(whole.Ends, one.Ends)
				one.Work.Add(j.Spec, &need, 1)
				whole.Work.Add(j.Spec, &need, 1)
				if !j.HasGang() {
					units = append(units, one)
				}
				return len(units) <= UnitsMax
			})
		}
		if !known {
			whole.Ends = 0
		}
		if j.HasGang() && held {
			units = append(units, whole)
		}
		return len(units) <= UnitsMax
	})
	if len(units) > UnitsMax {
		return nil
	}
	return units
}
