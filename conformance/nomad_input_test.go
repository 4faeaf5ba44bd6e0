package conformance

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v4"

	"starling/reconcile"
	"starling/terms"
)

// theUpdate is the number under which a file's deployment is known to us.
const theUpdate terms.Index = 1

// nomadTask is one group as our reconciler is asked about it.
type nomadTask struct {
	group string
	task  reconcile.Task
	slots []reconcile.Slot
	ids   map[terms.Index]string
}

// tasks returns the groups of a file: those of the job, then those that only allocations belong to, which is none of a
// job that runs.
func (f *reconcileFile) tasks() ([]nomadTask, error) {
	var groups []nomadGroup
	if f.Input.Job != nil {
		groups = slices.Clone(f.Input.Job.Groups)
	}
	for _, a := range f.Input.AllocsParsed {
		if !slices.ContainsFunc(groups, func(g nomadGroup) bool { return g.Name == a.Group }) {
			groups = append(groups, nomadGroup{Name: a.Group})
		}
	}
	var all []nomadTask
	for _, g := range groups {
		t := nomadTask{group: g.Name, task: f.Input.task(g), ids: map[terms.Index]string{}}
		if err := t.fill(f); err != nil {
			return nil, err
		}
		t.begin()
		all = append(all, t)
	}
	return all, nil
}

// task returns a group as ours. A job that was stopped wants nothing.
func (in *reconcileInput) task(g nomadGroup) reconcile.Task {
	t := reconcile.Task{Now: in.Now.time(), Soon: reconcile.SoonMillis, Count: g.Count, Batch: in.Batch,
		Spec:   specOf(g.Reschedule, g.Disconnect),
		Policy: &terms.UpdatePolicy{}}
	if in.Job == nil || in.Job.Stop {
		t.Count = 0
	}
	if in.Job != nil {
		t.Version = in.Job.Version
	}
	if u := g.Update; u != nil {
		t.Policy = &terms.UpdatePolicy{BatchSize: u.MaxParallel, Canaries: u.Canary}
	}
	if d := in.Deployment; in.current() {
		if group, joined := d.Groups[g.Name]; joined {
			t.Update = reconcile.Update{
				ID: theUpdate, State: updateStates[d.Status], Total: group.DesiredTotal, Canaries: group.DesiredCanaries,
				Promoted: group.Promoted || group.DesiredCanaries == 0,
			}
			t.Update.Trying = !t.Update.Promoted
		}
	}
	return t
}

// current tells whether the deployment is of the job's present version and goes on, or has failed.
func (in *reconcileInput) current() bool {
	d := in.Deployment
	return d != nil && in.Job != nil && !in.Job.Stop && has(updateStates, d.Status) &&
		updateStates[d.Status] != updateOver &&
		d.JobVersion == in.Job.Version && d.JobCreateIndex == in.Job.CreateIndex
}

// begin begins an update, as the entry does that brings a new version, if there is none and something is outdated.
func (t *nomadTask) begin() {
	outdated := uint32(0)
	var now reconcile.Result
	reconcile.Reconcile(&t.task, t.slots, reconcile.Tally{}, &now)
	for _, d := range now.Decisions {
		outdated += uint32(d.Weight.Outdated)
		if d.Main.Reason == reconcile.AfterMove {
			outdated++
		}
	}
	if t.task.Update.ID == 0 && outdated > 0 {
		t.task.Update = reconcile.Update{ID: theUpdate + 2, Total: t.task.Count,
			Canaries: min(t.task.Policy.Canaries, outdated)}
		t.task.Update.Promoted = t.task.Update.Canaries == 0
		t.task.Update.Trying = !t.task.Update.Promoted
	}
}

// specOf returns a spec with the rules of a file. A longest delay that is not told, or below 0, has no bound.
func specOf(r *nomadReschedule, d *nomadDisconnect) *terms.Task {
	spec := &terms.Task{}
	if r != nil {
		spec.Reschedule = terms.Reschedule{
			AttemptsMax: r.Attempts, IntervalMillis: uint32(r.Interval), DelayMillis: uint32(r.Delay),
			DelayMaxMillis: uint32(r.MaxDelay), Growth: growths[r.DelayFunction],
		}
		if r.Unlimited {
			spec.Reschedule.AttemptsMax = terms.RestartsUnlimited
		}
		if r.MaxDelay <= 0 {
			spec.Reschedule.DelayMaxMillis = math.MaxUint32
		}
	}
	if d != nil {
		spec.Disconnect = terms.Disconnect{
			LostAfterMillis: uint32(d.LostAfter), StopAfterMillis: uint32(d.StopOnClientAfter),
			Wait: d.Replace != nil && !*d.Replace, Keep: survivors[d.Reconcile],
		}
	}
	return spec
}

