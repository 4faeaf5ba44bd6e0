package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/cluster"
)

// plain places like Waiting, but one instance at a time, looking at every node each time, and working out from the
// slots what is free: the dumb twin.
func plain(s *cluster.State) {
	s.TakeGrown()
	for _, key := range s.Queued(true) {
		id, task := key.Split()
		if key.IsSpecial() {
			plainSpecial(s, s.Job(id), task)
			continue
		}
		for s.Job(id).Tasks[task].Waits() > 0 {
			n, ok := choose(s, s.Job(id), task, nil)
			if !ok {
				break
			}
			s.Assign(key, n, 1, nil)
		}
	}
}

// plainSpecial places the seats of a task that wish something of their last node.
func plainSpecial(s *cluster.State, j *cluster.Job, task int) {
	var all []cluster.SlotRef
	j.Tasks[task].EachSpecial(j.ID, task, func(r cluster.SlotRef, _ cluster.Slot) bool {
		all = append(all, r)
		return true
	})
	for _, r := range all {
		slot, _ := s.SlotAt(r)
		fits := usage(s)[slot.Node].takes(s.Node(slot.Node), j.TaskSpecOf(task, j.Version))
		n, ok := choose(s, j, task, nil)
		switch {
		case slot.Wish == cluster.OnlyNode, slot.Wish == cluster.PreferNode && fits:
			n, ok = slot.Node, fits
		case slot.Wish == cluster.AvoidNode:
			if n, ok = choose(s, j, task, &slot.Node); !ok {
				n, ok = slot.Node, fits
			}
		}
		if ok {
			s.AssignSpecial(r, n, nil)
		}
	}
}

// choose returns the node for the next instance of a task, which may be any but one.
func choose(s *cluster.State, j *cluster.Job, task int, avoid *cluster.NodeIndex) (best cluster.NodeIndex, found bool) {
	spec := j.TaskSpecOf(task, j.Version)
	var bestRank [4]int64
	for n, u := range usage(s) {
		n := cluster.NodeIndex(n)
		if !u.takes(s.Node(n), spec) || avoid != nil && n == *avoid {
			continue
		}
		offer := s.Node(n).Offer
		used, left := int64(0), int64(0)
		for _, k := range []cluster.Kind{cluster.CPU, cluster.Memory} {
			unit := offer.Capacity[k]>>10 + 1
			used += u.resources[k] / unit
			if offer.Capacity[k] > 0 {
				left += (offer.Capacity[k] - u.resources[k] - spec.Resources[k]) / unit
			}
		}
		spared := int64(0)
		if len(offer.Devices) > 0 && len(spec.Devices) == 0 {
			spared = 1
		}
		// Pack takes the first 64 nodes with room, and there the least left; spread the fewest of the task, then the
		// least used. Nodes with devices that are not needed come later, the lowest number is last in both.
		rank := [4]int64{spared, int64(n) / 64, left, int64(n)}
		if spec.Placement == cluster.Spread {
			rank = [4]int64{u.instances[cluster.KeyOf(j.ID, task)], spared, used, int64(n)}
		}
		if !found || slices.Compare(rank[:], bestRank[:]) < 0 {
			best, bestRank, found = n, rank, true
		}
	}
	return best, found
}

// use is what the slots of a node take.
type use struct {
	resources cluster.Resources
	ports     map[uint16]bool
	// devices tells how much of each is taken, by kind and number.
	devices   map[string]map[uint32]cluster.Millidevices
	instances map[cluster.TaskKey]int64
}

func usage(s *cluster.State) []use {
	all := make([]use, s.Nodes())
	for n := range all {
		all[n] = use{ports: map[uint16]bool{}, devices: map[string]map[uint32]cluster.Millidevices{}, instances: map[cluster.TaskKey]int64{}}
		for _, given := range s.Node(cluster.NodeIndex(n)).Ports {
			all[n].ports[given.Number] = true
		}
		for _, given := range s.Node(cluster.NodeIndex(n)).Devices {
			if all[n].devices[given.Kind] == nil {
				all[n].devices[given.Kind] = map[uint32]cluster.Millidevices{}
			}
			all[n].devices[given.Kind][given.Number] += given.Amount
		}
	}
	s.EachJob(func(j *cluster.Job) bool {
		for i, t := range j.Tasks {
			for index := range t.Slots.Len() {
				slot := t.Slots.At(index)
				if !slot.Phase.Holds() {
					continue
				}
				spec, u := j.TaskSpecOf(i, slot.Version), &all[slot.Node]
				u.resources = u.resources.Plus(spec.Resources)
				u.instances[cluster.KeyOf(j.ID, i)]++
			}
		}
		return true
	})
	return all
}

