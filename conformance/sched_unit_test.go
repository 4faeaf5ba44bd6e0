package conformance

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/schedule/share"
)

// The difference from Onyx 0.5.0. It holds for every file.
var overflowTwice = &difference{name: "overflow", reason: "what bounded jobs cannot use goes to all others alike; " +
	"0.5.0 gives it in one pass to jobs without any bound"}

// schedKindsExcluded are the kinds of unit that are left out.
var schedKindsExcluded = []string{"submit-job", "seal-task", "membership", "gc-log", "gc"}

// schedUnitCase is one step or sequence of 0.5.0.
type schedUnitCase struct {
	ID, Source, Kind, Note string
	Scheduler              string `yaml:"job_scheduler"`
	TaskScheduler          string `yaml:"task_scheduler"`
	// Peers is a number or names, Jobs names or the tasks of each.
	Peers, Jobs                    yaml.Node
	Saturation                     map[string]share.Peers
	Tasks                          map[string][]string
	Percentages                    map[string]float64
	TaskPercentages                map[string]float64 `yaml:"task_percentages"`
	Allocations                    allocations
	ExpectAllocations              allocations `yaml:"expect_allocations"`
	Completions                    map[string][]string
	Sealing                        map[string]bool
	Volunteer, Leaves, Asked, Then string
	Entry                          struct{ Fn, Job, Task string }
	Expect                         yaml.Node
	ExpectThen                     map[string]int `yaml:"expect_then"`
	Steps                          []schedStep
}

// allocations are the peers of each task of each job.
type allocations map[string]map[string][]string

type schedStep struct {
	Event string
	// Expect leads from jobs to what checkJob reads.
	Expect map[string]yaml.Node
}

// schedUnit runs one unit.
func schedUnit(t *trial, node *yaml.Node, kind string, differences tally) {
	if slices.Contains(schedKindsExcluded, kind) {
		t.leaveOut(kind)
	}
	u := &schedUnitCase{}
	if err := decode(node, u); err != nil {
		t.Fatalf("read the unit: %v", err)
	}
	switch kind {
	case "job-balance":
		u.balance(t, differences)
	case "volunteer-step":
		u.step(t, differences)
	case "final-counts":
		u.counts(t)
	case "sequence":
		u.sequence(t)
	case "complete-task", "kill-job", "leave":
		u.entry(t)
	case "reallocate?":
		u.reallocate(t)
	default:
		t.Errorf("no rule for the kind %s", kind)
	}
}

