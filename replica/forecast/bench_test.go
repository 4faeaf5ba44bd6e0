package forecast_test

import (
	"fmt"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/forecast"
	"starling/replica/reaction"
	"starling/schedule/explain"
	"starling/terms"
)

// BenchmarkWhy tells how long it takes to explain a job that waits on 5,000 machines with 100,000 instances, for its
// pool, for nodes, and as a gang, and what of that is spent on trials.
func BenchmarkWhy(b *testing.B) {
	h := &crowd{s: cluster.NewState()}
	for i := range 5000 {
		h.enter(fmt.Sprintf("n%d", i), terms.Resources{20_000, 64 << 30, 0})
	}
	p := terms.NewPool("small")
	p.Quotas[terms.CPU] = terms.Quota{Reservation: 1000, Limit: 2000, Share: 1}
	h.write("n0~1", &command.ChangePools{Pools: []terms.Pool{p}})
	job := func(name string, priority, instances uint32, cpu int64) *command.SubmitJob {
		return &command.SubmitJob{Spec: terms.Job{Name: terms.JobName(name), Type: terms.Batch, Priority: priority,
			Tasks: []terms.Task{{
				Name: "main", Instances: instances, Command: []string{"true"}, Resources: terms.Resources{cpu, 1 << 30, 0},
				Placement: terms.Pack}}}}
	}
	for i := range 100 {
		h.write("n0~1", job(fmt.Sprint("j", i), 50, 1000, 1000))
	}
	for i := range 200 {
		h.write("n0~1", job(fmt.Sprint("waits", i), 10, 5, int64(1000+i)))
	}
	h.write("n0~1", job("full", 10, 20, 3000))
	h.write("n0~1", job("small/pool", 10, 20, 3000))
	gang := job("gang", 10, 40, 3000)
	gang.Spec.MinAvailable = 40
	h.write("n0~1", gang)
	for n := range facts.NodeIndex(h.s.Nodes()) {
		self := h.s.Node(n).Peer
		reports := &command.ReportTasks{Peer: self}
		for _, a := range reaction.ViewOf(h.s, self) {
			reports.Reports = append(reports.Reports, command.Report{Slot: a.Slot, Order: a.ID.Order, Ready: true})
		}
		h.write(self, reports)
	}
	for _, name := range []terms.JobName{"full", "small/pool", "gang"} {
		for _, tries := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s_tries_%v", name, tries), func(b *testing.B) {
				hints := 0
				for b.Loop() {
					s := h.s.Copy()
					var try explain.Try
					if tries {
						try = forecast.Tries(s, name)
					}
					hints = 0
					for _, f := range explain.Job(s, s.JobOf(name), &explain.Reader{Try: try}) {
						hints += len(f.Details)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/why")
				b.ReportMetric(float64(hints), "lines")
			})
		}
	}
}