// takes tells whether one more instance can go to the node.
func (u use) takes(node *cluster.Node, spec *cluster.TaskSpec) bool {
	if node.Offer == nil {
		return false
	}
	for k := range spec.Resources {
		if u.resources[k]+spec.Resources[k] > node.Offer.Capacity[k] {
			return false
		}
	}
	for i := range spec.Constraints {
		if !spec.Constraints[i].Matches(node.Offer) {
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

func (u use) deviceFor(offer *cluster.Offer, q cluster.DeviceRequest) bool {
	whole, share := cluster.Millidevices(0), false
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

func (u use) portsFor(offer *cluster.Offer, ports []cluster.PortRequest) bool {
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
		switch {
		case draw < 3:
			for range 1 + c.rng.IntN(6) {
				node := s.EnsureNode(cluster.NodeName(fmt.Sprint("n", c.rng.IntN(200))))
				s.SetOffer(node.Index, c.offer())
			}
		case draw < 4 && s.Nodes() > 0:
			c.empty(s, cluster.NodeIndex(c.rng.IntN(s.Nodes())))
		case draw < 7:
			s.AddJob(c.job(s.LastJob))
		default:
			for range c.rng.IntN(4) {
				if s.Nodes() > 0 {
					c.end(s, cluster.NodeIndex(c.rng.IntN(s.Nodes())))
				}
			}
		}
	}
}

func (c *scene) offer() *cluster.Offer {
	o := &cluster.Offer{Capacity: cluster.Resources{int64(1+c.rng.IntN(4)) * 1000, int64(1+c.rng.IntN(4)) << 30, 1 << 30}}
	if c.rng.IntN(2) == 0 {
		o.Attributes = []cluster.EnvVar{{Name: "zone", Value: fmt.Sprint(c.rng.IntN(3))}}
	}
	if c.rng.IntN(3) == 0 {
		o.Devices = []cluster.DeviceOffer{{Kind: "gpu", Model: string(rune('A' + c.rng.IntN(2))), Count: uint32(c.rng.IntN(3))}}
	}
	if c.rng.IntN(3) > 0 {
		o.PortFirst, o.PortLast = 8000, uint16(8000+c.rng.IntN(4))
	}
	return o
}

func (c *scene) job(last cluster.JobID) *cluster.JobSpec {
	spec := &cluster.JobSpec{Name: cluster.JobName(fmt.Sprint("j", last+1)), Type: cluster.Batch}
	for i := range 1 + c.rng.IntN(2) {
		t := cluster.TaskSpec{
			Name: cluster.TaskName(fmt.Sprint("t", i)), Instances: uint32(c.rng.IntN(12)), Placement: cluster.Placement(1 + c.rng.IntN(2)),
			Resources: cluster.Resources{int64(c.rng.IntN(10)) * 200, int64(c.rng.IntN(3)) << 29, 0},
		}
		if c.rng.IntN(4) == 0 {
			t.Constraints = []cluster.Constraint{{Attribute: "zone", Operator: cluster.Operator(1 + c.rng.IntN(4)), Values: []string{"1"}}}
		}
		if c.rng.IntN(4) == 0 {
			t.Devices = []cluster.DeviceRequest{{Kind: "gpu", Amount: []cluster.Millidevices{300, 500, 1000, 2000}[c.rng.IntN(4)]}}
			if c.rng.IntN(3) == 0 {
				t.Devices[0].Models = []string{"A"}
			}
		}
		for p := range c.rng.IntN(3) {
			number := uint16(0)
			if c.rng.IntN(3) == 0 {
				number = uint16(8000 + 2*p + c.rng.IntN(2))
			}
			t.Ports = append(t.Ports, cluster.PortRequest{Name: fmt.Sprint("p", p), Number: number})
		}
		spec.Tasks = append(spec.Tasks, t)
	}
	return spec
}

// end ends half of what a node runs, for good or to be placed again.
func (c *scene) end(s *cluster.State, n cluster.NodeIndex) {
	held := slices.Clone(s.Node(n).Held)
	slices.SortFunc(held, cluster.SlotRef.Compare)
	for _, r := range held {
		if c.rng.IntN(2) == 0 {
			slot, _ := s.SlotAt(r)
			slot.Phase = []cluster.Phase{cluster.Waiting, cluster.Succeeded}[c.rng.IntN(2)]
			slot.Version, slot.Wish = 0, cluster.Wish(c.rng.IntN(int(cluster.OnlyNode)+1))
			s.SetSlot(r, slot)
		}
	}
}

// empty takes a node away, and what it runs waits.
func (c *scene) empty(s *cluster.State, n cluster.NodeIndex) {
	s.SetOffer(n, nil)
	for _, r := range slices.Clone(s.Node(n).Held) {
		slot, _ := s.SlotAt(r)
		slot.Phase, slot.Version = cluster.Waiting, 0
		s.SetSlot(r, slot)
	}
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
		dumb, copied := s.Copy(), s.Copy()
		for step := range 120 {
			change := c.change()
			for _, value := range []*cluster.State{s, dumb, copied} {
				change(value)
			}
			if !Waiting(s, nil) || !Waiting(copied, nil) {
				t.Fatalf("scene %d, step %d: Waiting stopped early", seed, step)
			}
			plain(dumb)
			if s.Digest() != dumb.Digest() || s.Digest() != copied.Digest() {
				t.Fatalf("scene %d, step %d: digest %x, the dumb twin has %x, a copy %x", seed, step, s.Digest(), dumb.Digest(), copied.Digest())
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

// faults tells what waits although it fits, and which verdicts of Fits are wrong.
func faults(s *cluster.State) []string {
	var all []string
	for n, u := range usage(s) {
		n := cluster.NodeIndex(n)
		node := s.Node(n)
		for _, key := range s.Queued(true) {
			id, task := key.Split()
			spec := s.Job(id).TaskSpecOf(task, s.Job(id).Version)
			takes := u.takes(node, spec)
			if takes && !key.IsSpecial() {
				all = append(all, fmt.Sprintf("%s.%s waits although %s has room", s.Job(id).Name(), spec.Name, node.Name))
			}
			if Fits(s, spec, n) != takes {
				all = append(all, fmt.Sprintf("Fits says %v of %s.%s on %s", !takes, s.Job(id).Name(), spec.Name, node.Name))
			}
		}
	}
	return all
}
