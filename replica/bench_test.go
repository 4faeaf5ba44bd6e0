package replica

import (
	"fmt"
	"runtime"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/command"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// clusterOf returns a value with so many members that each offer 64 cores and 256 GiB.
func clusterOf(machines int) *cluster.State {
	s := cluster.NewState()
	for i := range machines {
		name := terms.NodeName(fmt.Sprintf("m%05d", i))
		node := s.EnsureNode(name)
		p := terms.NewPeerID(name, 1)
		s.Wrote(node.Index, 1, 1)
		s.SetPeer(node.Index, p)
		s.SetOffer(node.Index, &terms.Offer{
			Capacity:   terms.Resources{64_000, 256 << 30, 1 << 40},
			Attributes: []terms.EnvVar{{Name: "rack", Value: fmt.Sprint(i % 40)}},
			PortFirst:  20000, PortLast: 29999, Rules: 1,
		})
	}
	return s
}

// newestCluster is clusterOf under the newest rules, by which clusters run.
func newestCluster(machines int) *cluster.State {
	s := clusterOf(machines)
	s.Rules = rules.Released
	return s
}

func benchJob(name string, instances uint32, placement terms.Placement, cpu int64) *command.SubmitJob {
	return &command.SubmitJob{Spec: terms.Job{Name: terms.JobName(name), Type: terms.Batch, Tasks: []terms.Task{{
		Name: "main", Instances: instances, Command: []string{"true"}, Resources: terms.Resources{cpu, 1 << 30, 0},
		Placement: placement,
	}}}}
}

// different returns so many tasks of one instance, each with needs of its own.
func different(like *terms.Task, job, tasks int) []terms.Task {
	all := make([]terms.Task, tasks)
	for i := range all {
		all[i] = *like
		all[i].Name = terms.TaskName(fmt.Sprint("t", i))
		all[i].Instances = 1
		all[i].Resources[terms.CPU] = 100 + int64((job*tasks+i)*7919%1000)
	}
	return all
}

func apply(s *cluster.State, seq uint64, commands ...command.Command) report.Outcome {
	return Apply(s, s.Index+1,
		&command.Entry{Rules: s.Rules, Writer: "m00000~1", Seq: seq, Time: 1, Commands: commands}, false)
}

func held(s *cluster.State) int {
	count := 0
	for n := range s.Nodes() {
		count += len(s.Node(facts.NodeIndex(n)).Held)
	}
	return count
}

// BenchmarkPlacement tells placements per second, in jobs of a thousand equal instances, in one job, and all different.
func BenchmarkPlacement(b *testing.B) {
	for _, shape := range []struct {
		machines, instances, perJob int
		placement                   terms.Placement
		different                   bool
	}{
		{1000, 10_000, 1000, terms.Pack, false}, {5000, 10_000, 1000, terms.Pack, false},
		{10_000, 10_000, 1000, terms.Pack, false},
		{1000, 100_000, 1000, terms.Pack, false}, {5000, 100_000, 1000, terms.Pack, false},
		{10_000, 100_000, 1000, terms.Pack, false},
		{1000, 10_000, 1000, terms.Spread, false}, {5000, 10_000, 1000, terms.Spread, false},
		{10_000, 100_000, 1000, terms.Spread, false},
		{1000, 10_000, 1, terms.Pack, true}, {5000, 10_000, 1, terms.Pack, true}, {10_000, 10_000, 1, terms.Pack, true},
		{1000, 10_000, 50, terms.Pack, true}, {5000, 10_000, 50, terms.Pack, true}, {10_000, 10_000, 50, terms.Pack, true},
	} {
		b.Run(fmt.Sprintf("%d_on_%d_by_%d_%s_different_%v", shape.instances, shape.machines, shape.perJob, shape.placement,
			shape.different), func(b *testing.B) {
			empty := newestCluster(shape.machines)
			jobs := make([]command.Command, shape.instances/shape.perJob)
			for i := range jobs {
				one := benchJob(fmt.Sprint("j", i), uint32(shape.perJob), shape.placement, 500)
				if shape.different {
					one.Spec.Tasks = different(&one.Spec.Tasks[0], i, shape.perJob)
				}
				jobs[i] = one
			}
			b.ReportAllocs()
			for b.Loop() {
				s := empty.Copy()
				for i, one := range jobs {
					apply(s, uint64(i+2), one)
				}
				if held(s) != shape.instances {
					b.Fatalf("placed %d of %d", held(s), shape.instances)
				}
			}
			b.ReportMetric(float64(shape.instances*b.N)/b.Elapsed().Seconds(), "placements/s")
		})
	}
}

// TestJobsOfOneInstanceAllocateLittle bounds how often memory is taken for a job that is placed with the entry that
// submits it: what many small jobs cost is mostly that.
func TestJobsOfOneInstanceAllocateLittle(t *testing.T) {
	const jobs, most = 500, 19
	s, all := newestCluster(100), make([]*command.SubmitJob, jobs+2)
	for i := range all {
		all[i] = benchJob(fmt.Sprint("j", i), 1, terms.Pack, 500)
		all[i].Spec.Tasks = different(&all[i].Spec.Tasks[0], i, 1)
	}
	next := 0
	got := testing.AllocsPerRun(jobs, func() {
		apply(s, uint64(next+2), all[next])
		next++
	})
	if held(s) != next || got > most {
		t.Errorf("%d of %d are placed, with %v allocations for each, want at most %d", held(s), next, got, most)
	}
}

// BenchmarkReact tells what a turn costs a node on which 20,000 instances wait for their start.
func BenchmarkReact(b *testing.B) {
	s := newestCluster(1)
	s.AddMember("m00000~1")
	for task := range uint64(4) {
		one := benchJob(fmt.Sprint("j", task), 5000, terms.Pack, 3)
		one.Spec.Tasks[0].Resources[terms.Memory] = 1 << 20
		apply(s, task+2, one)
	}
	o := &reaction.Observed{Offer: s.Node(0).Offer, Starts: 64}
	b.ReportAllocs()
	for b.Loop() {
		if got := len(reaction.React("m00000~1", s, o).Start); got != o.Starts {
			b.Fatalf("%d are started, want %d", got, o.Starts)
		}
	}
}

// BenchmarkFold tells entries folded per second: a running cluster in which instances start and end.
func BenchmarkFold(b *testing.B) {
	s := newestCluster(1000)
	apply(s, 2, benchJob("j", 50_000, terms.Spread, 500))
	held := s.Node(0).Held
	seq := uint64(3)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		slot, _ := s.SlotAt(held[i%len(held)])
		apply(s, seq, &command.ReportTasks{Peer: "m00000~1",
			Reports: []command.Report{{Slot: held[i%len(held)], Order: slot.Order}}})
		seq++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkMemory tells the bytes of memory per allocation, with those of the machines left out.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		empty := newestCluster(10_000)
		before := heapBytes()
		s := empty.Copy()
		for i := range 100 {
			apply(s, uint64(i+2), benchJob(fmt.Sprint("j", i), 1000, terms.Spread, 500))
		}
		b.ReportMetric(float64(heapBytes()-before)/100_000, "bytes/allocation")
		runtime.KeepAlive(empty)
		runtime.KeepAlive(s)
	}
}

