package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/reaction"
	"starling/terms"
)

// The differences from Peloton in the states of jobs and in what comes after an end. Each holds for every file.
var (
	servicesFail = &difference{name: "services do not succeed",
		reason: "a service that exits with 0 has failed at being there, like any other"}
	nodeIsRuns   = &difference{name: "a node is enough", reason: "a job runs as soon as an instance has a node"}
	stopsAtOnce  = &difference{name: "stops at once", reason: "a job that was told to stop is stopping from that entry on"}
	lostIsPlaced = &difference{name: "the lost are placed",
		reason: "what was lost with its node did not fail: it is placed again whatever its " +
			"program may fail"}
	startIsCounted = &difference{name: "starts are counted",
		reason: "an instance that cannot be started has failed like any other: who wants " +
			"more attempts says so"}
)

// stateFile is a file of rules about the states of jobs and tasks.
type stateFile struct {
	Jobs     []yaml.Node `yaml:"job_state_from_task_counts"`
	Throttle yaml.Node   `yaml:"service_throttle"`
	Retries  []yaml.Node `yaml:"retry_cases"`
	Running  []yaml.Node `yaml:"max_running_instances"`
	// The others are left out.
	Transitions yaml.Node            `yaml:"resource_manager_task_transitions"`
	Timeouts    yaml.Node            `yaml:"resource_manager_timeouts"`
	JobGoals    yaml.Node            `yaml:"job_goal_state_actions"`
	TaskGoals   yaml.Node            `yaml:"task_goal_state_actions"`
	Maintenance yaml.Node            `yaml:"host_maintenance_actions"`
	Other       map[string]yaml.Node `yaml:",inline"`
}

// leaveOut leaves out each rule of the tables that have no counterpart.
func (f *stateFile) leaveOut(s *sheet) {
	for _, part := range []struct {
		form string
		node *yaml.Node
	}{
		{"transition", &f.Transitions}, {"timeout", &f.Timeouts}, {"job goal", &f.JobGoals}, {"task goal", &f.TaskGoals},
		{"maintenance", &f.Maintenance},
	} {
		for i := range part.node.Content {
			s.run(fmt.Sprintf("%s-%d", part.form, i+1), func(t *trial) { t.leaveOut(part.form) })
		}
	}
}

// jobStates runs a file of states.
func jobStates(s *sheet) {
	var f stateFile
	if err := yaml.Load(s.data, &f, yaml.WithKnownFields()); err != nil {
		s.fail("read the file: %v", err)
		return
	}
	s.unknownKeys(f.Other)
	for i := range f.Jobs {
		var head struct{ ID string }
		c := &jobStateCase{}
		_ = f.Jobs[i].Load(&head) // read tells what is wrong
		s.run(head.ID, func(t *trial) {
			read(t, &f.Jobs[i], c)
			c.leave(t)
			c.check(t, s.differences)
		})
	}
	s.run("throttle", func(t *trial) {
		c := &throttleCases{}
		if f.Throttle.Kind != 0 {
			read(t, &f.Throttle, c)
		}
		c.check(t)
	})
	for i := range f.Retries {
		s.run(fmt.Sprint("retry-", i+1), func(t *trial) {
			c := &retryCase{}
			read(t, &f.Retries[i], c)
			c.check(t, s.differences)
		})
	}
	for i := range f.Running {
		s.run(fmt.Sprint("running-", i+1), func(t *trial) {
			c := &runningCase{}
			read(t, &f.Running[i], c)
			c.check(t)
		})
	}
	f.leaveOut(s)
}

// jobStateCase tells a job's state from how many of its tasks are in which.
type jobStateCase struct {
	told       `yaml:",inline"`
	Type       string            `yaml:"job_type"`
	Count      uint32            `yaml:"instance_count"`
	States     map[string]uint32 `yaml:"task_states"`
	Expect     string
	Current    string `yaml:"current_state"`
	Goal       string `yaml:"goal_state"`
	Controller string `yaml:"controller_task_state"`
}

// leave leaves out a case without a counterpart.
func (c *jobStateCase) leave(t *trial) {
	total := uint32(0)
	for _, n := range c.States {
		total += n
	}
	switch {
	case c.Controller != "":
		t.leaveOut("controller")
	case total != c.Count:
		t.leaveOut("other count")
	}
}

