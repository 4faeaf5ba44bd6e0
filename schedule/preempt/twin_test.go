package preempt

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"starling/cluster/facts"
	"starling/terms"
)

// twin answers the same question by trying every set of victims.
type twin struct {
	in    *Input
	units []unit
}

// unit is what goes together: a victim, or a whole gang.
type unit struct {
	victims []int
	gang    int
}

func newTwin(in *Input) *twin {
	w := &twin{in: in}
	members := make([][]int, len(in.Gangs))
	for i, v := range in.Victims {
		w.units = append(w.units, unit{victims: []int{i}, gang: NoGang})
		if v.Gang != NoGang {
			members[v.Gang] = append(members[v.Gang], i)
		}
	}
	for id, all := range members {
		if len(all) > 0 {
			w.units = append(w.units, unit{victims: all, gang: id})
		}
	}
	return w
}

// split returns a set of victims as units, and false if it takes more of a gang than that can spare, but not all.
func (w *twin) split(victims []int) (units []unit, whole bool) {
	for id := range w.in.Gangs {
		var all, taken []int
		byTask := map[uint16]uint32{}
		for i, v := range w.in.Victims {
			if v.Gang != id {
				continue
			}
			all = append(all, i)
			if slices.Contains(victims, i) {
				taken = append(taken, i)
				byTask[v.Slot.Task]++
			}
		}
		spares := true
		for task, count := range byTask {
			spares = spares && count <= w.in.Gangs[id].Surplus[task]
		}
		switch {
		case spares:
		case len(taken) == len(all):
			units = append(units, unit{victims: all, gang: id})
			victims = slices.DeleteFunc(slices.Clone(victims), func(i int) bool { return slices.Contains(all, i) })
		default:
			return nil, false
		}
	}
	for _, i := range victims {
		units = append(units, unit{victims: []int{i}, gang: NoGang})
	}
	return units, true
}

func (w *twin) sum(victims []int) (total terms.Amounts) {
	for _, i := range victims {
		total.Add(&w.in.Victims[i].Need, 1)
	}
	return total
}

// allowed returns why units may not be ended together, or "".
func (w *twin) allowed(units []unit) string {
	in, left := w.in, []unit{}
	for _, u := range units {
		v := &in.Victims[u.victims[0]]
		switch {
		case v.Revocable && !in.Revocable, v.Revocable == in.Revocable && v.Pool == in.Pool && v.Priority < in.Priority:
		case v.Revocable == in.Revocable && v.Pool != in.Pool:
			left = append(left, u)
		default:
			return fmt.Sprintf("%v is protected", v.Slot)
		}
	}
	// Whoever could have been the last is taken off, until nobody is left.
	for len(left) > 0 {
		at := slices.IndexFunc(left, func(u unit) bool { return w.couldBeLast(u, left) })
		if at < 0 {
			return fmt.Sprintf("more than one of %v takes what its pool is entitled to", left)
		}
		left = slices.Delete(left, at, at+1)
	}
	return ""
}

func (w *twin) couldBeLast(u unit, all []unit) bool {
	number := w.in.Victims[u.victims[0]].Pool
	over, need := w.in.Over[number], w.sum(u.victims)
	over.Add(&need, 1)
	for _, other := range all {
		if w.in.Victims[other.victims[0]].Pool == number {
			taken := w.sum(other.victims)
			over.Add(&taken, -1)
		}
	}
	for k := range over {
		if over[k] > 0 && need[k] > 0 && w.wanted()[k] > 0 {
			return true
		}
	}
	return false
}

func (w *twin) wanted() (total terms.Amounts) {
	for _, want := range w.in.Wants {
		total.Add(&want.Need, 1)
	}
	return total
}

// room returns how many instances of the wants run if the victims end: all or none of a gang.
func (w *twin) room(victims []int) uint32 {
	in, held, free := w.in, w.held(victims), make([]terms.Amounts, len(w.in.Nodes))
	for i, n := range in.Nodes {
		free[i] = n.Free
	}
	for _, i := range victims {
		v := &in.Victims[i]
		if at := slices.IndexFunc(in.Nodes, func(n Node) bool { return n.Index == v.Node }); at >= 0 {
			free[at].Add(&v.Need, 1)
		}
	}
	var wants []int
	total := uint32(0)
	for i, want := range in.Wants {
		for range want.Count {
			wants = append(wants, i)
		}
		total += want.Count
	}
	if in.Partial {
		for count := total; count > 0; count-- {
			if w.affords(held, wants[:count]) && w.pack(free, make([][4]uint32, len(free)), wants[:count]) {
				return count
			}
		}
		return 0
	}
	if w.affords(held, wants) && w.pack(free, make([][4]uint32, len(free)), wants) {
		return total
	}
	return 0
}

