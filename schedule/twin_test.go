package schedule

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/shapes"
	"starling/cluster/workload"
	"starling/schedule/place"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// plain places like Waiting, but one instance at a time, looking at every node each time, working out from the slots
// what is free and what runs where, and giving everybody a turn until nobody finds a node: the dumb twin.
func plain(s *cluster.State) {
	s.TakeDirtyPages()
	shapes := shapesOf(s)
	for placed := true; placed; {
		placed = false
		for _, key := range s.QueuedKeys() {
			id, task := key.Split()
			if key.IsSpecial() {
				for plainSpecial(s, key, shapes) {
					placed = true
				}
				continue
			}
			for s.Job(id).Tasks[task].Waits() > 0 {
				n, ok := choose(s, key, choice{among: anywhere, shapes: shapes})
				if !ok {
					break
				}
				s.Assign(key, n, 1, nil)
				placed = true
			}
		}
	}
	for _, key := range s.QueuedKeys() {
		s.SetBlocked(key, true)
	}
}

func anywhere(facts.NodeIndex) bool { return true }

// plainSpecial places the seats of a task that prefer something about their last node.
func plainSpecial(s *cluster.State, key facts.TaskKey, shapes []shapes.Shape) (placed bool) {
	var all []facts.SlotRef
	id, task := key.Split()
	s.Job(id).Tasks[task].EachSpecial(id, task, func(r facts.SlotRef, _ facts.Slot) bool {
		all = append(all, r)
		return true
	})
	for _, r := range all {
		slot, _ := s.SlotAt(r)
		there := func(n facts.NodeIndex) bool { return n == slot.Node }
		elsewhere := func(n facts.NodeIndex) bool { return n != slot.Node }
		tries := [][]func(facts.NodeIndex) bool{
			facts.AnyNode: {anywhere}, facts.PreferNode: {there, anywhere}, facts.AvoidNode: {elsewhere, there},
			facts.OnlyNode: {there},
		}[slot.Preference]
		for _, among := range tries {
			if n, ok := choose(s, key, choice{among: among, shapes: shapes}); ok {
				s.AssignSpecial(r, n, nil)
				placed = true
				break
			}
		}
	}
	return placed
}

// choose returns the node for the next instance of a task among some: where all its rules hold, or, if there is none,
// where those do that have not ended.
func choose(s *cluster.State, key facts.TaskKey, by choice) (best facts.NodeIndex, found bool) {
	by.rules = rulesOf(s, key, false)
	if best, found = chooseBy(s, key, by); found {
		return best, true
	}
	by.rules = rulesOf(s, key, true)
	return chooseBy(s, key, by)
}

// choice is what a node must be: one of some, where rules hold; shapes has one for every request that was met before.
type choice struct {
	rules  []constraint.Constraint
	among  func(facts.NodeIndex) bool
	shapes []shapes.Shape
}

// shapesOf returns a shape for every request of every instance that holds devices.
func shapesOf(s *cluster.State) []shapes.Shape {
	var all []shapes.Shape
	s.EachJob(func(j *workload.Job) bool {
		for i := range j.Tasks {
			s.EachSlot(j.ID, i, func(_ facts.SlotRef, slot facts.Slot) bool {
				if slot.Phase.Holds() {
					spec := j.TaskSpecOf(i, slot.Version)
					for _, q := range spec.Devices {
						all = append(all, shapes.Shape{Request: q, Instances: 1, Resources: spec.Resources})
					}
				}
				return true
			})
		}
		return true
	})
	return all
}

// growth returns how much more of the node's devices is stranded, and useless to the shapes, with an instance more.
func (u use) growth(offer *terms.Offer, spec *terms.Task, shapes []shapes.Shape) (stranded, useless int64) {
	for _, d := range offer.Devices {
		left := make([]int64, d.Count)
		for number := range left {
			left[number] = 1000 - int64(u.devices[d.Kind][uint32(number)])
		}
		strandedBefore, uselessBefore := lost(d, left, offer.Capacity.Minus(u.resources), shapes)
		for _, q := range spec.Devices {
			for range max(1, q.Amount/1000) {
				part := min(int64(q.Amount), 1000)
				best := -1
				for number := range left {
					if q.Kind == d.Kind && left[number] >= part && (best < 0 || left[number] < left[best]) {
						best = number
					}
				}
				if best >= 0 {
					left[best] -= part
				}
			}
		}
		strandedNow, uselessNow := lost(d, left, offer.Capacity.Minus(u.resources).Minus(spec.Resources), shapes)
		stranded += strandedNow - strandedBefore
		useless += uselessNow - uselessBefore
	}
	return stranded, useless
}

