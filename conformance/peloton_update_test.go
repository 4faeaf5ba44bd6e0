package conformance

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"starling/cluster/facts"
	"starling/command"
	"starling/rollout"
	"starling/terms"
)

// The differences from Peloton in updates. Each holds for every file.
var (
	highestGo = &difference{name: "the highest go",
		reason: "slots are 0 to desired-1, so that a job that shrinks loses the highest numbers first"}
	sizeAtOnce = &difference{name: "sizes at once",
		reason: "how many instances there are changes at once: what is added takes nothing away, " +
			"and what is removed is wanted in no version; batches are for what is replaced"}
	noInitialized = &difference{name: "nothing between",
		reason: "an update begins in the entry that brings it: what Peloton may do to an " +
			"initialized one may be done to it at once"}
	oneNumber = &difference{name: "one number",
		reason: "the version of a job changes with what it is to be; who steers an update names the " +
			"version it leads to, and a start or stop is no version"}
	noOverrides = &difference{name: "no overrides",
		reason: "the instances of a task are equal: what is to differ is a task of its own"}
	doneWhenRun = &difference{name: "done when it has run",
		reason: "an update of a suspended job is done when its instances have run healthily, " +
			"after the job has been resumed"}
	noStopped = &difference{name: "none is stopped",
		reason: "an instance of a running job that is stopped is started again: who wants fewer " +
			"asks for fewer"}
)

// updates runs a file of cases about updates.
func updates(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		var c struct{ Kind string }
		if err := s.node.Load(&c); err != nil {
			t.Fatal(err)
		}
		var one interface {
			check(t *trial, differences tally)
		}
		switch c.Kind {
		case "batch_selection":
			one = &batchCase{}
		case "instance_complete":
			one = &completeCase{}
		case "instance_failed":
			one = &attemptsCase{}
		case "update_failed":
			one = &budgetCase{}
		case "transitions":
			one = &transitionsCase{}
		case "entity_version":
			one = &versionCase{}
		case "diff":
			one = &diffCase{}
		case "overwrite":
			one = &overwriteCase{}
		case "confirm_status", "sla_host_maintenance":
			t.leaveOut(c.Kind)
		default:
			t.Fatalf("the kind %q is not known", c.Kind)
		}
		s.read(t, one)
		one.check(t, differences)
	})
}

// numbers are instances to add, to move to the new version and to remove.
type numbers struct{ Add, Update, Remove []uint32 }

// wave is how many instances an update adds, moves and removes at a time.
type wave struct{ add, move, remove uint32 }

func (n *numbers) wave() wave {
	return wave{uint32(len(n.Add)), uint32(len(n.Update)), uint32(len(n.Remove))}
}

// batchCase asks which instances an update takes next.
type batchCase struct {
	told      `yaml:",inline"`
	Kind      string
	BatchSize uint32   `yaml:"batch_size"`
	InFlight  []uint32 `yaml:"in_flight"`
	Remaining numbers
	Expect    numbers
}

func (c *batchCase) check(t *trial, differences tally) {
	left, underWay, want := c.Remaining.wave(), uint32(len(c.InFlight)), c.Expect.wave()
	for _, list := range [][]uint32{c.Remaining.Add, c.Remaining.Update, c.Remaining.Remove} {
		slices.Sort(list)
	}
	if !slices.Equal(c.Remaining.Remove[left.remove-want.remove:], c.Expect.Remove) {
		differences.state(t, highestGo)
	}
	if first := c.Remaining.Update[:want.move]; !slices.Equal(first, c.Expect.Update) {
		t.Errorf("the lowest to move are %v, want %v", first, c.Expect.Update)
	}
	var got wave
	if left.add > 0 && left.remove > 0 && left.add+left.move+left.remove+underWay <= c.BatchSize {
		// A task of ours does not grow and shrink at once: where all fits into a batch each half is tried alone.
		got = foldWave(t, c.BatchSize, underWay, wave{left.add, left.move, 0})
		got.remove = foldWave(t, c.BatchSize, underWay, wave{0, left.move, left.remove}).remove
	} else {
		got = foldWave(t, c.BatchSize, underWay, left)
	}
	switch {
	case got == want:
	case got.move == want.move && got.add == left.add && got.remove == left.remove:
		differences.state(t, sizeAtOnce)
	default:
		t.Errorf("the fold takes %+v, want %+v", got, want)
	}
}