// held returns what the pool may hold if the victims end.
func (w *twin) held(victims []int) terms.Amounts {
	room := w.in.Room
	for _, i := range victims {
		v := &w.in.Victims[i]
		near := w.in.Subtree.First <= v.Pool && v.Pool < w.in.Subtree.End
		switch {
		case (v.Pool == w.in.Pool || near) && v.Revocable == w.in.Revocable:
			room.Add(&v.Need, 1)
		case near:
			for k := range room {
				if !terms.Kind(k).Overcommitted() {
					room[k] += v.Need[k]
				}
			}
		}
	}
	return room
}

// seats returns the want of each instance that has a seat.
func (w *twin) seats(p *Plan) (wants []int) {
	for _, seat := range p.Seats {
		for range seat.Count {
			wants = append(wants, seat.Want)
		}
	}
	return wants
}

func (w *twin) affords(room terms.Amounts, wants []int) bool {
	for _, want := range wants {
		room.Add(&w.in.Wants[want].Need, -1)
	}
	for k, needed := range w.wanted() {
		if needed > 0 && room[k] < 0 {
			return false
		}
	}
	return true
}

// pack tries all seats.
func (w *twin) pack(free []terms.Amounts, seats [][4]uint32, wants []int) bool {
	if len(wants) == 0 {
		return true
	}
	want := &w.in.Wants[wants[0]]
	for at := range free {
		if !fits(&want.Need, &free[at]) || want.Most != nil && seats[at][wants[0]] >= want.Most(w.in.Nodes[at].Index) {
			continue
		}
		free[at].Add(&want.Need, -1)
		seats[at][wants[0]]++
		packed := w.pack(free, seats, wants[1:])
		free[at].Add(&want.Need, 1)
		seats[at][wants[0]]--
		if packed {
			return true
		}
	}
	return false
}

// best returns the most that can run, without and with broken gangs.
func (w *twin) best() (unbroken, broken uint32) {
	for set := range 1 << len(w.in.Victims) {
		var victims []int
		for i := range w.in.Victims {
			if set>>i&1 == 1 {
				victims = append(victims, i)
			}
		}
		units, whole := w.split(victims)
		if !whole || w.allowed(units) != "" {
			continue
		}
		count := w.room(victims)
		broken = max(broken, count)
		if !slices.ContainsFunc(units, func(u unit) bool { return u.gang != NoGang }) {
			unbroken = max(unbroken, count)
		}
	}
	return unbroken, broken
}

// wrong returns what a plan does that it must not, or "".
func (w *twin) wrong(p *Plan) string {
	var victims []int
	for _, chosen := range p.Victims {
		victims = append(victims, chosen.Victim)
	}
	seated := w.seated(p)
	if problem := w.unseated(p, victims); problem != "" {
		return problem
	}
	units, whole := w.split(victims)
	if !whole {
		return "a gang is robbed and not ended"
	}
	if problem := w.allowed(units); problem != "" {
		return problem
	}
	if w.room(victims) < seated {
		return fmt.Sprintf("only %d of %d have room", w.room(victims), seated)
	}
	for _, u := range units {
		rest := slices.DeleteFunc(slices.Clone(victims), func(i int) bool { return slices.Contains(u.victims, i) })
		// Several wants may find other seats if all move: that is not searched for.
		if w.unseated(p, rest) == "" && w.affords(w.held(rest), w.seats(p)) ||
			len(w.in.Wants) == 1 && w.room(rest) >= seated {
			return fmt.Sprintf("%v can be spared", w.in.Victims[u.victims[0]].Slot)
		}
	}
	return ""
}

func (w *twin) seated(p *Plan) uint32 { return uint32(len(w.seats(p))) }