// BenchmarkSnapshot writes a snapshot of 100,000 allocations on 10,000 machines, reads it, and makes the value of it;
// fold makes the same value by folding what brought it.
func BenchmarkSnapshot(b *testing.B) {
	s := newestCluster(10_000)
	fill := func(s *cluster.State) {
		for i := range 100 {
			apply(s, uint64(i+2), benchJob(fmt.Sprint("j", i), 1000, terms.Spread, 500))
		}
	}
	empty := s.Copy()
	fill(s)
	data := snapshot.Encode(s.Facts())
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			snapshot.Encode(s.Facts())
		}
		b.ReportMetric(float64(len(data)), "bytes")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := snapshot.Decode(data, rules.First); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("make", func(b *testing.B) {
		all, err := snapshot.Decode(data, rules.First)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			cluster.Rebuild(all)
		}
	})
	b.Run("fold", func(b *testing.B) {
		for b.Loop() {
			fill(empty.Copy())
		}
	})
}

func heapBytes() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkReport tells the cost of one report while an update runs, by the number of slots: an instance fails and
// starts again while another holds up the update, the same while half of the instances are out of reach and may not be
// replaced, and with each report one instance more of a job that grows.
func BenchmarkReport(b *testing.B) {
	for _, shape := range []string{"waiting", "fenced", "growing"} {
		for _, slots := range []uint32{10, 1000, 100_000} {
			b.Run(fmt.Sprintf("%s_%d", shape, slots), func(b *testing.B) {
				u := newUpdating(shape, slots)
				b.ReportAllocs()
				for b.Loop() {
					u.report()
				}
			})
		}
	}
}