// lost returns how much of what is left of devices is more than goes, in the mean of all shapes, with what else is
// free, and adds up what each shape could not use.
func lost(d terms.DeviceOffer, left []int64, free terms.Resources, shapes []shapes.Shape) (stranded, useless int64) {
	total, devices, with := int64(0), int64(0), terms.Resources{}
	for _, l := range left {
		total += l
	}
	for _, shape := range shapes {
		q := shape.Request
		if q.Kind != d.Kind {
			continue
		}
		devices += int64(q.Amount)
		with = with.Plus(shape.Resources)
		useless += total
		if len(q.Models) > 0 && !slices.Contains(q.Models, d.Model) {
			continue
		}
		whole := int64(0)
		for _, l := range left {
			if q.Amount < 1000 {
				useless -= l / int64(q.Amount) * int64(q.Amount)
			}
			whole += l / 1000 * 1000
		}
		if q.Amount >= 1000 {
			useless -= whole / int64(q.Amount) * int64(q.Amount)
		}
	}
	served := total
	for k := range free {
		if with[k] > 0 {
			enough := new(big.Int).Mul(big.NewInt(free[k]), big.NewInt(devices))
			if enough.Div(enough, big.NewInt(with[k])); enough.IsInt64() {
				served = min(served, enough.Int64())
			}
		}
	}
	return total - served, useless
}

// rulesOf returns what must hold of a node; once they have timed out, soft rules count no more.
func rulesOf(s *cluster.State, key facts.TaskKey, telling bool) []constraint.Constraint {
	var all []constraint.Constraint
	id, task := key.Split()
	for _, c := range s.Job(id).TaskSpecOf(task, s.Job(id).Version).Constraints {
		if !telling || !c.Soft || s.SoftEnds(key, &c) > s.Time {
			all = append(all, c)
		}
	}
	return all
}

func chooseBy(s *cluster.State, key facts.TaskKey, by choice) (best facts.NodeIndex, found bool) {
	id, task := key.Split()
	key = facts.KeyOf(id, task)
	spec := s.Job(id).TaskSpecOf(task, s.Job(id).Version)
	var bestRank [6]int64
	all := usage(s)
	for n, u := range all {
		n := facts.NodeIndex(n)
		if !u.takes(s.Node(n), spec) || !(ruled{s, all, spec.Labels}).suit(n, by.rules) || !by.among(n) ||
			spec.PerNodeMax > 0 && u.counted[key] >= int64(spec.PerNodeMax) {
			continue
		}
		kept := keptFor(s, s.Node(n).Offer, spec)
		if kept == 0 && !slices.ContainsFunc(spec.Constraints, mentionsExclusive) {
			continue
		}
		around := around(s, all, n, key)
		// Pack takes the first 64 nodes with room, and there the least left; spread the fewest of the task, then the
		// least used. Nodes with devices that are not needed come later, the lowest number is last in both.
		used, left := u.amounts(s.Node(n).Offer, spec)
		rank := [6]int64{around, kept, int64(n) / 64, left, int64(n)}
		if spec.Placement == terms.Spread {
			rank = [6]int64{around, u.instances[key], kept, used, int64(n)}
		}
		if spec.Placement == terms.Defragment {
			stranded, useless := u.growth(s.Node(n).Offer, spec, by.shapes)
			rank = [6]int64{around, kept, stranded, useless, left, int64(n)}
		}
		if !found || slices.Compare(rank[:], bestRank[:]) < 0 {
			best, bestRank, found = n, rank, true
		}
	}
	return best, found
}

// around returns how many instances of a task the nodes have with the same value of what it is spread over.
func around(s *cluster.State, all []use, n facts.NodeIndex, key facts.TaskKey) (count int64) {
	id, task := key.Split()
	over := s.Job(id).TaskSpecOf(task, s.Job(id).Version).SpreadOver
	for other, v := range all {
		if over != "" && value(s, facts.NodeIndex(other), over) == value(s, n, over) {
			count += v.counted[key]
		}
	}
	return count
}

