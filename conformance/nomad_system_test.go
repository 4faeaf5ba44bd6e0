package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/reconcile"
	"starling/terms"
)

// systemFile is a file of the folder system.
type systemFile struct {
	Name, Summary string
	PeerTest      string `yaml:"peer_test"`
	Tags          []string
	SlotNote      string `yaml:"slot_note"`
	Input         systemInput
	Expected      struct {
		Counts                                    map[string]int
		Place, Update, Migrate, Stop              []systemLine
		Ignore, Lost, Disconnecting, Reconnecting []systemLine
		After                                     *nomadDeployment        `yaml:"deployment_after"`
		Updates                                   []nomadDeploymentUpdate `yaml:"deployment_updates"`
	}
}

type systemInput struct {
	Now        offset
	Mode, Node string
	Job        *nomadJob
	Eligible   []string              `yaml:"eligible_nodes"`
	NotReady   []string              `yaml:"not_ready_nodes"`
	Nodes      map[string]*nomadNode `yaml:"tainted_nodes"`
	// ClientVersions have no influence.
	ClientVersions map[string]string `yaml:"client_versions"`
	Deployment     *nomadDeployment
	Live           []systemAllocation `yaml:"live_allocs"`
	Terminal       []systemAllocation `yaml:"terminal_allocs"`
}

type systemLine struct{ Alloc, Name, Node string }

type systemAllocation struct {
	ID, Name, Node  string
	Current         bool    `yaml:"job_is_current"`
	Version         *uint32 // of the job that it runs
	Desired, Client string
	Deployment      string
	Healthy         *bool
	Canary          bool
	Transition      nomadTransition
	History         []nomadHistory            `yaml:"client_history"`
	TaskStates      map[string]nomadTaskState `yaml:"task_states"`
}

// daemonTask is one group of a system job as our reconciler is asked about it: the slots of nodes that are to have it,
// or those that are not.
type daemonTask struct {
	task  reconcile.Task
	slots []reconcile.Slot
	// places says for each slot its name and node.
	places []systemLine
}

// daemons runs a file of the folder system.
func daemons(s *sheet) { s.run(wholeFile, func(t *trial) { daemonFile(t, s.data) }) }

func daemonFile(t *trial, data []byte) {
	f := &systemFile{}
	if err := yaml.Load(data, f, yaml.WithKnownFields()); err != nil {
		t.Fatalf("read the file: %v", err)
	}
	if f.Input.Job == nil {
		f.Input.Job = &nomadJob{Stop: true}
	}
	if f.Input.Job.Type == "sysbatch" {
		t.leaveOut("batch on every node")
	}
	if err := (&reconcileInput{Job: f.Input.Job, Deployment: f.Input.Deployment,
		Nodes: f.Input.Nodes}).checkWords(); err != nil {
		t.Fatal(err)
	}
	got := map[string][]systemLine{}
	ids := map[terms.Index]string{}
	for _, task := range f.tasks(ids) {
		var out reconcile.Result
		reconcile.Reconcile(&task.task, task.slots, reconcile.Tally{}, &out)
		task.report(&out, ids, got)
	}
	want := map[string][]systemLine{
		"place": f.Expected.Place, "update": f.Expected.Update, "migrate": f.Expected.Migrate, "stop": f.Expected.Stop,
		"ignore": f.Expected.Ignore, "lost": f.Expected.Lost, "disconnecting": f.Expected.Disconnecting,
		"reconnecting": f.Expected.Reconnecting,
	}
	d := &resultDiff{}
	for i := range f.Expected.Place {
		f.Expected.Place[i].Alloc = "" // whom it follows
	}
	for _, section := range []string{"place", "update", "migrate", "stop", "ignore", "lost", "disconnecting",
		"reconnecting"} {
		d.sets(section, describe(want[section]), describe(got[section]))
		if n := f.Expected.Counts[section]; n != len(got[section]) {
			t.Errorf("%s: %d, want %d", section, len(got[section]), n)
		}
	}
	for _, line := range d.lines {
		t.Error(line)
	}
}

// jobName returns the name of the job, which the file tells only in the names of what it expects to be placed, or else
// in those of its allocations.
func (f *systemFile) jobName() string {
	for _, place := range f.Expected.Place {
		return jobOf(place.Name)
	}
	for _, a := range slices.Concat(f.Input.Live, f.Input.Terminal) {
		return jobOf(a.Name)
	}
	return "job"
}

// Names are job.group[index].

func jobOf(name string) string {
	job, _, _ := strings.Cut(name, ".")
	return job
}

func groupOf(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	group, _, _ := strings.Cut(rest, "[")
	return group
}

