package conformance

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// ownPrefix begins the names of our own files; the others were given.
const ownPrefix = "own/"

// omission is a row of the table of cases that are left out.
type omission struct {
	// files are patterns of the files' names, with spaces between them. Our own files are meant by the same patterns.
	files string
	// cases are single cases, which run and come out otherwise; or form is what the runner finds in cases that it cannot
	// run.
	cases, form string
	reason      string
	used        bool
}

// omissions are a table of such rows.
type omissions []*omission

// leftOut is the table of all cases that are left out. A row that nothing needs any more fails the test.
var leftOut = omissions{
	// Peers that share.
	{files: "onyx/sched-*", form: "submit-job",
		reason: "volunteers answer a submitted job in 0.5.0; here nothing contends for work"},
	{files: "onyx/sched-*", form: "seal-task",
		reason: "who may seal is decided by the fold; here a sealed task only takes no further peer"},
	{files: "onyx/sched-*", form: "membership", reason: "the ring's own files and histories check it"},
	{files: "onyx/sched-*", form: "gc-log",
		reason: "nothing asks for the log to be cut: the journal is trimmed behind snapshots"},
	{files: "onyx/sched-*", form: "gc",
		reason: "nothing asks for what has ended to be forgotten: each job goes by itself when it was kept long " +
			"enough, as the cases about the life of a job and the simulator check"},
	{files: "onyx/properties", form: "G1",
		reason: "checked by the simulator and the histories of package replica: joining ends"},
	{files: "onyx/properties", form: "G2",
		reason: "checked by the simulator and the histories of package replica: members leave"},
	{files: "onyx/properties", form: "G3",
		reason: "checked by the simulator and the histories of package replica: a leave before its join"},
	{files: "onyx/properties", form: "G4",
		reason: "checked by the simulator and the histories of package replica: what comes late or twice"},
	{files: "onyx/properties", form: "G5",
		reason: "virtual peers belong to their node: there is no index of groups that could differ"},
	{files: "onyx/properties", form: "G6",
		reason: "virtual peers belong to their node: there is no index of groups that could differ"},
	{files: "onyx/properties", form: "G7",
		reason: "virtual peers belong to their node: there is no index of groups that could differ"},
	{files: "onyx/properties", form: "G10",
		reason: "load stays out of the journal: there is no backpressure in it"},
	{files: "onyx/properties", form: "G11",
		reason: "needs a real engine: the tests with real processes kill and restart peers"},

	// Slots.
	{files: "nomad/group/* nomad/probe/* nomad/unit/*", form: "mark",
		reason: "no command marks an allocation: who wants another instance in its place says end-allocation, work that " +
			"moved begins again, and what found no node waits for one"},
	{files: "nomad/group/* nomad/unit/*", form: "other instance",
		reason: "a job that was stopped and submitted again is another job, with slots of its own"},
	{files: "nomad/group/* nomad/probe/*", form: "in place",
		reason: "what need not be replaced counts as one of the newest with the entry that brings the version: nothing is " +
			"left to do about it"},
	{files: "nomad/group/* nomad/probe/*", form: "left to the update",
		reason: "what fails or is out of reach during an update is tried again as its task says: the update counts it"},
	{files: "nomad/group/*", form: "regions", reason: "there are no regions that wait for each other"},
	{files: "nomad/group/faileddeployment-newjob", cases: wholeFile,
		reason: "an update replaces first what is not known to be healthy"},
	{files: "nomad/probe/*", form: "stops itself",
		reason: "what stops itself without its node counts as out of reach until it certainly has: stories of package " +
			"replica and the simulator check it"},
	{files: "nomad/system/*", form: "batch on every node", reason: "daemons are services"},
	{files: "nomad/system/system-node-drainingnode", cases: wholeFile,
		reason: "a node has one instance of a daemon's task, none beside it"},
	{files: "nomad/unit/*", form: "score", reason: "placement keeps no scores that could be compared later"},
	{files: "nomad/unit/*", form: "considered",
		reason: "what was told to end has no say in its slot: a slot has what is, and no past"},
	{files: "nomad/unit/occupies-slot", cases: "row-2 row-6",
		reason: "batch work that was told to end is not done, and what is lost is placed again"},
	{files: "nomad/unit/*", form: "state of a node",
		reason: "a node is a member, or it left: whether its instances are waited for is said by their policy alone"},
	{files: "nomad/unit/*", form: "table of names",
		reason: "how large the peer's table of names is: slots need none"},
	{files: "nomad/unit/*", form: "name beside names",
		reason: "names beside names that are all taken: a seat has one instance at most"},

	// Pools.
	{files: "peloton/preemption*", form: "override",
		reason: "the instances of a task are alike: the job says whether they are preemptible"},
	{files: "peloton/preemption*", form: "queue",
		reason: "nothing queues for its end: what gives way is told with the entry that chooses it"},
	{files: "peloton/preemption*", form: "reason",
		reason: "a drain chooses nothing: what runs on the machine moves, with a cause of its own"},
	{files: "peloton/job_state*", form: "controller",
		reason: "a job has no controller that decides for all, yet"},
	{files: "peloton/job_state*", form: "other count",
		reason: "all slots of a job are there with the entry that brings it, none later, and no more than wanted"},
	{files: "peloton/job_state*", form: "transition",
		reason: "a task has no states between waiting and assigned: one entry admits and places it, and no agent " +
			"fetches it"},
	{files: "peloton/job_state*", form: "timeout",
		reason: "nothing can hang between states that are not there; a node that does not answer leaves the ring"},
	{files: "peloton/job_state*", form: "job goal",
		reason: "there is no engine of goals that could miss one: reactions compare what is with what the value wants"},
	{files: "peloton/job_state*", form: "task goal",
		reason: "there is no engine of goals that could miss one: reactions compare what is with what the value wants"},
	{files: "peloton/job_state*", form: "maintenance",
		reason: "a machine has one mark, drained or not; its owner takes it down, and there are no pools of machines"},
	{files: "peloton/update*", form: "confirm_status",
		reason: "there is no list of what an update has still to do that could differ from what there is: it follows " +
			"from the slots"},
	{files: "peloton/update*", form: "sla_host_maintenance",
		reason: "a job states no bound on how many of it may be unavailable while machines are drained, and no order " +
			"in which they are"},

	// Queues and gangs.
	{files: "volcano/*queue-deserved*", form: "share",
		reason: "queues are not ordered by how full they are: every pool admits by itself, up to its entitlement"},
	{files: "volcano/*queue-deserved*", form: "capacity-deserved",
		reason: "what a queue deserves is stated there and computed here; what is stated here are bounds"},
	{files: "volcano/*queue-admit*", form: "enqueue",
		reason: "there is no phase between waiting and admitted: nothing is made for a gang before it is admitted"},
	{files: "volcano/*queue-admit*", form: "overcommit",
		reason: "nothing is promised beyond capacity, so there is no factor for it"},
	{files: "volcano/08-queue-admit-reclaim-preempt", cases: "VC-QACT-030",
		reason: "a kind of which a pool states nothing has no reservation there, and goes back to pools that reserve " +
			"it; upstream it is never taken back"},
	{files: "volcano/*gang*", form: "podgroup-phase",
		reason: "a gang has no phase of its own: what it is follows from its slots"},
	{files: "volcano/*gang*", form: "gang-skip-unschedulable",
		reason: "a gang has no conditions: why it waits is computed when a user asks"},
	{files: "volcano/*gang*", form: "elastic-resource",
		reason: "nothing is subtracted for surplus: every instance beyond the gang is admitted by itself"},
	{files: "volcano/*queue-admit* volcano/*gang*", form: "preemptionPolicy",
		reason: "whether work may take room follows from its pool and its priority: no mark forbids it"},
	{files: "volcano/*queue-admit* volcano/*gang*", form: "antiAffinity",
		reason: "what stands in the way for another reason than room is not ended: placement takes another machine"},
	{files: "volcano/*gang*", form: "topology",
		reason: "machines have no tiers: what belongs together says so by attributes"},
	{files: "volcano/*gang*", form: "order",
		reason: "bundles have no order of their own: victims have one, and gangs that break come after them"},
	{files: "volcano/*gang*", form: "veto",
		reason: "no plugin forbids that an instance gives way: what its job says decides"},
	{files: "volcano/*gang* volcano/*min-resources*", form: "groups",
		reason: "a gang has tasks and no groups within them"},
	{files: "volcano/*min-resources*", form: "smaller",
		reason: "a gang that is smaller than the sum of its tasks' minima is refused: nothing says which of them it " +
			"leaves out"},
	{files: "volcano/*topology*", form: "no tier",
		reason: "a rule names the domain in which a job is kept together, and a hard topology without a tier names " +
			"none"},
	{files: "volcano/10-topology", cases: "VC-TOPO-015",
		reason: "a rule about an attribute that no machine has holds on none: a name with a typing error starts " +
			"nothing, where upstream it is as if there were no rule"},

	// The life of a job.
	{files: "volcano/*policy* volcano/*state*", form: "internal",
		reason: "OutOfSync, CommandIssued, PodRunning and explicit actions are no events: the value is compared with " +
			"what runs, and commands are obeyed"},
	{files: "volcano/*policy* volcano/*state* volcano/*admission*", form: "waiting",
		reason: "PodPending and Unknown are no events: what waits for room tells why, and a gang that lost members " +
			"comes first in its pool"},
	{files: "volcano/*policy* volcano/*state*", form: "restarts",
		reason: "restarts are counted for each instance, in a row: a task has failed when one that is out of them " +
			"fails once more"},
	{files: "volcano/*policy* volcano/*state*", form: "containers", reason: "an instance is one program"},
	{files: "volcano/*policy* volcano/*state* volcano/*scale*", form: "partition",
		reason: "tasks have no partitions"},
	{files: "volcano/*policy* volcano/*state*", form: "no tasks",
		reason: "a job without tasks or instances is refused, or has ended"},
	{files: "volcano/*policy* volcano/*state*", form: "phase",
		reason: "only what a job comes to from its instances is a state: one that is being stopped, suspended or " +
			"restarted cannot be set up as such"},
	{files: "volcano/*policy* volcano/*state*", form: "down",
		reason: "an instance that failed and for which a policy waits stays down: it has no further events, and does " +
			"not come back by itself"},
	{files: "volcano/*policy* volcano/*state* volcano/*scale*", form: "mark",
		reason: "no instance is marked for removal and then removed: what stops it says why with the same entry"},
	{files: "volcano/*policy* volcano/*state*", form: "user",
		reason: "no user restarts an instance, a task or a job by a policy's action: end-allocation and restart-job " +
			"are commands of their own"},
	{files: "volcano/*policy* volcano/*state*", form: "refused",
		reason: "a job of which more are to succeed than there are is refused"},

	// What is admitted, and numbers of instances.
	{files: "volcano/*admission*", form: "pools",
		reason: "queues are pools, which are changed as a tree: the cases about requests for pools try that"},
	{files: "volcano/*admission*", form: "parts",
		reason: "partitions, topologies, claims of volumes and NUMA policies are not stated by jobs"},
	{files: "volcano/*admission*", form: "plugins",
		reason: "which arguments plugins take is tried by the cases about plugins"},
	{files: "volcano/*admission*", form: "defaults",
		reason: "minima are stated and never assumed, tasks of a job with several have names, and a plugin brings no " +
			"other"},
	{files: "volcano/*admission*", form: "name",
		reason: "a job's name begins with its pool: in another pool it is another job"},
	{files: "volcano/*scale*", form: "pass",
		reason: "no pass creates or deletes anything: a slot waits from the entry on that wants it, and is placed " +
			"when its turn has come"},
	{files: "volcano/*scale*", form: "ready",
		reason: "a task begins when all instances of those before it have succeeded, and not when some of them run or " +
			"are ready"},
	{files: "volcano/01-scale", cases: "VC-SCALE-009",
		reason: "a gang has no phase that holds up a change of its numbers: what is too many is told to end with the " +
			"entry that says so"},
	{files: "volcano/*scale*", form: "gap",
		reason: "no pass finds gaps: a slot without an instance is filled as soon as there is room"},
	{files: "volcano/*scale*", form: "ended",
		reason: "a job that has ended has no further versions: submitted again it is a new one"},
	{files: "volcano/*scale*", form: "unfit minima",
		reason: "minima are changed with the numbers that they no longer fit"},

	// Plugins.
	{files: "volcano/*plugins*", form: "command",
		reason: "a job's command is its own: ray gives its arguments as a variable"},
	{files: "volcano/*plugins*", form: "own env",
		reason: "what a job's own variables and those of its plugins make together is for what starts the instance"},
	{files: "volcano/*plugins*", form: "own rank",
		reason: "no instance states a rank of its own: it follows from the job file"},
	{files: "volcano/*plugins*", form: "hostname",
		reason: "every instance has a name of its own: no host name is stated for all of a task"},
	{files: "volcano/*plugins*", form: "network",
		reason: "plugins make no services and no rules for the network: names are answered from the value"},
	{files: "volcano/*plugins*", form: "keys",
		reason: "each machine derives the keys of a job from the cluster's secret: none is ever an argument, which " +
			"would stand in the journal"},
	{files: "volcano/*plugins*", form: "path",
		reason: "all files of an instance are below its own folder: a job that chose a path would write into the " +
			"machine's own"},
}