// fill sorts the group's allocations into slots.
func (t *nomadTask) fill(f *reconcileFile) error {
	for i, a := range f.Input.AllocsParsed {
		if a.Group != t.group {
			continue
		}
		c, err := f.candidate(&a)
		if err != nil {
			return fmt.Errorf("allocation %s: %w", a.ID, err)
		}
		c.Order = terms.Index(i + 1)
		t.ids[c.Order] = a.ID
		ended := c.Client == reconcile.CompleteClient || c.Client == reconcile.FailedClient ||
			c.Client == reconcile.LostClient
		if ended && (c.Told || a.Next != "" && !c.Unknown) {
			continue // what has ended by order, or was replaced, is in no slot any more
		}
		if at := slices.IndexFunc(t.slots, func(s reconcile.Slot) bool { return s.Index == a.Index }); at >= 0 {
			t.slots[at].Candidates = append(t.slots[at].Candidates, c)
		} else {
			t.slots = append(t.slots, reconcile.Slot{Index: a.Index, Candidates: []reconcile.Candidate{c}})
		}
	}
	for index := range t.task.Count {
		if !slices.ContainsFunc(t.slots, func(s reconcile.Slot) bool { return s.Index == index }) {
			t.slots = append(t.slots, reconcile.Slot{Index: index})
		}
	}
	slices.SortFunc(t.slots, func(a, b reconcile.Slot) int { return cmp.Compare(a.Index, b.Index) })
	return nil
}

// form returns what of a file cannot be said here, "" if all can.
func (f *reconcileFile) form() string {
	if f.Input.Job != nil && f.Input.Job.Multiregion {
		return "regions"
	}
	for _, a := range f.Input.AllocsParsed {
		if form := f.formOf(&a); form != "" {
			return form
		}
	}
	return ""
}

// formOf returns what a candidate of ours cannot say of an allocation, "" if it says all.
func (f *reconcileFile) formOf(a *nomadAllocation) string {
	d, job := f.Input.Deployment, f.Input.Job
	failed := a.Client == "failed" && (a.Desired == "run" || a.Desired == "") ||
		f.Input.node(a.Node) == reconcile.NodeDisconnected
	switch {
	case f.stopsItself(a):
		return "stops itself"
	case a.Transition.Reschedule || a.Transition.ForceReschedule || a.Transition.DisablePlacement ||
		a.Tracker != nil && a.Tracker.Last != "":
		return "mark"
	case a.CreateIndex != nil && job != nil && *a.CreateIndex != job.CreateIndex:
		return "other instance"
	case a.SpecChange == "inplace":
		return "in place"
	case failed && f.Input.current() && a.Deployment == d.ID && updateStates[d.Status] != reconcile.UpdateFailed:
		return "left to the update"
	}
	return ""
}

// stopsItself tells whether an allocation was lost that stops itself without its node.
func (f *reconcileFile) stopsItself(a *nomadAllocation) bool {
	if f.Input.Job == nil || f.Input.node(a.Node) == reconcile.NodeReady {
		return false
	}
	return slices.ContainsFunc(f.Input.Job.Groups, func(g nomadGroup) bool {
		return g.Name == a.Group && g.Disconnect != nil && g.Disconnect.StopOnClientAfter > 0
	})
}

// candidate turns an allocation of a file into one of ours.
func (f *reconcileFile) candidate(a *nomadAllocation) (reconcile.Candidate, error) {
	in := &f.Input
	c := reconcile.Candidate{
		Told: a.Desired == "stop" || a.Desired == "evict", Client: clients[a.Client], Node: in.node(a.Node),
		Outdated: a.SpecChange == "destructive", Migrate: a.Transition.Migrate,
		Due: a.FollowUp != "" && a.FollowUp == in.EvalID,
	}
	for word, known := range map[string]bool{
		a.Desired: slices.Contains([]string{"", "run", "stop", "evict"}, a.Desired), a.Client: has(clients, a.Client),
		a.SpecChange: slices.Contains([]string{"", "none", "inplace", "destructive"}, a.SpecChange),
	} {
		if !known {
			return c, fmt.Errorf("the word %q is not known", word)
		}
	}
	if a.Version != nil {
		c.Version = *a.Version
	}
	a.placed(in.Deployment, &c)
	a.times(&c)
	if err := a.attempts(&c); err != nil {
		return c, err
	}
	return c, in.ownRules(a, &c)
}

// placed tells which update placed the allocation, and what became of it there.
func (a *nomadAllocation) placed(d *nomadDeployment, c *reconcile.Candidate) {
	if a.Deployment != "" {
		c.Update = theUpdate + 1 // one that is not told
	}
	if d != nil {
		if a.Deployment == d.ID && d.ID != "" {
			c.Update = theUpdate
		}
		if a.Canary && c.Update == theUpdate || slices.Contains(d.Groups[a.Group].PlacedCanaries, a.ID) {
			c.CanaryOf = theUpdate
		}
	}
	switch {
	case a.Healthy == nil:
	case *a.Healthy:
		c.Health = reconcile.Healthy
	default:
		c.Health = reconcile.Unhealthy
	}
}

