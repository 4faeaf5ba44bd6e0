package roster_test

import (
	"fmt"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/plugin/roster"
	"starling/terms"
)

// TestOf goes through the life of a list: who waits has no address, who leaves its node neither, who has ended is not
// on it; and the hash is another whenever the list is.
func TestOf(t *testing.T) {
	s := cluster.NewState()
	s.Index = 1
	s.SetPools([]terms.Pool{terms.NewPool(terms.DefaultPool), terms.NewPool("ml")})
	n := s.EnsureNode("a").Index
	s.SetOffer(n, &terms.Offer{Address: "10.0.0.1:7460", Capacity: terms.Resources{1000, 1 << 30, 0}, PortFirst: 30000,
		PortLast: 30009})
	j := s.AddJob(&terms.Job{Name: "ml/train", Type: terms.Stateless, Plugins: []terms.PluginRequest{{Name: "svc"}},
		Tasks: []terms.Task{
			{Name: "worker", Instances: 2, Ports: []terms.PortRequest{{Name: "rpc"}, {Name: "http"}}, Placement: terms.Pack},
		}})
	show := func() string {
		r := roster.Of(s, s.Job(j.ID))
		return fmt.Sprint(r.Job, " ", r.Tasks)
	}
	slot := func(index uint32, phase facts.Phase) {
		r := facts.SlotRef{Job: j.ID, Index: index}
		row, _ := s.SlotAt(r)
		row.Phase = phase
		s.SetSlot(r, row)
	}
	const waits = "{1 1.worker.train.ml.starling  0 []}"
	steps := []struct {
		name, want string
		do         func()
	}{
		{"new", "ml/train [{worker [{0 0.worker.train.ml.starling  0 []} " + waits + "]}]", func() {}},
		{"placed", "ml/train [{worker [{0 0.worker.train.ml.starling 10.0.0.1 3 [{http 30001} {rpc 30000}]} " + waits + "]}]",
			func() { s.Assign(facts.KeyOf(j.ID, 0), n, 1, nil) }},
		{"stopping", "ml/train [{worker [{0 0.worker.train.ml.starling  0 []} " + waits + "]}]",
			func() { slot(0, facts.Stopping) }},
		{"ended", "ml/train [{worker [" + waits + "]}]", func() { slot(0, facts.Failed) }},
		{"shrunk", "ml/train [{worker []}]", func() { s.SetDesired(j.ID, 0, 1) }},
	}
	sums := map[uint64]string{}
	for _, step := range steps {
		s.Index++
		step.do()
		if got := show(); got != step.want {
			t.Errorf("%s: the list is\n%s, want\n%s", step.name, got, step.want)
		}
		sum := roster.Sum(s, s.Job(j.ID))
		if other, taken := sums[sum]; taken && step.name != "stopping" {
			t.Errorf("%s: the list has the hash of %s", step.name, other)
		}
		sums[sum] = step.name
		if ids := s.TakeDirtyRosters(); len(ids) != 1 || ids[0] != j.ID {
			t.Errorf("%s: the lists that may have changed are those of %v, want %v", step.name, ids, j.ID)
		}
		s.SetRoster(j.ID, sum)
		if version := s.Job(j.ID).Roster.Version; version != s.Index {
			t.Errorf("%s: the list is of entry %d, want %d", step.name, version, s.Index)
		}
	}
	slot(0, facts.Failed)
	if ids := s.TakeDirtyRosters(); len(ids) != 0 {
		t.Errorf("what changes nothing lets the lists of %v be looked at", ids)
	}
}

// TestReplacedAtTheSameAddress has another instance take the place of one on the same node and ports: the list is
// another.
func TestReplacedAtTheSameAddress(t *testing.T) {
	s := cluster.NewState()
	s.Index = 1
	n := s.EnsureNode("a").Index
	s.SetOffer(n, &terms.Offer{Address: "10.0.0.1:7460", Capacity: terms.Resources{1000, 1 << 30, 0}})
	j := s.AddJob(&terms.Job{Name: "train", Type: terms.Stateless, Plugins: []terms.PluginRequest{{Name: "svc"}},
		Tasks: []terms.Task{
			{Name: "worker", Instances: 1, Placement: terms.Pack},
		}})
	s.Assign(facts.KeyOf(j.ID, 0), n, 1, nil)
	s.TakeDirtyRosters()
	before := roster.Sum(s, s.Job(j.ID))
	s.Index++
	r := facts.SlotRef{Job: j.ID}
	row, _ := s.SlotAt(r)
	row.Order = s.Index
	s.SetSlot(r, row)
	if ids := s.TakeDirtyRosters(); len(ids) != 1 || roster.Sum(s, s.Job(j.ID)) == before {
		t.Errorf("%d lists are looked at, and the list of the members is as before: %v", len(ids),
			roster.Sum(s, s.Job(j.ID)) == before)
	}
	if members := roster.Members(s, s.Job(j.ID), 0); members[0].Order != 2 {
		t.Errorf("the member is of order %d, want 2", members[0].Order)
	}
}
