package promises

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/workload"
	"starling/replica/report"
	"starling/schedule/entitle"
	"starling/terms"
	"starling/terms/pool"
	"starling/terms/rules"
)

// sharing remembers what is needed to see in an entry whether pools and gangs kept to their rules.
type sharing struct {
	fail Fail
	// held is what every pool held before this entry, with all below it.
	held map[terms.PoolPath]terms.Amounts
	// waited are the jobs of which something asked for room before this entry.
	waited map[terms.JobID]bool
	// absent and broken are the jobs whose gangs were so before this entry, growing those of them that grow whole, with
	// how many of their slots had had a node.
	absent, broken map[terms.JobID]bool
	growing        map[terms.JobID]uint32
	// nominated are the jobs for which room was kept before this entry.
	nominated []terms.JobID
	// placed are the slots that this entry gave a node, but for those that start again on theirs.
	placed map[terms.SlotName]bool
	// lost are the jobs of which an instance ended with this entry: the gang of one was broken then, although it may be
	// whole again.
	lost map[terms.JobName]bool
	// succeeds are the first slots of tasks of which an instance ended with this entry: what takes its place may come
	// first.
	succeeds map[terms.SlotName]bool
}

// check looks at the value after an entry.
func (h *sharing) check(s *cluster.State, effects []report.Effect) {
	h.placed, h.lost, h.succeeds = map[terms.SlotName]bool{}, map[terms.JobName]bool{}, map[terms.SlotName]bool{}
	for i := range effects {
		switch e := &effects[i]; {
		case e.Kind == report.Placed && e.Reason == "":
			h.placed[e.Slot] = true
		case e.Kind == report.Ended || e.Kind == report.Lost:
			h.lost[e.Slot.Job] = true
			h.succeeds[terms.SlotName{Job: e.Slot.Job, Task: e.Slot.Task}] = s.Rules >= rules.Successors
		}
	}
	h.limits(s)
	h.sums(s)
	h.backed(s)
	absent, broken, waited, growing := map[terms.JobID]bool{}, map[terms.JobID]bool{}, map[terms.JobID]bool{},
		map[terms.JobID]uint32{}
	s.EachJob(func(j *workload.Job) bool {
		if h.absent[j.ID] {
			h.whole(s, j)
		}
		if used, grew := h.growing[j.ID]; grew {
			h.grown(s, j, used)
		}
		h.together(s, j)
		h.first(s, j)
		h.gaveWay(s, j)
		h.order(s, j)
		waited[j.ID] = waits(j)
		absent[j.ID], broken[j.ID] = j.GangState() == gang.Absent, j.GangState() == gang.Broken
		if j.GangState() == gang.Growing {
			growing[j.ID] = usedSlots(j)
		}
		return true
	})
	h.absent, h.broken, h.waited, h.growing, h.nominated = absent, broken, waited, growing, s.NominatedJobs()
}

// fresh tells whether a slot was given its node with this entry.
func (h *sharing) fresh(s *cluster.State, r facts.SlotRef, slot *facts.Slot) bool {
	return slot.Order == s.Index && slot.Phase == facts.Assigned && h.placed[s.NameOf(r)]
}

// limits checks that no pool holds more than its limit, unless it held as much when that was lowered. Revocable work
// has processor beyond all limits.
func (h *sharing) limits(s *cluster.State) {
	held := map[terms.PoolPath]terms.Amounts{}
	for number := range s.Pools() {
		account := s.Account(number)
		for path := s.Pools()[number].Path; path != ""; path, _ = pool.Split(path) {
			sum := held[path]
			for k := range sum {
				if sum[k] += account.Held.NonSlack[k]; !terms.Kind(k).Overcommitted() {
					sum[k] += account.Held.Slack[k]
				}
			}
			held[path] = sum
		}
	}
	for _, spec := range s.Pools() {
		for k, now := range held[spec.Path] {
			if before := h.held[spec.Path][k]; now > spec.Quotas[k].Limit && now > before {
				h.fail("pool %s holds %d of %s, held %d before, its limit is %d", spec.Path, now, terms.Kind(k), before,
					spec.Quotas[k].Limit)
			}
		}
	}
	h.held = held
}

// backed checks that no more is kept on a node for work for which other work was told to stop than is free there or
// stops.
func (h *sharing) backed(s *cluster.State) {
	for _, id := range s.NominatedJobs() {
		nomination, _ := s.NominationOf(id)
		for _, seat := range nomination.Seats {
			for k, lack := range unkept(s, seat.Node) {
				if !nomination.Backfill && seat.Need[k] > 0 && lack > 0 {
					h.fail("%s lacks %d of %s of what is kept there", s.Node(seat.Node).Name, lack, terms.Kind(k))
				}
			}
		}
	}
}