// matches tells whether the row is about a file.
func (o *omission) matches(file string) bool {
	file = strings.TrimPrefix(file, ownPrefix)
	return slices.ContainsFunc(strings.Fields(o.files), func(pattern string) bool {
		ok, err := path.Match(pattern, file)
		return ok && err == nil
	})
}

// ofForm returns the row that leaves out cases of a form, nil if there is none.
func (all omissions) ofForm(file, form string) *omission {
	return all.where(file, func(o *omission) bool { return o.form == form && form != "" })
}

// ofCase returns the row that leaves out a single case, nil if there is none.
func (all omissions) ofCase(file, id string) *omission {
	return all.where(file, func(o *omission) bool { return slices.Contains(strings.Fields(o.cases), id) })
}

func (all omissions) where(file string, is func(o *omission) bool) *omission {
	at := slices.IndexFunc(all, func(o *omission) bool { return o.matches(file) && is(o) })
	if at < 0 {
		return nil
	}
	return all[at]
}

// judge says what came of a case, and what is wrong with the table.
func (all omissions) judge(file, id string, one *trial) (v verdict, complaint string) {
	row := all.ofCase(file, id)
	switch {
	case one.leftOut != "" && row != nil:
		complaint = fmt.Sprintf("is left out for its form (%s): its own row in leftOut is not needed", one.leftOut)
	case one.leftOut != "":
		if row = all.ofForm(file, one.leftOut); row == nil {
			complaint = fmt.Sprintf("no row of leftOut says why the form %q is left out", one.leftOut)
		}
	case row != nil && len(one.failures) == 0:
		complaint = fmt.Sprintf("passes: its row in leftOut is not needed (%s)", row.reason)
	}
	if complaint != "" {
		return verdict{id: id, failures: append(one.failures, complaint)}, complaint
	}
	if row != nil {
		row.used = true
		return verdict{id: id, row: row}, ""
	}
	return verdict{id: id, failures: one.failures}, ""
}