// keptFor returns 0 for a node that is kept for exclusive work, 1 for one that is kept for nobody else, 2 for one with
// devices that the task does not need.
func keptFor(s *cluster.State, offer *terms.Offer, spec *terms.Task) int64 {
	_, exclusive := offer.Attribute("exclusive")
	rare, asks := 0, 0
	for _, d := range offer.Devices {
		if s.Rules < rules.RareDevices || d.Kind != "peers" && d.Kind != "slack" {
			rare++
		}
	}
	for _, d := range spec.Devices {
		if s.Rules < rules.RareDevices || d.Kind != "peers" && d.Kind != "slack" {
			asks++
		}
	}
	switch {
	case exclusive:
		return 0
	case rare > 0 && asks == 0:
		return 2
	}
	return 1
}

// amounts returns how much of a node is used and how much would be left after one instance more.
func (u use) amounts(offer *terms.Offer, spec *terms.Task) (used, left int64) {
	for _, k := range []terms.Kind{terms.CPU, terms.Memory} {
		unit := offer.Capacity[k]>>10 + 1
		used += u.resources[k] / unit
		if offer.Capacity[k] > 0 {
			left += (offer.Capacity[k] - u.resources[k] - spec.Resources[k]) / unit
		}
	}
	return used, left
}

func mentionsExclusive(c constraint.Constraint) bool {
	return c.Attribute == "exclusive" || slices.ContainsFunc(c.All, mentionsExclusive) ||
		slices.ContainsFunc(c.Any, mentionsExclusive)
}

// value returns what a node offers as an attribute, "" if it does not.
func value(s *cluster.State, n facts.NodeIndex, attribute string) string {
	if offer := s.Node(n).Offer; offer != nil {
		for _, a := range offer.Attributes {
			if a.Name == attribute {
				return a.Value
			}
		}
	}
	return ""
}

// ruled is a task with labels that rules are asked about, with what runs.
type ruled struct {
	s      *cluster.State
	all    []use
	labels []terms.EnvVar
}

// suit tells whether all rules hold on a node.
func (r ruled) suit(n facts.NodeIndex, rules []constraint.Constraint) bool {
	return !slices.ContainsFunc(rules, func(c constraint.Constraint) bool { return !r.holds(n, c) })
}

func (r ruled) holds(n facts.NodeIndex, c constraint.Constraint) bool {
	s, all := r.s, r.all
	switch {
	case len(c.All) > 0:
		return r.suit(n, c.All)
	case len(c.Any) > 0:
		return slices.ContainsFunc(c.Any, func(c constraint.Constraint) bool { return r.holds(n, c) })
	case c.Label == "":
		return map[constraint.Operator]bool{
			constraint.Equal:    value(s, n, c.Attribute) == c.Values[0],
			constraint.NotEqual: value(s, n, c.Attribute) != c.Values[0],
			constraint.In:       slices.Contains(c.Values, value(s, n, c.Attribute)),
			constraint.NotIn:    !slices.Contains(c.Values, value(s, n, c.Attribute)),
		}[c.Operator]
	}
	count, any := int64(0), int64(0)
	for other, u := range all {
		any += u.labels[terms.EnvVar{Name: c.Label, Value: c.Values[0]}]
		if other == int(n) || c.Within != "" && value(s, facts.NodeIndex(other), c.Within) == value(s, n, c.Within) {
			count += u.labels[terms.EnvVar{Name: c.Label, Value: c.Values[0]}]
		}
	}
	if any == 0 && c.Begins() && slices.Contains(r.labels, terms.EnvVar{Name: c.Label, Value: c.Values[0]}) {
		return true // the first of those that are to be together
	}
	return map[constraint.Operator]bool{
		constraint.Equal: count == int64(c.Count), constraint.NotEqual: count != int64(c.Count),
		constraint.Less:        count < int64(c.Count),
		constraint.LessOrEqual: count <= int64(c.Count), constraint.Greater: count > int64(c.Count),
		constraint.GreaterOrEqual: count >= int64(c.Count),
	}[c.Operator]
}

// use is what the slots of a node take.
type use struct {
	resources terms.Resources
	ports     map[uint16]bool
	// devices tells how much of each is taken, by kind and number.
	devices map[string]map[uint32]terms.Millidevices
	// instances are those of each task, counted those of them whose version counts its own, labels those with a label.
	instances, counted map[facts.TaskKey]int64
	labels             map[terms.EnvVar]int64
}