// check makes a job with a task for each state, and brings its instances there.
func (c *jobStateCase) check(t *trial, differences tally) {
	kind, ok := map[string]terms.JobType{"batch": terms.Batch, "service": terms.Stateless}[c.Type]
	if !ok {
		t.Fatalf("the type %q is not known", c.Type)
	}
	// What is lost has a node of its own; what waits needs more than any has.
	w := newStage(t, room(), terms.Resources{0, 1_000_000, 0})
	spec := &terms.Job{Name: stageJob, Type: kind}
	answers := map[terms.TaskName]saying{}
	stops := slices.Contains([]string{"KILLED", "DELETED"}, c.Goal)
	for _, state := range sortedKeys(c.States) {
		one := stageTask(strings.ToLower(state), c.States[state])
		one.Restart.AttemptsMax = 0
		say, known := map[string]saying{
			"INITIALIZED": silent, "PENDING": silent, "READY": silent, "PLACING": silent, "RESERVED": silent, "PLACED": silent,
			"LAUNCHING": silent, "LAUNCHED": silent, "STARTING": silent, "RUNNING": runs, "KILLING": runs, "KILLED": runs,
			"LOST":   runs,
			"FAILED": fails, "SUCCEEDED": ends,
		}[state]
		if !known {
			t.Fatalf("the state %q is not known", state)
		}
		switch {
		case state == "LOST":
			one.Resources = terms.Resources{0, 1, 0}
		case say == silent && slices.Contains([]string{"INITIALIZED", "PENDING", "READY", "PLACING", "RESERVED"}, state):
			one.Resources[terms.CPU] = 2 * room()[terms.CPU]
		}
		answers[one.Name] = say
		stops = stops || state == "KILLED" || state == "KILLING"
		spec.Tasks = append(spec.Tasks, one)
	}
	w.submit(spec)
	answerOf := func(r facts.SlotRef, _ facts.Slot) saying { return answers[w.job().Tasks[r.Task].Name] }
	w.play(answerOf)
	w.write(user, &command.Leave{Peer: "n1~1"})
	if stops && w.job().Finished == 0 {
		w.must(&command.KillJob{Job: stageJob})
		delete(answers, "killing")
		for _, still := range []terms.TaskName{"killing", "running"} {
			answers[still] = silent
		}
		w.play(answerOf)
	}
	c.compare(t, w.job().Status(), differences)
}

// compare holds our state against the one that is expected.
func (c *jobStateCase) compare(t *trial, got workload.Status, differences tally) {
	want, ok := map[string]workload.Status{
		"INITIALIZED": workload.StatusPending, "PENDING": workload.StatusPending, "RUNNING": workload.StatusRunning,
		"KILLING": workload.StatusStopping, "KILLED": workload.StatusStopped, "FAILED": workload.StatusFailed,
		"SUCCEEDED": workload.StatusSucceeded,
	}[c.Expect]
	switch {
	case !ok:
		t.Fatalf("the state %q is not known", c.Expect)
	case got == want:
	case c.Type == "service" && want == workload.StatusSucceeded && got == workload.StatusFailed:
		differences.state(t, servicesFail)
	case c.States["LOST"] > 0 && want == workload.StatusFailed && got == workload.StatusPending:
		differences.state(t, lostIsPlaced)
	case want == workload.StatusPending && got == workload.StatusRunning && c.States["RUNNING"] == 0:
		differences.state(t, nodeIsRuns)
	case (want == workload.StatusPending || want == workload.StatusRunning) && got == workload.StatusStopping:
		differences.state(t, stopsAtOnce)
	default:
		t.Errorf("got %s, want %s", got, want)
	}
}

// throttleCases tell how long a service waits after so many failures.
type throttleCases struct {
	Rule  string
	Cases []struct {
		Failures uint32 `yaml:"failure_count"`
		Seconds  int64  `yaml:"backoff_seconds"`
	}
}

var throttleRule = regexp.MustCompile(
	`^min\((\d+) s \* 2\^\(failure_count-1\), (\d+) min\); 0 when failure_count is 0$`)

