package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"starling/cluster/facts"
	"starling/jobspec"
	"starling/terms"
	"starling/terms/lifecycle"
)

// The differences from Volcano in the life of a job. Each holds for every file.
var (
	ownBudget = &difference{name: "own budget",
		reason: "a restart of one instance costs only that: the job shows no phase of its own for it, and " +
			"none of its restarts are spent"}
	allAnew = &difference{name: "all anew",
		reason: "a restart begins every instance anew, also the last one that is allowed and those that have ended"}
	atOnce = &difference{name: "at once",
		reason: "the entry with which the last instance of an old life ends places the new ones: the job runs again " +
			"without having been pending"}
	strictly = &difference{name: "strictly",
		reason: "a job of which an instance has failed has failed, unless it says with min_success how many are " +
			"enough; a minimum says who starts together"}
	freely = &difference{name: "freely", reason: "maxRetry 0 is no budget of none there: the runner gives one without end"}
)

// lifeJob is a job in the words of the cases about its life.
type lifeJob struct {
	Name, Queue, UID string
	MinAvailable     uint32  `yaml:"minAvailable"`
	MinSuccess       uint32  `yaml:"minSuccess"`
	MaxRetry         *uint32 `yaml:"maxRetry"`
	Policies         []lifePolicy
	Groups           []lifeGroup
	// They concern other cases.
	Plugins, Topology any
	PriorityClass     any `yaml:"priorityClass"`
}

type lifeGroup struct {
	Name         string
	Replicas     any
	MinAvailable any  `yaml:"minAvailable"`
	MaxRetry     *int `yaml:"maxRetry"`
	Policies     []lifePolicy
	// They concern other cases.
	Partition, Request, Priority, Hostname, Subdomain any
	DependsOn                                         any `yaml:"dependsOn"`
}

type lifePolicy struct {
	Event    string
	Events   []string
	ExitCode uint32 `yaml:"exitCode"`
	Action   string
	Timeout  string
}

var (
	lifeEvents = map[string]lifecycle.Event{
		"PodFailed": lifecycle.InstanceFailed, "PodEvicted": lifecycle.InstanceEvicted,
		"TaskCompleted": lifecycle.TaskCompleted,
		"TaskFailed":    lifecycle.TaskFailed, "*": lifecycle.Any,
	}
	lifeActions = map[string]lifecycle.Action{
		"RestartPod": lifecycle.RestartInstance, "RestartTask": lifecycle.RestartTask, "RestartJob": lifecycle.RestartJob,
		"AbortJob": lifecycle.Abort, "TerminateJob": lifecycle.Terminate, "CompleteJob": lifecycle.Complete,
	}
)

// translated returns the policies as far as they are about events that are here.
func translated(all []lifePolicy) (policies []lifecycle.Policy) {
	for _, one := range all {
		p := lifecycle.Policy{Action: lifeActions[one.Action], DelayMillis: uint32(millisOf(one.Timeout))}
		for _, word := range append(one.Events, one.Event) {
			if e, known := lifeEvents[word]; known {
				p.On = append(p.On, e)
			}
		}
		if one.ExitCode > 0 {
			p.ExitCodes = []uint32{one.ExitCode}
		}
		if p.Action != 0 && len(p.On)+len(p.ExitCodes) > 0 {
			policies = append(policies, p)
		}
	}
	return policies
}

func millisOf(text string) int64 {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d.Milliseconds()
}

// spec returns the job, each of whose instances fills a node.
func (j *lifeJob) spec() *terms.Job {
	spec := &terms.Job{Name: stageJob, Type: terms.Batch, Policies: translated(j.Policies), MinSuccess: j.MinSuccess,
		MaxRestarts: lifecycle.RestartsDefault}
	if j.MaxRetry != nil {
		spec.MaxRestarts = *j.MaxRetry
	}
	for _, g := range j.Groups {
		replicas, _ := g.Replicas.(int)
		t := stageTask(g.Name, uint32(replicas))
		t.Resources[terms.CPU], t.Policies, t.MaxRestarts = 1000, translated(g.Policies), spec.MaxRestarts
		t.Restart.AttemptsMax = 0
		switch restarts := func(p lifecycle.Policy) bool { return p.Action == lifecycle.RestartInstance }; {
		case g.MaxRetry != nil && *g.MaxRetry >= 0:
			t.Restart.AttemptsMax = uint32(*g.MaxRetry)
		case slices.ContainsFunc(append(spec.Policies, t.Policies...), restarts):
			t.Restart.AttemptsMax = spec.MaxRestarts
		}
		spec.Tasks = append(spec.Tasks, t)
	}
	return spec
}

// machines has a node for each instance of a job, and some more.
func machines(t *trial, spec *terms.Job) *stage {
	count := 2
	for i := range spec.Tasks {
		count += int(spec.Tasks[i].Instances)
	}
	return newStage(t, slices.Repeat([]terms.Resources{{1000, 0, 0}}, count)...)
}