func usage(s *cluster.State) []use {
	all := make([]use, s.Nodes())
	for n := range all {
		all[n] = use{ports: map[uint16]bool{}, devices: map[string]map[uint32]terms.Millidevices{},
			instances: map[facts.TaskKey]int64{},
			counted:   map[facts.TaskKey]int64{}, labels: map[terms.EnvVar]int64{}}
		for _, given := range s.Node(facts.NodeIndex(n)).Ports {
			all[n].ports[given.Number] = true
		}
		for _, given := range s.Node(facts.NodeIndex(n)).Devices {
			if all[n].devices[given.Kind] == nil {
				all[n].devices[given.Kind] = map[uint32]terms.Millidevices{}
			}
			all[n].devices[given.Kind][given.Number] += given.Amount
		}
	}
	s.EachJob(func(j *workload.Job) bool {
		for i, t := range j.Tasks {
			for index := range t.Slots.Len() {
				slot := t.Slots.At(index)
				if !slot.Phase.Holds() {
					continue
				}
				spec, u := j.TaskSpecOf(i, slot.Version), &all[slot.Node]
				u.resources = u.resources.Plus(spec.Resources)
				u.instances[facts.KeyOf(j.ID, i)]++
				if spec.PerNodeMax > 0 || spec.SpreadOver != "" {
					u.counted[facts.KeyOf(j.ID, i)]++
				}
				for _, l := range spec.Labels {
					u.labels[l]++
				}
			}
		}
		return true
	})
	return all
}

// takes tells whether one more instance can go to the node.
func (u use) takes(node *cluster.Node, spec *terms.Task) bool {
	if node.Offer == nil {
		return false
	}
	for k := range spec.Resources {
		if u.resources[k]+spec.Resources[k] > node.Offer.Capacity[k] {
			return false
		}
	}
	for _, d := range spec.Devices {
		if !u.deviceFor(node.Offer, d) {
			return false
		}
	}
	return u.portsFor(node.Offer, spec.Ports)
}

func (u use) deviceFor(offer *terms.Offer, q terms.DeviceRequest) bool {
	whole, share := terms.Millidevices(0), false
	for _, d := range offer.Devices {
		if d.Kind != q.Kind || len(q.Models) > 0 && !slices.Contains(q.Models, d.Model) {
			continue
		}
		for number := range d.Count {
			left := 1000 - u.devices[q.Kind][number]
			share = share || left >= q.Amount
			if left == 1000 {
				whole += 1000
			}
		}
	}
	return q.Amount < 1000 && share || q.Amount >= 1000 && whole >= q.Amount
}

func (u use) portsFor(offer *terms.Offer, ports []terms.PortRequest) bool {
	taken, chosen := map[uint16]bool{}, 0
	for _, p := range ports {
		if u.ports[p.Number] {
			return false
		}
		taken[p.Number] = true
		if p.Number == 0 {
			chosen++
		}
	}
	for number := int(offer.PortFirst); number <= int(offer.PortLast) && number > 0 && chosen > 0; number++ {
		if !u.ports[uint16(number)] && !taken[uint16(number)] {
			chosen--
		}
	}
	return chosen == 0
}

// scene makes random changes that are the same for every value that is equal.
type scene struct{ rng *rand.Rand }

// change returns a change: an offer, a node that goes, a job, or ends of allocations.
func (c *scene) change() func(*cluster.State) {
	draw, seed := c.rng.IntN(10), c.rng.Uint64()
	return func(s *cluster.State) {
		c := &scene{rand.New(rand.NewPCG(seed, 0))}
		s.Index++
		s.Time += terms.Time(c.rng.IntN(1500))
		switch {
		case draw < 3:
			for range 1 + c.rng.IntN(6) {
				node := s.EnsureNode(terms.NodeName(fmt.Sprint("n", c.rng.IntN(200))))
				s.SetOffer(node.Index, c.offer())
			}
		case draw < 4 && s.Nodes() > 0:
			c.empty(s, facts.NodeIndex(c.rng.IntN(s.Nodes())))
		case draw < 7:
			s.AddJob(c.job(s.LastJob))
		default:
			for range c.rng.IntN(4) {
				if s.Nodes() > 0 {
					c.end(s, facts.NodeIndex(c.rng.IntN(s.Nodes())))
				}
			}
		}
	}
}

