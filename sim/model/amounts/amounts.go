// Package amounts adds up what jobs ask for, exactly.
package amounts

import (
	"math/big"
	"slices"

	"starling/terms"
)

// Of returns what an instance takes of what pools divide.
func Of(spec *terms.Task) (a terms.Amounts) {
	copy(a[:], spec.Resources[:])
	for _, d := range spec.Devices {
		switch d.Kind {
		case "gpu":
			a[terms.GPU] += int64(d.Amount)
		case "peers":
			a[terms.VirtualPeers] += int64(d.Amount)
		}
	}
	return a
}

// Most is the most that any version of a task has wanted.
type Most struct {
	Instances uint32
	Each      terms.Amounts
}

// Or is the most of it and of one more version.
func (m Most) Or(spec *terms.Task) Most {
	m.Instances = max(m.Instances, spec.Instances)
	for k, amount := range Of(spec) {
		m.Each[k] = max(m.Each[k], amount)
	}
	return m
}

// Sum is what some jobs have wanted at most, exactly.
type Sum struct {
	Instances uint64
	Amounts   [terms.AmountCount]big.Int
}

// Add adds what tasks of a job wanted; daemons want it on so many nodes.
func (u *Sum) Add(all []Most, kind terms.JobType, nodes uint32) {
	for _, one := range all {
		count := one.Instances
		if u.Instances += uint64(count); kind == terms.Daemon {
			u.Instances += 1 - uint64(count)
			count = nodes
		}
		for k, amount := range one.Each {
			u.Amounts[k].Add(&u.Amounts[k], new(big.Int).Mul(big.NewInt(amount), big.NewInt(int64(count))))
		}
	}
}

// Exceeds tells whether any amount is above a limit.
func (u *Sum) Exceeds(limit int64) bool {
	return slices.ContainsFunc(u.Amounts[:], func(amount big.Int) bool { return amount.Cmp(big.NewInt(limit)) > 0 })
}

// Charge adds so many times an amount to an account's work, under all by which the job is bounded.
func Charge(w *terms.Work, j *terms.Job, each terms.Amounts, times uint32) {
	add := func(to *terms.Amounts, counts bool) {
		for k := range each {
			if counts {
				to[k] += each[k] * int64(times)
			}
		}
	}
	add(&w.Slack, j.Revocable)
	add(&w.NonSlack, !j.Revocable)
	add(&w.NonPreemptible, j.NonPreemptible() && !j.Revocable)
	add(&w.Controller, j.Controller && !j.Revocable)
}

// Offered returns what an offer has of what pools divide.
func Offered(o *terms.Offer) (all terms.Amounts) {
	copy(all[:], o.Capacity[:])
	for _, d := range o.Devices {
		switch d.Kind {
		case "gpu":
			all[terms.GPU] += int64(d.Count) * 1000
		case "peers":
			all[terms.VirtualPeers] += int64(d.Count) * 1000
		}
	}
	return all
}

// Charged returns the pool that is charged for the instances of a version, daemons for a daemon's.
func Charged(spec *terms.Job) terms.PoolPath {
	if spec.Type == terms.Daemon {
		return "daemons"
	}
	return spec.Name.Pool()
}

// Devices is what is left of the devices of a node.
type Devices struct {
	// Left tells how many thousandths of one nobody has.
	Left func(kind string, number uint32) int
	// Kept is how many thousandths of the kind are kept for others, Gone how many are used that are not offered any more.
	Kept, Gone int
}

// Choose returns the numbers of the offered devices that a request gets, none if there are too few: the lowest that
// nobody uses, or for a share the one that has the least left for it.
func (v Devices) Choose(offers []terms.DeviceOffer, q terms.DeviceRequest) []uint32 {
	var whole []uint32
	share, least, rest := uint32(0), 1001, 0
	for _, d := range offers {
		if d.Kind != q.Kind || len(q.Models) > 0 && !slices.Contains(q.Models, d.Model) {
			continue
		}
		for number := range d.Count {
			left := v.Left(d.Kind, number)
			if left == 1000 {
				whole = append(whole, number)
			} else {
				rest += max(left, 0)
			}
			if left >= int(q.Amount) && left < least {
				share, least = number, left
			}
		}
	}
	kept := (v.Kept+999)/1000 + v.Gone
	rest -= max(v.Kept-1000*len(whole), 0)
	switch count := int(q.Amount / 1000); {
	case count > 0 && count <= len(whole)-kept:
		return whole[:count]
	case count == 0 && (least < 1000 && rest >= int(q.Amount) || least == 1000 && len(whole) > kept):
		return []uint32{share}
	}
	return nil
}
