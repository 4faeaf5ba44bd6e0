package replica

import (
	"fmt"
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// limited returns a cluster of one large node under limits that change makes of the default ones.
func limited(change func(*terms.Limits)) *cluster.State {
	limits := terms.DefaultLimits()
	change(&limits)
	s := cluster.NewStateWithin(limits)
	apply(s, 1, &command.PrepareJoin{Joiner: "m00000~1", Attempt: 1})
	apply(s, 2, &command.Volunteer{Peer: "m00000~1", Offer: terms.Offer{
		Capacity: terms.Resources{1000, 1 << 30, 1 << 30}, PortFirst: 20000, PortLast: 30000, Address: "m0:1",
	}})
	return s
}

// batchOf returns a job of tasks t0, t1, ... with so many instances that need nothing.
func batchOf(name string, instances ...uint32) *command.SubmitJob {
	c := &command.SubmitJob{Spec: terms.Job{Name: terms.JobName(name), Type: terms.Batch, Priority: terms.PriorityDefault}}
	for i, n := range instances {
		c.Spec.Tasks = append(c.Spec.Tasks,
			terms.Task{Name: terms.TaskName(fmt.Sprintf("t%d", i)), Instances: n, Command: []string{"true"},
				Placement: terms.Pack})
	}
	return c
}

// TestLimitsRefuse reaches every limit on what enters the value: it is refused with the limit in words.
func TestLimitsRefuse(t *testing.T) {
	heavy := func(name string, instances uint32, disk int64) *command.SubmitJob {
		c := batchOf(name, instances)
		c.Spec.Tasks[0].Resources[terms.Disk] = disk
		return c
	}
	gang := batchOf("a", 3)
	gang.Spec.MinAvailable = 3
	other := batchOf("a", 1)
	other.Against, other.Spec.Tasks[0].Name = 1, "x"
	patient := batchOf("a", 1)
	patient.Spec.Tasks[0].Reschedule = terms.Reschedule{AttemptsMax: 17, IntervalMillis: 1000}
	daemon := heavy("a", 0, 1<<41)
	daemon.Spec.Type, daemon.Spec.Tasks[0].Instances = terms.Daemon, 1
	for _, c := range []struct {
		change func(*terms.Limits)
		jobs   []*command.SubmitJob
		want   string
	}{
		{func(l *terms.Limits) { l.Jobs = 1 }, []*command.SubmitJob{batchOf("a", 1), batchOf("b", 1)},
			"1 jobs that have not ended, at most 1"},
		{func(l *terms.Limits) { l.Tasks = 1 }, []*command.SubmitJob{batchOf("a", 1, 1)},
			"had 2 tasks in all its versions, at most 1"},
		{func(l *terms.Limits) { l.Tasks = 1 }, []*command.SubmitJob{batchOf("a", 1), other},
			"had 2 tasks in all its versions, at most 1"},
		{func(l *terms.Limits) { l.JobInstances = 4 }, []*command.SubmitJob{batchOf("a", 2, 3)},
			"had 5 instances, at most 4"},
		{func(l *terms.Limits) { l.Instances = 4 }, []*command.SubmitJob{batchOf("a", 2), batchOf("b", 3)},
			"5 instances with it, at most 4"},
		{func(l *terms.Limits) { l.Gang = 2 }, []*command.SubmitJob{gang},
			"3 instances of job a must run together, at most 2"},
		{func(*terms.Limits) {}, []*command.SubmitJob{heavy("a", 1_000_000, 16<<40)},
			"more than 2047.9Pi of disk together, at most 64Pi"},
		{func(*terms.Limits) {}, []*command.SubmitJob{patient},
			"reschedule.attempts of task t0 of job a is 17, at most 16 are remembered"},
		{func(*terms.Limits) {}, []*command.SubmitJob{daemon}, "128Pi of disk together, at most 64Pi"},
		{func(l *terms.Limits) { l.PoolAmount = 5 << 40 },
			[]*command.SubmitJob{heavy("a", 1, 4<<40), heavy("b", 1, 2<<40)},
			"all jobs of pool default would want 6Ti of disk with it, at most 5Ti"},
		{func(l *terms.Limits) { l.ClusterAmount = 5 << 40 },
			[]*command.SubmitJob{heavy("a", 1, 4<<40), heavy("b", 1, 2<<40)},
			"all jobs would want 6Ti of disk with it, at most 5Ti"},
	} {
		s := limited(c.change)
		var last report.Result
		for _, job := range c.jobs {
			outcome := Apply(s, s.Index+1,
				&command.Entry{Writer: "m00000~1", Seq: uint64(s.Index + 1), Commands: []command.Command{job}}, false)
			last = outcome.Results[0]
		}
		if last.Refusal.Code != facts.Exhausted || !strings.Contains(last.Refusal.Reason, c.want) {
			t.Errorf("refused with %s %q, want %q", last.Refusal.Code, last.Refusal.Reason, c.want)
		}
		if found := s.Audit(); len(found) > 0 {
			t.Errorf("the books: %q", found)
		}
	}
}

// TestPoolsLeaveRoom has one pool take four times what it leaves for others, and no more; who has that many may have
// fewer, and the same in another way.
func TestPoolsLeaveRoom(t *testing.T) {
	s := limited(func(l *terms.Limits) { l.Jobs, l.Instances = 20, 1000 })
	s.Rules = rules.Released
	apply(s, 3, &command.ChangePools{Pools: []terms.Pool{terms.NewPool("a"), terms.NewPool("b")}})
	submit := func(job *command.SubmitJob) string {
		outcome := Apply(s, s.Index+1,
			&command.Entry{Writer: "m00000~1", Seq: uint64(s.Index + 1), Commands: []command.Command{job}}, false)
		return outcome.Results[0].Refusal.Reason
	}
	again := func(name string, version, instances uint32) *command.SubmitJob {
		c := batchOf(name, instances)
		c.Against, c.Spec.Tasks[0].Command = version, []string{"true", fmt.Sprint(version)}
		return c
	}
	steps := []struct {
		job     *command.SubmitJob
		refused string
	}{
		{batchOf("a/large", 801), "pool a would have 801 instances with it, more than 4 times the 199 that would be left for all pools: stop some"},
		{batchOf("a/large", 800), ""},
		{again("a/large", 1, 801), "pool a would have 801 instances"},
		{batchOf("b/large", 160), ""},
		{again("a/large", 1, 800), ""},
		{batchOf("a/more", 1), "pool a would have 801 instances"},
		{batchOf("b/more", 1), "pool b would have 161 instances"},
		{again("a/large", 2, 700), ""},
	}
	for i := range 15 {
		steps = append(steps, steps[1])
		steps[len(steps)-1].job = batchOf(fmt.Sprint("a/none", i), 0)
	}
	steps = append(steps, []struct {
		job     *command.SubmitJob
		refused string
	}{
		{batchOf("a/one-more", 0), "pool a has 16 jobs that have not ended, 4 times the 3 that are left for all pools, or more: stop some"},
		{batchOf("b/second", 0), ""},
	}...)
	for i, one := range steps {
		if got := submit(one.job); one.refused == "" && got != "" || !strings.Contains(got, one.refused) {
			t.Errorf("step %d, job %s: %q, want %q", i, one.job.Spec.Name, got, one.refused)
		}
	}
}

// TestOffersAreBoundedTogether refuses an offer with which the sum of all would be beyond what can be counted.
func TestOffersAreBoundedTogether(t *testing.T) {
	s := limited(func(l *terms.Limits) { l.ClusterAmount = 2 << 30 })
	offer := &command.Volunteer{Peer: "m00000~1",
		Offer: terms.Offer{Capacity: terms.Resources{1000, 3 << 30, 0}, Address: "m0:1"}}
	outcome := Apply(s, s.Index+1, &command.Entry{Writer: "m00000~1", Seq: 9, Commands: []command.Command{offer}}, false)
	if r := outcome.Results[0].Refusal; r.Code != facts.Exhausted ||
		!strings.Contains(r.Reason, "3Gi of memory with m00000, at most 2Gi") {
		t.Errorf("refused with %s %q", r.Code, r.Reason)
	}
}

// TestDemandNeverWraps brings the largest job there may be, with a second one beside it, and audits that the pool asks
// for both: a sum that wraps makes the demand of others vanish.
func TestDemandNeverWraps(t *testing.T) {
	s := limited(func(*terms.Limits) {})
	for i := range 9 {
		job := batchOf(fmt.Sprintf("big%d", i), 1_000_000)
		job.Spec.Tasks[0].Resources = terms.Resources{terms.CPUMillicoresMax, 64 << 30, 64 << 30}
		apply(s, uint64(s.Index)+1, job)
	}
	number, _ := s.PoolNumber(terms.DefaultPool)
	for k, amount := range s.Account(number).Asked.NonSlack {
		if amount < 0 || amount > terms.Unlimited {
			t.Errorf("the pool asks for %d of %s", amount, terms.Kind(k))
		}
	}
	if found := s.Audit(); len(found) > 0 {
		t.Errorf("the books: %q", found)
	}
}

// TestNothingIsForgottenWithinAnEntry ends the oldest job of a full memory in the middle of a pass: instances that are
// preempted for a gang end their job, and the entry names that job again afterwards.
func TestNothingIsForgottenWithinAnEntry(t *testing.T) {
	for _, kept := range []uint32{0, 1, 2} {
		s := limited(func(l *terms.Limits) { l.FinishedJobs = kept })
		for i := range 4 {
			job := batchOf(fmt.Sprintf("small%d", i), 1)
			job.Spec.KillOnPreempt, job.Spec.Priority = true, 1
			job.Spec.Tasks[0].Resources[terms.CPU] = 250
			job.Spec.Tasks[0].Restart = terms.Restart{AttemptsMax: 10, DelayMillis: 3_600_000, DelayMaxMillis: 3_600_000}
			apply(s, uint64(s.Index)+1, job)
		}
		var reports []command.Report
		s.EachJob(func(j *workload.Job) bool {
			slot := j.Tasks[0].Slots.At(0)
			ref := facts.SlotRef{Job: j.ID}
			reports = append(reports, command.Report{Slot: ref, Order: slot.Order, Ended: facts.ByItself, ExitCode: 1})
			return true
		})
		apply(s, uint64(s.Index)+1, &command.ReportTasks{Peer: "m00000~1", Reports: reports})
		gang := batchOf("gang", 4)
		gang.Spec.MinAvailable = 4
		gang.Spec.Tasks[0].Resources[terms.CPU] = 250
		apply(s, uint64(s.Index)+1, gang)
		for range 3 {
			Apply(s, s.Index+1, &command.Entry{
				Writer: "m00000~1", Seq: uint64(s.Index + 1), Time: s.Time + 60_000,
				Commands: []command.Command{&command.TellTime{}},
			}, false)
		}
		if waits := s.JobOf("gang").Tasks[0].Waits(); waits > 0 {
			t.Errorf("with %d finished jobs kept %d of the gang wait", kept, waits)
		}
		if found := s.Audit(); len(found) > 0 {
			t.Errorf("the books: %q", found)
		}
	}
}

// TestSpecsAreChargedToTheirPool refuses what would take more of the journal's room than the pool may have: each text
// counts once, in all versions that are kept, until its job has ended.
func TestSpecsAreChargedToTheirPool(t *testing.T) {
	s := limited(func(*terms.Limits) {})
	s.Rules = rules.Volumes
	ask := func(c command.Command) report.Result {
		outcome := Apply(s, s.Index+1, &command.Entry{Writer: "m00000~1", Seq: uint64(s.Index + 1),
			Commands: []command.Command{c}}, false)
		if found := s.Audit(); len(found) > 0 {
			t.Errorf("the books: %q", found)
		}
		return outcome.Results[0]
	}
	texts := func(name string, against uint32, text string) *command.SubmitJob {
		c := batchOf(name, 1)
		c.Spec.Tasks[0].Resources[terms.CPU] = 2000 // no node has that
		c.Against, c.Spec.Tasks[0].Command = against, []string{strings.Repeat(text, 1000)}
		return c
	}
	small := terms.NewPool(terms.DefaultPool)
	small.SpecBytes = 2500
	for _, c := range []struct {
		what    command.Command
		refused string
	}{
		{&command.ChangePools{Pools: []terms.Pool{small}}, ""},
		{texts("a", 0, "x"), ""},
		{texts("b", 0, "y"), ""},
		{texts("c", 0, "z"), "the specs of the 2 jobs of pool default take 2.1Ki in 2 versions, and that of c 1Ki more, " +
			"at most 2500B: stop some of its jobs, or raise its spec_bytes"},
		{texts("a", 1, "z"), "and that of a 1Ki more"},
		{&command.RestartJob{Job: "a"}, ""}, // the text is kept already
		{&command.KillJob{Job: "b"}, ""},
		{texts("a", 2, "z"), ""},
		{texts("b", 0, "y"), "the specs of the 1 jobs of pool default take 2.1Ki in 2 versions"},
		{&command.RevertJob{Job: "a", To: 1}, ""},
	} {
		r := ask(c.what)
		if !strings.Contains(r.Refusal.Reason, c.refused) || (c.refused == "") != (r.Refusal.Code == 0) {
			t.Errorf("%T was refused with %s %q, want %q", c.what, r.Refusal.Code, r.Refusal.Reason, c.refused)
		}
	}
	if s.Rules = rules.Authorities; ask(texts("c", 0, "z")).Refused() {
		t.Error("rules that do not bound specs refuse one")
	}
}
