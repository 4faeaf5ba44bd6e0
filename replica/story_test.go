package replica

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/plugin/roster"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/schedule/explain"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// TestStories plays the stories below testdata. A slot is written web.main.0, a peer without its first incarnation.
//
//	peers a b c cpu=2000         these join and offer that much; their entries are not shown
//	peers a~2                    a new life joins after the old one left
//	submit web instances=3 type=stateless cpu=500 program=v2 restarts=2 task=main request=r1 by=b
//	                             also stateful and daemon; and batch=1 canaries=1 auto min=1000 healthy=5000
//	                             progress=9000 failures=0 attempts=1 rollback paused same,
//	                             resched=2 fibonacci=2 lost=5000 wait keep=original stop-after=3000
//	                             volume, volumes-for=5000, check; against=2 unless it is made against the present version
//	                             where=ssd and prefers=ssd (its disk), app=web (a label), apart=web and near=web
//	                             (others with that label, on the node, and with the same disk), per-node=2
//	                             spread=disk placement=spread
//	submit sums task=one:1,two:3:one,three:1:one+two     tasks, how many instances each has, and after which it comes
//	submit sums shares=round-robin percent=40 disk=two     virtual peers run it, those of task two on nodes with a disk
//	submit report follows=sums+web     it comes after other jobs
//	kill web request=r2 by=b
//	steer web pause by=a         or resume, promote, fail, abort
//	revert web 1                 go back to a version
//	restart web
//	suspend web                  or resume web
//	move web.main.0              or again web.main.0: its allocation ends, for one elsewhere or on the same node; or
//	                             release web.main.0: for one anywhere, its volumes are given up
//	pools a=2000/4000/1 b=0/9000/2/500     the tree beside default: reservation, limit, share of cpu, preemption delay in
//	                             milliseconds; jobs are pool/name, with priority=9 gang=2 (of the task) total=3 (of the
//	                             job) most=2 runtime=9000 and as=fixed, preemptible, revocable, controller, killed
//	drain a 5000                 or undrain a
//	passes web.main.0            its checks pass; or unready web.main.0: one fails that says only when it is ready
//	members web                  the numbers of those that others are told of
//	why web                      why not all of it runs as it should
//	after 5000                   the clocks go on
//	ends web.main.0 1            a program ends with that status on its node; nobody knows yet; or that of the canary
//	                             web.main.0.canary
//	fails web.main.0             a node finds that it cannot start one
//	loses web.main.0             a node has not got any more what an instance that succeeded has left
//	act a                        a does what React asks for, again and again, until there is nothing to do
//	idle a                       what React asks of a, which does not do it
//	leave a by=b                 b reports that a's pulse ended; what runs there goes on
//	remove a by=b                a is taken out for good; or remove a off by=b: nothing runs there any more
//	report web.main.0 1 by=b order=7      b reports an end on its own account
//	tick by=a                    an entry that tells the time
//	repeat                       the last entry comes once more
//	rules 2 by=a
//	newest                       the newest rules are in force, without an entry
//	rm db.main[0]@1              its volumes are to be deleted
//	takes db.main[0]@1 7 by=b    b has its volumes from now on, as #7 left them
//	volumes                      all volumes
//
// An entry is shown with its effects and refusals, and after it all jobs.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.HasPrefix(path, "testdata/fuzz/") {
			return // inputs of FuzzApply
		}
		w := newStory()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.out, w.shown = strings.Builder{},
				d.Cmd != "after" && d.Cmd != "why" && d.Cmd != "idle" && d.Cmd != "ends" && d.Cmd != "fails" && d.Cmd != "loses" &&
					d.Cmd != "volumes" && d.Cmd != "members"
			line := d.Cmd
			for _, argument := range d.CmdArgs {
				line += " " + strings.TrimSuffix(argument.Key+"="+strings.Join(argument.Vals, ","), "=")
			}
			for line := range strings.Lines(line + "\n" + d.Input) {
				if words := strings.Fields(line); len(words) > 0 && !w.tell(words) {
					t.Fatalf("%s: no rule for %q", d.Pos, line)
				}
			}
			for _, line := range w.s.Audit() {
				t.Errorf("%s: %s", d.Pos, line)
			}
			if w.shown {
				w.jobs()
			}
			return w.out.String()
		})
	})
}