// crowd builds the jobs and the peers.
func (u *schedUnitCase) crowd(t *trial) *crowd {
	scheduler, err := jobScheduler(orElse(u.Scheduler, "round-robin"))
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{scheduler: scheduler, used: map[string]bool{}}
	for _, name := range u.peerNames(t) {
		c.join(name, "", nil)
	}
	for _, job := range u.jobs(t) {
		j, err := job.crowdJob()
		if err != nil {
			t.Fatal(err)
		}
		c.jobs = append(c.jobs, j)
		done := u.Completions[j.name]
		for i, task := range j.tasks {
			// 0.5.0 compares numbers: a job with as many completions as tasks has completed.
			if slices.Contains(done, task) || len(done) >= len(j.tasks) || u.Sealing[task] {
				j.spec.Tasks[i].State = share.Closed
			}
		}
	}
	for _, job := range sortedKeys(u.Allocations) {
		for _, task := range sortedKeys(u.Allocations[job]) {
			for _, name := range u.Allocations[job][task] {
				at := slices.IndexFunc(c.peers, func(p *crowdPeer) bool { return p.name == name })
				c.give(c.peers[at], c.job(job), slices.Index(c.job(job).tasks, task))
			}
		}
	}
	return c
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// peerNames returns the peers that are there: those with a task, and those who volunteer or are counted.
func (u *schedUnitCase) peerNames(t *trial) (names []string) {
	number := 0
	if u.Peers.Kind == yaml.ScalarNode {
		if err := u.Peers.Load(&number); err != nil {
			t.Fatal(err)
		}
	}
	for i := range number {
		names = append(names, fmt.Sprintf("p%d", i+1))
	}
	for _, job := range sortedKeys(u.Allocations) {
		for _, task := range sortedKeys(u.Allocations[job]) {
			names = append(names, u.Allocations[job][task]...)
		}
	}
	if u.Volunteer != "" {
		names = append(names, u.Volunteer)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// jobs returns the jobs in the file's order. One whose tasks are not told has those that peers are on, or one.
func (u *schedUnitCase) jobs(t *trial) (all []schedJob) {
	var names []string
	tasks := map[string][]string{}
	switch {
	case u.Jobs.Kind == yaml.SequenceNode:
		if err := u.Jobs.Load(&names); err != nil {
			t.Fatal(err)
		}
	case u.Jobs.Kind == yaml.MappingNode:
		for i := 0; i < len(u.Jobs.Content); i += 2 {
			names = append(names, u.Jobs.Content[i].Value)
		}
		if err := u.Jobs.Load(&tasks); err != nil {
			t.Fatal(err)
		}
	case len(u.Percentages) > 0:
		names = sortedKeys(u.Percentages)
	case len(u.TaskPercentages) > 0:
		names = []string{"job"}
		tasks["job"] = sortedKeys(u.TaskPercentages)
		u.TaskScheduler = orElse(u.TaskScheduler, "percentage")
	default:
		names = sortedKeys(u.Allocations)
	}
	for _, name := range names {
		own := append(slices.Clone(u.Tasks[name]), tasks[name]...)
		for _, task := range sortedKeys(u.Allocations[name]) {
			if !slices.Contains(own, task) {
				own = append(own, task)
			}
		}
		if len(own) == 0 {
			own = []string{"task"}
		}
		job := schedJob{ID: name, Scheduler: orElse(u.TaskScheduler, "round-robin"), Percentage: u.Percentages[name],
			Saturation: u.Saturation[name], Coverage: "optional"}
		for _, task := range own {
			job.Tasks = append(job.Tasks, schedTask{Name: task, Pct: u.TaskPercentages[task]})
		}
		all = append(all, job)
	}
	return all
}

// balance compares how many peers each job has.
func (u *schedUnitCase) balance(t *trial, differences tally) {
	c := u.crowd(t)
	c.settle()
	var want map[string]int
	if err := u.Expect.Load(&want); err != nil {
		t.Fatal(err)
	}
	wrong := c.differentTotals("expect", want)
	if len(wrong) > 0 && u.overflowOnce(c, want) {
		t.Log(strings.Join(wrong, "\n"))
		differences.state(t, overflowTwice)
		return
	}
	for _, line := range wrong {
		t.Error(line)
	}
}

// overflowOnce tells whether 0.5.0's own rule gives what is wanted, after section 3.1 of the reference.
func (u *schedUnitCase) overflowOnce(c *crowd, want map[string]int) bool {
	got, spare, unbounded := map[string]int{}, 0, []string{}
	for i, j := range c.jobs {
		share := (len(c.peers) + len(c.jobs) - 1 - i) / len(c.jobs)
		most := int(u.Saturation[j.name])
		if got[j.name] = share; most == 0 {
			unbounded = append(unbounded, j.name)
		} else if share > most {
			got[j.name] = most
			spare += share - most
		}
	}
	for i, name := range unbounded {
		got[name] += (spare + len(unbounded) - 1 - i) / len(unbounded)
	}
	for name, n := range want {
		if got[name] != n {
			return false
		}
	}
	return true
}

// step compares what there is after one peer has volunteered. Who has not done so yet is not counted.
func (u *schedUnitCase) step(t *trial, differences tally) {
	c := u.crowd(t)
	want := map[string][]int{}
	for _, j := range c.jobs {
		var counts []int
		for _, task := range j.tasks {
			counts = append(counts, len(u.ExpectAllocations[j.name][task]))
		}
		want[j.name] = counts
	}
	c.settle()
	for _, line := range c.differentCounts("after the step", want) {
		t.Error(line)
	}
}

// counts compares what there is when all have settled.
func (u *schedUnitCase) counts(t *trial) {
	c := u.crowd(t)
	c.settle()
	want := map[string]map[string]int{}
	lists := map[string][]int{}
	if err := u.Expect.Load(&lists); err == nil {
		for _, line := range c.differentCounts("expect", lists) {
			t.Error(line)
		}
	} else if err := u.Expect.Load(&want); err != nil {
		single := map[string]int{}
		if err := u.Expect.Load(&single); err != nil {
			t.Fatal(err)
		}
		want = map[string]map[string]int{c.jobs[0].name: single}
	}
	u.compareTasks(t, c, want)
	if u.Then == "" {
		return
	}
	done, ok := strings.CutPrefix(u.Then, "complete ")
	if !ok {
		t.Fatalf("no rule for %q", u.Then)
	}
	for _, task := range strings.FieldsFunc(strings.ReplaceAll(done, " and ", ","),
		func(r rune) bool { return r == ',' || r == ' ' }) {
		c.complete(t, task)
	}
	c.settle()
	u.compareTasks(t, c, map[string]map[string]int{c.jobs[0].name: u.ExpectThen})
}

func (u *schedUnitCase) compareTasks(t *trial, c *crowd, want map[string]map[string]int) {
	for _, line := range c.differentTasks("expect", want) {
		t.Error(line)
	}
}

// differentTasks lists which of the named tasks have other numbers of peers.
func (c *crowd) differentTasks(name string, want map[string]map[string]int) (wrong []string) {
	for _, job := range sortedKeys(want) {
		for _, task := range sortedKeys(want[job]) {
			if got := len(c.holderNames(job, task)); got != want[job][task] {
				wrong = append(wrong, fmt.Sprintf("%s: task %s of %s has %d peers, want %d", name, task, job, got, want[job][task]))
			}
		}
	}
	return wrong
}

// complete closes the task with that name, whose ever it is, or all tasks of the job with that name.
func (c *crowd) complete(t *trial, task string) {
	if c.job(task) != nil {
		c.end(task)
		return
	}
	for _, j := range c.jobs {
		if slices.Contains(j.tasks, task) {
			if err := j.close(task); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no job and no task %s", task)
}

// sequence compares the counts after each of several events, which are told in words.
func (u *schedUnitCase) sequence(t *trial) {
	c := u.crowd(t)
	for _, s := range u.Steps {
		event, _, _ := strings.Cut(s.Event, " (")
		if err := c.happen(t, event); err != nil {
			t.Fatal(err)
		}
		c.settle()
		for _, job := range sortedKeys(s.Expect) {
			node := s.Expect[job]
			c.checkJob(t, "after "+s.Event, job, &node)
		}
	}
}

// checkJob compares the peers of a job: those of all tasks in order, of those that are named, or in total.
func (c *crowd) checkJob(t *trial, when, job string, expected *yaml.Node) {
	var lines []string
	switch expected.Kind {
	case yaml.SequenceNode:
		var want []int
		if err := expected.Load(&want); err != nil {
			t.Fatal(err)
		}
		lines = c.differentCounts(when, map[string][]int{job: want})
	case yaml.MappingNode:
		var want map[string]int
		if err := expected.Load(&want); err != nil {
			t.Fatal(err)
		}
		lines = c.differentTasks(when, map[string]map[string]int{job: want})
	default:
		total := 0
		if err := expected.Load(&total); err != nil {
			t.Fatal(err)
		}
		lines = c.differentTotals(when, map[string]int{job: total})
	}
	for _, line := range lines {
		t.Error(line)
	}
}

// happen plays an event that is told in words.
func (c *crowd) happen(t *trial, event string) error {
	if event == "start" {
		return nil
	}
	if name, completes := strings.CutPrefix(event, "complete "); completes {
		c.complete(t, name)
		return nil
	}
	if name, kills := strings.CutPrefix(event, "kill "); kills {
		c.kill(name)
		return nil
	}
	name, dies := strings.CutSuffix(event, " dies")
	task, last := strings.CutPrefix(name, "the last peer of ")
	if dies && !last {
		return c.leave(name)
	}
	for _, j := range c.jobs {
		if at := slices.Index(j.tasks, task); dies && at >= 0 && len(j.holders[at]) > 0 {
			return c.leave(j.holders[at][len(j.holders[at])-1].name)
		}
	}
	return fmt.Errorf("no rule for the event %q", event)
}

// entry compares who goes and who stays after one entry. There, those who lose their task volunteer for another; here
// they have one at once.
func (u *schedUnitCase) entry(t *trial) {
	var want struct {
		Allocations yaml.Node
		Reactions   map[string]string
		Completions map[string][]string
		Killed      []string
		PeerState   map[string]string `yaml:"peer_state"`
	}
	if err := decode(&u.Expect, &want); err != nil {
		t.Fatal(err)
	}
	c := u.crowd(t)
	before := c.picture()
	switch {
	case u.Leaves != "":
		if err := c.leave(u.Leaves); err != nil {
			t.Fatal(err)
		}
	case u.Entry.Fn == "complete-task":
		c.complete(t, u.Entry.Task)
	case u.Entry.Fn == "kill-job":
		c.kill(u.Entry.Job)
		if !slices.Equal(c.killed, want.Killed) {
			t.Errorf("killed are %v, want %v", c.killed, want.Killed)
		}
	default:
		t.Fatalf("no rule for the entry %s", u.Entry.Fn)
	}
	c.settle()
	after := c.picture()
	for _, peer := range sortedKeys(want.Reactions) {
		if moved := before[peer] != after[peer]; moved != (want.Reactions[peer] == "volunteer") {
			t.Errorf("%s was on %q and is on %q; it was to %s", peer, before[peer], after[peer], want.Reactions[peer])
		}
	}
	stays := allocations{}
	if want.Allocations.Kind == yaml.MappingNode {
		if err := want.Allocations.Load(&stays); err != nil {
			t.Fatal(err)
		}
	}
	for peer, reaction := range want.Reactions {
		if reaction == "volunteer" { // it was there when the entry had been applied, and goes on from there
			stays.remove(peer)
		}
	}
	stays.check(t, after, u.Entry.Job+"/"+u.Entry.Task)
}

func (a allocations) remove(peer string) {
	for _, tasks := range a {
		for task := range tasks {
			tasks[task] = slices.DeleteFunc(tasks[task], func(p string) bool { return p == peer })
		}
	}
}

// check compares where peers are with where they were to stay; nobody is on the task that ended.
func (a allocations) check(t *trial, after map[string]string, ended string) {
	for _, job := range sortedKeys(a) {
		for _, task := range sortedKeys(a[job]) {
			for _, peer := range a[job][task] {
				if at := job + "/" + task; after[peer] != at || at == ended {
					t.Errorf("%s is on %q, and was to stay on %s", peer, after[peer], at)
				}
			}
		}
	}
}

// reallocate compares whether a peer would get another task. Peers of one task are alike: if one of them would, all
// would.
func (u *schedUnitCase) reallocate(t *trial) {
	u.Scheduler = orElse(u.Scheduler, "percentage")
	want, got := false, false
	if err := u.Expect.Load(&want); err != nil {
		t.Fatal(err)
	}
	c := u.crowd(t)
	before := c.picture()
	c.settle()
	name, _, _ := strings.Cut(u.Asked, " ")
	for peer, task := range c.picture() {
		got = got || before[peer] == before[name] && task != before[peer]
	}
	if got != want {
		t.Errorf("%s was on %q and would change: %v, want %v", name, before[name], got, want)
	}
}
