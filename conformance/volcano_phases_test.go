package conformance

import (
	"maps"
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/terms"
	"starling/terms/lifecycle"
	"starling/terms/rules"
	"starling/validate"
)

func exitOf(code int32) command.Report {
	return command.Report{Ended: facts.ByItself, ExitCode: code}
}

// again lets a user end an instance.
func (w *stage) again(r facts.SlotRef) {
	slot, _ := w.s.SlotAt(r)
	w.must(&command.EndAllocation{Slot: w.s.NameOf(r), Order: slot.Order})
	w.play(always(runs))
}

// drainOf drains the node of an instance, on which nothing else runs.
func (w *stage) drainOf(r facts.SlotRef) {
	slot, _ := w.s.SlotAt(r)
	w.must(&command.DrainNode{Node: w.s.Node(slot.Node).Name, Drain: true, DeadlineMillis: 1})
	w.later(1000)
	if slot, _ = w.s.SlotAt(r); slot.Phase == facts.Stopping {
		w.report(r, command.Report{Ended: facts.OnRequest})
	}
}

// phase names the state of a job as the cases do.
func (w *stage) phase() string {
	j := w.job()
	live, restarting := uint32(0), false
	for _, t := range j.Tasks {
		live += t.Live()
		restarting = restarting || t.Restarting
	}
	outcome := j.PolicyState.Outcome
	final := map[facts.PolicyOutcome]string{facts.Terminated: "Terminated", facts.Completed: "Completed"}[outcome]
	switch status := j.Status(); {
	case j.Finished != 0 && final != "":
		return final
	case j.Stop && final != "":
		return strings.TrimSuffix(final, "ed") + "ing"
	case j.Suspended && live > 0:
		return "Aborting"
	case j.Suspended:
		return "Aborted"
	case restarting:
		return "Restarting"
	case status == workload.StatusSucceeded:
		return "Completed"
	case status == workload.StatusFailed:
		return "Failed"
	case status == workload.StatusRunning:
		return "Running"
	}
	return "Pending"
}

// phasesCase is what a job goes through.
type phasesCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct{ Job lifeJob }
	When                                 struct{ Steps []map[string]any }
	Then                                 struct{ Phases []string }
}

func (c *phasesCase) run(t *trial, differences tally) {
	for _, p := range c.Given.Job.Policies {
		if p.Event == "Unknown" || p.Event == "PodPending" {
			t.leaveOut("waiting")
		}
	}
	spec := c.Given.Job.spec()
	w := machines(t, spec)
	w.submit(spec)
	seen := []string{"Pending"}
	look := func() { seen = append(seen, w.phase()) }
	for _, step := range c.When.Steps {
		for what, detail := range step {
			c.step(w, what, detail, look)
		}
	}
	for range 8 {
		// what is told to end ends, and what waits begins
		if w.round(always(runs)) {
			look()
		}
	}
	c.compare(t, w, seen, differences)
}

// compare wants the phases in their order among those that were seen.
func (c *phasesCase) compare(t *trial, w *stage, seen []string, differences tally) {
	want := c.Then.Phases
	if w.job().PolicyState.Last.Action == 0 || w.job().PolicyState.Last.Action == lifecycle.RestartInstance {
		if slices.Contains(want, "Restarting") {
			differences.state(t, ownBudget)
			want = slices.DeleteFunc(slices.Clone(want), func(phase string) bool { return phase == "Restarting" })
		}
	}
	for i := 1; i < len(want); i++ {
		if want[i-1] == "Restarting" && want[i] == "Pending" && !slices.Contains(seen[1:], "Pending") {
			differences.state(t, atOnce)
			want = slices.Delete(slices.Clone(want), i, i+1)
		}
	}
	at := 0
	for _, phase := range seen {
		if at < len(want) && phase == want[at] {
			at++
		}
	}
	if at < len(want) {
		t.Errorf("got the phases %v, want %v among them", slices.Compact(seen), want)
	}
}

func (c *phasesCase) step(w *stage, what string, detail any, look func()) {
	d, _ := detail.(map[string]any)
	group, _ := d["group"].(string)
	index, single := d["index"].(int)
	defer look()
	switch what {
	case "run":
		w.play(always(runs))
	case "fail":
		code, _ := d["exitCode"].(int)
		w.exits(w.at(group, index), int32(code))
	case "evict":
		w.drainOf(w.at(group, index))
	case "succeed":
		for i := range w.job().Tasks[w.at(group, 0).Task].Desired {
			if !single || int(i) == index {
				w.exits(w.at(group, int(i)), 0)
			}
		}
	case "restartCount":
		for range d["count"].(int) {
			if slot, _ := w.s.SlotAt(w.at(group, index)); slot.Phase == facts.Running {
				w.exits(w.at(group, index), 1)
				look()
				w.later(1000)
				w.round(always(runs))
			}
		}
	case "cordon":
		w.t.leaveOut("waiting")
	default:
		w.t.Fatalf("no rule for step %s", what)
	}
}