// story is a value with peers that each have a driver.
type story struct {
	s      *cluster.State
	now    terms.Time
	seqs   map[terms.PeerID]uint64
	offers map[terms.PeerID]*terms.Offer
	local  map[terms.NodeName][]reaction.LocalTask
	// kept are the volumes that a node's driver has.
	kept  map[terms.NodeName][]terms.VolumeSet
	lost  []terms.AllocationID
	last  *command.Entry
	out   strings.Builder
	quiet bool
	shown bool
	// folded, unless nil, looks at every entry.
	folded func(before *cluster.State, outcome report.Outcome)
}

func newStory() *story {
	return &story{s: cluster.NewState(), now: 1000, seqs: map[terms.PeerID]uint64{},
		offers: map[terms.PeerID]*terms.Offer{},
		local:  map[terms.NodeName][]reaction.LocalTask{}, kept: map[terms.NodeName][]terms.VolumeSet{}}
}

func named(name string) terms.PeerID {
	if !strings.Contains(name, "~") {
		name += "~1"
	}
	return terms.PeerID(name)
}

func brief(p terms.PeerID) string { return strings.TrimSuffix(string(p), "~1") }

// settings splits words into those with "=" and the others.
func settings(words []string) (plain []string, set map[string]string) {
	set = map[string]string{}
	for _, word := range words {
		if key, value, found := strings.Cut(word, "="); found {
			set[key] = value
		} else {
			plain = append(plain, word)
		}
	}
	return plain, set
}