// times reads what is told about when things happened.
func (a *nomadAllocation) times(c *reconcile.Candidate) {
	for i, h := range a.History {
		if h.Client == "unknown" {
			c.UnknownSince = h.At.time()
		}
		c.Unknown = i == len(a.History)-1 && h.Client == "unknown"
	}
	if a.Modified != nil {
		c.FailedAt = a.Modified.time()
	}
	finished := terms.Time(0)
	for _, s := range a.TaskStates {
		if s.Finished != nil {
			finished = max(finished, s.Finished.time())
		}
		if started := s.began(); started != 0 && (c.Started == 0 || started < c.Started) {
			c.Started = started
		}
	}
	c.FailedAt = cmp.Or(finished, c.FailedAt)
}

// began returns since when the task runs without a break; 0 if it did not start.
func (s *nomadTaskState) began() terms.Time {
	switch {
	case s.Restarts > 0 && s.LastRestart != nil:
		return s.LastRestart.time()
	case s.Started != nil:
		return s.Started.time()
	}
	return 0
}

func (a *nomadAllocation) attempts(c *reconcile.Candidate) error {
	if a.Tracker == nil {
		return nil
	}
	if a.Tracker.Events.Kind != yaml.SequenceNode {
		return nil // the events are absent
	}
	var events []nomadEvent
	if err := a.Tracker.Events.Load(&events, yaml.WithKnownFields()); err != nil {
		return err
	}
	for _, e := range events {
		c.Attempts = append(c.Attempts, reconcile.Attempt{At: e.At.time(), DelayMillis: uint32(e.Delay)})
	}
	return nil
}

// ownRules reads the rules of the allocation's own job version. What it does not say is as in the job's group.
func (in *reconcileInput) ownRules(a *nomadAllocation, c *reconcile.Candidate) error {
	if a.OwnPolicy.Kind == 0 {
		return nil
	}
	var own struct {
		Reschedule *nomadReschedule
		Disconnect *nomadDisconnect
	}
	if in.Job != nil {
		for _, g := range in.Job.Groups {
			if g.Name == a.Group {
				own.Reschedule, own.Disconnect = g.Reschedule, g.Disconnect
			}
		}
	}
	if a.OwnPolicy.Kind == yaml.MappingNode {
		for _, key := range []string{"reschedule", "disconnect"} {
			if valueOf(&a.OwnPolicy, key) != nil && key == "reschedule" {
				own.Reschedule = nil
			} else if valueOf(&a.OwnPolicy, key) != nil {
				own.Disconnect = nil
			}
		}
		if err := a.OwnPolicy.Load(&own, yaml.WithKnownFields()); err != nil {
			return err
		}
	} else {
		own.Reschedule, own.Disconnect = nil, nil
	}
	c.Own = specOf(own.Reschedule, own.Disconnect)
	return nil
}

func (in *reconcileInput) node(name string) reconcile.NodeState {
	node, tainted := in.Nodes[name]
	switch {
	case !tainted:
		return reconcile.NodeReady
	case node == nil:
		return reconcile.NodeGone
	}
	return node.state()
}

func (n *nomadNode) state() reconcile.NodeState { return nodeStates[n.Status] }

func has[V any](words map[string]V, word string) bool {
	_, ok := words[word]
	return ok
}

// updateOver stands for an update that has ended well or was given up.
const updateOver = reconcile.UpdateFailed + 1

var (
	updateStates = map[string]reconcile.UpdateState{
		"running": reconcile.UpdateRunning, "blocked": reconcile.UpdateRunning, "unblocking": reconcile.UpdateRunning,
		"paused": reconcile.UpdatePaused, "pending": reconcile.UpdatePaused, "initializing": reconcile.UpdatePaused,
		"failed": reconcile.UpdateFailed, "successful": updateOver, "cancelled": updateOver,
	}
	growths = map[string]terms.Growth{
		"": terms.Constant, "constant": terms.Constant, "exponential": terms.Exponential, "fibonacci": terms.Fibonacci,
	}
	survivors = map[string]terms.Survivor{
		"": terms.KeepOriginal, "best_score": terms.KeepOriginal, "keep_original": terms.KeepOriginal,
		"keep_replacement": terms.KeepReplacement, "longest_running": terms.KeepLongest,
	}
	clients = map[string]reconcile.Client{
		"": reconcile.PendingClient, "pending": reconcile.PendingClient, "running": reconcile.RunningClient,
		"complete": reconcile.CompleteClient, "failed": reconcile.FailedClient, "lost": reconcile.LostClient,
		"unknown": reconcile.UnknownClient,
	}
	nodeStates = map[string]reconcile.NodeState{
		"": reconcile.NodeReady, "ready": reconcile.NodeReady, "down": reconcile.NodeGone,
		"disconnected": reconcile.NodeDisconnected, "initializing": reconcile.NodeDisconnected,
	}
)