// foldWave brings a task of the fold to a point where so much is under way and left, and returns what it takes then.
func foldWave(t *trial, batch, underWay uint32, left wave) wave {
	if left.add > 0 && (left.remove > 0 || underWay > 0) || underWay > batch {
		t.Fatalf("no rule for %+v while %d are under way", left, underWay)
	}
	moved := uint32(0)
	if underWay > 0 {
		moved = batch
	}
	had := moved + left.move + left.remove
	w := newStage(t, room())
	w.submit(service(had, "old", terms.UpdatePolicy{}))
	w.play(always(passes))
	w.submit(service(moved+left.move+left.add, "new", terms.UpdatePolicy{BatchSize: batch}))
	w.play(func(r facts.SlotRef, _ facts.Slot) saying {
		switch {
		case r.Index < moved-underWay:
			return passes
		case r.Index < moved:
			return runs
		}
		return silent
	})
	task := w.job().Tasks[0]
	got := wave{add: task.Desired - min(task.Desired, had), remove: had - min(task.Desired, had)}
	for index := moved; index < min(task.Desired, had); index++ {
		slot := task.Slots.At(int(index))
		if slot.Cause != facts.ByUpdate {
			continue
		}
		if got.move++; index != moved+got.move-1 {
			t.Errorf("the fold moves slot %d before lower ones", index)
		}
	}
	return got
}

// completeCase asks whether an update is done with an instance.
type completeCase struct {
	told     `yaml:",inline"`
	Kind     string
	Instance struct {
		State, Goal, Health string
		Config, Desired     uint32
	}
	Expect string
}

func (c *completeCase) check(t *trial, differences tally) {
	in := &c.Instance
	if in.Goal == "KILLED" {
		c.checkStopped(t, differences)
		return
	}
	if in.Config == 0 || in.Config > in.Desired || !slices.Contains([]string{"done", "in progress"}, c.Expect) {
		t.Fatalf("no rule for %+v, %q", *in, c.Expect)
	}
	answers, known := map[string]saying{
		"INITIALIZED": silent, "PENDING": silent, "READY": silent, "PLACING": silent, "RESERVED": silent, "PLACED": silent,
		"LAUNCHING": silent, "LAUNCHED": silent, "STARTING": silent, "KILLING": silent, "RUNNING": runs, "FAILED": fails,
		"SUCCEEDED": ends, "LOST": silent, "KILLED": ends,
	}[in.State]
	if _, ok := map[string]bool{"": true, "HEALTHY": true, "DISABLED": true, "UNHEALTHY": true, "HEALTH_UNKNOWN": true,
		"INVALID": true}[in.Health]; !ok || !known {
		t.Fatalf("no rule for the state %q with health %q", in.State, in.Health)
	}
	if answers == runs && (in.Health == "HEALTHY" || in.Health == "DISABLED") {
		answers = passes
	}
	w := newStage(t, room())
	for version := uint32(1); version <= in.Desired; version++ {
		w.submit(service(1, strconv.Itoa(int(version)), terms.UpdatePolicy{FailuresMax: terms.RestartsUnlimited}))
		switch {
		case version < in.Config:
			w.play(always(passes))
		case version == in.Config:
			w.play(of(version, always(answers)))
		}
	}
	got := "in progress"
	if w.job().Update.State.Final() {
		got = "done"
	}
	switch {
	case got == c.Expect:
	case in.State == "KILLED" && c.Expect == "done":
		differences.state(t, noStopped)
	default:
		t.Errorf("got %s (%s), want %s", got, w.job().Update.State, c.Expect)
	}
}

// checkStopped updates a job that is suspended, whose instances have all ended.
func (c *completeCase) checkStopped(t *trial, differences tally) {
	if c.Instance.State != "KILLED" || !strings.HasPrefix(c.Expect, "done") {
		t.Fatalf("no rule for %+v, %q", c.Instance, c.Expect)
	}
	w := newStage(t, room())
	w.submit(service(1, "old", terms.UpdatePolicy{}))
	w.play(always(passes))
	w.must(&command.SuspendJob{Job: stageJob, Against: 1})
	w.play(always(passes))
	w.submit(service(1, "new", terms.UpdatePolicy{}))
	if slot := w.job().Tasks[0].Slots.At(0); slot.Phase.Holds() {
		t.Errorf("an instance of a suspended job is %s", slot.Phase)
	}
	if !w.job().Update.State.Final() {
		differences.state(t, doneWhenRun)
		w.must(&command.SuspendJob{Job: stageJob, Against: 2, Resume: true})
		w.play(always(passes))
	}
	if slot := w.job().Tasks[0].Slots.At(0); w.job().Update.State != facts.UpdateSucceeded ||
		slot.Version != w.job().Version {
		t.Errorf("got %s, the instance runs version %d, want %s", w.job().Update.State, slot.Version, c.Expect)
	}
}