func (c *scene) offer() *terms.Offer {
	o := &terms.Offer{Capacity: terms.Resources{int64(1+c.rng.IntN(4)) * 1000, int64(1+c.rng.IntN(4)) << 30, 1 << 30}}
	if c.rng.IntN(8) == 0 {
		o.Attributes = append(o.Attributes, terms.EnvVar{Name: "exclusive", Value: "db"})
	}
	if c.rng.IntN(2) == 0 {
		o.Attributes = append(o.Attributes, terms.EnvVar{Name: "rack", Value: fmt.Sprint(c.rng.IntN(20))})
	}
	if c.rng.IntN(2) == 0 {
		o.Attributes = append(o.Attributes, terms.EnvVar{Name: "zone", Value: fmt.Sprint(c.rng.IntN(3))})
	}
	if c.rng.IntN(3) == 0 {
		o.Devices = []terms.DeviceOffer{{Kind: "gpu", Model: string(rune('A' + c.rng.IntN(2))), Count: uint32(c.rng.IntN(3))}}
	}
	if c.rng.IntN(2) == 0 {
		o.Devices = append(o.Devices, terms.DeviceOffer{Kind: "peers", Count: uint32(c.rng.IntN(3))})
	}
	if c.rng.IntN(4) == 0 {
		o.Devices = append(o.Devices, terms.DeviceOffer{Kind: "slack", Count: uint32(c.rng.IntN(4))})
	}
	if c.rng.IntN(3) > 0 {
		o.PortFirst, o.PortLast = 8000, uint16(8000+c.rng.IntN(4))
	}
	return o
}

func (c *scene) job(last terms.JobID) *terms.Job {
	spec := &terms.Job{Name: terms.JobName(fmt.Sprint("j", last+1)), Type: terms.Batch}
	for i := range 1 + c.rng.IntN(2) {
		t := terms.Task{
			Name: terms.TaskName(fmt.Sprint("t", i)), Instances: uint32(c.rng.IntN(12)),
			Placement: terms.Placement(1 + c.rng.IntN(3)),
			Resources: terms.Resources{int64(c.rng.IntN(10)) * 200, int64(c.rng.IntN(3)) << 29, 0},
		}
		c.rules(&t)
		if c.rng.IntN(4) == 0 {
			t.Devices = []terms.DeviceRequest{{Kind: "gpu", Amount: []terms.Millidevices{300, 500, 1000, 2000}[c.rng.IntN(4)]}}
			if c.rng.IntN(3) == 0 {
				t.Devices[0].Models = []string{"A"}
			}
		}
		if c.rng.IntN(6) == 0 {
			t.Devices = append(t.Devices,
				terms.DeviceRequest{Kind: "slack", Amount: []terms.Millidevices{500, 1000, 2000}[c.rng.IntN(3)]})
		}
		for p := range c.rng.IntN(3) {
			number := uint16(0)
			if c.rng.IntN(3) == 0 {
				number = uint16(8000 + 2*p + c.rng.IntN(2))
			}
			t.Ports = append(t.Ports, terms.PortRequest{Name: fmt.Sprint("p", p), Number: number})
		}
		spec.Tasks = append(spec.Tasks, t)
	}
	return spec
}

// rules draws labels and what must hold where the task runs.
func (c *scene) rules(t *terms.Task) {
	for _, name := range []string{"app", "tier"} {
		if c.rng.IntN(3) == 0 {
			t.Labels = append(t.Labels, terms.EnvVar{Name: name, Value: fmt.Sprint(c.rng.IntN(2))})
		}
	}
	for c.rng.IntN(3) == 0 && len(t.Constraints) < 3 {
		t.Constraints = append(t.Constraints, c.rule(2))
	}
	for i := range t.Constraints {
		if c.rng.IntN(3) == 0 {
			t.Constraints[i].Soft, t.Constraints[i].SoftTimeoutMillis = true, uint32(c.rng.IntN(4)*1000)
		}
	}
	if c.rng.IntN(5) == 0 {
		t.PerNodeMax = uint32(1 + c.rng.IntN(3))
	}
	if c.rng.IntN(5) == 0 {
		t.SpreadOver = []string{"zone", "rack"}[c.rng.IntN(2)]
	}
}

func (c *scene) rule(depth int) constraint.Constraint {
	draw := c.rng.IntN(7)
	switch {
	case draw == 0 && depth > 0:
		return constraint.Constraint{All: []constraint.Constraint{c.rule(depth - 1), c.rule(depth - 1)}}
	case draw == 1 && depth > 0:
		return constraint.Constraint{Any: []constraint.Constraint{c.rule(depth - 1), c.rule(depth - 1)}}
	case draw == 2:
		return constraint.Constraint{Attribute: "exclusive", Operator: constraint.In, Values: []string{"db", "x"}}
	case draw == 3:
		return constraint.Constraint{Attribute: "zone", Operator: constraint.Operator(1 + c.rng.IntN(4)),
			Values: []string{"1"}}
	}
	operators := []constraint.Operator{constraint.Equal, constraint.NotEqual, constraint.Less, constraint.LessOrEqual,
		constraint.Greater, constraint.GreaterOrEqual}
	return constraint.Constraint{Label: []string{"app", "tier"}[c.rng.IntN(2)],
		Values:   []string{fmt.Sprint(c.rng.IntN(2))},
		Operator: operators[c.rng.IntN(6)], Count: uint32(c.rng.IntN(3)), Within: []string{"", "zone", "rack"}[c.rng.IntN(3)]}
}