func (c *throttleCases) check(t *trial) {
	words := throttleRule.FindStringSubmatch(c.Rule)
	if words == nil {
		if c.Rule != "" || len(c.Cases) > 0 {
			t.Fatalf("no rule for %q", c.Rule)
		}
		return
	}
	first, _ := strconv.Atoi(words[1])
	most, _ := strconv.Atoi(words[2])
	for _, one := range c.Cases {
		spec := service(1, "run", terms.UpdatePolicy{})
		spec.Tasks[0].Restart.DelayMillis, spec.Tasks[0].Restart.DelayMaxMillis = uint32(first)*1000, uint32(most)*60_000
		w := newStage(t, room())
		w.submit(spec)
		if got := w.failOften(one.Failures); got != one.Seconds*1000 {
			t.Errorf("%d failures: got %d ms, want %d s", one.Failures, got, one.Seconds)
		}
	}
}

// failOften lets the only instance fail so often in a row, and returns for how long it then waits.
func (w *stage) failOften(times uint32) int64 {
	for i := range times {
		if i > 0 {
			w.later(terms.DelayMillisMax / 24)
		}
		w.play(always(fails))
	}
	return w.delay()
}

// delay returns for how long the only slot waits.
func (w *stage) delay() int64 {
	if slot := w.job().Tasks[0].Slots.At(0); slot.Phase == facts.BackingOff {
		return int64(slot.Deadline - w.now)
	}
	return 0
}

// runningCase tells how many more instances start of a job of which only so many may run at a time.
type runningCase struct {
	Instances   uint32
	Maximum     uint32 `yaml:"maximum_running"`
	Initialized uint32
	Scheduled   uint32
	Succeeded   uint32
	Start       uint32 `yaml:"expect_start"`
}

// check lets some instances end. Where more have been scheduled than may run, the bound was lowered.
func (c *runningCase) check(t *trial) {
	w := newStage(t, room())
	spec := service(c.Instances, "run", terms.UpdatePolicy{})
	spec.Type, spec.Tasks[0].MaxRunning = terms.Batch, max(c.Maximum, c.Scheduled)
	w.submit(spec)
	w.play(func(r facts.SlotRef, _ facts.Slot) saying {
		if r.Index < c.Succeeded {
			return ends
		}
		return silent
	})
	if c.Scheduled > c.Maximum {
		lower := service(c.Instances, "run", terms.UpdatePolicy{})
		lower.Type, lower.Tasks[0].MaxRunning = terms.Batch, c.Maximum
		w.submit(lower)
	}
	if got := w.job().Tasks[0].Live() - c.Scheduled; got != c.Start {
		t.Errorf("%d start, want %d", got, c.Start)
	}
}

// retryCase tells what comes after the end of an instance.
type retryCase struct {
	Kind          string
	MaxFailures   uint32 `yaml:"max_failures"`
	Event, Expect string
	After         uint32 `yaml:"failure_count_after"`
}

// check lets the event happen to a job of one instance.
func (c *retryCase) check(t *trial, differences tally) {
	spec := service(1, "run", terms.UpdatePolicy{})
	restart := &spec.Tasks[0].Restart
	switch c.Kind {
	case "service", "any":
		restart.DelayMillis, restart.DelayMaxMillis = 30_000, 3_600_000
	case "batch":
		// The limit counts runs, ours restarts; they come at once.
		spec.Type, restart.AttemptsMax = terms.Batch, max(c.MaxFailures, 1)-1
		spec.KillOnPreempt = strings.HasSuffix(c.Event, "killOnPreempt")
		restart.DelayMillis, restart.DelayMaxMillis = 0, 0
	default:
		t.Fatalf("the kind %q is not known", c.Kind)
	}
	w := newStage(t, room(), room())
	w.later(0) // so that there could have been an order before the first
	w.submit(spec)
	before := w.job().Tasks[0].Slots.At(0)
	if !c.happen(w) {
		t.Fatalf("no rule for the event %q", c.Event)
	}
	event, _, _ := strings.Cut(c.Event, " ")
	if d := c.different(w, event, &before); d != nil {
		differences.state(t, d)
	} else if got, want := w.outcome(&before), c.wanted(); want == "" || !strings.HasPrefix(got, want) {
		t.Errorf("%s: got %s, want %s: %s", c.Event, got, want, c.Expect)
	}
}

// different returns by which rule we differ on purpose, nil if we do not. What is to restart must, and the reverse.
func (c *retryCase) different(w *stage, event string, before *facts.Slot) *difference {
	got, want := w.outcome(before), c.wanted()
	switch {
	case event == "LOST" && want == "ended" && got == "restarts after 0 s":
		return lostIsPlaced
	case strings.HasPrefix(c.Event, "FAILED by the system") && want == "restarts" && got == "ended":
		return startIsCounted
	}
	return nil
}