// attemptsCase asks whether an instance that failed so often counts as failed.
type attemptsCase struct {
	told         `yaml:",inline"`
	Kind         string
	FailureCount uint32 `yaml:"failure_count"`
	AttemptsMax  uint32 `yaml:"max_instance_attempts"`
	Expect       bool   `yaml:"expect_failed"`
}

func (c *attemptsCase) check(t *trial, _ tally) {
	if got := rollout.InstanceFailed(c.FailureCount, c.AttemptsMax); got != c.Expect {
		t.Errorf("InstanceFailed() = %v, want %v", got, c.Expect)
	}
	w := newStage(t, room())
	w.submit(service(1, "run", terms.UpdatePolicy{AttemptsMax: c.AttemptsMax, FailuresMax: terms.RestartsUnlimited}))
	for range c.FailureCount {
		w.round(always(fails))
		w.later(2000)
	}
	slot := w.job().Tasks[0].Slots.At(0)
	if got := slot.Health == facts.Unhealthy; got != c.Expect || slot.Failures != c.FailureCount {
		t.Errorf("in the fold: %d failures, failed is %v; want %d, %v", slot.Failures, got, c.FailureCount, c.Expect)
	}
}

// budgetCase asks what becomes of an update in which so many instances failed.
type budgetCase struct {
	told      `yaml:",inline"`
	Kind      string
	Failed    uint32 `yaml:"failed_instances"`
	Max       uint32 `yaml:"max_failure_instances"`
	Rollback  bool   `yaml:"rollback_on_failure"`
	Direction string
	Expect    string
}

// endsWords say how an update ends in which all instances fail.
var endsWords = regexp.MustCompile(`^ends (\w+)( even when every instance failed)?$`)

func (c *budgetCase) check(t *trial, _ tally) {
	w := newStage(t, room())
	// A limit of n counts the failure that fails the update, ours those that it bears.
	policy := terms.UpdatePolicy{AttemptsMax: 1, FailuresMax: c.Max - 1, Rollback: c.Rollback || c.Direction == "backward"}
	w.submit(service(c.Failed+1, "old", policy))
	w.play(always(passes))
	w.submit(service(c.Failed+1, "new", policy))
	rolls := facts.RollingForward
	switch c.Direction {
	case "forward":
	case "backward":
		w.play(always(runs))
		w.steer(command.Fail)
		rolls = facts.RollingBackward
	default:
		t.Fatalf("the direction %q is not known", c.Direction)
	}
	version := w.job().Version
	w.play(of(version, func(r facts.SlotRef, slot facts.Slot) saying {
		if r.Index < c.Failed && slot.Failures == 0 {
			return fails
		}
		return silent
	}))
	now, then, further := strings.Cut(c.Expect, "; ")
	want := now
	if now == "continues" {
		want = rolls.String()
	}
	if got := w.job().Update.State.String(); got != want {
		t.Errorf("got %s (%s), want %s", got, w.job().Update.Reason, want)
	}
	if !further {
		return
	}
	words := endsWords.FindStringSubmatch(then)
	if words == nil {
		t.Fatalf("no rule for %q", then)
	}
	w.play(of(version, func(r facts.SlotRef, slot facts.Slot) saying {
		switch {
		case r.Index < c.Failed:
			return silent
		case words[2] == "":
			return passes
		}
		return fails
	}))
	if got := w.job().Update.State.String(); got != words[1] {
		t.Errorf("ended as %s (%s), want %s", got, w.job().Update.Reason, words[1])
	}
}

// versionCase asks which writes are accepted.
type versionCase struct {
	told   `yaml:",inline"`
	Kind   string
	Format string
	Cases  []struct{ Sent, Current, Expect string }
}

func (c *versionCase) check(t *trial, differences tally) {
	if !strings.HasPrefix(c.Format, "config-desiredState-workflow") || len(c.Cases) == 0 {
		t.Fatalf("the format %q is not known", c.Format)
	}
	for _, one := range c.Cases {
		current, others, _ := strings.Cut(one.Current, "-")
		sent, othersSent, _ := strings.Cut(one.Sent, "-")
		present, err := strconv.ParseUint(current, 10, 8)
		if err != nil || present == 0 {
			t.Fatalf("the version %q is not known", one.Current)
		}
		against, err := strconv.ParseUint(sent, 10, 32)
		got := "rejected"
		if err == nil || sent == "" {
			got = c.send(t, uint32(against), int(present))
		}
		switch {
		case strings.HasPrefix(one.Expect, got), one.Expect == "rejected" && got != "accepted":
		case got == "accepted" && others != othersSent:
			differences.state(t, oneNumber)
		default:
			t.Errorf("%q to %q: got %s, want %s", one.Sent, one.Current, got, one.Expect)
		}
	}
}

