package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/schedule/share"
)

// The differences from Onyx's schedulers. Each holds for every file.
var (
	greedySpill = &difference{name: "greedy spills", reason: "what the first job cannot use goes on to the next, " +
		"as from 0.14.0 on; before, peers were idle beside jobs that waited"}
	oldestFirst = &difference{name: "oldest first", reason: "after a loss the remainder goes to the oldest job again: " +
		"counts depend on what is there, not on what ran; 0.6.0 leaves the job that lost the peer without it"}
)

// interleavings is how many orders of events are tried if any will do.
const interleavings = 40

// sharing runs a file of sharing cases.
func sharing(f *sheet) {
	var told schedFile
	if err := yaml.Load(f.data, &told, yaml.WithKnownFields()); err != nil {
		f.fail("read the file: %v", err)
		return
	}
	if len(told.Cases) == 0 {
		f.fail("the file has no cases")
	}
	f.unknownKeys(told.Other)
	for i := range told.Cases {
		var head struct{ ID, Kind string }
		err := told.Cases[i].Load(&head)
		if head.ID == "" {
			head.ID = fmt.Sprintf("number %d", i+1)
		}
		f.run(head.ID, func(t *trial) {
			if err != nil {
				t.Fatal(err)
			}
			if head.Kind != "" {
				schedUnit(t, &told.Cases[i], head.Kind, f.differences)
				return
			}
			c := &schedCase{}
			if err := decode(&told.Cases[i], c); err != nil {
				t.Fatalf("read the case: %v", err)
			}
			c.run(t, f.differences)
		})
	}
}

// run plays the case in its order, or in many.
func (c *schedCase) run(t *trial, differences tally) {
	events, err := oneEach(c.Events)
	if err != nil {
		t.Fatal(err)
	}
	orders := [][]schedEvent{events}
	switch {
	case strings.HasPrefix(c.Order, "any"):
		rng := rand.New(rand.NewPCG(1, 2))
		for range interleavings {
			orders = append(orders, interleaved(events, rng.IntN))
		}
	case !strings.HasPrefix(c.Order, "as given") && c.Order != "":
		t.Fatalf("no rule for the order %q", c.Order)
	}
	if len(c.Desired) > 0 {
		c.Expect = c.Desired
	}
	if len(c.Other) > 0 {
		t.Errorf("keys that are not known: %v", sortedKeys(c.Other))
	}
	defer func() {
		if c.apart {
			differences.state(t, slotsApart)
		}
	}()
	for i, order := range orders {
		wrong := c.attempt(t, order, ours)
		if len(wrong) == 0 {
			continue
		}
		if d := c.difference(t, order); d != nil {
			differences.note(d)
			t.Logf("%s: %s\n%s", d.name, d.reason, strings.Join(wrong, "\n"))
			continue
		}
		t.Errorf("in order %d of %d:\n%s", i, len(orders), strings.Join(wrong, "\n"))
		return
	}
}

// difference returns the rule by which the case differs, if upstream's own habit gives what it says.
func (c *schedCase) difference(t *trial, events []schedEvent) *difference {
	switch {
	case c.Scheduler == "greedy" && !c.Spill && len(c.attempt(t, events, firstOnly)) == 0:
		return greedySpill
	case c.Scheduler != "greedy" && len(c.attempt(t, events, restful)) == 0:
		return oldestFirst
	}
	return nil
}

// attempt plays the events and lists what is wrong.
func (c *schedCase) attempt(t *trial, events []schedEvent, h habit) []string {
	scheduler, err := jobScheduler(c.Scheduler)
	if err != nil {
		t.Fatal(err)
	}
	crowd := &crowd{scheduler: scheduler, habit: h, used: map[string]bool{}}
	var wrong []string
	for i := range events {
		e := &events[i]
		before := crowd.picture()
		if err := c.play(crowd, e); err != nil {
			t.Fatal(err)
		}
		if c.InitialAllocation != nil || h == restful && e.Leave != "" && crowd.balanced() {
			continue
		}
		crowd.settle()
		if !c.exempt(e) {
			if err := checkChurn(busy(before), busy(crowd.picture())); err != nil {
				wrong = append(wrong, fmt.Sprintf("event %d: %v", i+1, err))
			}
		}
	}
	if c.InitialAllocation != nil {
		if err := c.begin(crowd); err != nil {
			t.Fatal(err)
		}
		crowd.settle()
	}
	if h == ours {
		if again := crowd.settle(); again > 0 {
			wrong = append(wrong, fmt.Sprintf("settled once more, %d peers moved", again))
		}
	}
	return append(wrong, c.check(t, crowd)...)
}

