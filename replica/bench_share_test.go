package replica

import (
	"fmt"
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
	"starling/terms/constraint"
)

// sharingJobs are jobs with more instances than there are virtual peers for them: some that run anywhere, some on the
// racks whose number is even, and some in copies of two tasks on one machine.
func sharingJobs() map[string]func(name string) *command.SubmitJob {
	plain := func(name string) *command.SubmitJob {
		job := benchJob(name, 1000, terms.Pack, 100)
		job.Spec.TaskScheduler = terms.TaskRoundRobin
		job.Spec.OnVirtualPeers()
		return job
	}
	return map[string]func(string) *command.SubmitJob{
		"anywhere": plain,
		"racks": func(name string) *command.SubmitJob {
			job := plain(name)
			if strings.HasSuffix(name, "0") {
				job.Spec.Tasks[0].Constraints = []constraint.Constraint{{Attribute: "rack", Operator: constraint.NotIn,
					Values: []string{"1", "3", "5"}}}
			}
			return job
		},
		"colocated": func(name string) *command.SubmitJob {
			job := plain(name)
			job.Spec.TaskScheduler = terms.TaskColocated
			second := job.Spec.Tasks[0]
			second.Name = "second"
			job.Spec.Tasks = append(job.Spec.Tasks, second)
			return job
		},
	}
}

// BenchmarkRebalance tells the cost of the one entry with which a job comes to a hundred that share 10,000 virtual
// peers evenly, or with which one of these is stopped.
func BenchmarkRebalance(b *testing.B) {
	for kind, job := range sharingJobs() {
		s := sharedCluster(b, job)
		for name, change := range map[string]func() command.Command{
			"comes": func() command.Command { return job("shared/next") },
			"goes":  func() command.Command { return &command.KillJob{Job: "shared/j50"} },
		} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					next := s.Copy()
					b.StartTimer()
					apply(next, 1000, change())
				}
			})
		}
	}
}

// BenchmarkTurnover tells the cost of the entry with which one instance ends and the next begins in its place.
func BenchmarkTurnover(b *testing.B) {
	for kind, job := range sharingJobs() {
		s := sharedCluster(b, job)
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				next := s.Copy()
				b.StartTimer()
				turnOver(b, next)
			}
		})
	}
}

// TestTurnoverLooksAtLittle bounds the rows that are looked at when one of 10,000 instances that share virtual peers on
// 1000 nodes ends and the next begins.
func TestTurnoverLooksAtLittle(t *testing.T) {
	const most = 2000
	for kind, job := range sharingJobs() {
		s := sharedCluster(t, job)
		turnOver(t, s) // what is known of the nodes is known from here on
		if rows := turnOver(t, s); rows > most {
			t.Errorf("%s: %d rows are looked at, want at most %d", kind, rows, most)
		}
	}
}

// turnOver lets the first instance of a job end that runs, whose place the next takes, and returns how many rows that
// looked at.
func turnOver(b testing.TB, s *cluster.State) (rows uint64) {
	r := facts.SlotRef{Job: s.JobOf("shared/j50").ID}
	slot, _ := s.SlotAt(r)
	for ; slot.Phase == facts.Succeeded; slot, _ = s.SlotAt(r) {
		r.Index++
	}
	peer := s.Node(slot.Node).Peer
	end := &command.ReportTasks{Peer: peer, Reports: []command.Report{{Slot: r, Order: slot.Order, Ended: facts.ByItself}}}
	before := held(s)
	outcome := Apply(s, s.Index+1, &command.Entry{Rules: s.Rules, Writer: peer, Seq: 1<<40 + uint64(s.Index), Time: 1,
		Commands: []command.Command{end}}, false)
	if after, _ := s.SlotAt(r); after.Phase != facts.Succeeded || held(s) != before {
		b.Fatalf("the slot is %v, and %d of %d instances have nodes", after.Phase, held(s), before)
	}
	return outcome.Visited
}

// sharedCluster returns 1000 nodes with ten virtual peers each, which a hundred jobs share.
func sharedCluster(b testing.TB, job func(name string) *command.SubmitJob) *cluster.State {
	s := newestCluster(1000)
	for n := range facts.NodeIndex(s.Nodes()) {
		offer := *s.Node(n).Offer
		offer.Devices = []terms.DeviceOffer{{Kind: terms.VirtualPeers.String(), Count: 10}}
		s.SetOffer(n, &offer)
	}
	shared := terms.NewPool("shared")
	shared.JobScheduler = terms.JobRoundRobin
	seq := uint64(2)
	write := func(all ...command.Command) {
		apply(s, seq, all...)
		seq++
	}
	write(&command.ChangePools{Pools: []terms.Pool{shared}})
	var jobs []command.Command
	for i := range 100 {
		jobs = append(jobs, job(fmt.Sprint("shared/j", i)))
	}
	write(jobs...) // with one entry, so that nobody has to give way yet
	for s.Unfinished {
		write(&command.TellTime{})
	}
	for i := range 100 {
		count := uint32(0)
		for _, t := range s.JobOf(terms.JobName(fmt.Sprint("shared/j", i))).Tasks {
			count += t.Counts[facts.Assigned]
		}
		if count != 100 {
			b.Fatalf("job %d has %d virtual peers, want 100", i, count)
		}
	}
	return s
}
