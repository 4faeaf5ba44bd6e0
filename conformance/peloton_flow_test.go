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
	"starling/terms"
)

// flowCase tells in words what a cluster has, which jobs come, and what becomes of them step by step.
type flowCase struct {
	told  `yaml:",inline"`
	Kind  string
	Steps []string
	// Expect is how many run and wait in the end; cases about single instances are left out.
	Expect yaml.Node
}

// flowJob is one of the jobs that a case tells of.
type flowJob struct {
	pool                                  terms.PoolPath
	name                                  terms.JobName
	revocable, nonPreemptible, sent, gone bool
	instances                             uint32
	cpu, memory                           int64
	priority                              uint32
	// ends tells that its instances end by themselves now.
	ends bool
}

// flow plays a case on the fold.
type flow struct {
	*stage
	cpu, memory int64
	pools       []terms.Pool
	jobs        []*flowJob
	// killOnPreempt is of all jobs.
	killOnPreempt bool
}

// asBefore begins a case that is another one with jobs that stay down when they are preempted.
var asBefore = regexp.MustCompile(`^as (\S+) with killOnPreempt on a batch job$`)

func (c *flowCase) run(t *trial, s *scenario) {
	// What a case does not tell is as upstream's tests have it.
	f := &flow{cpu: 12, memory: 2000}
	if m := asBefore.FindStringSubmatch(c.What); m != nil {
		before := &flowCase{}
		read(t, s.other(t, m[1]), before)
		c.What, c.Steps = before.What, append(before.Steps[:2:2], c.Steps...)
		f.killOnPreempt = true
	}
	for _, clause := range regexp.MustCompile(`[;,] `).Split(c.What, -1) {
		if err := f.learn(clause); err != nil {
			if c.Expect.Kind != 0 && strings.Contains(c.What, "overridden") {
				t.leaveOut("override")
			}
			t.Fatal(err)
		}
	}
	if len(f.pools) == 0 {
		f.pool([]string{"pool"}, terms.Memory, terms.Quota{Reservation: 1000 * megabyte, Limit: 2000 * megabyte, Share: 1})
	}
	half := terms.Resources{f.cpu * 1000 / 2, f.memory * megabyte / 2, 0}
	f.stage = newStage(t, half, half)
	f.must(&command.ChangePools{Pools: f.pools})
	if c.Expect.Kind != 0 {
		c.Steps = append(c.Steps, c.expected(t)...)
	}
	for _, step := range c.Steps {
		if err := f.step(step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

// expected says as steps how many instances of the first job are to run and to wait.
func (c *flowCase) expected(t *trial) []string {
	var want struct{ Running, Pending uint32 }
	read(t, &c.Expect, &want)
	return []string{fmt.Sprintf("first: %d RUNNING", want.Running), fmt.Sprintf("first: %d PENDING", want.Pending)}
}

const megabyte = 1 << 20

var (
	coresOf  = regexp.MustCompile(`^(\d+)-cpu cluster$`)
	memoryOf = regexp.MustCompile(`^cluster memory (\d+)$`)
	poolsOf  = regexp.MustCompile(`^pools? (.*?)(cpu |memory |)(\d+)/(\d+)(?:/(\d+))?(?: \(slack limit (\d+)%[^)]*\))?$`)
	against  = regexp.MustCompile(` against slack limit (\d+) MB$`)
	sameIn   = regexp.MustCompile(`^(?:then )?the same in (\w+)$`)
)

// learn reads one clause of what a case tells.
func (f *flow) learn(clause string) error {
	if m := coresOf.FindStringSubmatch(clause); m != nil {
		f.cpu = number(m[1])
		return nil
	}
	if m := memoryOf.FindStringSubmatch(clause); m != nil {
		f.memory = number(m[1])
		return nil
	}
	if m := sameIn.FindStringSubmatch(clause); m != nil && len(f.jobs) > 0 {
		again := *f.jobs[len(f.jobs)-1]
		again.pool = terms.PoolPath(strings.ToLower(m[1]))
		f.add(again)
		return nil
	}
	if clause == "same pool" { // as cases that tell of none
		return nil
	}
	m := poolsOf.FindStringSubmatch(clause)
	if m == nil {
		return f.learnJobs(against.ReplaceAllString(clause, ""))
	}
	kind, unit := terms.CPU, int64(1000)
	if m[2] == "memory " {
		kind, unit = terms.Memory, megabyte
	}
	quota := terms.Quota{Reservation: number(m[3]) * unit, Limit: number(m[4]) * unit, Share: max(number(m[5]), 1)}
	names := strings.Split(strings.TrimSpace(m[1]), " and ")
	f.pool(names, kind, quota)
	if m[6] != "" {
		for i := range f.pools {
			f.pools[i].SlackLimit = terms.Percent(number(m[6]))
		}
	}
	return nil
}

// number is 0 for no number.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// pool adds pools with a quota of one kind.
func (f *flow) pool(names []string, kind terms.Kind, quota terms.Quota) {
	for _, name := range names {
		if name == "" {
			name = "pool"
		}
		spec := terms.NewPool(terms.PoolPath(strings.ToLower(name)))
		spec.Quotas[kind] = quota
		f.pools = append(f.pools, spec)
	}
}

var (
	jobsOf = regexp.MustCompile(`^(?:then )?(?:(a|one|two|three) )?(?:(\S+ible|\S*revocable) ?)?(?:jobs? ?)?(?:in (\w+) ?)?(?:of )?` +
		`(.*?)(?: ?preemptible)?(?: ?priority (\d+))?(?: ?fill \d+)?$`)
	sizeOf = regexp.MustCompile(`^(?:(\d+) x ?)?(?:(\d+) cpu ?)?(?:(\d+) MB)?$`)
)

// learnJobs reads a clause about jobs, such as "then two non-preemptible jobs 2 x 3 cpu".
func (f *flow) learnJobs(clause string) error {
	m := jobsOf.FindStringSubmatch(clause)
	if m == nil || m[2] == "" && !strings.Contains(clause, "job") {
		return fmt.Errorf("no rule for %q", clause)
	}
	jobs := map[string]int{"two": 2, "three": 3}[m[1]]
	for _, size := range strings.Split(m[4], " and ") {
		each := sizeOf.FindStringSubmatch(size)
		if each == nil {
			return fmt.Errorf("no rule for %q in %q", size, clause)
		}
		for range max(jobs, 1) {
			f.add(flowJob{
				pool: terms.PoolPath(strings.ToLower(m[3])), revocable: m[2] == "revocable",
				nonPreemptible: m[2] == "non-preemptible",
				priority:       uint32(number(m[5])), instances: uint32(max(number(each[1]), 1)), cpu: number(each[2]),
				memory: number(each[3]),
			})
		}
	}
	return nil
}

// add adds a job. One without a size takes a core.
func (f *flow) add(j flowJob) {
	if j.cpu == 0 && j.memory == 0 {
		j.cpu = 1
	}
	f.jobs = append(f.jobs, &j)
}

var (
	submits = regexp.MustCompile(`^submit (.+)$`)
	stops   = regexp.MustCompile(`^stop (.+?)(: KILLED)?$`)
	killed  = regexp.MustCompile(`^(.+?): (\d+) tasks KILLED, .*not restarted$`)
	shows   = regexp.MustCompile(`^(.+?):? (?:exactly )?(\d+ )?(RUNNING|PENDING|SUCCEEDED)( \d+)?(?: \(.*\))?$`)
)

// step does what a step tells, or compares what it tells.
func (f *flow) step(step string) error {
	if m := submits.FindStringSubmatch(step); m != nil {
		_, err := f.find(m[1])
		return err
	}
	if m := stops.FindStringSubmatch(step); m != nil {
		j, err := f.find(m[1])
		if err != nil {
			return err
		}
		j.gone = true
		f.must(&command.KillJob{Job: j.name})
		f.rest()
		if got := f.s.JobOf(j.name).Status(); got != workload.StatusStopped {
			f.t.Errorf("%s: got %s", step, got)
		}
		return nil
	}
	if m := killed.FindStringSubmatch(step); m != nil {
		j, err := f.find(m[1])
		if err != nil {
			return err
		}
		down := int64(0)
		f.each(j, func(_ facts.SlotRef, slot facts.Slot) {
			if slot.Phase.Final() && slot.Ended == facts.Preempted {
				down++
			}
		})
		if waits := f.s.JobOf(j.name).Tasks[0].Waits(); down != number(m[2]) || waits > 0 {
			f.t.Errorf("%s: %d are down and %d wait", step, down, waits)
		}
		return nil
	}
	m := shows.FindStringSubmatch(step)
	if m == nil {
		return fmt.Errorf("no rule for the step")
	}
	j, err := f.find(m[1])
	if err != nil {
		return err
	}
	f.compare(step, j, m[3], m[2]+m[4])
	return nil
}

// compare holds what became of a job against a step. Without a number all of its instances are meant.
func (f *flow) compare(step string, j *flowJob, state, count string) {
	if state == "SUCCEEDED" {
		j.ends = true
		f.rest()
		if got := f.s.JobOf(j.name).Status(); got != workload.StatusSucceeded {
			f.t.Errorf("%s: got %s", step, got)
		}
		return
	}
	want, got := j.instances, f.s.JobOf(j.name).Tasks[0].Waits()
	if count = strings.TrimSpace(count); count != "" {
		want = uint32(number(count))
	}
	if state == "RUNNING" {
		got = 0
		f.each(j, func(_ facts.SlotRef, slot facts.Slot) {
			if slot.Phase == facts.Running {
				got++
			}
		})
	}
	if got != want {
		f.t.Errorf("%s: got %d, want %d", step, got, want)
	}
}

// find returns the job that a step means, and submits it if it has not been, with those that come before it.
func (f *flow) find(words string) (*flowJob, error) {
	at := f.meant(strings.TrimPrefix(strings.TrimSuffix(words, " job"), "one "))
	if at < 0 {
		return nil, fmt.Errorf("no job is called %q", words)
	}
	for i, j := range f.jobs[:at+1] {
		if !j.sent {
			j.sent = true
			f.send(i)
			f.rest()
		}
	}
	return f.jobs[at], nil
}

// meant returns which job some words mean, -1 for none: by its pool, its number, or its class.
func (f *flow) meant(words string) int {
	if at := slices.Index([]string{"first", "second", "third"}, words); at >= 0 && at < len(f.jobs) {
		return at
	}
	nth := number(strings.TrimPrefix(words, "job"))
	return slices.IndexFunc(f.jobs, func(j *flowJob) bool {
		if nth > 0 {
			if !j.revocable {
				nth--
			}
			return nth == 0
		}
		class := map[string]bool{"revocable": j.revocable, "non-revocable": !j.revocable, "non-preemptible": j.nonPreemptible,
			"preemptible": !j.nonPreemptible && !j.revocable}
		return !j.gone && (class[words] || string(j.pool) == strings.ToLower(words))
	})
}

// send submits a job.
func (f *flow) send(number int) {
	j := f.jobs[number]
	if j.pool == "" {
		j.pool = f.pools[0].Path
	}
	j.name = terms.NewJobName(j.pool, fmt.Sprintf("job-%d", number+1))
	task := stageTask("main", j.instances)
	task.Resources = terms.Resources{j.cpu * 1000, j.memory * megabyte, 0}
	f.submit(&terms.Job{Name: j.name, Type: terms.Batch, Priority: j.priority,
		Preemption: map[bool]terms.Preemption{true: terms.NonPreemptible}[j.nonPreemptible],
		Revocable:  j.revocable, KillOnPreempt: f.killOnPreempt, Tasks: []terms.Task{task}})
}

// rest lets the nodes report and time pass, longer than the preemption delay of any pool, until nothing changes any
// more.
func (f *flow) rest() {
	for quiet := 0; quiet < 3; {
		if quiet++; f.reportAll() {
			quiet = 0
		}
		f.later(2 * terms.PreemptionDelayMillisDefault)
	}
}

// reportAll lets the nodes tell of all that changed; it returns false if there was nothing.
func (f *flow) reportAll() (said bool) {
	for _, j := range f.jobs {
		var all []facts.SlotRef
		f.each(j, func(r facts.SlotRef, _ facts.Slot) { all = append(all, r) })
		for _, r := range all {
			slot, _ := f.s.SlotAt(r)
			say := runs
			if j.ends && slot.Phase == facts.Running {
				say = ends
			}
			if news, ok := newsOf(slot, say); ok {
				said = true
				f.report(r, news)
			}
		}
	}
	return said
}

// each visits the slots of a job that has been submitted.
func (f *flow) each(j *flowJob, visit func(facts.SlotRef, facts.Slot)) {
	if job := f.s.JobOf(j.name); job != nil {
		f.s.EachSlot(job.ID, 0, func(r facts.SlotRef, slot facts.Slot) bool {
			visit(r, slot)
			return true
		})
	}
}