// exempt tells whether the bound on changes does not hold for an event: the set of jobs changes, or tags are in use.
func (c *schedCase) exempt(e *schedEvent) bool {
	tagged := func(j schedJob) bool {
		return slices.ContainsFunc(j.Tasks, func(t schedTask) bool { return len(t.Tags) > 0 || t.Flux == "kill" })
	}
	return e.Submit+e.Kill+e.Complete != "" || slices.ContainsFunc(c.Jobs, tagged)
}

// busy keeps those who have a task.
func busy(picture map[string]string) map[string]string {
	all := map[string]string{}
	for peer, task := range picture {
		if task != "" {
			all[peer] = task
		}
	}
	return all
}

// play lets one event happen.
func (c *schedCase) play(crowd *crowd, e *schedEvent) error {
	switch {
	case e.Join != "":
		crowd.join(e.Join, e.Site, e.Tags)
	case e.Submit != "":
		return c.submit(crowd, e.Submit)
	case e.Kill != "":
		crowd.kill(e.Kill)
	case e.Complete != "" || e.Seal != "":
		return e.finish(crowd)
	case e.Leave == lastAllocated:
		j := crowd.job(e.Job)
		if j == nil {
			return fmt.Errorf("a peer of job %s is to leave, which does not run", e.Job)
		}
		holders := j.holders[max(slices.Index(j.tasks, e.Task), 0)]
		if len(holders) == 0 {
			return fmt.Errorf("task %s of job %s has no peer that could leave", e.Task, e.Job)
		}
		return crowd.leave(holders[len(holders)-1].name)
	case e.Leave != "":
		return crowd.leave(e.Leave)
	default:
		return fmt.Errorf("no rule for the event %+v", *e)
	}
	return nil
}

func (c *schedCase) submit(crowd *crowd, name string) error {
	at := slices.IndexFunc(c.Jobs, func(j schedJob) bool { return j.ID == name })
	if at < 0 {
		return fmt.Errorf("%s is submitted and not described", name)
	}
	job, err := c.Jobs[at].crowdJob()
	if err == nil {
		crowd.jobs = append(crowd.jobs, job)
	}
	return err
}

// finish completes or seals a task, or completes a whole job.
func (e *schedEvent) finish(crowd *crowd) error {
	name, task := e.Complete+e.Seal, e.Task
	if e.Job != "" {
		name, task = e.Job, e.Task+e.Complete+e.Seal
	}
	j := crowd.job(name)
	switch {
	case j == nil:
		return fmt.Errorf("job %s ends and does not run", name)
	case task == "":
		crowd.end(name)
		return nil
	}
	return j.close(task)
}

// close lets a task take nobody any more.
func (j *crowdJob) close(task string) error {
	at := slices.Index(j.tasks, task)
	if at < 0 {
		return fmt.Errorf("job %s has no task %s", j.name, task)
	}
	j.spec.Tasks[at].State = share.Closed
	return nil
}

// begin puts peers where the case says that they are.
func (c *schedCase) begin(crowd *crowd) error {
	for _, job := range sortedKeys(c.InitialAllocation) {
		j := crowd.job(job)
		for _, task := range sortedKeys(c.InitialAllocation[job]) {
			for _, name := range c.InitialAllocation[job][task] {
				at := slices.IndexFunc(crowd.peers, func(p *crowdPeer) bool { return p.name == name })
				if j == nil || at < 0 || !slices.Contains(j.tasks, task) {
					return fmt.Errorf("%s is said to be on task %s of job %s: one of them is not there", name, task, job)
				}
				crowd.give(crowd.peers[at], j, slices.Index(j.tasks, task))
			}
		}
	}
	return nil
}