// unkept returns by how much what is kept on a node for work for which other work was told to stop exceeds what is free
// or stops.
func unkept(s *cluster.State, n facts.NodeIndex) (lack terms.Resources) {
	for k, free := range s.Unheld(n) {
		lack[k] = -free
	}
	for _, r := range s.Node(n).Held {
		if slot, _ := s.SlotAt(r); slot.Phase == facts.Stopping {
			for k, amount := range s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version).Resources {
				lack[k] -= amount
			}
		}
	}
	for _, id := range s.NominatedJobs() {
		nomination, _ := s.NominationOf(id)
		for _, seat := range nomination.Seats {
			for k := range lack {
				if seat.Node == n && !nomination.Backfill {
					lack[k] += seat.Need[k] * int64(seat.Count)
				}
			}
		}
	}
	return lack
}

// sums checks that the entitlements of those below a pool are together no more than its own, and of all no more than
// there is.
func (h *sharing) sums(s *cluster.State) {
	all, capacity := entitle.Entitlements(entitle.Of(s)), s.Capacity()
	sums := make([]terms.Amounts, len(all)+1)
	for i, parent := range pool.Tree(s.Pools()).Parents() {
		for k := range capacity {
			sums[parent+1][k] += all[i].Total[k]
			if most := s.Pools()[i].Quotas[k].Limit; all[i].Total[k] > most {
				h.fail("pool %s is entitled to %d of %s, its limit is %d", s.Pools()[i].Path, all[i].Total[k], terms.Kind(k),
					most)
			}
		}
	}
	for i := range sums {
		most, below := capacity, slices.Contains(pool.Tree(s.Pools()).Parents(), i-1)
		if i > 0 {
			most = all[i-1].Total
		}
		for k := range most {
			if below && sums[i][k] > most[k] {
				h.fail("the pools below number %d are entitled to %d of %s, there are %d", i-1, sums[i][k], terms.Kind(k),
					most[k])
			}
		}
	}
}

// whole checks that a gang of which nothing ran was placed whole or not at all.
func (h *sharing) whole(s *cluster.State, j *workload.Job) {
	placed, before := false, false
	living, all := make([]uint32, len(j.Tasks)), uint32(0)
	eachSlot(s, j, func(r facts.SlotRef, slot *facts.Slot) {
		if r.Seat == facts.MainSeat && slot.Phase.Holds() {
			placed, before = placed || slot.Order == s.Index, before || slot.Order != s.Index
			living[r.Task]++
		}
	})
	for task, t := range j.Tasks {
		// What was told to stop in this entry had been placed before, or with it.
		least := j.GangRow(task).Least
		all += living[task] + t.Counts[facts.Succeeded]
		if placed && !before && living[task]+t.Counts[facts.Succeeded] < least {
			h.fail("of the gang of %s.%s %d are placed and %d have succeeded, it has %d", j.Name(), t.Name, living[task],
				t.Counts[facts.Succeeded], least)
		}
	}
	if placed && !before && all < j.Spec.MinAvailable {
		h.fail("of the gang of %s %d are placed or have succeeded, it has %d", j.Name(), all, j.Spec.MinAvailable)
	}
}

// usedSlots counts the slots of a job that had a node.
func usedSlots(j *workload.Job) (count uint32) {
	for _, t := range j.Tasks {
		count += min(t.Fresh, t.Desired)
	}
	return count
}

// grown checks that a gang which grows whole has got all its members with the first of those that are new.
func (h *sharing) grown(s *cluster.State, j *workload.Job, used uint32) {
	if j.Spec.Grow != terms.GrowWhole || usedSlots(j) <= used {
		return
	}
	have := uint32(0)
	eachSlot(s, j, func(r facts.SlotRef, slot *facts.Slot) {
		if r.Seat == facts.MainSeat && (slot.Phase.Holds() || slot.Phase == facts.Succeeded) {
			have++
		}
	})
	if have < j.Spec.MinAvailable {
		h.fail("the gang of %s grew and has %d members, it is to have %d or none of the new ones", j.Name(), have,
			j.Spec.MinAvailable)
	}
}

// together checks that what was placed with this entry is in the domain where instances of the job were, and all that
// was placed with it in one.
func (h *sharing) together(s *cluster.State, j *workload.Job) {
	var old, placed []string
	eachSlot(s, j, func(r facts.SlotRef, slot *facts.Slot) {
		offer := s.Node(slot.Node).Offer
		if j.Spec.Within == "" || !slot.Phase.Holds() || offer == nil {
			return
		}
		value, exists := offer.Attribute(j.Spec.Within)
		switch fresh := h.fresh(s, r, slot); {
		case fresh && !exists:
			h.fail("%s was placed on a node without %s", s.NameOf(r), j.Spec.Within)
		case fresh:
			placed = append(placed, value)
		case exists:
			old = append(old, value)
		}
	})
	slices.Sort(placed)
	if placed = slices.Compact(placed); len(placed) > 1 ||
		len(placed) == 1 && len(old) > 0 && !slices.Contains(old, placed[0]) && !stopping(j) {
		h.fail("instances of %s were placed in %v, within one %s, where others are in %v", j.Name(), placed, j.Spec.Within,
			old)
	}
}

