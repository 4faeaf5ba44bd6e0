package replica

import (
	"fmt"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
	"starling/terms/constraint"
)

// BenchmarkRules tells placements per second under rules: a hard constraint, racks to spread over, affinity and
// anti-affinity by labels, in jobs of a hundred and of ten.
func BenchmarkRules(b *testing.B) {
	rules := []struct {
		name string
		set  func(t *terms.Task)
	}{
		{"constraint", func(t *terms.Task) {
			t.Constraints = []constraint.Constraint{{Attribute: "rack", Operator: constraint.In,
				Values: []string{"1", "3", "5", "7", "9", "11", "13", "15"}}}
		}},
		{"racks", func(t *terms.Task) { t.SpreadOver = "rack" }},
		{"affinity", func(t *terms.Task) {
			t.Labels = []terms.EnvVar{{Name: "app", Value: "one"}}
			t.Constraints = []constraint.Constraint{{Label: "app", Values: []string{"other"}, Operator: constraint.Equal,
				Count: 0}}
		}},
		{"apart", func(t *terms.Task) { t.PerNodeMax = 1 }},
	}
	for _, machines := range []int{1000, 5000, 10_000} {
		for _, rule := range rules {
			for _, perJob := range []int{100, 10} {
				b.Run(fmt.Sprintf("%s_on_%d_by_%d", rule.name, machines, perJob),
					func(b *testing.B) { benchRule(b, newestCluster(machines), perJob, rule.set) })
			}
		}
	}
}

func benchRule(b *testing.B, empty *cluster.State, perJob int, set func(*terms.Task)) {
	const instances = 2000
	b.ReportAllocs()
	for b.Loop() {
		s := empty.Copy()
		for i := range instances / perJob {
			job := benchJob(fmt.Sprint("j", i), uint32(perJob), terms.Pack, 500)
			set(&job.Spec.Tasks[0])
			apply(s, uint64(i+2), job)
		}
		if held(s) != instances {
			b.Fatalf("placed %d of %d", held(s), instances)
		}
	}
	b.ReportMetric(float64(instances*b.N)/b.Elapsed().Seconds(), "placements/s")
}

// gangJob is a job of a gang of so many.
func gangJob(name string, size uint32, cpu int64) *command.SubmitJob {
	c := benchJob(name, size, terms.Pack, cpu)
	c.Spec.Tasks[0].MinAvailable = size
	return c
}

// BenchmarkAdmission tells the cost of one entry that makes room in a full pool, in which gangs of all sizes wait.
func BenchmarkAdmission(b *testing.B) {
	for _, waiting := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			s := newestCluster(1000)
			apply(s, 2, benchJob("running", 64_000, terms.Pack, 1000))
			for i := range waiting {
				apply(s, uint64(i+3), gangJob(fmt.Sprint("j", i), uint32(2+i%30), 1000))
			}
			seq, next := uint64(waiting+3), uint32(0)
			running := s.JobOf("running").ID
			b.ReportAllocs()
			for b.Loop() {
				r := facts.SlotRef{Job: running, Index: next}
				slot, _ := s.SlotAt(r)
				writer := terms.NewPeerID(s.Node(slot.Node).Name, 1)
				Apply(s, s.Index+1, &command.Entry{Rules: s.Rules, Writer: writer, Seq: seq, Time: 1,
					Commands: []command.Command{&command.ReportTasks{
						Peer: writer, Reports: []command.Report{{Slot: r, Order: slot.Order, Ended: facts.ByItself}},
					}}}, false)
				seq++
				if next++; next == 64_000 {
					b.Fatal("nothing runs any more")
				}
			}
		})
	}
}

// BenchmarkPreemption tells the cost of an entry that lets instances of a full cluster give way to a job.
func BenchmarkPreemption(b *testing.B) {
	for _, machines := range []int{1000, 10_000} {
		for _, wanted := range []uint32{1, 100, 1000} {
			b.Run(fmt.Sprintf("%d_of_%d_machines", wanted, machines), func(b *testing.B) {
				full := newestCluster(machines)
				mine, yours := terms.NewPool("mine"), terms.NewPool("yours")
				mine.Quotas[terms.CPU].Reservation = int64(machines) * 32_000
				mine.PreemptionDelayMillis = 0
				apply(full, 2, &command.ChangePools{Pools: []terms.Pool{mine, yours}})
				for i := range 10 {
					apply(full, uint64(i+3), benchJob(fmt.Sprint("yours/j", i), uint32(machines), terms.Pack, 6400))
				}
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					s := full.Copy()
					b.StartTimer()
					apply(s, 100, benchJob("mine/job", wanted, terms.Pack, 6000))
					if nomination, _ := s.NominationOf(s.JobOf("mine/job").ID); nomination.Backfill || len(nomination.Seats) == 0 {
						b.Fatal("nobody gives way")
					}
				}
			})
		}
	}
}