// unseated returns what is wrong with the seats, or "".
func (w *twin) unseated(p *Plan, victims []int) string {
	counts := make([]uint32, len(w.in.Wants))
	for _, n := range w.in.Nodes {
		free, used := n.Free, false
		for _, i := range victims {
			if w.in.Victims[i].Node == n.Index {
				free.Add(&w.in.Victims[i].Need, 1)
			}
		}
		for _, seat := range p.Seats {
			if seat.Node != n.Index {
				continue
			}
			used = true
			counts[seat.Want] += seat.Count
			for range seat.Count {
				free.Add(&w.in.Wants[seat.Want].Need, -1)
			}
			if most := w.in.Wants[seat.Want].Most; most != nil && seat.Count > most(n.Index) {
				return fmt.Sprintf("node %d runs %d", n.Index, seat.Count)
			}
		}
		if used && !fits(&terms.Amounts{}, &free) {
			return fmt.Sprintf("node %d lacks %v", n.Index, free)
		}
	}
	for i, want := range w.in.Wants {
		if counts[i] > want.Count || counts[i] < want.Count && !w.in.Partial {
			return fmt.Sprintf("%d of want %d have seats", counts[i], i)
		}
	}
	return ""
}

// randomInput has few of everything. Plain ones have one want, no gangs and no bound of what others give.
func randomInput(rng *rand.Rand, plain bool) *Input {
	in := &Input{Pool: rng.IntN(3), Revocable: rng.IntN(5) == 0, Priority: uint32(rng.IntN(4)),
		Over: make([]terms.Amounts, 3)}
	kinds := 1 + rng.IntN(2)
	amount := func(most int64) (a terms.Amounts) {
		for k := range kinds {
			a[k] = rng.Int64N(most + 1)
		}
		return a
	}
	wants := 1
	if in.Partial = rng.IntN(2) == 0; !in.Partial && !plain {
		wants = 1 + rng.IntN(2)
	}
	for range wants {
		want := Want{Need: amount(5), Count: uint32(1 + rng.IntN(3))}
		want.Need[0]++
		if most := uint32(rng.IntN(6)); most < 3 {
			want.Most = func(n facts.NodeIndex) uint32 { return (uint32(n) + most) % 3 }
		}
		in.Wants = append(in.Wants, want)
	}
	in.Room = amount(12)
	if rng.IntN(3) > 0 {
		in.Room = terms.Amounts{100, 100}
	}
	if in.Pool > 0 && rng.IntN(2) == 0 {
		in.Subtree = Subtree{First: 1, End: 3}
	}
	for pool := range in.Over {
		in.Over[pool] = amount(8)
		if plain {
			in.Over[pool] = terms.Amounts{1000, 1000}
		}
	}
	for n := range 1 + rng.IntN(4) {
		free := amount(3)
		free[0] -= rng.Int64N(2)
		in.Nodes = append(in.Nodes, Node{Index: facts.NodeIndex(n * 2), Free: free})
	}
	if !plain {
		for range rng.IntN(3) {
			in.Gangs = append(in.Gangs, Gang{Surplus: []uint32{uint32(rng.IntN(3)), uint32(rng.IntN(2))}})
		}
	}
	in.addVictims(rng, amount)
	return in
}

func (in *Input) addVictims(rng *rand.Rand, amount func(int64) terms.Amounts) {
	type job struct {
		pool, gang int
		revocable  bool
		priority   uint32
	}
	jobs := make([]job, 4)
	for i := range jobs {
		jobs[i] = job{pool: rng.IntN(3), gang: NoGang, revocable: rng.IntN(4) == 0, priority: uint32(rng.IntN(4))}
		if i < len(in.Gangs) {
			jobs[i].gang = i
		}
	}
	for i := range rng.IntN(8) {
		number := rng.IntN(len(jobs))
		j := jobs[number]
		in.Victims = append(in.Victims, Victim{
			Slot: facts.SlotRef{Job: terms.JobID(number + 1), Task: uint16(rng.IntN(2)), Index: uint32(i)},
			Node: facts.NodeIndex(rng.IntN(len(in.Nodes)*2 + 1)), Need: amount(4), Pool: j.pool, Revocable: j.revocable,
			Stage: Stage(rng.IntN(3)), Priority: j.priority, Since: terms.Time(rng.IntN(3)), Gang: j.gang,
		})
	}
	// A gang needs at least the last of its instances.
	for id := range in.Gangs {
		last, same := -1, uint32(0)
		for i, v := range in.Victims {
			if v.Gang == id && (last < 0 || v.Slot.Task == in.Victims[last].Slot.Task) {
				last, same = i, same+1
			}
		}
		if last >= 0 {
			surplus := &in.Gangs[id].Surplus[in.Victims[last].Slot.Task]
			*surplus = min(*surplus, same-1)
		}
	}
}