// unused returns the rows that no case needed.
func (all omissions) unused() omissions {
	return slices.DeleteFunc(slices.Clone(all), func(o *omission) bool { return o.used })
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		file, id     string
		check        func(t *trial)
		failed, left bool
	}{
		"passes":                  {"a/x", "1", func(*trial) {}, false, false},
		"fails":                   {"a/x", "1", func(t *trial) { t.Error("no") }, true, false},
		"fails with a row":        {"a/x", "2", func(t *trial) { t.Error("no") }, false, true},
		"passes with a row":       {"a/x", "2", func(*trial) {}, true, false},
		"our own, with a row":     {"own/a/x", "2", func(t *trial) { t.Error("no") }, false, true},
		"fails in another file":   {"b/x", "2", func(t *trial) { t.Error("no") }, true, false},
		"left out":                {"a/x", "1", func(t *trial) { t.leaveOut("f") }, false, true},
		"left out without reason": {"b/x", "1", func(t *trial) { t.leaveOut("f") }, true, false},
		"left out twice":          {"a/x", "2", func(t *trial) { t.leaveOut("f") }, true, false},
	} {
		table := omissions{{files: "a/*", cases: "2 3", reason: "r"}, {files: "a/x a/y", form: "f", reason: "s"}}
		v, _ := table.judge(c.file, c.id, try(c.check))
		if len(v.failures) > 0 != c.failed || (v.row != nil) != c.left || len(table.unused()) == 2 != (v.row == nil) {
			t.Errorf("%s: %+v, %d rows unused", name, v, len(table.unused()))
		}
	}
}
