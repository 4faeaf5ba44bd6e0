package conformance

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// allocateFile is a log of Onyx 0.5.0 in which peers volunteer; testdata/onyx/README.md describes it. Here nobody
// volunteers: a job has its peers as soon as it is submitted. So the two are compared whenever all those have
// volunteered who were to.
type allocateFile struct {
	Scheduler     string `yaml:"job_scheduler"`
	TaskScheduler string `yaml:"task_scheduler"`
	Peers         []string
	Initial       struct {
		Replica       allocatePicture
		TaskScheduler string         `yaml:"task_scheduler"`
		Other         map[string]any `yaml:",inline"`
	}
	Log    []allocateEntry
	Final  *allocatePicture
	Totals map[string]int
	Other  map[string]any `yaml:",inline"`
}

// allocatePicture is what the files say of a replica.
type allocatePicture struct {
	Jobs        []string
	Tasks       map[string][]string
	Allocations allocations
	Completions map[string][]string
	Schedulers  map[string]string `yaml:"task_schedulers"`
	Other       map[string]any    `yaml:",inline"`
}

type allocateEntry struct {
	ID     uint64
	Fn     string
	Args   allocateArgs
	Expect struct {
		Replica   *allocatePicture
		Reactions map[string][]struct {
			Fn string
			ID uint64
		}
		Other map[string]any `yaml:",inline"`
	}
	Other map[string]any `yaml:",inline"`
}

type allocateArgs struct {
	ID, Job, Task string
	Tasks         []string
	TaskScheduler string         `yaml:"task_scheduler"`
	Other         map[string]any `yaml:",inline"`
}

// volunteers plays a file of volunteers.
func volunteers(s *sheet) { s.run(wholeFile, func(t *trial) { volunteer(t, s.data) }) }

func volunteer(t *trial, data []byte) {
	f := &allocateFile{}
	if err := yaml.Load(data, f); err != nil {
		t.Fatalf("read the file: %v", err)
	}
	if unread := f.unread(); len(unread) > 0 {
		t.Errorf("keys that are not known: %s", words(unread))
	}
	c := f.crowd(t)
	compared, awaited := 0, map[uint64]bool{}
	for i := range f.Log {
		e := &f.Log[i]
		delete(awaited, e.ID)
		for _, reactions := range e.Expect.Reactions {
			for _, r := range reactions {
				awaited[r.ID] = r.Fn == "volunteer-for-task"
			}
		}
		e.play(t, c)
		c.settle()
		if e.Expect.Replica == nil || len(awaited) > 0 {
			continue
		}
		compared++
		c.compareAllocations(t, fmt.Sprintf("entry %d, %s", e.ID, e.Fn), e.Expect.Replica)
	}
	if f.Final != nil {
		c.compareAllocations(t, "final", f.Final)
	}
	for _, line := range c.differentTotals("totals", f.Totals) {
		t.Error(line)
	}
	t.Logf("%d of %d entries compared; the others are on the way to the next that is", compared, len(f.Log))
}

// unread returns the keys that nothing reads.
func (f *allocateFile) unread() []string {
	known := func(key string) bool { return slices.Contains([]string{"id", "decision", "submitted_by"}, key) }
	all := slices.Concat(unreadKeys(f.Other), unreadKeys(f.Initial.Other), unreadKeys(f.Initial.Replica.Other))
	if f.Final != nil {
		all = append(all, unreadKeys(f.Final.Other)...)
	}
	for i := range f.Log {
		e := &f.Log[i]
		all = slices.Concat(all, unreadKeys(e.Other), unreadKeys(e.Args.Other), unreadKeys(e.Expect.Other))
		if e.Expect.Replica != nil {
			all = append(all, unreadKeys(e.Expect.Replica.Other)...)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), known)
}

// crowd builds what there is at first. Jobs of which the file does not tell the task scheduler have that of the others.
func (f *allocateFile) crowd(t *trial) *crowd {
	scheduler, err := jobScheduler(f.Scheduler)
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{scheduler: scheduler, used: map[string]bool{}}
	for _, name := range f.Peers {
		c.join(name, "", nil)
	}
	usual := orElse(f.TaskScheduler, f.Initial.TaskScheduler)
	for i := range f.Log {
		usual = orElse(usual, f.Log[i].Args.TaskScheduler)
	}
	first := &f.Initial.Replica
	for _, name := range first.Jobs {
		job := orElse(first.Schedulers[name], orElse(usual, "greedy"))
		tasks := first.Tasks[name]
		if len(tasks) == 0 {
			tasks = sortedKeys(first.Allocations[name])
		}
		c.add(t, name, job, tasks)
		for _, task := range first.Completions[name] {
			c.complete(t, task)
		}
		for task, peers := range first.Allocations[name] {
			for _, peer := range peers {
				at := slices.IndexFunc(c.peers, func(p *crowdPeer) bool { return p.name == peer })
				c.give(c.peers[at], c.job(name), slices.Index(c.job(name).tasks, task))
			}
		}
	}
	return c
}

// add submits a job with plain tasks.
func (c *crowd) add(t *trial, name, scheduler string, tasks []string) {
	job := schedJob{ID: name, Scheduler: scheduler, Coverage: "optional"}
	for _, task := range tasks {
		job.Tasks = append(job.Tasks, schedTask{Name: task})
	}
	j, err := job.crowdJob()
	if err != nil {
		t.Fatal(err)
	}
	c.jobs = append(c.jobs, j)
}

// play lets one entry happen. A volunteer changes nothing: he has been counted.
func (e *allocateEntry) play(t *trial, c *crowd) {
	var err error
	switch e.Fn {
	case "volunteer-for-task":
	case "submit-job":
		c.add(t, e.Args.Job, e.Args.TaskScheduler, e.Args.Tasks)
	case "complete-task", "seal-task":
		if c.job(e.Args.Job) != nil {
			err = c.job(e.Args.Job).close(e.Args.Task)
		}
	case "kill-job":
		c.kill(e.Args.Job)
	case "leave-cluster":
		err = c.leave(e.Args.ID)
	default:
		t.Fatalf("no rule for the entry %s", e.Fn)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compareAllocations compares how many peers each task has.
func (c *crowd) compareAllocations(t *trial, when string, want *allocatePicture) {
	for _, job := range sortedKeys(want.Tasks) {
		for _, task := range want.Tasks[job] {
			if got, n := len(c.holderNames(job, task)), len(want.Allocations[job][task]); got != n {
				t.Errorf("%s: task %s of %s has %d peers, want %d", when, task, job, got, n)
			}
		}
	}
}
