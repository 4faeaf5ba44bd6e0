package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/schedule/entitle"
	"starling/terms"
)

// keeping is a cluster of a few machines of which pools want more than there is.
type keeping struct {
	rng  *rand.Rand
	s    *cluster.State
	seqs map[terms.PeerID]uint64
	jobs int
	// kept counts how often room was kept for a job over an entry.
	kept int
}

const keepers = 4

func keeper(n facts.NodeIndex) terms.PeerID { return terms.PeerID(fmt.Sprintf("m%d~1", n)) }

func newKeeping(seed uint64) *keeping {
	h := &keeping{rng: rand.New(rand.NewPCG(seed, 11)), s: cluster.NewState(), seqs: map[terms.PeerID]uint64{}}
	for n := range facts.NodeIndex(keepers) {
		h.s.EnsureNode(keeper(n).Node())
		h.s.Wrote(n, 1, 1)
		h.s.SetPeer(n, keeper(n))
		h.s.SetOffer(n, &terms.Offer{Capacity: terms.Resources{20 + int64(h.rng.IntN(10)), 1000, 0}, Rules: 1})
		h.seqs[keeper(n)] = 1
	}
	change := &command.ChangePools{}
	for _, path := range []terms.PoolPath{"a", "b", "c", terms.DefaultPool} {
		p := terms.NewPool(path)
		p.PreemptionDelayMillis = uint32(h.rng.IntN(2) * 1000)
		p.Quotas[terms.CPU] = terms.Quota{Reservation: int64(h.rng.IntN(25)), Share: int64(h.rng.IntN(3)),
			Limit: terms.Unlimited}
		change.Pools = append(change.Pools, p)
	}
	h.write(keeper(0), change)
	return h
}

func (h *keeping) write(by terms.PeerID, c command.Command) {
	h.seqs[by]++
	Apply(h.s, h.s.Index+1, &command.Entry{Writer: by, Seq: h.seqs[by], Time: h.s.Time + 1,
		Commands: []command.Command{c}}, true)
}

func (h *keeping) submit() {
	h.jobs++
	pool := []terms.PoolPath{"a", "b", "c", terms.DefaultPool}[h.rng.IntN(4)]
	spec := terms.Job{
		Name: terms.NewJobName(pool, fmt.Sprint("j", h.jobs)), Type: terms.Batch, Priority: uint32(h.rng.IntN(3)),
		Tasks: []terms.Task{{
			Name: "t", Instances: uint32(1 + h.rng.IntN(8)), Command: []string{"run"}, Placement: terms.Pack,
			Resources: terms.Resources{int64(1 + h.rng.IntN(6)), 0, 0},
		}},
	}
	switch h.rng.IntN(8) {
	case 0:
		spec.Type, spec.Priority, spec.Tasks[0].Instances, spec.Tasks[0].Resources[terms.CPU] = terms.Daemon, 0, 0, 1
	case 1, 2, 3:
		spec.Type = terms.Stateless
	}
	if spec.Type != terms.Daemon && h.rng.IntN(4) == 0 {
		spec.MinAvailable = uint32(1 + h.rng.IntN(int(spec.Tasks[0].Instances)))
	}
	h.write(keeper(0), &command.SubmitJob{Spec: spec})
}

// ends reports that some instances of a phase have ended, at most so many, all on one machine.
func (h *keeping) ends(phase facts.Phase, most int) {
	n := facts.NodeIndex(h.rng.IntN(keepers))
	report := &command.ReportTasks{Peer: keeper(n)}
	for _, r := range h.s.Node(n).Held {
		if slot, _ := h.s.SlotAt(r); slot.Phase == phase && len(report.Reports) < most && h.rng.IntN(2) == 0 {
			report.Reports = append(report.Reports, command.Report{Slot: r, Order: slot.Order, Ended: facts.ByItself})
		}
	}
	if len(report.Reports) > 0 {
		h.write(report.Peer, report)
	}
}

// quietly lets happen what brings no news to any pool: what was told to stop has stopped, or time passes. What was kept
// for a job is kept then, or the job runs there, as long as its pool is entitled to all that is kept and no more
// important work of it came.
func (h *keeping) quietly(do func()) (wrong string) {
	before, entitled, index, picture := map[terms.JobID]uint32{}, h.entitledToKept(), h.s.Index, h.picture()
	for _, id := range h.s.NominatedJobs() {
		if kept, _ := h.s.NominationOf(id); !kept.Backfill && entitled[h.s.PoolOf(h.s.Job(id))] && !h.outranked(h.s.Job(id)) {
			before[id] = seatsOf(&kept)
			h.kept++
		}
	}
	do()
	entitled = h.entitledToKept()
	for id, seats := range before {
		nomination, _ := h.s.NominationOf(id)
		j, left := h.s.Job(id), seatsOf(&nomination)
		if placed := h.placedSince(j, index); entitled[h.s.PoolOf(j)] && left+placed < seats && j.Tasks[0].Asks() > left {
			return fmt.Sprintf("of the %d that were kept for %s %d are left, and %d were placed\nbefore:%s\nafter:%s", seats,
				j.Name(), left, placed, picture, h.picture())
		}
	}
	return ""
}

