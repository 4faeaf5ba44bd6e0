package replica

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/schedule/entitle"
	"starling/sim/promises"
	"starling/terms"
	"starling/terms/rules"
)

// sharing is a machine of forty cores, so that only pools decide, under random jobs in random pools.
type sharing struct {
	rng  *rand.Rand
	s    *cluster.State
	seq  uint64
	jobs int
	// evicted counts who gave way.
	evicted int
}

func newSharing(seed uint64) *sharing {
	h := &sharing{rng: rand.New(rand.NewPCG(seed, 7)), s: cluster.NewState(), seq: 1}
	if seed%2 == 1 {
		h.s.Rules = rules.Released
	}
	node := h.s.EnsureNode("m")
	h.s.Wrote(node.Index, 1, 1)
	h.s.SetPeer(node.Index, "m~1")
	h.s.SetOffer(node.Index, &terms.Offer{Capacity: terms.Resources{40, 40, 0}, Rules: h.s.Rules})
	change := &command.ChangePools{}
	for _, path := range []terms.PoolPath{"a", "b", "c", "c/d", "c/e", "default"} {
		p := terms.NewPool(path)
		p.PreemptionDelayMillis = uint32(h.rng.IntN(2) * 1000)
		for k := range p.Quotas[:2] {
			q := &p.Quotas[k]
			*q = terms.Quota{Reservation: int64(h.rng.IntN(5)), Share: int64(h.rng.IntN(4)), Static: h.rng.IntN(4) == 0,
				Limit: terms.Unlimited}
			if path == "c" {
				q.Reservation = 10
			}
			if h.rng.IntN(3) == 0 && path != "c" {
				q.Limit = q.Reservation + int64(h.rng.IntN(20))
			}
		}
		change.Pools = append(change.Pools, p)
	}
	h.write(change)
	return h
}

func (h *sharing) write(commands ...command.Command) report.Outcome {
	h.seq++
	outcome := Apply(h.s, h.s.Index+1, &command.Entry{Writer: "m~1", Seq: h.seq, Time: h.s.Time + 1, Commands: commands},
		true)
	for _, e := range outcome.Effects {
		if e.Kind == report.GaveWay {
			h.evicted++
		}
	}
	return outcome
}

func (h *sharing) submit() {
	h.jobs++
	pool := []terms.PoolPath{"a", "b", "c/d", "c/e", terms.DefaultPool}[h.rng.IntN(5)]
	spec := terms.Job{
		Name: terms.NewJobName(pool, fmt.Sprint("j", h.jobs)), Type: terms.Batch, Priority: uint32(h.rng.IntN(3)),
		Preemption: terms.Preemption(h.rng.IntN(4)) / 3 * terms.NonPreemptible, Tasks: []terms.Task{{
			Name: "t", Instances: uint32(1 + h.rng.IntN(6)), Command: []string{"run"}, Placement: terms.Pack,
			Resources: terms.Resources{int64(1 + h.rng.IntN(4)), int64(h.rng.IntN(4)), 0},
		}},
	}
	spec.Revocable = !spec.NonPreemptible() && h.rng.IntN(5) == 0
	if h.rng.IntN(3) == 0 {
		spec.MinAvailable = uint32(1 + h.rng.IntN(int(spec.Tasks[0].Instances)))
	}
	h.write(&command.SubmitJob{Spec: spec})
}

// settle lets all stop who were told to, and time pass, until nothing happens any more.
func (h *sharing) settle() bool {
	for range 60 {
		news := h.news(func(slot *facts.Slot) bool { return slot.Phase == facts.Stopping })
		due, waits := h.s.NextDeadline()
		if len(news) == 0 && !waits {
			return true
		}
		h.s.Time = max(h.s.Time, due)
		h.write(&command.ReportTasks{Peer: "m~1", Reports: news})
	}
	return false
}

// news reports an end of those that match.
func (h *sharing) news(match func(*facts.Slot) bool) (all []command.Report) {
	h.s.EachJob(func(j *workload.Job) bool {
		h.s.EachSlot(j.ID, 0, func(r facts.SlotRef, slot facts.Slot) bool {
			if slot.Phase.Holds() && match(&slot) {
				all = append(all, command.Report{Slot: r, Order: slot.Order, Ended: facts.ByItself})
			}
			return true
		})
		return true
	})
	return all
}