func indexOf(name string) uint32 {
	_, rest, _ := strings.Cut(name, "[")
	n, err := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// occupants are the allocations of a file by name and node, in the order of the file.
type occupants struct {
	places     []systemLine
	candidates map[systemLine][]reconcile.Candidate
}

// occupants sorts the allocations that the file is about, and says in ids which is which.
func (in *systemInput) occupants(ids map[terms.Index]string) *occupants {
	all := &occupants{candidates: map[systemLine][]reconcile.Candidate{}}
	for i, a := range slices.Concat(in.Live, in.Terminal) {
		if in.Mode == "one_node" && a.Node != in.Node {
			continue
		}
		c := in.candidate(&a, i >= len(in.Live))
		c.Order = terms.Index(i + 1)
		ids[c.Order] = a.ID
		place := systemLine{Name: a.Name, Node: a.Node}
		if all.candidates[place] == nil {
			all.places = append(all.places, place)
		}
		all.candidates[place] = append(all.candidates[place], c)
	}
	return all
}

// tasks returns the groups of the file, and what belongs to no group or no node of it as one of its own that wants
// nothing.
func (f *systemFile) tasks(ids map[terms.Index]string) []daemonTask {
	in, job := &f.Input, f.jobName()
	nodes := slices.Concat(in.Eligible, in.NotReady)
	if in.Mode == "one_node" {
		nodes = []string{in.Node}
	}
	all := in.occupants(ids)
	var tasks []daemonTask
	for _, g := range in.groups() {
		t := daemonTask{task: in.task(g)}
		for _, node := range nodes {
			for i := range g.Count {
				t.addWanted(in, systemLine{Name: fmt.Sprintf("%s.%s[%d]", job, g.Name, i), Node: node}, all)
			}
		}
		for _, place := range all.places {
			if jobOf(place.Name) == job && groupOf(place.Name) == g.Name && indexOf(place.Name) < g.Count &&
				all.candidates[place] != nil {
				t.addWanted(in, place, all)
			}
		}
		t.task.Count = uint32(len(t.slots))
		tasks = append(tasks, t)
	}
	rest := daemonTask{task: in.task(nomadGroup{})}
	for _, place := range all.places {
		if all.candidates[place] != nil {
			rest.add(in, place, all)
		}
	}
	return append(tasks, rest)
}

func (in *systemInput) task(g nomadGroup) reconcile.Task {
	r := reconcileInput{Now: in.Now, Job: in.Job, Deployment: in.Deployment}
	return r.task(g)
}

// groups returns what the job wants.
func (in *systemInput) groups() []nomadGroup {
	if in.Job.Stop {
		return nil
	}
	return in.Job.Groups
}

// addWanted adds the slot of a name on a node that is to have it, now or when it is back.
func (t *daemonTask) addWanted(in *systemInput, place systemLine, all *occupants) {
	if _, tainted := in.Nodes[place.Node]; tainted || slices.Contains(in.Eligible, place.Node) ||
		slices.Contains(in.NotReady, place.Node) {
		t.add(in, place, all)
	}
}

// add adds the slot of a name on a node, and takes the allocations that belong there.
func (t *daemonTask) add(in *systemInput, place systemLine, all *occupants) {
	node, tainted := in.Nodes[place.Node]
	closed := tainted && (node == nil || node.Draining || node.state() != reconcile.NodeReady)
	t.slots = append(t.slots, reconcile.Slot{
		Index: uint32(len(t.slots)), Closed: closed || !slices.Contains(in.Eligible, place.Node),
		Candidates: all.candidates[place],
	})
	delete(all.candidates, place)
	t.places = append(t.places, place)
}

// candidate turns an allocation of a file into one of ours.
func (in *systemInput) candidate(a *systemAllocation, terminal bool) reconcile.Candidate {
	c := reconcile.Candidate{
		Told: a.Desired == "stop" || a.Desired == "evict", Client: clients[a.Client], Migrate: a.Transition.Migrate,
		Version: in.Job.Version, Node: (&reconcileInput{Nodes: in.Nodes}).node(a.Node),
	}
	if terminal && !slices.Contains([]string{"complete", "failed", "lost"}, a.Client) {
		c.Client = reconcile.CompleteClient // the file lists it as one that has ended
	}
	if a.Version != nil {
		c.Version = *a.Version
	}
	if !a.Current {
		c.Outdated = true
	}
	n := nomadAllocation{ID: a.ID, Deployment: a.Deployment, Healthy: a.Healthy, Canary: a.Canary, Group: groupOf(a.Name),
		History: a.History, TaskStates: a.TaskStates}
	n.placed(in.Deployment, &c)
	n.times(&c)
	return c
}

// report adds what becomes of each allocation, in the peer's words. What it calls an update is whatever gives way to
// the present version; it does not stop an outdated duplicate, which it calls a defect of its own, but lists it there.
func (t *daemonTask) report(out *reconcile.Result, ids map[terms.Index]string, got map[string][]systemLine) {
	told := map[reconcile.Reference]bool{}
	tell := func(section string, r reconcile.Reference) {
		line := t.places[r.Index]
		line.Alloc = ids[r.Order]
		got[section] = append(got[section], line)
		told[r] = true
	}
	for _, p := range out.Placements {
		tell("place", reconcile.Reference{Index: p.Index})
	}
	for _, r := range out.Replacements {
		tell("update", r)
	}
	for _, s := range out.Stops {
		switch {
		case s.Reason == reconcile.Moved:
			tell("migrate", s.Reference)
		case s.Reason == reconcile.NodeLost:
			tell("lost", s.Reference)
		case s.Reason == reconcile.Duplicate && t.candidate(s.Reference).Outdated:
			tell("update", s.Reference)
		default:
			tell("stop", s.Reference)
		}
	}
	for _, r := range out.Disconnects {
		tell("disconnecting", r)
	}
	for _, r := range out.Reconnects {
		tell("reconnecting", r)
	}
	for i := range out.Decisions {
		r := reconcile.Reference{Index: out.Decisions[i].Index, Order: out.Decisions[i].Main.Holder}
		switch {
		case r.Order == 0 || told[r]:
		case slices.Contains([]reconcile.Reason{reconcile.AwaitsTurn, reconcile.HeldByPause, reconcile.HeldByFailure,
			reconcile.HeldByUnhealthy, reconcile.AwaitsPromotion}, out.Decisions[i].Main.Reason):
			tell("update", r)
		default:
			tell("ignore", r)
		}
	}
}

func (t *daemonTask) candidate(r reconcile.Reference) *reconcile.Candidate {
	candidates := t.slots[r.Index].Candidates
	return &candidates[slices.IndexFunc(candidates, func(c reconcile.Candidate) bool { return c.Order == r.Order })]
}