// outranked tells whether more important work waits in the pool of a job.
func (h *keeping) outranked(j *workload.Job) (found bool) {
	h.s.EachJob(func(other *workload.Job) bool {
		found = found || h.s.PoolOf(other) == h.s.PoolOf(j) && other.Spec.Priority > j.Spec.Priority &&
			other.Tasks[0].Asks() > 0
		return true
	})
	return found
}

// entitledToKept tells of each pool, by number, whether it is entitled to all that it holds and that is kept for it;
// daemons are of no pool.
func (h *keeping) entitledToKept() map[int]bool {
	left := make([]int64, len(h.s.Pools()))
	for number, e := range entitle.Entitlements(entitle.Of(h.s)) {
		left[number] = e.NonSlack[terms.CPU] - h.s.Account(number).Held.NonSlack[terms.CPU]
	}
	for n := range facts.NodeIndex(keepers) {
		for _, r := range h.s.Node(n).Held {
			if slot, _ := h.s.SlotAt(r); slot.Phase == facts.Stopping && h.s.Job(r.Job).Spec.Type != terms.Daemon {
				left[h.s.PoolOf(h.s.Job(r.Job))] += h.s.Job(r.Job).Spec.Tasks[0].Resources[terms.CPU]
			}
		}
	}
	for _, id := range h.s.NominatedJobs() {
		if nomination, _ := h.s.NominationOf(id); !nomination.Backfill && h.s.PoolOf(h.s.Job(id)) >= 0 {
			left[h.s.PoolOf(h.s.Job(id))] -= int64(seatsOf(&nomination)) * nomination.Seats[0].Need[terms.CPU]
		}
	}
	all := map[int]bool{-1: true}
	for number, room := range left {
		all[number] = room >= 0
	}
	return all
}

// unbacked tells where more is kept, for those for whom others were told to stop, than is free or stops.
func (h *keeping) unbacked() string {
	for n := range facts.NodeIndex(keepers) {
		left := h.s.Unheld(n)[terms.CPU]
		for _, r := range h.s.Node(n).Held {
			if slot, _ := h.s.SlotAt(r); slot.Phase == facts.Stopping {
				left += h.s.Job(r.Job).Spec.Tasks[0].Resources[terms.CPU]
			}
		}
		for _, id := range h.s.NominatedJobs() {
			nomination, _ := h.s.NominationOf(id)
			for _, seat := range nomination.Seats {
				if seat.Node == n && !nomination.Backfill {
					left -= int64(seat.Count) * seat.Need[terms.CPU]
				}
			}
		}
		if left < 0 {
			return fmt.Sprintf("%s lacks %d of what is kept there\nafter:%s", h.s.Node(n).Name, -left, h.picture())
		}
	}
	return ""
}

// placedSince counts the instances of a job that were given a node after an entry.
func (h *keeping) placedSince(j *workload.Job, index terms.Index) (count uint32) {
	h.s.EachSlot(j.ID, 0, func(_ facts.SlotRef, slot facts.Slot) bool {
		if slot.Phase.Holds() && slot.Order > index {
			count++
		}
		return true
	})
	return count
}

func seatsOf(c *facts.Nomination) (count uint32) {
	for _, seat := range c.Seats {
		count += seat.Count
	}
	return count
}

func (h *keeping) picture() (text string) {
	for n := range facts.NodeIndex(keepers) {
		text += fmt.Sprintf("\n%s: free %v", h.s.Node(n).Name, h.s.Free(n)[terms.CPU])
	}
	for number, e := range entitle.Entitlements(entitle.Of(h.s)) {
		a := h.s.Account(number)
		text += fmt.Sprintf("\n%s: holds %d and asks for %d of %d", h.s.Pools()[number].Path, a.Held.NonSlack[0],
			a.Asked.NonSlack[0], e.NonSlack[0])
	}
	h.s.EachJob(func(j *workload.Job) bool {
		if j.Finished == 0 {
			nomination, _ := h.s.NominationOf(j.ID)
			text += fmt.Sprintf("\n%s: %s, priority %d, gang %d, cpu %d, phases %v, kept %v", j.Name(), j.Spec.Type,
				j.Spec.Priority,
				j.Spec.MinAvailable, j.Spec.Tasks[0].Resources[terms.CPU], j.Tasks[0].Counts, nomination.Seats)
		}
		return true
	})
	return text
}

// TestKept plays random histories in which work is preempted: what that freed is taken by the work for which it was, or
// kept for it until an entry brings other news; and no more is kept than was freed.
func TestKept(t *testing.T) {
	histories, kept := uint64(3000), 0
	if testing.Short() {
		histories = 1000
	}
	for seed := range histories {
		h := newKeeping(seed)
		for step := range 40 {
			wrong := ""
			switch h.rng.IntN(6) {
			case 0:
				h.ends(facts.Assigned, 2)
			case 1:
				h.submit()
			case 2:
				h.s.Time += 500
				wrong = h.quietly(func() { h.write(keeper(0), &command.TellTime{}) })
			default:
				wrong = h.quietly(func() { h.ends(facts.Stopping, 1) })
			}
			if wrong == "" {
				wrong = h.unbacked()
			}
			if wrong != "" {
				t.Fatalf("history %d, step %d: %s", seed, step, wrong)
			}
		}
		kept += h.kept
	}
	if kept < 1000 {
		t.Errorf("room was kept over %d entries, want at least 1000", kept)
	}
	t.Logf("room was kept over %d entries", kept)
}