// standCase is a job with instances in some states, and what an action makes of it.
type standCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Job    lifeJob
		Status struct {
			Phase   string
			Version int
			Retries int `yaml:"retryCount"`
			Minimum int `yaml:"minAvailable"`
		}
		Tasks map[string]map[int]string
	}
	When struct {
		Action string
		Target *struct {
			Type, Group string
			Index       int
			Partition   int
		}
	}
	Then struct {
		Phase                string
		Kill, Retain, Create map[string][]int
		RetryCountDelta      *int           `yaml:"retryCountDelta"`
		VersionDelta         *int           `yaml:"versionDelta"`
		PodGroupDeleted      *bool          `yaml:"podGroupDeleted"`
		Counts               map[string]int `yaml:"counts"`
	}
}

// trigger is the task whose failure lets a policy act.
const trigger = "trigger"

func (c *standCase) run(t *trial, differences tally) {
	c.leave(t)
	action := lifeActions[c.When.Action]
	spec := c.spec(t, differences, action)
	if len(validate.Job(spec, rules.Released)) > 0 {
		t.leaveOut("refused")
	}
	w := machines(t, spec)
	w.submit(spec)
	w.play(func(r facts.SlotRef, _ facts.Slot) saying {
		if c.Given.Tasks[string(spec.Tasks[r.Task].Name)][int(r.Index)] == "Pending" {
			return silent
		}
		return runs
	})
	for _, task := range slices.Sorted(maps.Keys(c.Given.Tasks)) {
		for _, index := range slices.Sorted(maps.Keys(c.Given.Tasks[task])) {
			code, ends := map[string]int32{"Succeeded": 0, "Failed": 1}[c.Given.Tasks[task][index]]
			if ends {
				w.exits(w.at(task, index), code)
			}
		}
	}
	before := w.s.Index
	if action != 0 {
		w.exits(w.at(trigger, 0), 99)
	}
	if c.anew(action) {
		c.checkAnew(t, w, before)
	}
	c.compare(t, w, differences, action)
}

// anew tells whether also what has ended is to begin anew: that is what killing it means here.
func (c *standCase) anew(action lifecycle.Action) bool {
	return action == lifecycle.RestartJob && len(c.Then.Retain) == 0
}

// checkAnew lets what was told to end do so, in a copy, and wants each instance that the case kills to have begun after
// that.
func (c *standCase) checkAnew(t *trial, w *stage, before terms.Index) {
	later := &stage{t: t, s: w.s.Copy(), now: w.now, seqs: maps.Clone(w.seqs)}
	later.play(always(runs))
	for task, indices := range c.Then.Kill {
		for _, index := range indices {
			if slot, _ := later.s.SlotAt(later.at(task, index)); slot.Phase != facts.Running || slot.Order <= before {
				t.Errorf("%s %d has not begun anew: it is %s", task, index, slot.Phase)
			}
		}
	}
}

// leave leaves out what cannot be set up or asked for here.
func (c *standCase) leave(t *trial) {
	states := ""
	for _, task := range c.Given.Tasks {
		for _, state := range task {
			states += state + " "
		}
	}
	switch {
	case c.When.Target != nil && c.When.Target.Type == "partition" || c.When.Action == "RestartPartition":
		t.leaveOut("partition")
	case c.When.Target != nil:
		t.leaveOut("user")
	case c.Given.Status.Phase != "Running" && c.Given.Status.Phase != "Pending":
		t.leaveOut("phase")
	case states == "":
		t.leaveOut("no tasks")
	case strings.Contains(states, "Terminating") || strings.Contains(states, "!") || strings.Contains(states, "Unknown"):
		t.leaveOut("mark")
	case c.When.Action != "SyncJob" && lifeActions[c.When.Action] == 0:
		t.leaveOut("internal")
	}
}

func (c *standCase) spec(t *trial, differences tally, action lifecycle.Action) *terms.Job {
	for _, name := range slices.Sorted(maps.Keys(c.Given.Tasks)) {
		if !slices.ContainsFunc(c.Given.Job.Groups, func(g lifeGroup) bool { return g.Name == name }) {
			replicas := 0
			for index := range c.Given.Tasks[name] {
				replicas = max(replicas, index+1)
			}
			c.Given.Job.Groups = append(c.Given.Job.Groups, lifeGroup{Name: name, Replicas: replicas})
		}
	}
	if c.Given.Job.MaxRetry != nil && *c.Given.Job.MaxRetry == 0 && action == lifecycle.RestartJob {
		differences.state(t, freely)
		*c.Given.Job.MaxRetry = terms.RestartsUnlimited
	}
	if action != 0 {
		c.Given.Job.Groups = append(c.Given.Job.Groups, lifeGroup{Name: trigger, Replicas: 1})
	}
	spec := c.Given.Job.spec()
	if action != 0 {
		spec.Tasks[len(spec.Tasks)-1].Policies = []lifecycle.Policy{{ExitCodes: []uint32{99}, Action: action}}
	}
	return spec
}

