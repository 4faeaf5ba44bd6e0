package sim

import (
	"slices"
	"strings"
	"testing"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/command"
	"starling/sim/wishes"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// seedsThatFoundBugs found something; what they found is told by a story below, too, or by what is said here.
var seedsThatFoundBugs = []struct {
	seed  uint64
	story string
}{
	{289, "a peer that had begun with a snapshot named another of the instances that a machine might still run"},
	{2330, "what had been kept for as long as its task said was looked for by a roll back that brought its slot back"},
	{10, "a detail cut within a character made an entry that nobody could decode, and its writer fell silent"},
	{16, "a second machine with the name of a member tried to join for ever"},
	{84, "a stop revived a removed task"},
	{900, "a slot that waited while the job was smaller never waited again"},
	{1064, "an update changed needs, and a blocked task was never retried"},
	{2469, "as 900, by another way"},
	{2655, "as 1064, with two tasks"},
	{4737, "a twin took an incarnation that had come and gone since it had read the journal"},
	{8136, "a machine took up the pulse that its twin had created"},
	{45, "an instance returned to a node that was drained meanwhile, and stayed"},
	{568, "an instance was said to have stopped while its start was under way, and another began beside it"},
	{635, "the readiness of an instance that returned was taken for that of its replacement"},
	{1462, "an outdated instance of a stateful job returned, and another began before it had stopped"},
	{1184, "when one queue entry of a task was woken, the other forgot that its soft timeout had passed"},
	{776, "who gave way was placed again before the one that needed its room, for ever"},
	{1191, "a pool held more than its limit, as revocable work had not given way yet"},
	{3572, "two starving pools woke each other for ever"},
	{4083, "a gang lacked one more, and nobody looked who could come"},
	{4302, "work gave way to such as was to run beside it"},
	{12083, "a leaf was admitted below a limit that another leaf had used up"},
	{8401, "work gave way for ever to a gang whose tasks cannot stand beside each other"},
	{1926, "an instance came to a copy and was sent away again for ever, because others took what its neighbours needed"},
	{2514, "who was sent elsewhere was not looked at again after others had made room"},
	{14918, "an instance of a version that no virtual peers run was counted among those that they do"},
	{21958, "what waited for its restart was started on the node that had left"},
	{26592, "a promoted canary that was suspended kept its seat when its update failed"},
	{4010, "the last instance of a job in its domain ended, and what waited was not tried in another"},
	{5798, "a gang starved although its pool refused those of its members that may be of any task"},
	{51504, "of two instances for which room was kept, each began in a domain of its own"},
	{100014, "jobs that finished with one entry were forgotten in the order of its commands"},
	{2929, "room for members that no node can have was sought as room for others, and kept without end"},
	{200917, "a rule about a rack was not asked again when a node left its rack"},
	{210938, "a pool to which nobody could give way kept those behind it from being fed, for ever"},
	{3461902156, "a daemon that lacked nothing but a port was not tried again when others had taken its room"},
	{1027992886, "instances gave way for ever to a daemon that lacked a port"},
	{1027995037, "what was told to stop and failed instead could give way, and nobody looked again"},
	{3244288105, "a gang that grows whole grew by some of its new members in the stead of old ones that were to stop"},
	{3244241530, "what was not wanted any more was told to stop on a node that had left, and waited for for ever"},
	{3244299865, "a share of a device that was kept for a daemon was given to who had just given it up, for ever"},
	{3244297873, "room that was kept within a domain was not taken as it was planned, and the others gave way for ever"},
	{3244307374, "what a roll back went back to failed for good, and the roll back went on for ever"},
	{3244282771, "a promoted canary failed, and the instance that it was to replace was taken for failed although it ran"},
	{3244267234, "a machine took up a life of which it had found that another had led it, and started again what ran there"},
	{710439188, "instances that spread and help each other counted all of their task for each, and a daemon tried all who could give way one by one"},
	{710436282, "a canary that is tried on another node later had no virtual peer in the counts"},
	{710440980, "what was stopped for its run time on a node that left then was to start again there, by a policy"},
	{710453381, "what was to take the place of an instance out of reach was lost, too, and was said to be assigned for ever"},
	{710443102, "a gang that was blocked let a queue entry that was new to it wait without its soft timeout"},
	{1453839742, "a member of a gang was given the port that another asked for by number, and others gave way to the gang for ever"},
	{1453842111, "instances that a second round admits waited for the next entry, because another of their task had to"},
	{1028683037, "what had failed while the newest version lacked its task was not tried again when a version had it"},
	{1028685214, "a gang had no room, as a member of an earlier version was thought to need what the newest does"},
	{307965911, "a job whose update was still to take instances away ended before what a policy says of its completion was done"},
	{307905366, "a copy was sent to other peers than those that others had left for it, and they left them for it again, for ever"},
	{3112192147, "the model did not let an update that takes instances away try others for those it adds"},
	{3677800148, "an update that takes away thousands of slots that wait, one at a time, counted all of them again for each"},
	{402400741, "the model took a seat that is to go, and waits for the one behind it, for one on its way to a node"},
	{402447812, "who starts again on his node after a roll back was taken for placed, away from the rest of his job"},
	{3461899596, "a start that one life had ordered was proved wanted by the next"},
	{3277531293, "what was kept for a daemon was not given up when the last who left for it was on another node"},
	{3277487758, "a drained instance was of a task that the newest version lacks"},
	{3277537202, "the choice of who gives way to a daemon cost the square of the instances on its node"},
	{3277542650, "a life that had left beside the member of its node was begun again, and its entries were taken for repetitions"},
	{3277496514, "pools looked for room although the entry had placed all that it may"},
	{3277551893, "what leaves was handed over twice"},
	{3277564344, "daemons moved to the newest version on nodes that may not have them, and the next wave did not follow"},
	{12291, "after a jump back of its clock, a machine alone restarted nothing for the length of the jump"},
	{3699832361, "what was out of reach while its job was given a longer timeout was waited for without end"},
	{3699835348, "batch work that was done with an earlier version ran again when the instance returned whose place it had taken, of a job that had ended"},
	{3699810932, "the model asked that somebody gives way so that others have ports, which nobody looks for"},
	{1895576576, "a drain counted what an update had lost that failed later in the same entry, and the promise did not"},
	{1895586049, "slots that were done and were dropped with the last one that ran beyond them counted for the gang"},
	{1895592835, "a promoted canary that had given way to others waited beside the place that it was to take, for ever"},
	{2169021083, "a gang that lost a member and was whole again with one entry came before others, and the promise did not know"},
	{2169029384, "a machine that was cut off while it read the journal led a life that another of its name had begun meanwhile"},
	{2169011153, "the model gave up on what has no place for its successor any more when others lacked room"},
	{3803969672, "a machine took the entry of another that led the same life for its own, by the number, and ended"},
	{2789622105, "a machine whose pulse was lost began what was ordered from another that had its life meanwhile"},
	{2789684940, "a machine wrote under numbers below those of another that had led its life, for ever in vain"},
	{1229110712, "an instance left a drained machine for the sake of its canary, and the model said for the machine's"},
	{4159661449, "a promoted canary that was out of reach when its place was taken was never looked at again"},
	{4159663511, "an update whose batch was under way for ever was said to lack room"},
	{4159695272, "the pulse of a life that was interrupted was given up for another long after the faults, when work came"},
	{3107461113, "a canary that waited when nothing was left to try outlived its update"},
	{3107491013, "an answer of reconcile was obeyed to its end though what it said first had led to another"},
	{3803928144, "a canary of an update that had failed began anew with all of its job, and waited for ever"},
	{940448, "whoever was late to put a snapshot replaced chunks that others had found good"},
	{901549, "the rules were asked for by the last number, although they rise one by one"},
	{1015444, "an instance left a drained machine with the entry that asked for more of its task, and the promise counted those"},
	{2049391, "a slot that waits, of a task that the newest version lacks, was decided about without a spec, and the fold ended"},
	{2010173, "a drain's deadline had passed with the entry that drained again, and the promise looked at the new one"},
	{2055292, "a gang was placed after others that passed it when it had no room, and the promise counted its extra members"},
	{1019045, "a waiting slot of a task that the newest version lacks was told to stop what ran there before, and the fold ended"},
	{1001839, "the model counted an instance twice whose lost allocation had succeeded as well as its successor"},
	{981776, "the model did not follow who gave way and was placed anew by an entry with more effects than are told"},
	{16836, "instances gave way to a daemon that needs a share of one device, and came back at once, for ever"},
	{890, "a job was rolled back to a version with volumes, and found them empty: one without had let its slots go anywhere"},
	{2410, "a machine was emptied and led a life again of which nothing counted, and its entries had the names of the old"},
	{90831, "pools used what a daemon had left that was placed anew with the same entry, beside what static reservations keep"},
	{138566, "room was kept for what its pool did not admit, and the promise looked at the next task of the job"},
	{116894, "the first node kept volumes that had moved on for a slot that the job does not have any more"},
	{89971, "the model kept volumes by the time before an entry that let time pass"},
}

// TestSeedsThatFoundBugs plays the seeds that found something, as long as they mean anything.
func TestSeedsThatFoundBugs(t *testing.T) {
	for _, c := range seedsThatFoundBugs {
		if r := Run(c.seed, Options{}); r.Failure != nil {
			t.Errorf("%s: %v", c.story, r.Failure)
		}
	}
}

// Each story is a bug that a seed found once. The seeds have changed their meaning since; the stories have not.

func TestAStopRevivesNoRemovedTask(t *testing.T) {
	s := newScript(t, 3)
	s.submit("web", nil, 2, 2)
	s.wait(1000)
	s.want("web", "running running | running running")
	s.submit("web", nil, 2)
	s.must(&command.KillJob{Job: "web"})
	s.rest()
	if j := s.value().JobOf("web"); j.Finished == 0 {
		t.Fatalf("the job has not ended: %s", s.phases("web"))
	}
}

func TestWhatFitsNowhereIsTriedAgainWithOtherNeeds(t *testing.T) {
	s := newScript(t, 3)
	s.submit("big", func(spec *terms.Job) { spec.Tasks[0].Resources[terms.CPU] = 5000 }, 1)
	s.submit("other", nil, 1)
	s.wait(1000)
	s.want("big", "waiting")
	s.submit("big", nil, 1)
	s.rest()
	s.want("big", "running")
}

func TestASlotThatWaitedThroughASmallerVersionWaitsAgain(t *testing.T) {
	s := newScript(t, 2)
	whole := func(spec *terms.Job) { spec.Tasks[0].Resources[terms.CPU] = 1000 }
	s.submit("web", whole, 4)
	s.wait(1000)
	lost := s.value().NodeOf("m0").Held[0].Index
	s.machines[0].crash(true)
	s.machines[0].dead = true
	s.wait(2 * pulseMillis)
	s.submit("web", whole, 0)
	if got := s.value().JobOf("web").Tasks[0].Slots.Len(); got <= int(lost) {
		t.Fatalf("slot %d, which waits, is not below one that stops", lost)
	}
	s.submit("web", whole, 4)
	s.rest()
	s.want("web", "running running waiting waiting")
}

func TestAPortAskedForByNumberIsChosenForNobodyElse(t *testing.T) {
	s := newScript(t, 1)
	s.submit("web", func(spec *terms.Job) {
		spec.Tasks[0].Ports = []terms.PortRequest{{Name: "any"}, {Name: "fixed", Number: wishes.PortFirst}}
	}, 1)
	s.rest()
	s.want("web", "running")
}

func TestTheLastPortOfARangeIsNotUsedAgainAtOnce(t *testing.T) {
	s := newScript(t, 1)
	for range 3 {
		s.submit("web", func(spec *terms.Job) {
			spec.Tasks[0].Ports = make([]terms.PortRequest, 5)
			for i := range spec.Tasks[0].Ports {
				spec.Tasks[0].Ports[i].Name = "p" + string(rune('0'+i))
			}
		}, 1)
		s.wait(1000)
		s.must(&command.KillJob{Job: "web"})
		s.wait(10_000)
	}
	s.rest()
}

func TestAWriterIsNotSilencedByWhatANodeSays(t *testing.T) {
	s := newScript(t, 2)
	s.rates[failStart] = 1000
	s.submit("web", nil, 8)
	s.wait(10_000)
	if f := s.value().JobOf("web").Tasks[0].Failure; !strings.HasPrefix(f.Detail, "no such program") {
		t.Fatalf("the failure is %+v", f)
	}
	s.rates[failStart] = 0
	s.rest()
	s.want("web", strings.TrimSpace(strings.Repeat("running ", 8)))
}

func TestAJumpBackOfTheClockDelaysNoRestart(t *testing.T) {
	s := newScript(t, 1)
	s.machines[0].skew = 3_600_000
	s.rates[failStart] = 1000
	s.submit("web", nil, 1)
	s.wait(500)
	s.machines[0].skew = 0
	s.rates[failStart] = 0
	s.wait(3000)
	s.want("web", "running")
	s.rest()
}

func TestAnEntryWithNumberZeroMakesNoNode(t *testing.T) {
	s := newScript(t, 2)
	s.write(&command.Entry{Writer: "x~1", Commands: []command.Command{&command.PrepareJoin{Joiner: "x~1", Attempt: 1}}})
	s.rest()
	if s.value().NodeOf("x") != nil {
		t.Fatal("node x is known")
	}
}

func TestARequestThatNobodyCouldReadIsRefused(t *testing.T) {
	s := newScript(t, 2)
	for name, change := range map[string]func(*terms.Task){
		"no UTF-8":        func(task *terms.Task) { task.Command[1] = "\xff" },
		"name too long":   func(task *terms.Task) { task.Env = []terms.EnvVar{{Name: strings.Repeat("X", 300)}} },
		"negative amount": func(task *terms.Task) { task.Resources[terms.CPU] = -1 },
		"no operator": func(task *terms.Task) {
			task.Constraints = []constraint.Constraint{{Attribute: "a",
				Operator: 99}}
		},
	} {
		spec := terms.Job{Name: "bad", Type: terms.Batch, Tasks: []terms.Task{{
			Name: "t", Instances: 1, Command: []string{"run", "1"}, Placement: terms.Pack}}}
		change(&spec.Tasks[0])
		if r, err := s.send(&command.SubmitJob{Spec: spec}); err == nil && r.Refusal.Code == facts.OK {
			t.Errorf("%s: the job was taken", name)
		}
	}
	s.submit("good", nil, 1)
	s.rest()
	s.want("good", "running")
}

func TestASecondMachineOfOneNameWaitsWithoutAWord(t *testing.T) {
	s := newScript(t, 3)
	twin := s.addMachine(0)
	twin.label = "twin"
	s.boot(twin)
	s.wait(20_000)
	before := len(s.records)
	s.wait(600_000)
	if written := len(s.records) - before; written > 0 {
		t.Fatalf("%d entries were written in ten minutes in which nothing happened", written)
	}
	s.machines[0].crash(true)
	s.machines[0].dead = true
	s.wait(pulseMillis + 2000)
	if self := twin.core.Self(); !s.machines[1].core.State().IsMember(self) {
		t.Fatalf("%s is no member although the other machine of its name has died", self)
	}
	s.rest()
}

func TestAMachineThatStartedManyTimesBesideItsTwinIsNotLockedOut(t *testing.T) {
	s := newScript(t, 2)
	twin := s.addMachine(0)
	twin.label = "twin"
	for range 12 {
		s.boot(twin)
		s.wait(2000)
		twin.crash(true)
		twin.disk = disk{}
		s.wait(20_000)
	}
	s.machines[0].crash(true)
	s.machines[0].dead = true
	s.rest()
}

func TestTwoMachinesOfOneNameStartAtOnce(t *testing.T) {
	s := &script{newWorld(1, Options{limits: usualLimits()}), t}
	for range 2 {
		s.boot(s.addMachine(0))
	}
	s.boot(s.addMachine(1))
	s.rest()
}

func TestAClusterThatDiedAsAWholeComesBack(t *testing.T) {
	s := newScript(t, 5)
	s.submit("web", nil, 5)
	s.wait(1000)
	for _, m := range s.machines {
		m.crash(true)
	}
	s.rest()
	s.want("web", "running running running running running")
}

func TestRulesAreNotRaisedBeforeAllProgramsKnowThem(t *testing.T) {
	s := newScript(t, 3)
	if got := s.value().Rules; got != rules.Released {
		t.Errorf("a new cluster has version %d of the rules, want that of its programs, %d", got, rules.Released)
	}
	r, err := s.send(&command.RaiseRules{Version: rules.Next})
	if err != nil || r.Refusal.Code != facts.Conflict {
		t.Fatalf("got %+v and %v, want a conflict", r, err)
	}
	s.rest()
}

func TestAnEntryThatWasDroppedIsWrittenAgain(t *testing.T) {
	s := newScript(t, 2)
	twin := s.addMachine(0)
	twin.label = "twin"
	s.boot(twin)
	for s.phaseOf("m0~2") != membership.Refused || twin.appending == nil {
		s.wait(1)
	}
	third := terms.PeerID("m0~9")
	s.write(&command.Entry{Writer: third, Seq: 1, Time: s.now,
		Commands: []command.Command{&command.PrepareJoin{Joiner: third, Attempt: 1}}})
	s.wait(10_000)
	s.machines[0].crash(true)
	s.machines[0].dead = true
	s.rest()
}

func (s *script) phaseOf(p terms.PeerID) membership.AttemptPhase {
	a, _ := s.value().Attempt(p)
	return a.Phase
}

// What one entry may not place goes on with the next, and what waited for the same node is not forgotten over it.
func TestWorkThatIsLeftOverGoesOn(t *testing.T) {
	limits := *usualLimits()
	limits.Placements, limits.Gang = 1000, 1000
	s := newScribe(1, Options{limits: &limits})
	plain, flash := s.drawOffer(&machine{}), s.drawOffer(&machine{})
	plain.Attributes, flash.Attributes = nil, []terms.EnvVar{{Name: "disk", Value: "ssd"}}
	spec := terms.Job{Name: "many", Type: terms.Stateless, Tasks: []terms.Task{{
		Name: "t", Instances: limits.Placements + 100, Command: []string{"run", "0"}, Placement: terms.Pack,
		Constraints: []constraint.Constraint{{Attribute: "disk", Operator: constraint.Exists}},
	}}}
	few := spec
	few.Name, few.Tasks = "few", slices.Clone(spec.Tasks)
	few.Tasks[0].Instances = 3
	for i, c := range []command.Command{
		&command.PrepareJoin{Joiner: "a~1", Attempt: 1}, &command.Volunteer{Peer: "a~1", Offer: plain},
		&command.SubmitJob{Spec: spec},
		&command.SubmitJob{Spec: few}, &command.Volunteer{Peer: "a~1", Offer: flash}, &command.TellTime{},
		&command.KillJob{Job: "many"},
	} {
		s.fold(&command.Entry{Writer: "a~1", Seq: uint64(i + 1), Time: s.now, Commands: []command.Command{c}})
		if got, want := s.reader.core.State().Unfinished, i == 4; got != want {
			t.Fatalf("work is left over after entry %d: %v, want %v", i+1, got, want)
		}
	}
	if few := s.reader.core.State().JobOf("few").Tasks[0]; s.failure != nil || few.Waits() > 0 {
		t.Fatalf("%d of the few wait: %v", few.Waits(), s.failure)
	}
}

// say folds the next entry of a writer.
func (s *scribe) say(writer terms.PeerID, commands ...command.Command) {
	s.numbers[writer]++
	s.fold(&command.Entry{Writer: writer, Seq: s.numbers[writer], Time: s.now, Commands: commands})
}

// admit lets machines join, each after the one before it, and offer four cores each.
func (s *scribe) admit(t *testing.T, writers ...terms.PeerID) {
	for i, p := range writers {
		s.say(p, &command.PrepareJoin{Joiner: p, Attempt: 1})
		if i > 0 {
			observer := s.model.Attempts[p].Observer
			s.say(observer, &command.NotifyJoin{Joiner: p, Attempt: 1})
			s.say(p, &command.AcceptJoin{Joiner: p, Observer: observer, Attempt: 1})
		}
		s.say(p, &command.Volunteer{Peer: p, Offer: terms.Offer{
			Capacity: terms.Resources{4000, 4 << 30, 1 << 40}, Address: string(p) + ":1", Rules: rules.Released,
		}})
	}
	if got := s.reader.core.State().Members(); got != len(writers) {
		t.Fatalf("%d of %d machines are members", got, len(writers))
	}
}

// start lets all instances that were ordered run and be ready.
func (s *scribe) start() {
	for _, p := range slices.Clone(s.model.Ring) {
		c := &command.ReportTasks{Peer: p}
		for _, seat := range s.model.Seats() {
			if s.model.Nodes[seat.Node].Peer == p {
				c.Reports = append(c.Reports, command.Report{Slot: seat.Ref, Order: seat.Order, Ready: true})
			}
		}
		s.say(p, c)
	}
}

// end lets an instance of the only task of the first job fail.
func (s *scribe) end(index uint32) {
	for _, seat := range s.model.Seats() {
		if seat.Ref == (facts.SlotRef{Job: 1, Index: index}) {
			s.say(s.model.Nodes[seat.Node].Peer,
				&command.ReportTasks{Peer: s.model.Nodes[seat.Node].Peer, Reports: []command.Report{
					{Slot: seat.Ref, Order: seat.Order, Ended: facts.ByItself, ExitCode: 1},
				}})
		}
	}
}

func serviceOf(kind terms.JobType, instances uint32) terms.Job {
	return terms.Job{Name: "web", Type: kind, Update: terms.UpdatePolicy{BatchSize: 1}, Tasks: []terms.Task{{
		Name: "t", Instances: instances, Command: []string{"run", "0"}, Placement: terms.Spread,
		Resources: terms.Resources{500},
		Restart:   terms.Restart{AttemptsMax: terms.RestartsUnlimited, DelayMillis: 60_000, DelayMaxMillis: 60_000},
	}}}
}

// A policy restarts a job with the entry that brings a new version of it: all instances are ended by the policy, and
// some of them are then the update's. That took no healthy one away. Seed 902617.
func TestARestartByAPolicyIsNotTheUpdatesFault(t *testing.T) {
	s := newScribe(1, Options{limits: usualLimits()})
	s.admit(t, "a~1")
	spec := serviceOf(terms.Stateless, 3)
	spec.Update.BatchSize, spec.MaxRestarts = 2, 1
	spec.Policies = []lifecycle.Policy{{On: []lifecycle.Event{lifecycle.InstanceFailed}, Action: lifecycle.RestartJob,
		DelayMillis: 1000}}
	s.say("a~1", &command.SubmitJob{Spec: spec})
	s.start()
	s.end(2)
	s.now += 1000
	next := spec
	next.Tasks = slices.Clone(spec.Tasks)
	next.Tasks[0].Command = []string{"run", "1"}
	s.say("a~1", &command.SubmitJob{Spec: next, Against: 1})
	if j := s.reader.core.State().JobOf("web"); s.failure != nil || j.Version != 2 || !j.Tasks[0].Restarting {
		t.Fatalf("the job has version %d, and is restarted: %v; %v", j.Version, j.Tasks[0].Restarting, s.failure)
	}
}

// A node is drained with the entry that brings a new version of a daemon: its instance there ends because of the drain,
// to which nothing is promised, and is then the update's. Seed 905540.
func TestADrainOfADaemonIsNotTheUpdatesFault(t *testing.T) {
	s := newScribe(1, Options{limits: usualLimits()})
	s.admit(t, "a~1", "b~1", "c~1")
	spec := serviceOf(terms.Daemon, 1)
	s.say("a~1", &command.SubmitJob{Spec: spec})
	s.start()
	s.end(2)
	next := spec
	next.Tasks = slices.Clone(spec.Tasks)
	next.Tasks[0].Command = []string{"run", "1"}
	s.say("a~1", &command.DrainNode{Node: "b", Drain: true, DeadlineMillis: 60_000},
		&command.SubmitJob{Spec: next, Against: 1})
	if j := s.reader.core.State().JobOf("web"); s.failure != nil || j.Version != 2 ||
		j.Tasks[0].Counts[facts.Stopping] != 1 {
		t.Fatalf("the job has version %d, and %d instances stop: %v", j.Version, j.Tasks[0].Counts[facts.Stopping],
			s.failure)
	}
}