// happen lets the event happen; it returns false if that is not known.
func (c *retryCase) happen(w *stage) bool {
	first := facts.SlotRef{Job: w.job().ID}
	told := func(news command.Report) { w.report(first, news) }
	event, _, _ := strings.Cut(c.Event, " (")
	switch event {
	case "FAILED":
		w.failOften(c.After)
	case "SUCCEEDED":
		w.failOften(max(c.After, 1) - 1)
		w.later(terms.DelayMillisMax / 24)
		w.play(always(ends))
	case "FAILED by the system":
		for w.job().Tasks[0].Slots.At(0).Failures < c.After && w.job().Finished == 0 {
			w.later(0)
			told(command.Report{Ended: facts.NotStarted, Detail: "no such program"})
		}
	case "LOST":
		w.play(always(runs))
		slot, _ := w.s.SlotAt(first)
		w.write(user, &command.Leave{Peer: w.s.Node(slot.Node).Peer})
	case "unhealthy: max consecutive health failures":
		w.play(always(runs))
		told(command.Report{Ended: facts.CheckFailed})
	case "terminal event while config version != desired version":
		w.play(always(passes))
		w.submit(service(1, "new", terms.UpdatePolicy{}))
		told(command.Report{Ended: facts.ByItself, ExitCode: 1})
	case "preempted", "preempted, killOnPreempt":
		w.play(always(runs))
		w.crowdOut()
		w.play(always(runs))
	case "user stop":
		w.play(always(runs))
		w.must(&command.KillJob{Job: stageJob})
		w.play(always(runs))
	case "event from a run id that is not current":
		slot, _ := w.s.SlotAt(first)
		told(command.Report{Order: slot.Order - 1, Ended: facts.ByItself, ExitCode: 1})
	default:
		return false
	}
	return true
}

// crowdOut submits a more important job that needs all nodes, and lets the preemption delay of its pool end.
func (w *stage) crowdOut() {
	task := stageTask("main", 2)
	task.Resources = room()
	w.submit(&terms.Job{Name: "urgent", Type: terms.Batch, Priority: 1, Tasks: []terms.Task{task}})
	w.later(2 * terms.PreemptionDelayMillisDefault)
}

// outcome tells in words what became of the only slot.
func (w *stage) outcome(before *facts.Slot) string {
	slot := w.job().Tasks[0].Slots.At(0)
	switch {
	case slot == *before && w.strayStopped():
		return "ignored"
	case slot.Phase == facts.Stopped && w.job().Stop:
		return "stopped"
	case slot.Phase.Final():
		return "ended"
	case slot.Version > before.Version && slot.Failures == before.Failures:
		return "unchanged count"
	}
	return fmt.Sprintf("restarts after %d s", w.delay()/1000)
}

// strayStopped tells whether a node that still runs an earlier allocation of the slot is to stop it.
func (w *stage) strayStopped() bool {
	slot := w.job().Tasks[0].Slots.At(0)
	stray := terms.AllocationID{Slot: terms.SlotName{Job: stageJob, Task: "main"}, Order: slot.Order - 1}
	stops := reaction.React(w.s.Node(slot.Node).Peer, w.s,
		&reaction.Observed{Now: w.now, Local: []reaction.LocalTask{{ID: stray}}}).Stop
	return slices.ContainsFunc(stops, func(stop reaction.StopOrder) bool { return stop.ID == stray })
}

// afterSeconds finds a delay in what is expected.
var afterSeconds = regexp.MustCompile(`restart after (\d+) s`)

// wanted translates what is expected into the words of outcome; "" if there are none for it.
func (c *retryCase) wanted() string {
	after := afterSeconds.FindStringSubmatch(c.Expect)
	for _, rule := range []struct{ words, want string }{
		{"no restart", "stopped"}, {"not restarted", "ended"}, {"terminal FAILED", "ended"}, {"terminal KILLED", "ended"},
		{"then restarted", "restarts"}, {"ignored", "ignored"},
		{"failure count unchanged", "unchanged count"}, {"restart at once", "restarts after 0 s"},
		{"throttled restart", "restarts after 30 s"},
	} {
		if strings.Contains(c.Expect, rule.words) {
			return rule.want
		}
	}
	switch {
	case after != nil:
		return fmt.Sprintf("restarts after %s s", after[1])
	case strings.HasPrefix(c.Expect, "restart"):
		return "restarts"
	}
	return ""
}