func number(text string) int64 {
	if text == "unlimited" {
		return int64(terms.RestartsUnlimited)
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// tell does what one line says; it returns false for a line that says nothing known.
func (w *story) tell(words []string) bool {
	plain, set := settings(words[1:])
	plain = append(plain, "", "")
	by := named("a")
	if set["by"] != "" {
		by = named(set["by"])
	}
	switch words[0] {
	case "peers":
		w.join(plain[:len(plain)-2], set)
	case "submit":
		w.write(by, w.submission(plain[0], set))
	case "kill":
		w.write(by, &command.KillJob{RequestID: set["request"], Job: terms.JobName(plain[0]), Now: plain[1] == "now"})
	case "after":
		w.now += terms.Time(number(plain[0]))
	case "ends":
		w.end(plain[0], facts.ByItself, int32(number(plain[1])), "")
	case "fails":
		w.end(plain[0], facts.NotStarted, 0, "no such program")
	case "lacks":
		w.end(plain[0], facts.NotThere, 0, "no such program")
	case "act":
		w.act(named(plain[0]))
	case "idle":
		w.told(w.react(named(plain[0])))
	case "leave":
		w.write(by, &command.Leave{Peer: named(plain[0])})
	case "remove":
		w.write(by, &command.RemoveNode{Node: terms.NodeName(plain[0]), IsOff: slices.Contains(plain, "off")})
	case "report":
		w.report(by, plain[0], int32(number(plain[1])), set["order"])
	case "tick":
		w.write(by, &command.TellTime{})
	case "repeat":
		w.apply(w.last)
	case "pools":
		w.pools(by, words[1:])
	case "rules":
		w.write(by, &command.RaiseRules{Version: rules.Number(number(plain[0]))})
	case "newest":
		w.s.Rules = cmp.Or(rules.Number(number(plain[0])), rules.Released)
	default:
		return w.tellMore(words[0], by, plain)
	}
	return true
}

// pools replaces the tree but for the default pool.
func (w *story) pools(by terms.PeerID, words []string) {
	c := &command.ChangePools{}
	for _, word := range words {
		if strings.HasPrefix(word, "by=") {
			continue
		}
		path, text, _ := strings.Cut(word, "=")
		text, static := strings.CutSuffix(text, "/static")
		values := strings.Split(text, "/")
		p := terms.NewPool(terms.PoolPath(path))
		p.Quotas[terms.CPU] = terms.Quota{Reservation: number(values[0]), Limit: number(values[1]), Share: number(values[2]),
			Static: static}
		if p.PreemptionDelayMillis = 0; len(values) > 3 {
			p.PreemptionDelayMillis = uint32(number(values[3]))
		}
		if len(values) > 4 {
			p.JobScheduler = terms.JobScheduler(slices.Index(terms.JobSchedulers(), values[4]))
		}
		c.Pools = append(c.Pools, p)
	}
	for _, p := range w.s.Pools()[1:] {
		if !slices.ContainsFunc(c.Pools, func(one terms.Pool) bool { return one.Path == p.Path }) &&
			p.Path != terms.DefaultPool {
			c.Gone = append(c.Gone, p.Path)
		}
	}
	w.write(by, c)
}

// tellMore does what one line says about what is there already.
func (w *story) tellMore(verb string, by terms.PeerID, plain []string) bool {
	switch verb {
	case "steer":
		how := slices.Index(command.Steerings(), plain[1])
		w.write(by, &command.SteerUpdate{Job: terms.JobName(plain[0]), Version: w.s.JobOf(terms.JobName(plain[0])).Update.To,
			Steering: command.Steering(how)})
	case "revert":
		w.write(by, &command.RevertJob{Job: terms.JobName(plain[0]), To: uint32(number(plain[1]))})
	case "restart":
		w.write(by, &command.RestartJob{Job: terms.JobName(plain[0])})
	case "suspend", "resume":
		w.write(by, &command.SuspendJob{Job: terms.JobName(plain[0]), Resume: verb == "resume"})
	case "move", "again", "release":
		_, _, id := w.slot(plain[0])
		w.write(by, &command.EndAllocation{Slot: id.Slot, Order: id.Order, Elsewhere: verb != "again",
			WithoutVolumes: verb == "release", Now: plain[1] == "now"})
	case "seal":
		_, _, id := w.slot(plain[0])
		w.write(by, &command.SealTask{Slot: id.Slot, Order: id.Order - terms.Index(number(plain[1]))})
	case "drain", "undrain":
		w.write(by, &command.DrainNode{Node: terms.NodeName(plain[0]), Drain: verb == "drain",
			DeadlineMillis: uint32(number(plain[1]))})
	case "why":
		w.why(terms.JobName(plain[0]))
	case "passes", "unready":
		w.passes(plain[0], verb == "passes")
	case "members":
		w.members(terms.JobName(plain[0]))
	case "rm", "takes", "volumes":
		w.volumes(verb, by, plain)
	case "put-secret", "seal-secret", "rm-secret", "secrets":
		w.secrets(verb, by, plain)
	case "loses":
		_, _, id := w.slot(plain[0])
		w.lost = append(w.lost, id)
	default:
		return false
	}
	return true
}

// volumes lists volumes, removes some, or lets the node of a peer have them as an allocation left them.
func (w *story) volumes(verb string, by terms.PeerID, plain []string) {
	if verb == "volumes" {
		for _, one := range storage.List(w.s) {
			fmt.Fprintf(&w.out, "%s on %s: %s", one.Set, one.Node, one.State)
			if one.Until != 0 {
				fmt.Fprintf(&w.out, " until %d", one.Until)
			}
			w.out.WriteByte('\n')
		}
		return
	}
	set, _ := terms.ParseVolumeSet(plain[0])
	if verb == "rm" {
		w.write(by, &command.RemoveVolumes{Volumes: set})
		return
	}
	order, _ := strconv.ParseUint(plain[1], 10, 64)
	w.write(by, &command.MoveVolumes{Volumes: set, Order: terms.Index(order)})
}

// join lets peers join and offer.
func (w *story) join(names []string, set map[string]string) {
	w.quiet = true
	cpu := number(set["cpu"])
	for _, name := range names {
		w.offers[named(name)] = &terms.Offer{
			Capacity: terms.Resources{max(cpu, 1), 0, 0}, Rules: 1,
			Devices: []terms.DeviceOffer{{Kind: terms.VirtualPeers.String(), Count: uint32(max(cpu/1000, 1))}},
		}
		if disk := set["disk"]; disk != "" {
			w.offers[named(name)].Attributes = []terms.EnvVar{{Name: "disk", Value: disk}}
		}
		w.write(named(name), &command.PrepareJoin{Joiner: named(name), Attempt: 1})
		for _, p := range slices.Sorted(maps.Keys(w.offers)) {
			w.act(p)
		}
		w.act(named(name))
	}
	w.quiet = false
}

// set gives a job or its task what one word says.
func (w *story) set(c *command.SubmitJob, t *terms.Task, key, value string) {
	u, n := &c.Spec.Update, uint32(number(value))
	numbers := map[string]*uint32{
		"against": &c.Against, "batch": &u.BatchSize, "canaries": &u.Canaries, "min": &u.MinHealthyMillis,
		"healthy":  &u.HealthyDeadlineMillis,
		"progress": &u.ProgressDeadlineMillis, "failures": &u.FailuresMax, "attempts": &u.AttemptsMax,
		"instances": &t.Instances,
		"priority":  &c.Spec.Priority, "total": &c.Spec.MinAvailable, "gang": &t.MinAvailable, "most": &t.MaxRunning,
		"runtime":     &t.MaxRunMillis,
		"task-budget": &t.MaxRestarts, "job-budget": &c.Spec.MaxRestarts, "success": &c.Spec.MinSuccess,
		"kept": &c.Spec.KeepMillis,
		"lost": &t.Disconnect.LostAfterMillis, "stop-after": &t.Disconnect.StopAfterMillis,
		"restarts": &t.Restart.AttemptsMax, "percent": &c.Spec.Percent,
	}
	if into, ok := numbers[key]; ok {
		*into = n
		return
	}
	switch key {
	case "type":
		c.Spec.Type = terms.JobType(slices.Index(terms.JobTypes(), value))
	case "how":
		u.AutoPromote, u.Rollback = strings.Contains(value, "auto"), strings.Contains(value, "rollback")
		u.StartPaused, u.SameNode = strings.Contains(value, "paused"), strings.Contains(value, "same")
	case "as":
		s := &c.Spec
		s.Preemption = map[string]terms.Preemption{"fixed": terms.NonPreemptible,
			"preemptible": terms.Preemptible}[strings.Split(value, "+")[0]]
		s.Revocable = strings.Contains(value, "revocable")
		s.Controller, s.KillOnPreempt = strings.Contains(value, "controller"), strings.Contains(value, "killed")
	case "on", "job-on":
		*map[string]*[]lifecycle.Policy{"on": &t.Policies, "job-on": &c.Spec.Policies}[key] = policiesOf(value)
	case "follows":
		for _, name := range strings.Split(value, "+") {
			c.Spec.After = append(c.Spec.After, terms.JobName(name))
		}
	case "program", "within":
		*map[string]*string{"program": &t.Command[0], "within": &c.Spec.Within}[key] = value
	default:
		setTask(t, key, value)
	}
}

// setTask gives a task what one word says of it alone.
func setTask(t *terms.Task, key, value string) {
	n := uint32(number(value))
	switch key {
	case "resched", "fibonacci":
		growth := map[string]terms.Growth{"resched": terms.Exponential, "fibonacci": terms.Fibonacci}[key]
		t.Reschedule = terms.Reschedule{AttemptsMax: n, IntervalMillis: 60_000, DelayMillis: 3000, DelayMaxMillis: 9000,
			Growth: growth}
	case "wait":
		t.Disconnect.Wait = true
	case "keep":
		t.Disconnect.Keep = terms.Survivor(slices.Index(terms.Survivors(), value))
	case "volume", "volumes-for", "secret":
		setFiles(t, key, value)
	case "check":
		t.Checks = []terms.Check{{Kind: terms.CheckCommand, Command: []string{"check"}, IntervalMillis: 1000,
			TimeoutMillis: 1000, OnFailure: terms.OnFailure(max(0, slices.Index(terms.OnFailures(), value)))}}
	case "cpu":
		t.Resources[terms.CPU] = number(value)
	case "where", "prefers":
		t.Constraints = append(t.Constraints, constraint.Constraint{
			Attribute: "disk", Operator: constraint.Equal, Values: []string{value}, Soft: key == "prefers",
		})
	case "apart", "near":
		c := constraint.Constraint{Label: "app", Operator: constraint.Equal, Values: []string{value}}
		if key == "near" {
			c.Operator, c.Within = constraint.Greater, "disk"
		}
		t.Constraints = append(t.Constraints, c)
	case "app":
		t.Labels = []terms.EnvVar{{Name: key, Value: value}}
	case "per-node":
		t.PerNodeMax = n
	case "spread":
		t.SpreadOver = value
	case "placement":
		t.Placement = terms.Placement(slices.Index(terms.Placements(), value))
	case "port":
		t.Ports = []terms.PortRequest{{Name: "main", Number: uint16(n)}}
	}
}

// policiesOf reads policies such as instance_failed:restart_task:5000 or 7:abort, with "+" between them.
func policiesOf(text string) (all []lifecycle.Policy) {
	for _, one := range strings.Split(text, "+") {
		words := append(strings.Split(one, ":"), "0")
		p := lifecycle.Policy{Action: lifecycle.Action(slices.Index(lifecycle.Actions(), words[1])),
			DelayMillis: uint32(number(words[2]))}
		if code := number(words[0]); code > 0 {
			p.ExitCodes = []uint32{uint32(code)}
		} else {
			p.On = []lifecycle.Event{lifecycle.Event(slices.Index(lifecycle.Events(), words[0]))}
		}
		all = append(all, p)
	}
	return all
}

func (w *story) submission(name string, set map[string]string) *command.SubmitJob {
	t := terms.Task{
		Name: "main", Instances: 1, Command: []string{"run"}, Placement: terms.Pack,
		Restart:         terms.Restart{AttemptsMax: 2, DelayMillis: 1000, DelayMaxMillis: 5000, ResetMillis: 60_000},
		StopGraceMillis: 5000,
	}
	c := &command.SubmitJob{RequestID: set["request"], Spec: terms.Job{Name: terms.JobName(name), Type: terms.Batch}}
	if j := w.s.JobOf(c.Spec.Name); j != nil && j.Finished == 0 {
		c.Against = j.Version
	}
	for key, value := range set {
		w.set(c, &t, key, value)
	}
	for _, task := range strings.Split(set["task"], ",") {
		name, rest, _ := strings.Cut(task, ":")
		if name != "" {
			t.Name = terms.TaskName(name)
		}
		if count, after, numbered := strings.Cut(rest, ":"); rest != "" {
			t.Instances, t.After = uint32(number(count)), nil
			for _, one := range strings.Split(after, "+") {
				if numbered {
					t.After = append(t.After, terms.TaskName(one))
				}
			}
		}
		c.Spec.Tasks = append(c.Spec.Tasks, t)
		if last := &c.Spec.Tasks[len(c.Spec.Tasks)-1]; set["disk"] == string(t.Name) {
			last.Constraints = []constraint.Constraint{{Attribute: "disk", Operator: constraint.Exists}}
		}
	}
	if word := set["shares"]; word != "" {
		c.Spec.TaskScheduler = terms.TaskScheduler(slices.Index(terms.TaskSchedulers(), word))
		c.Spec.Coverage = terms.Coverage(slices.Index(terms.Coverages(), set["coverage"]))
		c.Spec.OnVirtualPeers()
	}
	return c
}

// Tries is forecast.Tries, which tests in this package cannot import.
var Tries func(*cluster.State, terms.JobName) explain.Try

func (w *story) why(name terms.JobName) {
	for _, f := range explain.Job(w.s, w.s.JobOf(name), &explain.Reader{Try: Tries(w.s, name)}) {
		fmt.Fprintf(&w.out, "%s[%d], %d: %s\n", f.Task, f.Slot, f.Instances, f.Reason)
		for _, line := range f.Details {
			fmt.Fprintf(&w.out, "  %s\n", line)
		}
	}
}

// members shows of which members of a job's first task others are told.
func (w *story) members(name terms.JobName) {
	for _, m := range roster.Members(w.s, w.s.JobOf(name), 0) {
		fmt.Fprintf(&w.out, "%d: %t\n", m.Index, m.Order != 0)
	}
}

// passes lets the checks of a slot's allocation pass on its node, or one of them fail.
func (w *story) passes(name string, well bool) {
	_, slot, id := w.slot(name)
	node := w.s.Node(slot.Node).Name
	for i := range w.local[node] {
		if w.local[node][i].ID == id {
			w.local[node][i].Ready, w.local[node][i].Unready = well, ""
			if !well {
				w.local[node][i].Unready = "check command check failed 4 times in a row"
			}
		}
	}
}

// write folds an entry with the commands as the writer's next.
func (w *story) write(by terms.PeerID, commands ...command.Command) {
	w.seqs[by]++
	w.apply(&command.Entry{Writer: by, Seq: w.seqs[by], Time: w.now, Commands: commands})
}

func (w *story) apply(e *command.Entry) {
	w.last = e
	before := w.s.Copy()
	outcome := Apply(w.s, w.s.Index+1, e, true)
	if w.folded != nil {
		w.folded(before, outcome)
	}
	if w.quiet {
		return
	}
	fmt.Fprintf(&w.out, "#%d by %s:", outcome.Index, brief(e.Writer))
	if outcome.Dropped != "" {
		fmt.Fprintf(&w.out, " dropped: %s", outcome.Dropped)
	}
	for i, result := range outcome.Results {
		fmt.Fprintf(&w.out, " %s", e.Commands[i].Kind())
		if result.Job != "" {
			fmt.Fprintf(&w.out, " %s", result.Job)
		}
		if result.Refused() {
			fmt.Fprintf(&w.out, " refused, %s: %s", result.Refusal.Code, strings.ReplaceAll(result.Refusal.Reason, "~1", ""))
		}
	}
	fmt.Fprintln(&w.out)
	for _, effect := range outcome.Effects {
		line := "  " + effect.Kind.String()
		switch {
		case effect.Peer != "":
			line += " " + brief(effect.Peer)
		case effect.Slot.Task == "":
			line += " " + string(effect.Slot.Job)
		default:
			line += fmt.Sprintf(" %s on %s", terms.AllocationID{Slot: effect.Slot, Order: effect.Order}, effect.Node)
		}
		if effect.By != "" {
			line += ": to " + string(effect.By)
		}
		if effect.Reason != "" {
			line += ": " + effect.Reason
		}
		fmt.Fprintln(&w.out, line)
	}
}

func (w *story) slot(text string) (facts.SlotRef, facts.Slot, terms.AllocationID) {
	words := strings.Split(text, ".")
	name := terms.SlotName{Job: terms.JobName(words[0]), Task: terms.TaskName(words[1]), Index: uint32(number(words[2]))}
	ref, _ := w.s.RefOf(name)
	if len(words) > 3 {
		ref.Seat = facts.CanarySeat
	}
	slot, _ := w.s.SlotAt(ref)
	return ref, slot, terms.AllocationID{Slot: name, Order: slot.Order}
}

// end lets a program end on the node that has it, or makes it one that could not be started.
func (w *story) end(text string, ending facts.Ending, status int32, detail string) {
	_, slot, id := w.slot(text)
	node := w.s.Node(slot.Node).Name
	w.local[node] = slices.DeleteFunc(w.local[node], func(task reaction.LocalTask) bool { return task.ID == id })
	w.local[node] = append(w.local[node], reaction.LocalTask{ID: id, Ended: ending, ExitCode: status, Detail: detail})
}

func (w *story) report(by terms.PeerID, text string, status int32, order string) {
	ref, slot, _ := w.slot(text)
	news := command.Report{Slot: ref, Order: slot.Order, Ended: facts.ByItself, ExitCode: status}
	if order != "" {
		news.Order = terms.Index(number(order))
	}
	w.write(by, &command.ReportTasks{Peer: by, Reports: []command.Report{news}})
}

func (w *story) react(p terms.PeerID) (terms.PeerID, reaction.Reactions) {
	return p, reaction.React(p, w.s,
		&reaction.Observed{Now: w.now, Local: w.local[p.Node()], Volumes: w.kept[p.Node()], Lost: w.lost,
			Offer: w.offers[p], Starts: 1000})
}

// told writes out what React asks for beside the entries that it wants.
func (w *story) told(p terms.PeerID, r reaction.Reactions) {
	if w.quiet {
		return
	}
	for _, order := range r.Start {
		fmt.Fprintf(&w.out, "%s starts %s: %s, one of %d\n", brief(p), order.ID, order.Spec.Command[0], order.Instances)
	}
	for _, stop := range r.Stop {
		fmt.Fprintf(&w.out, "%s stops %s with %d ms of grace\n", brief(p), stop.ID, stop.GraceMillis)
	}
	for _, id := range r.Forget {
		fmt.Fprintf(&w.out, "%s forgets %s\n", brief(p), id)
	}
	for _, set := range r.DeleteVolumes {
		fmt.Fprintf(&w.out, "%s deletes the volumes %s\n", brief(p), set)
	}
	for _, one := range r.Commands {
		fmt.Fprintf(&w.out, "%s writes %s\n", brief(p), one.Kind())
	}
	if r.AskAgain != 0 {
		fmt.Fprintf(&w.out, "%s asks again at %d\n", brief(p), r.AskAgain)
	}
}

// act does what React asks for until it asks for nothing more.
func (w *story) act(p terms.PeerID) {
	for {
		_, r := w.react(p)
		commands := r.Commands
		r.Commands = nil
		rests := len(commands)+len(r.Start)+len(r.Stop)+len(r.Forget)+len(r.DeleteVolumes) == 0
		if !rests {
			r.AskAgain = 0
		}
		w.told(p, r)
		node := p.Node()
		for _, order := range r.Start {
			w.local[node] = append(w.local[node], reaction.LocalTask{ID: order.ID})
			if len(order.Spec.Volumes) > 0 && !slices.Contains(w.kept[node], order.Volumes) {
				w.kept[node] = append(w.kept[node], order.Volumes)
			}
		}
		w.kept[node] = slices.DeleteFunc(w.kept[node],
			func(set terms.VolumeSet) bool { return slices.Contains(r.DeleteVolumes, set) })
		for i := range w.local[node] {
			task := &w.local[node][i]
			if slices.ContainsFunc(r.Stop, func(stop reaction.StopOrder) bool { return stop.ID == task.ID }) {
				task.Ended = facts.OnRequest
			}
		}
		w.local[node] = slices.DeleteFunc(w.local[node],
			func(task reaction.LocalTask) bool { return slices.Contains(r.Forget, task.ID) })
		if len(commands) > 0 {
			w.write(p, commands...)
		}
		if rests {
			return
		}
	}
}

// jobs shows every job with its slots.
func (w *story) jobs() {
	w.s.EachJob(func(j *workload.Job) bool {
		fmt.Fprintf(&w.out, "%s, version %d, %s", j.Name(), j.Version, j.Status())
		if u := &j.Update; u.State != facts.NoUpdate && u.State != facts.UpdateSucceeded {
			fmt.Fprintf(&w.out, ", %s %d to %d", u.State, u.From, u.To)
			if u.Reason != "" {
				fmt.Fprintf(&w.out, " (%s)", u.Reason)
			}
		}
		for i, t := range j.Tasks {
			fmt.Fprintf(&w.out, "; %s", t.Name)
			for index := range t.Slots.Len() {
				fmt.Fprint(&w.out, " ", w.seat(j, t.Slots.At(index)))
			}
			t.EachSecondary(j.ID, i, func(r facts.SlotRef, slot facts.Slot) bool {
				fmt.Fprintf(&w.out, " %s %d: %s", r.Seat, r.Index, w.seat(j, slot))
				return true
			})
			if t.Failure != (facts.Failure{}) {
				fmt.Fprintf(&w.out, " (last failure: %d %s %d %s)", t.Failure.Index, t.Failure.Ended, t.Failure.ExitCode,
					t.Failure.Detail)
			}
		}
		fmt.Fprintln(&w.out)
		return true
	})
}

// seat shows a seat; the version only if it is not the newest.
func (w *story) seat(j *workload.Job, slot facts.Slot) string {
	text := slot.Phase.String()
	if slot.Phase.Holds() {
		text += "@" + string(w.s.Node(slot.Node).Name)
	}
	if slot.Order != 0 && slot.Version != 0 && slot.Version != j.Version && slot.Phase != facts.Succeeded {
		text += fmt.Sprintf("/v%d", slot.Version)
	}
	if slot.Health == facts.Healthy && j.Spec.Type != terms.Batch && j.Spec.Update.MinHealthyMillis > 0 {
		text += "+"
	}
	if slot.Health == facts.Unhealthy {
		text += "!"
	}
	if slot.Deadline != 0 && slot.Phase != facts.Running && slot.Phase != facts.Assigned {
		text += fmt.Sprintf(" until %d", slot.Deadline)
	}
	return text
}