// stopping tells whether any instance of a job was told to stop: the others need not stay near it.
func stopping(j *workload.Job) bool {
	return slices.ContainsFunc(j.Tasks,
		func(t *workload.Task) bool { return t.Counts[facts.Stopping]+t.Secondary[facts.Stopping] > 0 })
}

// first checks that nobody was placed where an instance of a job that comes before him has room: as far as that can be
// seen without rules, devices and ports. In a pool gangs that lost members come first, then the more important, then
// those who came first.
func (h *sharing) first(s *cluster.State, j *workload.Job) {
	broken := j.GangState() == gang.Broken
	if broken && (!h.broken[j.ID] || j.Spec.Grow == terms.GrowWhole) || j.GangState() > gang.Broken {
		return
	}
	for task, t := range j.Tasks {
		spec := j.TaskSpecOf(task, j.Version)
		if broken && j.Missing(task)+j.MissingAny() == 0 || min(t.Asks(), t.Waits()) == 0 || demands(j, spec) {
			continue
		}
		s.EachJob(func(other *workload.Job) bool {
			if alike(s, j, other) && !h.privileged(other) && (broken || h.before(j, other)) {
				h.behind(s, j, other, spec)
			}
			return true
		})
	}
}

// privileged tells whether a job may come before those whose turn it is: its gang lost members, or room was kept for
// it.
func (h *sharing) privileged(j *workload.Job) bool {
	return h.broken[j.ID] || j.HasGang() && h.lost[j.Name()] || slices.Contains(h.nominated, j.ID)
}

// demands tells whether a task of a job asks for more of a node than amounts.
func demands(j *workload.Job, spec *terms.Task) bool {
	return j.Spec.Within != "" || j.Spec.Shares() || len(spec.Constraints)+len(spec.Devices)+len(spec.Ports) > 0 ||
		spec.PerNodeMax > 0
}

// alike tells whether two jobs take turns: in one pool, with the same part of it.
func alike(s *cluster.State, a, b *workload.Job) bool {
	return s.PoolOf(a) == s.PoolOf(b) && a.Spec.Class() == b.Spec.Class() && b.Spec.Type != terms.Daemon
}

// before tells whether a job has its turn before another that is no gang that lost members, and the other may not pass
// it. What a gang has beyond its least counts since the entry after that which placed it.
func (h *sharing) before(j, other *workload.Job) bool {
	if h.waited[j.ID] && !h.absent[j.ID] && other.Spec.RunsAtMost() == 0 && other.ID != j.ID {
		return j.Spec.Priority > other.Spec.Priority || j.Spec.Priority == other.Spec.Priority && j.ID < other.ID
	}
	return false
}

// waits tells whether something of a job asks for room.
func waits(j *workload.Job) bool {
	return slices.ContainsFunc(j.Tasks, func(t *workload.Task) bool { return t.Asks() > 0 })
}

// behind checks that no instance of a job was placed with this entry where one of another has room.
func (h *sharing) behind(s *cluster.State, j, other *workload.Job, spec *terms.Task) {
	need := spec.Amounts()
	for task, t := range other.Tasks {
		if h.succeeds[terms.SlotName{Job: other.Name(), Task: t.Name}] {
			continue
		}
		s.EachSlot(other.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
			if !h.fresh(s, r, &slot) || !s.Eligible(slot.Node) {
				return true
			}
			node := s.Node(slot.Node)
			has, free := other.TaskSpecOf(task, slot.Version).Amounts(), s.Free(slot.Node)
			if node.Offer.Exclusive() {
				return true
			}
			for k := range need {
				if has[k] < need[k] || k < len(free) && free[k] < 0 {
					return true
				}
			}
			h.fail("%s was placed on %s, where %s has room, which comes before it", s.NameOf(r), node.Name, j.Name())
			return false
		})
	}
}

// gaveWay checks that nobody was told to give way who need not.
func (h *sharing) gaveWay(s *cluster.State, j *workload.Job) {
	eachSlot(s, j, func(r facts.SlotRef, slot *facts.Slot) {
		if slot.Cause == facts.ByPreemption && (j.Spec.NonPreemptible() || j.Spec.Type == terms.Daemon) {
			h.fail("%s was told to give way and is not preemptible", s.NameOf(r))
		}
	})
}

// order checks that nothing was placed of a task that comes after another which is not complete. What failed starts
// again on its node, although a new version may have given it an order.
func (h *sharing) order(s *cluster.State, j *workload.Job) {
	for task := range j.Tasks {
		for _, before := range j.After(task) {
			succeeded := uint32(0)
			s.EachSlot(j.ID, before, func(r facts.SlotRef, slot facts.Slot) bool {
				if r.Seat == facts.MainSeat && slot.Phase == facts.Succeeded {
					succeeded++
				}
				return true
			})
			s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
				if h.fresh(s, r, &slot) && succeeded < j.Wants(before) {
					h.fail("%s was placed although %s, which it comes after, has %d instances that succeeded", s.NameOf(r),
						j.Tasks[before].Name, succeeded)
				}
				return true
			})
		}
	}
}