// wrong returns what of the promises does not hold when nothing happens any more.
func (h *sharing) wrong() (found []string) {
	s := h.s
	entitled := entitle.Entitlements(entitle.Of(s))
	sums, capacity, beside, reserved := terms.Amounts{}, s.Capacity(), terms.Amounts{}, terms.Amounts{}
	for number, spec := range s.Pools() {
		account := s.Account(number)
		for k, q := range spec.Quotas {
			if account.Held.NonSlack[k] > q.Limit {
				found = append(found, fmt.Sprintf("pool %s holds %d of %s beyond its limit %d", spec.Path,
					account.Held.NonSlack[k], terms.Kind(k), q.Limit))
			}
			switch held := account.Held.NonPreemptible[k]; {
			case q.Reservation == 0:
				beside[k] += held
			case held > q.Reservation:
				found = append(found, fmt.Sprintf("pool %s holds %d of %s that is not preemptible, beyond its reservation %d",
					spec.Path, held, terms.Kind(k), q.Reservation))
			}
			if entitle.Of(s).Pools[number].Parent < 0 {
				sums[k] += entitled[number].Total[k]
				reserved[k] += q.Reservation
			}
		}
	}
	for k := range sums {
		if beside[k] > max(capacity[k]-reserved[k], 0) {
			found = append(found, fmt.Sprintf(
				"pools that reserve nothing hold %d of %s that is not preemptible, of %d with %d reserved", beside[k],
				terms.Kind(k), capacity[k], reserved[k]))
		}
		if sums[k] > capacity[k] {
			found = append(found, fmt.Sprintf("entitled to %d of %s together, there are %d", sums[k], terms.Kind(k),
				capacity[k]))
		}
	}
	s.EachJob(func(j *workload.Job) bool {
		t := j.Tasks[0]
		if living := t.Live(); j.Finished == 0 && living > 0 && living+t.Counts[facts.Succeeded] < j.Spec.MinAvailable &&
			j.GangState() != gang.Broken {
			found = append(found, fmt.Sprintf("of the gang of %s only %d run", j.Name(), living))
		}
		return true
	})
	return append(append(found, h.robbed(entitled)...), h.taken(&reserved)...)
}

// taken tells of which kinds something holds what static reservations keep for others.
func (h *sharing) taken(reserved *terms.Amounts) (found []string) {
	claimed, capacity := promises.Claimed(h.s), h.s.Capacity()
	for k, all := range claimed {
		if h.s.Rules >= rules.StaticKept && reserved[k] <= capacity[k] && all > capacity[k] {
			found = append(found, fmt.Sprintf("%d of %s is held or kept by static reservations, there are %d", all,
				terms.Kind(k), capacity[k]))
		}
	}
	return found
}

// robbed tells who waits, first in its pool and entitled to room, although other pools hold preemptible work beyond
// what they are entitled to, or anything is revocable. Gangs may be in the way, so only single instances count.
func (h *sharing) robbed(entitled []entitle.Entitlement) (found []string) {
	for number := range h.s.Pools() {
		firm := func(t workload.QueueEntry) bool { return t.Class != terms.Revocable }
		entry, ok := h.s.NextInQueue(h.s.QueueStart(number), firm)
		id, _ := entry.Key.Split()
		if !ok || entry.Class != 0 || h.keptForOthers(id) || h.s.Job(id).HasGang() ||
			!within(&entry.Need, h.s.Account(number).Held.NonSlack, entitled[number].NonSlack) {
			continue
		}
		h.s.EachJob(func(j *workload.Job) bool {
			other := h.s.PoolOf(j)
			need := j.Spec.Tasks[0].Amounts()
			switch {
			case j.Tasks[0].Live() == 0 || j.Spec.NonPreemptible() || j.HasGang():
			case need[terms.CPU] < entry.Need[terms.CPU] || need[terms.Memory] < entry.Need[terms.Memory]:
			case j.Spec.Revocable || other != number &&
				exceeds(&need, &entry.Need, h.s.Account(other).Held.NonSlack, entitled[other].NonSlack):
				found = append(found, fmt.Sprintf("%s waits although %s could give way", h.s.Job(id).Name(), j.Name()))
			}
			return true
		})
	}
	return found
}

// keptForOthers tells whether room is kept for other work than a job: that is not there for it.
func (h *sharing) keptForOthers(id terms.JobID) bool {
	return slices.ContainsFunc(h.s.NominatedJobs(), func(other terms.JobID) bool { return other != id })
}

// within tells whether a need fits beside what is held.
func within(need *terms.Amounts, held, entitled terms.Amounts) bool {
	for k, amount := range need {
		if amount > 0 && held[k]+amount > entitled[k] {
			return false
		}
	}
	return true
}

// exceeds tells whether more is held than a pool is entitled to, of a kind that one gives and another needs.
func exceeds(given, needed *terms.Amounts, held, entitled terms.Amounts) bool {
	for k := range held {
		if held[k] > entitled[k] && given[k] > 0 && needed[k] > 0 {
			return true
		}
	}
	return false
}

// TestSharing holds the promises of pools after every change, once all has come to rest: limits and reservations bound
// what is held, gangs are whole, nobody waits for what others hold beyond their entitlement, and it comes to rest.
func TestSharing(t *testing.T) {
	histories := uint64(300)
	if testing.Short() {
		histories = 60
	}
	evicted := 0
	for seed := range histories {
		h := newSharing(seed)
		for step := range 40 {
			switch h.rng.IntN(4) {
			case 0:
				if ended := h.news(func(*facts.Slot) bool { return h.rng.IntN(3) == 0 }); len(ended) > 0 {
					h.write(&command.ReportTasks{Peer: "m~1", Reports: ended})
				}
			default:
				h.submit()
			}
			rests := h.settle()
			found := append(h.s.Audit(), h.wrong()...)
			if !rests {
				found = append(found, "it does not come to rest")
			}
			if len(found) > 0 {
				t.Fatalf("history %d, step %d: %q", seed, step, slices.Compact(found))
			}
		}
		evicted += h.evicted
	}
	if evicted == 0 {
		t.Error("nobody ever gave way")
	}
	t.Logf("%d instances gave way", evicted)
}
