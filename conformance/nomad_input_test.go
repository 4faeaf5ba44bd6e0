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

// tasks returns the groups of a file: those of the job, then those that only allocations belong to.
func (f *reconcileFile) tasks() ([]nomadTask, error) {
	var all []nomadTask
	in := &f.Input
	add := func(g nomadGroup, wanted reconcile.Wanted) error {
		t := nomadTask{group: g.Name, task: in.task(g, wanted), ids: map[terms.Index]string{}}
		err := t.fill(f)
		all = append(all, t)
		return err
	}
	if in.Job != nil {
		for _, g := range in.Job.Groups {
			wanted := reconcile.Running
			if in.Job.Stop {
				wanted = reconcile.Stopped
			}
			if err := add(g, wanted); err != nil {
				return nil, err
			}
		}
	}
	for _, a := range in.AllocsParsed {
		if slices.ContainsFunc(all, func(t nomadTask) bool { return t.group == a.Group }) {
			continue
		}
		wanted := reconcile.Removed
		if in.Job == nil || in.Job.Stop {
			wanted = reconcile.Stopped
		}
		if err := add(nomadGroup{Name: a.Group}, wanted); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (in *reconcileInput) task(g nomadGroup, wanted reconcile.Wanted) reconcile.Task {
	t := reconcile.Task{Now: in.Now.time(), Count: g.Count, Wanted: wanted, Batch: in.Batch, Spec: specOf(g.Reschedule, g.Disconnect), Policy: &terms.UpdatePolicy{}}
	if in.Job != nil {
		t.Instance, t.Version = terms.JobID(in.Job.CreateIndex), in.Job.Version
	}
	if u := g.Update; u != nil {
		t.Policy = &terms.UpdatePolicy{BatchSize: u.MaxParallel, Canaries: u.Canary}
	}
	if d := in.Deployment; d != nil {
		group, joined := d.Groups[g.Name]
		t.Update = reconcile.Update{
			ID: theUpdate, Instance: terms.JobID(d.JobCreateIndex), Version: d.JobVersion, State: updateStates[d.Status],
			Joined: joined, Total: group.DesiredTotal, Canaries: group.DesiredCanaries, Promoted: group.Promoted,
		}
	}
	return t
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

// candidate turns an allocation of a file into one of ours.
func (f *reconcileFile) candidate(a *nomadAllocation) (reconcile.Candidate, error) {
	in := &f.Input
	c := reconcile.Candidate{
		Desired: desires[a.Desired], Client: clients[a.Client], Node: in.node(a.Node), Change: changes[a.SpecChange],
		Migrate: a.Transition.Migrate, Reschedule: a.Transition.Reschedule, Force: a.Transition.ForceReschedule,
		Closed: a.Transition.DisablePlacement, Score: f.score(a),
	}
	for word, known := range map[string]bool{
		a.Desired: has(desires, a.Desired), a.Client: has(clients, a.Client), a.SpecChange: has(changes, a.SpecChange),
	} {
		if !known {
			return c, fmt.Errorf("the word %q is not known", word)
		}
	}
	if a.Next != "" {
		c.Next = 1 << 32 // whichever it is, it is younger
	}
	in.made(a, &c)
	a.placed(in.Deployment, &c)
	if a.FollowUp != "" {
		c.FollowUp = reconcile.FollowUpPending
		if a.FollowUp == in.EvalID {
			c.FollowUp = reconcile.FollowUpDue
		}
		c.Parked = in.Batch && c.Desired == reconcile.Stop && c.Reschedule
	}
	a.times(&c)
	if err := a.attempts(&c); err != nil {
		return c, err
	}
	return c, in.ownRules(a, &c)
}

// made tells for which job the allocation was made.
func (in *reconcileInput) made(a *nomadAllocation, c *reconcile.Candidate) {
	if in.Job != nil {
		c.Instance = terms.JobID(in.Job.CreateIndex)
	}
	if a.CreateIndex != nil {
		c.Instance = terms.JobID(*a.CreateIndex)
	}
	if a.Version != nil {
		c.Version = *a.Version
	}
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
		if h.Client == "lost" && c.LostSince == 0 {
			c.LostSince = h.At.time()
		}
		c.Away = i == len(a.History)-1 && h.Client == "unknown"
	}
	if a.Modified != nil {
		c.FailedAt = a.Modified.time()
	}
	c.Succeeded = len(a.TaskStates) > 0
	finished := terms.Time(0)
	for _, s := range a.TaskStates {
		c.Succeeded = c.Succeeded && s.State == "dead" && !s.Failed
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
	c.Unplaced = a.Tracker.Last != ""
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

// score returns how well the node suits the allocation. Where the file tells only which of two its test made the picker
// prefer, that one has the higher score.
func (f *reconcileFile) score(a *nomadAllocation) int32 {
	if a.Score != 0 || !f.Picker.Called || (f.Picker.Forced == "replacement") != (a.Previous != "") {
		return a.Score
	}
	return 1
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

func (n *nomadNode) state() reconcile.NodeState {
	state := nodeStates[n.Status]
	if state == reconcile.NodeReady && n.Draining {
		return reconcile.NodeDraining
	}
	return state
}

func has[V any](words map[string]V, word string) bool {
	_, ok := words[word]
	return ok
}

var (
	updateStates = map[string]reconcile.UpdateState{
		"running": reconcile.UpdateRunning, "blocked": reconcile.UpdateRunning, "unblocking": reconcile.UpdateRunning,
		"paused": reconcile.UpdatePaused, "pending": reconcile.UpdatePaused, "initializing": reconcile.UpdatePaused,
		"failed": reconcile.UpdateFailed, "successful": reconcile.UpdateSuccessful, "cancelled": reconcile.UpdateCancelled,
	}
	growths = map[string]terms.Growth{
		"": terms.Constant, "constant": terms.Constant, "exponential": terms.Exponential, "fibonacci": terms.Fibonacci,
	}
	survivors = map[string]terms.Survivor{
		"": reconcile.KeepBetter, "best_score": reconcile.KeepBetter, "keep_original": terms.KeepOriginal,
		"keep_replacement": terms.KeepReplacement, "longest_running": terms.KeepLongest,
	}
	desires = map[string]reconcile.Desired{"": reconcile.Run, "run": reconcile.Run, "stop": reconcile.Stop, "evict": reconcile.Evict}
	clients = map[string]reconcile.Client{
		"": reconcile.PendingClient, "pending": reconcile.PendingClient, "running": reconcile.RunningClient,
		"complete": reconcile.CompleteClient, "failed": reconcile.FailedClient, "lost": reconcile.LostClient,
		"unknown": reconcile.UnknownClient,
	}
	changes = map[string]reconcile.Change{
		"": reconcile.NoChange, "none": reconcile.NoChange, "inplace": reconcile.InPlace, "destructive": reconcile.Destructive,
	}
	nodeStates = map[string]reconcile.NodeState{
		"": reconcile.NodeReady, "ready": reconcile.NodeReady, "down": reconcile.NodeDown,
		"disconnected": reconcile.NodeDisconnected, "initializing": reconcile.NodeInitializing,
	}
)