// at returns an instance of the job.
func (w *stage) at(task string, index int) facts.SlotRef {
	return facts.SlotRef{Job: w.job().ID, Task: uint16(w.job().TaskIndex(terms.TaskName(task))), Index: uint32(index)}
}

// exits reports that an instance exits.
func (w *stage) exits(r facts.SlotRef, code int32) {
	w.report(r, exitOf(code))
}

// lifeHead is what the cases about the life of a job have in common.
type lifeHead struct {
	ID, Kind string
}

// life runs a file of cases about policies or states.
func life(f *sheet) {
	kinds := map[string]func() lifeCase{
		"policy": func() lifeCase { return &policyCase{} }, "event-derivation": func() lifeCase { return &derivationCase{} },
		"pod-event":      func() lifeCase { return &derivationCase{} },
		"delayed-action": func() lifeCase { return &delayCase{} }, "phase-sequence": func() lifeCase { return &phasesCase{} },
		"state": func() lifeCase { return &standCase{} }, "ttl": func() lifeCase { return &keepCase{} },
	}
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		head := lifeHead{}
		if err := s.node.Load(&head); err != nil || kinds[head.Kind] == nil {
			t.Fatalf("no rule for kind %q: %v", head.Kind, err)
		}
		c := kinds[head.Kind]()
		s.read(t, c)
		c.run(t, differences)
	})
}

type lifeCase interface {
	run(t *trial, differences tally)
}

// policyCase asks which policy is about an event.
type policyCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Job    lifeJob
		Status struct {
			Version int
			Phase   string
			Retries int `yaml:"retryCount"`
			Minimum int `yaml:"minAvailable"`
		}
	}
	When struct {
		Event struct {
			Type, Group, Action string
			Index               int
			ExitCode            int32   `yaml:"exitCode"`
			JobVersion          *int    `yaml:"jobVersion"`
			JobUID              *string `yaml:"jobUID"`
		}
	}
	Then struct{ Action, Delay string }
}

func (c *policyCase) run(t *trial, _ tally) {
	e := &c.When.Event
	stale := e.JobUID != nil && *e.JobUID != c.Given.Job.UID ||
		e.JobVersion != nil && *e.JobVersion < c.Given.Status.Version
	event, known := lifeEvents[e.Type]
	switch {
	case e.Action != "" || slices.Contains([]string{"OutOfSync", "CommandIssued", "PodRunning", "JobUpdated"}, e.Type):
		t.leaveOut("internal")
	case !known:
		t.leaveOut("waiting")
	case stale:
		c.stale(t)
		return
	}
	p, ok := lifecycle.Policy{}, false
	for _, g := range c.Given.Job.Groups {
		if g.Name == e.Group && !ok {
			p, ok = lifecycle.First(translated(g.Policies), event, e.ExitCode)
		}
	}
	if !ok {
		p, _ = lifecycle.First(translated(c.Given.Job.Policies), event, e.ExitCode)
	}
	if p.Action != lifeActions[c.Then.Action] {
		t.Errorf("got %s, want %s", p.Action, c.Then.Action)
	}
	if want := millisOf(c.Then.Delay); c.Then.Delay != "" && int64(p.DelayMillis) != want {
		t.Errorf("got a delay of %d ms, want %d", p.DelayMillis, want)
	}
}

// stale lets news of an instance come that another has replaced: nothing may follow.
func (c *policyCase) stale(t *trial) {
	c.Given.Job.Groups = []lifeGroup{{Name: "task1", Replicas: 2,
		Policies: []lifePolicy{{Event: "*", Action: "AbortJob"}, {ExitCode: 77, Action: "RestartTask"}}}}
	c.Given.Job.Groups[0].Policies[0], c.Given.Job.Groups[0].Policies[1] = c.Given.Job.Groups[0].Policies[1],
		c.Given.Job.Groups[0].Policies[0]
	spec := c.Given.Job.spec()
	w := machines(t, spec)
	w.submit(spec)
	w.play(always(runs))
	r := w.at("task1", 0)
	old, _ := w.s.SlotAt(r)
	w.exits(r, 77)
	w.play(always(runs))
	before := w.job().PolicyState
	now, _ := w.s.SlotAt(r)
	news := exitOf(1)
	news.Order = old.Order
	w.report(r, news)
	if w.job().PolicyState != before || now.Order == old.Order || before.Last.Action != lifecycle.RestartTask {
		t.Errorf("news of #%d made of %+v %+v, and #%d runs", old.Order, before, w.job().PolicyState, now.Order)
	}
}

