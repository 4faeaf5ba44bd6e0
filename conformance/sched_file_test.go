package conformance

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/schedule/share"
)

// schedFile is a file of sharing cases; testdata/onyx/README.md describes it.
type schedFile struct {
	About, Conventions string
	Cases              []yaml.Node
	Other              map[string]yaml.Node `yaml:",inline"`
}

// schedCase is events and what comes of them.
type schedCase struct {
	ID, Source, Note  string
	Scheduler         string `yaml:"job_scheduler"`
	Jobs              []schedJob
	Events            []schedEvent
	InitialAllocation map[string]map[string][]string `yaml:"initial_allocation"`
	Order             string
	// Spill says that what the first job cannot use goes on to others.
	Spill       bool `yaml:"greedy_spill"`
	KnownDefect bool `yaml:"known_defect"`
	Expect      map[string]yaml.Node
	// Desired stands where upstream has a defect, and goes before Expect.
	Desired map[string]yaml.Node
	Other   map[string]any `yaml:",inline"`
	// apart tells that the case expects what is not compared.
	apart bool
}

type schedJob struct {
	ID         string
	Scheduler  string `yaml:"task_scheduler"`
	Percentage float64
	Saturation share.Peers
	Tasks      []schedTask
	// Coverage is optional or required: 0.5.0 describes it as an option, later versions always require it.
	Coverage string
}

type schedTask struct {
	Name     string
	Min, Max share.Peers
	Pct      float64
	Tags     []string
	Flux     string
}

// schedEvent is one event: the key that is set says which.
type schedEvent struct {
	Join, Site, Submit, Kill, Complete, Seal, Leave string
	Count                                           int
	Tags                                            []string
	// Job and Task belong to leave, complete and seal.
	Job, Task string
}

func jobScheduler(name string) (share.JobScheduler, error) {
	switch name {
	case "priority":
		return share.JobPriority, nil
	case "greedy":
		return share.JobGreedy, nil
	case "balanced", "round-robin":
		return share.JobRoundRobin, nil
	case "percentage":
		return share.JobPercentage, nil
	}
	return 0, fmt.Errorf("there is no job scheduler %q", name)
}

func taskScheduler(name string) (share.TaskScheduler, error) {
	switch name {
	case "greedy":
		return share.TaskGreedy, nil
	case "balanced", "round-robin":
		return share.TaskRoundRobin, nil
	case "percentage":
		return share.TaskPercentage, nil
	case "colocated":
		return share.TaskColocated, nil
	case "fixed":
		return share.TaskFixed, nil
	}
	return 0, fmt.Errorf("there is no task scheduler %q", name)
}

func basisPoints(percent float64) share.BasisPoints {
	return share.BasisPoints(math.Round(percent * 100))
}

// crowdJob translates a job.
func (j *schedJob) crowdJob() (*crowdJob, error) {
	scheduler, err := taskScheduler(j.Scheduler)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	spec := share.Job{Scheduler: scheduler, Part: basisPoints(j.Percentage), Saturation: j.Saturation,
		CoverageOptional: j.Coverage == "optional"}
	c := &crowdJob{name: j.ID, holders: make([][]*crowdPeer, len(j.Tasks))}
	for _, t := range j.Tasks {
		c.tasks, c.flux = append(c.tasks, t.Name), append(c.flux, t.Flux)
		spec.Tasks = append(spec.Tasks, share.Task{Min: t.Min, Max: t.Max, Part: basisPoints(t.Pct), Tags: t.Tags})
	}
	c.spec = spec
	return c, nil
}

// oneEach splits the events so that each concerns one peer or one job.
func oneEach(events []schedEvent) ([]schedEvent, error) {
	var all []schedEvent
	for _, e := range events {
		if e.Join == "" && (e.Leave == "" || e.Leave == lastAllocated) {
			all = append(all, e)
			continue
		}
		names, err := peerNames(e.Join + e.Leave)
		if err != nil {
			return nil, err
		}
		if e.Count != 0 && e.Count != len(names) {
			return nil, fmt.Errorf("%s are %d peers, not %d", e.Join+e.Leave, len(names), e.Count)
		}
		for _, name := range names {
			if e.Join == "" {
				all = append(all, schedEvent{Leave: name})
				continue
			}
			all = append(all, schedEvent{Join: name, Site: e.Site, Tags: e.Tags})
		}
	}
	return all, nil
}

// peerNames spells out p1..p8.
func peerNames(text string) ([]string, error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		return []string{text}, nil
	}
	prefix := strings.TrimRight(first, "0123456789")
	from, err := strconv.Atoi(strings.TrimPrefix(first, prefix))
	if err != nil {
		return nil, fmt.Errorf("read the peers %s: %w", text, err)
	}
	to, err := strconv.Atoi(strings.TrimPrefix(last, prefix))
	if err != nil {
		return nil, fmt.Errorf("read the peers %s: %w", text, err)
	}
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, prefix+strconv.Itoa(i))
	}
	return names, nil
}

// after tells whether an event can only come after another: what ends is what began.
func (e *schedEvent) after(other *schedEvent) bool {
	switch {
	case e.Leave == lastAllocated:
		return true
	case e.Leave != "":
		return other.Join == e.Leave
	case e.Kill != "":
		return other.Submit == e.Kill
	case e.Complete != "" || e.Seal != "":
		return other.Submit == e.Complete+e.Seal || other.Submit == e.Job && e.Job != ""
	}
	return false
}

// lastAllocated leaves instead of a peer that has a name.
const lastAllocated = "last allocated peer of"

// interleaved returns the events in another order: each time the one that choose names, of those that may come next.
func interleaved(events []schedEvent, choose func(n int) int) []schedEvent {
	var all []schedEvent
	for left := slices.Clone(events); len(left) > 0; {
		var ready []int
		for i := range left {
			waits := func(j int) bool { return j != i && left[i].after(&left[j]) && left[j].Leave != lastAllocated }
			if !slices.ContainsFunc(upTo(len(left)), waits) {
				ready = append(ready, i)
			}
		}
		next := ready[choose(len(ready))]
		all = append(all, left[next])
		left = slices.Delete(left, next, next+1)
	}
	return all
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