// updating is a service in an update that moves one instance at a time.
type updating struct {
	s    *cluster.State
	seqs []uint64
	// grows tells that each report is of the newest slot; otherwise slot fails and starts, again and again.
	grows bool
	slot  facts.SlotRef
}

func newUpdating(shape string, slots uint32) *updating {
	s := newestCluster(int(max(2, slots/50)))
	u := &updating{s: s, seqs: make([]uint64, s.Nodes()), grows: shape == "growing"}
	for n := range facts.NodeIndex(s.Nodes()) {
		s.SetWatched(s.Node(n).Peer, s.Node((n+1)%facts.NodeIndex(s.Nodes())).Peer)
	}
	job := benchJob("web", slots, terms.Spread, 0)
	job.Spec.Tasks[0].Resources = terms.Resources{}
	job.Spec.Type, job.Spec.Update = terms.Stateless, terms.UpdatePolicy{BatchSize: 1, FailuresMax: 5}
	job.Spec.Tasks[0].Restart.AttemptsMax = terms.RestartsUnlimited
	if shape == "fenced" {
		job.Spec.Tasks[0].Disconnect.StopAfterMillis = 1000
	}
	u.write(0, job)
	for s.Unfinished {
		u.write(0, &command.TellTime{})
	}
	for n := range facts.NodeIndex(s.Nodes()) {
		news := &command.ReportTasks{Peer: s.Node(n).Peer}
		for _, r := range s.Node(n).Held {
			news.Reports = append(news.Reports, u.news(r))
		}
		u.write(n, news)
	}
	for n := s.Nodes() / 2; n < s.Nodes() && shape == "fenced"; n++ {
		u.write(0, &command.Leave{Peer: s.Node(facts.NodeIndex(n)).Peer})
	}
	next := *job
	next.Against, next.Spec.Tasks = 1, []terms.Task{job.Spec.Tasks[0]}
	next.Spec.Tasks[0].Command = []string{"better"}
	if u.grows {
		next.Spec.Tasks[0].Instances = terms.InstancesMax
	}
	u.write(0, &next)
	u.slot = s.Node(0).Held[1]
	return u
}

func (u *updating) write(n facts.NodeIndex, c command.Command) {
	u.seqs[n]++
	e := &command.Entry{Rules: u.s.Rules, Writer: u.s.Node(n).Peer, Seq: 1 + u.seqs[n], Time: 1,
		Commands: []command.Command{c}}
	Apply(u.s, u.s.Index+1, e, false)
}

// news tells that an instance runs well.
func (u *updating) news(r facts.SlotRef) command.Report {
	slot, _ := u.s.SlotAt(r)
	return command.Report{Slot: r, Order: slot.Order, Ready: true}
}

func (u *updating) report() {
	r := u.slot
	if u.grows {
		r.Index = u.s.Job(r.Job).Tasks[0].Desired - 1
	}
	news := u.news(r)
	slot, _ := u.s.SlotAt(r)
	switch slot.Phase {
	case facts.Running:
		news.Ready, news.Ended, news.ExitCode = false, facts.ByItself, 1
	case facts.BackingOff:
		news.Order = u.s.Index + 1 // it starts with the entry that tells it
	}
	u.write(slot.Node, &command.ReportTasks{Peer: u.s.Node(slot.Node).Peer, Reports: []command.Report{news}})
}

// BenchmarkGang tells what a job of 64 equal or different instances costs that start together or not at all, and the
// same job without that.
func BenchmarkGang(b *testing.B) {
	const size, jobs = 64, 20
	for _, kind := range []string{"equal", "different"} {
		for _, gang := range []uint32{0, size} {
			b.Run(fmt.Sprintf("%s_together_%d", kind, gang), func(b *testing.B) {
				empty := newestCluster(1000)
				all := make([]command.Command, jobs)
				for i := range all {
					one := benchJob(fmt.Sprint("j", i), size, terms.Pack, 500)
					if kind == "different" {
						one.Spec.Tasks = different(&one.Spec.Tasks[0], i, size)
					}
					one.Spec.MinAvailable = gang
					all[i] = one
				}
				for b.Loop() {
					s := empty.Copy()
					for i, one := range all {
						apply(s, uint64(i+2), one)
					}
					if held(s) != size*jobs {
						b.Fatalf("placed %d of %d", held(s), size*jobs)
					}
				}
			})
		}
	}
}
