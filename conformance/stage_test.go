package conformance

import (
	"fmt"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica"
	"starling/terms"
)

// stage is a value with one job, whose nodes report what a case wants of them.
type stage struct {
	t    *trial
	s    *cluster.State
	now  terms.Time
	seqs map[terms.PeerID]uint64
}

// user is the member that writes for users; it offers nothing.
const user = terms.PeerID("user~1")

// newStage has a node for each offer, called n0, n1 and so on.
func newStage(t *trial, offers ...terms.Resources) *stage {
	w := &stage{t: t, s: cluster.NewState(), now: 1000, seqs: map[terms.PeerID]uint64{}}
	members := []terms.PeerID{user}
	for i := range offers {
		members = append(members, terms.PeerID(fmt.Sprintf("n%d~1", i)))
	}
	for i, p := range members {
		node := w.s.EnsureNode(p.Node())
		w.s.SetPeer(node.Index, p)
		w.s.SetWatched(p, members[(i+1)%len(members)])
		w.s.Wrote(node.Index, 1, 1)
		w.seqs[p] = 1
		if i > 0 {
			w.s.SetOffer(node.Index, &terms.Offer{Capacity: offers[i-1], Rules: 1})
		}
	}
	return w
}

// write folds an entry with one command, and returns why it was refused.
func (w *stage) write(by terms.PeerID, c command.Command) facts.Refusal {
	w.seqs[by]++
	e := &command.Entry{Writer: by, Seq: w.seqs[by], Time: w.now, Commands: []command.Command{c}}
	outcome := replica.Apply(w.s, w.s.Index+1, e, false)
	if outcome.Dropped != "" {
		w.t.Fatalf("entry dropped: %s", outcome.Dropped)
	}
	for _, line := range w.s.Audit() {
		w.t.Errorf("after entry %d: %s", w.s.Index, line)
	}
	return outcome.Results[0].Refusal
}

// must writes what may not be refused.
func (w *stage) must(c command.Command) {
	if r := w.write(user, c); r.Code != facts.OK {
		w.t.Fatalf("%s refused: %s", c.Kind(), r.Reason)
	}
}

// submit writes the job against its present version.
func (w *stage) submit(spec *terms.Job) {
	against := uint32(0)
	if j := w.s.JobOf(spec.Name); j != nil {
		against = j.Version
	}
	w.must(&command.SubmitJob{Spec: *spec, Against: against})
}

func (w *stage) steer(how command.Steering) facts.Refusal {
	return w.write(user, &command.SteerUpdate{Job: stageJob, Version: w.job().Update.To, Steering: how})
}

func (w *stage) job() *workload.Job { return w.s.JobOf(stageJob) }

// later lets time pass.
func (w *stage) later(by terms.Time) {
	w.now += by
	w.must(&command.TellTime{})
}

// saying is what a node says of an instance.
type saying uint8

const (
	silent saying = iota
	// runs and passes report a program that runs, without and with its checks passed; a stop is obeyed.
	runs
	passes
	// fails reports a program that exits with 1, ends one that exits with 0.
	fails
	ends
)

// play lets the nodes saying for all instances until nothing changes; what is delayed starts when it is due.
func (w *stage) play(answerOf func(r facts.SlotRef, slot facts.Slot) saying) {
	for range 10_000 {
		if !w.round(answerOf) {
			return
		}
	}
	w.t.Fatal("the nodes never come to rest")
}

// round lets each instance be answered for once; it returns false if nothing was left to say.
func (w *stage) round(answerOf func(r facts.SlotRef, slot facts.Slot) saying) bool {
	said := false
	if w.job() == nil {
		return false // it was forgotten as soon as it ended
	}
	for task := range w.job().Tasks {
		var all []facts.SlotRef
		w.s.EachSlot(w.job().ID, task, func(r facts.SlotRef, _ facts.Slot) bool {
			all = append(all, r)
			return true
		})
		for _, r := range all {
			slot, _ := w.s.SlotAt(r)
			if news, ok := newsOf(slot, answerOf(r, slot)); ok {
				said = true
				w.report(r, news)
			}
		}
	}
	return said
}

// newsOf says an saying, if that is news.
func newsOf(slot facts.Slot, say saying) (news command.Report, ok bool) {
	switch {
	case say == silent || !slot.Phase.Holds() || slot.Phase == facts.BackingOff || slot.Phase == facts.Unknown:
		return news, false
	case slot.Phase == facts.Stopping:
		return command.Report{Ended: facts.OnRequest}, true
	case say == fails || say == ends:
		return command.Report{Ended: facts.ByItself, ExitCode: int32(ends - say)}, true
	}
	news.Ready = say == passes
	return news, slot.Phase == facts.Assigned || news.Ready && slot.Health == facts.Starting
}

// report writes news of the present allocation of a seat.
func (w *stage) report(r facts.SlotRef, news command.Report) {
	slot, _ := w.s.SlotAt(r)
	p := w.s.Node(slot.Node).Peer
	news.Slot = r
	if news.Order == 0 {
		news.Order = slot.Order
	}
	if refusal := w.write(p, &command.ReportTasks{Peer: p, Reports: []command.Report{news}}); refusal.Code != facts.OK {
		w.t.Fatalf("report refused: %s", refusal.Reason)
	}
}

// always answers the same for every instance.
func always(say saying) func(facts.SlotRef, facts.Slot) saying {
	return func(facts.SlotRef, facts.Slot) saying { return say }
}

// of answers for the instances of one version; those of others obey when they are told to stop, and say nothing else.
func of(version uint32, answerOf func(facts.SlotRef, facts.Slot) saying) func(facts.SlotRef,
	facts.Slot) saying {
	return func(r facts.SlotRef, slot facts.Slot) saying {
		switch {
		case slot.Phase == facts.Stopping:
			return runs
		case slot.Version != version:
			return silent
		}
		return answerOf(r, slot)
	}
}

const stageJob = terms.JobName("job")

// stageTask returns a task whose instances need a little processor, and are restarted for ever with a short delay.
func stageTask(name string, instances uint32) terms.Task {
	return terms.Task{
		Name: terms.TaskName(name), Instances: instances, Command: []string{"run"}, Resources: terms.Resources{1, 0, 0},
		Placement: terms.Pack, StopGraceMillis: 1000,
		Restart: terms.Restart{
			AttemptsMax: terms.RestartsUnlimited, DelayMillis: 1000, DelayMaxMillis: 1000, ResetMillis: terms.DelayMillisMax,
		},
	}
}

// service returns a stateless job of one task.
func service(instances uint32, program string, update terms.UpdatePolicy) *terms.Job {
	t := stageTask("main", instances)
	t.Command[0] = program
	return &terms.Job{Name: stageJob, Type: terms.Stateless, Update: update, Tasks: []terms.Task{t}}
}

// room is what the nodes of a stage offer if nothing else is wanted.
func room() terms.Resources { return terms.Resources{1_000_000, 0, 0} }