// send writes a change of a job in its present version against a version.
func (c *versionCase) send(t *trial, against uint32, present int) string {
	w := newStage(t, room())
	for version := range present {
		w.submit(service(1, strconv.Itoa(version), terms.UpdatePolicy{}))
	}
	refusal := w.write(user, &command.SubmitJob{Spec: *service(2, "new", terms.UpdatePolicy{}), Against: against})
	switch {
	case refusal.Code == facts.Conflict && w.job().Version == uint32(present):
		return "ABORTED"
	case refusal.Code == facts.OK && w.job().Version == uint32(present)+1:
		return "accepted"
	}
	return refusal.Reason
}

// diffCase tells what a new version means for which instances.
type diffCase struct {
	told   `yaml:",inline"`
	Kind   string
	Expect struct {
		Added, Updated, Removed []uint32
		Kept                    []uint32 `yaml:"unchanged_version_bump_only"`
	}
}

// countWords tell in words how many instances there are before and after.
var countWords = regexp.MustCompile(`count (\d+) -> (\d+)`)

// checkNumbers wants the instances before and after to be those from 0 on, and as many as the words say.
func (c *diffCase) checkNumbers(t *trial) {
	before := slices.Concat(c.Expect.Removed, c.Expect.Updated, c.Expect.Kept)
	after := slices.Concat(c.Expect.Added, c.Expect.Updated, c.Expect.Kept)
	words := countWords.FindStringSubmatch(c.What)
	for i, list := range [][]uint32{before, after} {
		slices.Sort(list)
		for index := range list {
			if list[index] != uint32(index) {
				t.Fatalf("%v are not the instances from 0 on", list)
			}
		}
		if words != nil && words[i+1] != strconv.Itoa(len(list)) {
			t.Errorf("%d instances, want %s: %s", len(list), words[i+1], c.What)
		}
	}
	if len(before)+len(after) == 0 || strings.Contains(c.What, "same spec") && len(c.Expect.Updated) > 0 {
		t.Errorf("the expectation is not about %q", c.What)
	}
}

// check makes a job with the instances before, changes it so that those have to be updated that are, and looks at what
// the fold does. Instances that differ from the others are a task of their own.
func (c *diffCase) check(t *trial, differences tally) {
	e := &c.Expect
	added, updated, removed, kept := uint32(len(e.Added)), uint32(len(e.Updated)), uint32(len(e.Removed)),
		uint32(len(e.Kept))
	c.checkNumbers(t)
	if updated > 0 && kept > 0 {
		differences.state(t, noOverrides)
	}
	old := terms.Job{Name: stageJob, Type: terms.Stateless, Tasks: []terms.Task{
		stageTask("kept", kept), stageTask("updated", updated),
	}}
	// All that come or go belong to the task with the others that stay as they are, if there are any.
	sized := 0
	if kept == 0 && updated > 0 {
		sized = 1
	}
	now := old
	now.Tasks = slices.Clone(old.Tasks)
	now.Tasks[1].Command = []string{"new"}
	old.Tasks[sized].Instances += removed
	now.Tasks[sized].Instances += added
	w := newStage(t, room())
	w.submit(&old)
	w.play(always(passes))
	before := w.s.Index
	w.submit(&now)
	got := diffCase{}.Expect
	for task := range w.job().Tasks {
		w.s.EachSlot(w.job().ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
			switch {
			case slot.Order > before:
				got.Added = append(got.Added, r.Index)
			case slot.Phase == facts.Stopping && slot.Cause == facts.ByUpdate:
				got.Updated = append(got.Updated, r.Index)
			case slot.Phase == facts.Stopping && slot.Cause == facts.ByScale:
				got.Removed = append(got.Removed, r.Index)
			case slot.Phase == facts.Running && slot.Version == w.job().Version && slot.Health == facts.Healthy:
				got.Kept = append(got.Kept, r.Index)
			}
			return true
		})
	}
	if len(got.Added) != len(e.Added) || len(got.Updated) != len(e.Updated) || len(got.Removed) != len(e.Removed) ||
		len(got.Kept) != len(e.Kept) {
		t.Errorf("got %+v, want as many as %+v", got, *e)
	}
}
