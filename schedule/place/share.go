package place

import (
	"slices"

	"starling/cluster"
	"starling/schedule/entitle"
	"starling/schedule/portion"
	"starling/schedule/preempt"
	"starling/terms"
)

// share divides the virtual peers that each pool is entitled to among its jobs that are run by such, before anything is
// placed: counts come first. What runs beyond them gives way.
func (p *pass) share() {
	p.eachSharing(func(number int, jobs []terms.JobID, in *portion.Input) {
		if key := in.Fingerprint(jobs); !p.s.SharedBy(number, key) {
			p.s.SetShared(number, key)
			p.setShares(jobs, portion.Counts(in))
		}
		p.level(jobs)
	})
}

// shareAgain lets the next entry divide again if what was placed has changed what the shares depend on.
func (p *pass) shareAgain() {
	p.eachSharing(func(number int, jobs []terms.JobID, in *portion.Input) {
		if !p.s.SharedBy(number, in.Fingerprint(jobs)) {
			p.s.Stir()
		}
	})
}

// eachSharing visits the pools with jobs that share, with these and what their shares depend on.
func (p *pass) eachSharing(visit func(number int, jobs []terms.JobID, in *portion.Input)) {
	sharers := p.s.Sharers()
	if len(sharers) == 0 {
		return
	}
	entitled := entitle.Entitlements(entitle.Of(p.s))
	byPool := make([][]terms.JobID, len(entitled))
	for _, id := range sharers {
		number := p.s.PoolOf(p.s.Job(id))
		byPool[number] = append(byPool[number], id)
	}
	for number, jobs := range byPool {
		if peers := entitled[number].NonSlack[terms.VirtualPeers] / int64(terms.WholeDevice); len(jobs) > 0 {
			visit(number, jobs, portion.Of(p.s, number, jobs, portion.Peers(peers)))
		}
	}
}

func (p *pass) setShares(jobs []terms.JobID, plan portion.Plan) {
	for i, id := range jobs {
		for at, task := range p.s.Job(id).Order() {
			p.s.SetShare(id, task, uint32(plan.Peers[i][at]))
		}
	}
}

// level tells those to give way that run beyond the shares of their tasks.
func (p *pass) level(jobs []terms.JobID) {
	if p.evict == nil {
		return
	}
	for _, id := range jobs {
		for _, task := range p.s.Job(id).Order() {
			for _, r := range p.surplus(id, task) {
				p.evict(r, p.gainer(jobs), preempt.ByShare)
				p.s.Stir()
			}
		}
	}
}

// gainer returns the first job that is to have more than it has, or else the first.
func (p *pass) gainer(jobs []terms.JobID) terms.JobID {
	at := slices.IndexFunc(jobs, func(id terms.JobID) bool {
		return slices.ContainsFunc(p.s.Job(id).Tasks, func(t *cluster.Task) bool {
			share, _ := t.Share()
			return t.Live() < share
		})
	})
	return jobs[max(at, 0)]
}

// surplus returns those of a task that virtual peers run beyond its share, as they give way. What is of a version that such
// do not run is none of them.
func (p *pass) surplus(id terms.JobID, task int) (all []cluster.SlotRef) {
	j := p.s.Job(id)
	t := j.Tasks[task]
	share, _ := t.Share()
	if t.Live()-t.Counts[cluster.Stopping]-t.Beside[cluster.Stopping] <= share {
		return nil
	}
	var victims []preempt.Victim
	one := terms.Amounts{terms.VirtualPeers: int64(terms.WholeDevice)}
	over := terms.Amounts{terms.VirtualPeers: -int64(share) * int64(terms.WholeDevice)}
	p.s.EachSlot(id, task, func(r cluster.SlotRef, slot cluster.Slot) bool {
		if !slot.Phase.Holds() || slot.Phase == cluster.Stopping || !j.SpecOf(slot.Version).Shares() {
			return true
		}
		over[terms.VirtualPeers] += one[terms.VirtualPeers]
		if stage, yields := stageOf(slot.Phase); yields {
			victims = append(victims, preempt.Victim{Slot: r, Need: one, Stage: stage, Since: slot.Since})
		}
		return true
	})
	for _, i := range preempt.Shed(victims, terms.Amounts{}, over) {
		all = append(all, victims[i].Slot)
	}
	return all
}