// end ends half of what a node runs, for good or to be placed again.
func (c *scene) end(s *cluster.State, n facts.NodeIndex) {
	held := slices.Clone(s.Node(n).Held)
	slices.SortFunc(held, facts.SlotRef.Compare)
	for _, r := range held {
		if c.rng.IntN(2) == 0 {
			slot, _ := s.SlotAt(r)
			slot.Phase = []facts.Phase{facts.Waiting, facts.Succeeded}[c.rng.IntN(2)]
			slot.Version, slot.Preference = 0, facts.NodePreference(c.rng.IntN(int(facts.OnlyNode)+1))
			s.SetSlot(r, slot)
		}
	}
}

// empty takes a node away, and what it runs waits.
func (c *scene) empty(s *cluster.State, n facts.NodeIndex) {
	s.SetOffer(n, nil)
	for _, r := range slices.Clone(s.Node(n).Held) {
		slot, _ := s.SlotAt(r)
		slot.Phase, slot.Version = facts.Waiting, 0
		s.SetSlot(r, slot)
	}
}

// wealthy adds a node that nobody may use, so that the pool is always entitled to more than there is room for.
func wealthy(s *cluster.State) {
	s.SetOffer(s.EnsureNode("bank").Index, &terms.Offer{
		Capacity:   terms.Resources{1 << 50, 1 << 58, 1 << 58},
		Attributes: []terms.EnvVar{{Name: terms.ExclusiveAttribute, Value: "nobody"}},
		Devices:    []terms.DeviceOffer{{Kind: "gpu", Count: terms.DevicesMax}},
	})
}

// TestTwin holds Waiting against the dumb twin and against itself on copies, and checks that what waits fits nowhere.
func TestTwin(t *testing.T) {
	scenes := uint64(12)
	if testing.Short() {
		scenes = 3
	}
	for seed := range scenes {
		c := &scene{rand.New(rand.NewPCG(seed, 1))}
		s := cluster.NewState()
		wealthy(s)
		dumb, copied := s.Copy(), s.Copy()
		for step := range 120 {
			change := c.change()
			for _, value := range []*cluster.State{s, dumb, copied} {
				change(value)
				wealthy(value)
				if step == 60 && seed%2 == 0 {
					value.RaiseRules(rules.RareDevices)
				}
			}
			if !Run(s, nil, nil, nil) || !Run(copied, nil, nil, nil) {
				t.Fatalf("scene %d, step %d: Waiting stopped early", seed, step)
			}
			plain(dumb)
			if done(s) != done(dumb) || s.Digest() != copied.Digest() {
				t.Fatalf("scene %d, step %d: digest %x, the dumb twin has %x, a copy %x", seed, step, done(s), done(dumb),
					copied.Digest())
			}
			if c.rng.IntN(10) == 0 {
				copied = s.Copy()
			}
			for _, wrong := range faults(s) {
				t.Fatalf("scene %d, step %d: %s", seed, step, wrong)
			}
		}
		if found := s.Audit(); len(found) > 0 {
			t.Fatalf("scene %d: the books: %q", seed, found)
		}
	}
}

// done returns the digest of a value but for what it notes for the next look.
func done(s *cluster.State) uint64 {
	s = s.Copy()
	s.TakePlacementDirty()
	s.TakePreemptionDirty()
	s.TakeDirtyPages()
	return s.Digest()
}

// faults tells what waits although it fits. That the twin placed alike tells that Fits is right about it.
func faults(s *cluster.State) []string {
	var all []string
	for n := range facts.NodeIndex(s.Nodes()) {
		node := s.Node(n)
		for _, key := range s.QueuedKeys() {
			id, task := key.Split()
			if place.Fits(s, key, n) && !key.IsSpecial() {
				all = append(all, fmt.Sprintf("%s.%s waits although %s has room", s.Job(id).Name(), s.Job(id).Tasks[task].Name,
					node.Name))
			}
		}
	}
	return all
}