func (c *standCase) compare(t *trial, w *stage, differences tally, action lifecycle.Action) {
	c.comparePhase(t, w, differences, action)
	check := func(words string, want map[string][]int, is func(slot facts.Slot) bool) {
		for task, indices := range want {
			number := w.job().TaskIndex(terms.TaskName(task))
			if number < 0 {
				continue
			}
			var found []int
			for index, state := range c.Given.Tasks[task] {
				if c.anew(action) && (state == "Succeeded" || state == "Failed") {
					found = append(found, index) // checkAnew has seen to it
				} else if slot, _ := w.s.SlotAt(w.at(task, index)); is(slot) && state != "" {
					found = append(found, index)
				}
			}
			if numbered(found) != numbered(indices) {
				t.Errorf("%s of %s: %s, want %s", words, task, numbered(found), numbered(indices))
			}
		}
	}
	check("told to end", c.Then.Kill, func(slot facts.Slot) bool { return slot.Phase == facts.Stopping })
	if action == lifecycle.RestartJob && len(c.Then.Retain) > 0 {
		differences.state(t, allAnew)
		return
	}
	check("kept", c.Then.Retain, func(slot facts.Slot) bool {
		return slot.Phase == facts.Succeeded ||
			slot.Phase == facts.Failed
	})
}

func (c *standCase) comparePhase(t *trial, w *stage, differences tally, action lifecycle.Action) {
	// Whether what is told to end has ended is a matter of when one looks.
	ends := strings.NewReplacer("Completing", "Completed", "Terminating", "Terminated", "Aborting", "Aborted")
	switch got, want := w.phase(), c.Then.Phase; {
	case ends.Replace(got) == ends.Replace(want):
	case got == "Running" && want == "Pending", got == "Pending" && want == "Running":
		t.Logf("not compared: a job runs as soon as one instance has a node")
	case want == "Completed" && got == "Failed" && c.Given.Job.MinSuccess == 0:
		differences.state(t, strictly)
	case want == "Restarting" && got == "Pending" && w.job().PolicyState.Last.Action == action:
		differences.state(t, atOnce)
	default:
		t.Errorf("the job is %s, want %s", got, want)
	}
}

// delayCase asks whether an action that was to follow later still does.
type delayCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Armed struct{ Event, Pod, UID, Action, Delay, Elapsed string }
	}
	When struct {
		Event    *struct{ Type, Pod, UID string }
		Resolved *struct{ Action, Delay string }
		Executed string
		// Pod is the one on which an action is executed.
		Pod string `yaml:"executedPod"`
	}
	Then struct {
		Cancelled  *bool
		FiresAfter string `yaml:"firesAfter"`
	}
}

func (c *delayCase) run(t *trial, _ tally) {
	armed := &c.Given.Armed
	event, known := lifeEvents[armed.Event]
	same := c.When.Event != nil && c.When.Event.Pod == armed.Pod || c.When.Pod == armed.Pod && armed.Pod != ""
	switch {
	case !known:
		t.leaveOut("waiting")
	case same && event == lifecycle.InstanceFailed:
		t.leaveOut("down")
	case c.Then.Cancelled == nil:
		t.leaveOut("down")
	case c.When.Executed != "" && lifeActions[c.When.Executed] == 0,
		c.When.Event != nil && c.When.Event.Type != "PodRunning":
		t.leaveOut("internal")
	}
	job := lifeJob{Groups: []lifeGroup{{Name: "w", Replicas: 3, Policies: []lifePolicy{
		{ExitCode: 99, Action: c.When.Executed}, {Event: armed.Event, Action: armed.Action, Timeout: armed.Delay},
	}}}}
	spec := job.spec()
	w := newStage(t, slices.Repeat([]terms.Resources{{1000, 0, 0}}, 3)...)
	w.submit(spec)
	w.play(func(r facts.SlotRef, _ facts.Slot) saying {
		if r.Index == 1 {
			return silent
		}
		return runs
	})
	r := w.at("w", 0)
	if event == lifecycle.InstanceEvicted {
		w.drainOf(r)
	} else {
		w.exits(r, 1)
	}
	if slot, _ := w.s.SlotAt(r); !slot.ByPolicy() {
		t.Fatalf("no policy waits: %+v", slot)
	}
	switch {
	case c.When.Executed != "":
		w.exits(w.at("w", 2), 99)
	case same:
		for _, name := range []terms.NodeName{"n0", "n1", "n2"} {
			w.must(&command.DrainNode{Node: name})
		}
		w.play(always(runs))
	default:
		w.play(always(runs))
	}
	if slot, _ := w.s.SlotAt(r); slot.ByPolicy() == *c.Then.Cancelled {
		t.Errorf("a policy still waits: %v, want %v", slot.ByPolicy(), !*c.Then.Cancelled)
	}
}
