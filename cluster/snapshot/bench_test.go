package snapshot

import (
	"fmt"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/rules"
)

// BenchmarkSnapshot writes and reads a value of 1,000 nodes, 100 jobs with 100,000 allocations and 10,000 jobs that
// have none any more.
func BenchmarkSnapshot(b *testing.B) {
	s := cluster.NewState()
	for i := range 1000 {
		n := s.EnsureNode(terms.NodeName(fmt.Sprint("n", i))).Index
		s.Wrote(n, 1, 3)
		s.SetPeer(n, terms.NewPeerID(terms.NodeName(fmt.Sprint("n", i)), 1))
		s.SetOffer(n, &terms.Offer{Capacity: terms.Resources{1 << 30, 1 << 40, 1 << 40}, Address: "n:1"})
	}
	anywhere := func(facts.TaskKey, facts.NodeIndex) bool { return true }
	add := func(name string, instances uint32) terms.JobID {
		spec := &terms.Job{Name: terms.JobName(name), Type: terms.Stateless, Tasks: []terms.Task{{Name: "main",
			Instances: instances, Command: []string{"run", name}, Resources: terms.Resources{100, 1 << 20, 0}}}}
		j := s.AddJob(spec)
		s.AddVersion(j.ID, facts.JobVersion{Kind: facts.Submitted, Spec: spec}, anywhere)
		s.SetDesired(j.ID, 0, instances)
		return j.ID
	}
	for i := range 100 {
		id := add(fmt.Sprint("job-", i), 1000)
		for k := range 1000 {
			s.Assign(facts.KeyOf(id, 0), facts.NodeIndex((i+k)%1000), 1, func(facts.SlotRef) {})
		}
	}
	for i := range 10_000 {
		id := add(fmt.Sprint("idle-", i), 1)
		s.SetDesired(id, 0, 0)
	}
	data := Encode(s.Facts())
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			Encode(s.Facts())
		}
		b.ReportMetric(float64(len(data)), "bytes")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			all, err := Decode(data, rules.Released)
			if err != nil {
				b.Fatal(err)
			}
			cluster.Rebuild(all)
		}
	})
	b.Run("freeze", func(b *testing.B) {
		for b.Loop() {
			s.Freeze()
		}
	})
}
