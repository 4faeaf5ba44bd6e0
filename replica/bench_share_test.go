package replica

import (
	"fmt"
	"testing"

	"starling/cluster"
	"starling/command"
	"starling/terms"
)

// sharingJob is a job with more instances than there are virtual peers for it.
func sharingJob(name string) *command.SubmitJob {
	job := benchJob(name, 1000, terms.Pack, 100)
	job.Spec.TaskScheduler = terms.TaskRoundRobin
	job.Spec.OnVirtualPeers()
	return job
}

// BenchmarkRebalance tells the cost of the one entry with which a job comes to a hundred that share 10,000 virtual peers
// evenly, or with which one of these is stopped.
func BenchmarkRebalance(b *testing.B) {
	s := clusterOf(1000)
	for n := range cluster.NodeIndex(s.Nodes()) {
		offer := *s.Node(n).Offer
		offer.Devices = []terms.DeviceOffer{{Kind: terms.VirtualPeers.String(), Count: 10}}
		s.SetOffer(n, &offer)
	}
	shared := terms.NewPool("shared")
	shared.JobScheduler = terms.JobRoundRobin
	seq := uint64(2)
	write := func(s *cluster.State, all ...command.Command) {
		apply(s, seq, all...)
		seq++
	}
	write(s, &command.ChangePools{Pools: []terms.Pool{shared}})
	var jobs []command.Command
	for i := range 100 {
		jobs = append(jobs, sharingJob(fmt.Sprint("shared/j", i)))
	}
	write(s, jobs...) // with one entry, so that nobody has to give way yet
	for s.Unfinished {
		write(s, &command.TellTime{})
	}
	for i := range 100 {
		if t := s.JobOf(terms.JobName(fmt.Sprint("shared/j", i))).Tasks[0]; t.Counts[cluster.Assigned] != 100 {
			b.Fatalf("job %d has %d virtual peers, want 100", i, t.Counts[cluster.Assigned])
		}
	}
	for name, change := range map[string]func() command.Command{
		"comes": func() command.Command { return sharingJob("shared/next") },
		"goes":  func() command.Command { return &command.KillJob{Job: "shared/j50"} },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				next := s.Copy()
				b.StartTimer()
				write(next, change())
			}
		})
	}
}