// derivationCase asks which event follows from a change.
type derivationCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Group    lifeGroup
		Tasks    map[string]map[int]string
		Restarts map[int]int
	}
	When struct {
		Transition struct {
			From, To      string
			Index         int
			ExitCodes     []int32 `yaml:"exitCodes"`
			Deleted       bool
			OutOfSyncMark bool `yaml:"outOfSync"`
		}
		PodGroup *struct{ From, To string } `yaml:"podGroup"`
	}
	Then struct {
		Event    string
		Events   []string
		ExitCode *int32 `yaml:"exitCode"`
	}
}

func (c *derivationCase) run(t *trial, _ tally) {
	change := &c.When.Transition
	switch {
	case c.When.PodGroup != nil:
		t.leaveOut("waiting")
	case len(c.Given.Restarts) > 0:
		t.leaveOut("restarts")
	case len(change.ExitCodes) > 1:
		t.leaveOut("containers")
	case change.To == "Running" || change.To == "Pending" || change.From != "" && change.To == change.From:
		t.leaveOut("internal")
	}
	if c.Given.Group.Name == "" {
		c.Given.Group = lifeGroup{Name: "t", Replicas: 2}
	}
	c.Given.Group.Policies = []lifePolicy{{Event: "*", Action: "AbortJob"}}
	job := lifeJob{Groups: []lifeGroup{c.Given.Group}}
	spec := job.spec()
	w := machines(t, spec)
	w.submit(spec)
	w.play(always(runs))
	for index, state := range c.Given.Tasks[c.Given.Group.Name] {
		if state == "Succeeded" {
			w.exits(w.at(c.Given.Group.Name, index), 0)
		}
	}
	r := w.at(c.Given.Group.Name, change.Index)
	code := int32(1)
	if len(change.ExitCodes) > 0 {
		code = change.ExitCodes[0]
	}
	switch {
	case change.Deleted && change.OutOfSyncMark:
		w.again(r)
	case change.Deleted:
		w.drainOf(r)
	case change.To == "Succeeded":
		w.exits(r, 0)
	default:
		w.exits(r, code)
	}
	got := w.job().PolicyState.Last
	events := append(c.Then.Events, c.Then.Event)
	want := lifecycle.Event(0)
	for _, word := range events {
		want = max(want, lifeEvents[word])
	}
	if got.Event != want {
		t.Errorf("got the event %s, want %v", got.Event, events)
	}
	if c.Then.ExitCode != nil && got.ExitCode != *c.Then.ExitCode {
		t.Errorf("got exit code %d, want %d", got.ExitCode, *c.Then.ExitCode)
	}
}

// keepCase asks when a job that has ended is forgotten.
type keepCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Phase string
		TTL   *uint32 `yaml:"ttlSecondsAfterFinished"`
	}
	When struct {
		Seconds int64 `yaml:"secondsSinceLastTransition"`
	}
	Then struct {
		Collect *bool
		After   *int64
	}
}

func (c *keepCase) run(t *trial, _ tally) {
	code, final := map[string]int32{"Completed": 0, "Failed": 1, "Terminated": 2, "Running": -1, "Pending": -1,
		"Aborted": 3}[c.Given.Phase]
	if !final {
		t.leaveOut("phase")
	}
	job := lifeJob{
		Groups:   []lifeGroup{{Name: "t", Replicas: 1}},
		Policies: []lifePolicy{{ExitCode: 2, Action: "TerminateJob"}, {ExitCode: 3, Action: "AbortJob"}},
	}
	spec := c.kept(t, job.spec())
	w := machines(t, spec)
	w.submit(spec)
	w.play(always(runs))
	if code >= 0 {
		w.exits(w.at("t", 0), code)
	}
	w.play(always(runs))
	due, waits := w.s.NextDeadline()
	if c.Then.After != nil && (!waits || due != w.now+terms.Time(*c.Then.After*1000-c.When.Seconds*1000)) {
		t.Errorf("is forgotten at %d, want %d s after %d", due, *c.Then.After, w.now)
	}
	w.later(max(terms.Time(c.When.Seconds*1000), terms.KeepLeast))
	if gone := w.job() == nil; c.Then.Collect != nil && gone != *c.Then.Collect {
		t.Errorf("is forgotten: %v, want %v", gone, *c.Then.Collect)
	}
}

// kept returns the job with the time that a job file states for which it is kept.
func (c *keepCase) kept(t *trial, spec *terms.Job) *terms.Job {
	if c.Given.TTL == nil {
		return spec
	}
	text := fmt.Sprintf("{job: %s, type: batch, keep: %ds, tasks: [{command: run}]}", stageJob, *c.Given.TTL)
	documents, err := jobspec.Parse("job.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	kept := documents[0].Spec
	kept.Tasks, kept.Policies, kept.MaxRestarts = spec.Tasks, spec.Policies, spec.MaxRestarts
	return &kept
}

// numbered returns a list of indices as a text, to compare.
func numbered(all []int) string {
	slices.Sort(all)
	text := ""
	for _, n := range all {
		text += " " + strconv.Itoa(n)
	}
	return fmt.Sprintf("[%s]", text)
}
