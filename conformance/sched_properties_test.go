package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"go.yaml.in/yaml/v4"

	"starling/schedule/share"
)

// propertyRules are the properties that are checked here.
var propertyRules = map[string]func(t *trial){"G8": asManyJobs, "G9": littleChurn}

// propertiesElsewhere are the properties that are checked elsewhere, or not at all: the table says why.
var propertiesElsewhere = []string{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G10", "G11"}

// properties checks those of the upstream suite that concern sharing. They are told in words.
func properties(s *sheet) {
	var f struct {
		About      string
		Harness    []string
		Properties []yaml.Node
		Other      map[string]yaml.Node `yaml:",inline"`
	}
	if err := yaml.Load(s.data, &f); err != nil {
		s.fail("read the file: %v", err)
		return
	}
	s.unknownKeys(f.Other)
	for i := range f.Properties {
		var p struct{ ID, Source, Setup, Check, Exempt string }
		err := decode(&f.Properties[i], &p)
		s.run(p.ID, func(t *trial) {
			rule := propertyRules[p.ID]
			switch {
			case err != nil:
				t.Error(err)
			case rule != nil:
				rule(t)
			case slices.Contains(propertiesElsewhere, p.ID):
				t.leaveOut(p.ID)
			default:
				t.Errorf("no rule for the property")
			}
		})
	}
}

// propertyRuns is how often a property is tried.
const propertyRuns = 50

// asManyJobs is property G8: of 1 to 9 jobs that need 6 peers each, as many run as can be covered, evenly.
func asManyJobs(t *trial) {
	for seed := range uint64(propertyRuns) {
		rng := rand.New(rand.NewPCG(seed, 8))
		jobs := 1 + rng.IntN(9)
		covered := rng.IntN(jobs + 1)
		c := &schedCase{Scheduler: "balanced"}
		events := []schedEvent{}
		for i := range jobs {
			id := fmt.Sprintf("j%d", i+1)
			c.Jobs = append(c.Jobs, schedJob{ID: id, Scheduler: "balanced",
				Tasks: []schedTask{{Name: "a"}, {Name: "b", Min: 4, Max: 4}, {Name: "c"}}})
			events = append(events, schedEvent{Submit: id})
		}
		for i := range 6*covered + 1 + rng.IntN(5) {
			events = append(events, schedEvent{Join: fmt.Sprintf("p%d", i+1)})
		}
		crowd := &crowd{scheduler: share.JobRoundRobin, used: map[string]bool{}}
		for _, e := range interleaved(events, rng.IntN) {
			if err := c.play(crowd, &e); err != nil {
				t.Fatal(err)
			}
			crowd.settle()
		}
		running, least, most := 0, len(crowd.peers), 0
		for _, j := range crowd.jobs {
			if n := j.total(); n > 0 {
				running, least, most = running+1, min(least, n), max(most, n)
			}
		}
		if running != covered || running > 0 && (least < 6 || most > least+1) {
			t.Fatalf("seed %d: %d of %d jobs run with %d to %d of %d peers, want %d",
				seed, running, jobs, least, most, len(crowd.peers), covered)
		}
	}
}

// littleChurn is property G9: no event moves more peers than the counts force.
func littleChurn(t *trial) {
	schedulers := []share.JobScheduler{share.JobPriority, share.JobGreedy, share.JobRoundRobin, share.JobPercentage}
	for seed := range uint64(propertyRuns) {
		rng := rand.New(rand.NewPCG(seed, 9))
		c, crowd := &schedCase{}, &crowd{scheduler: schedulers[seed%4], used: map[string]bool{}}
		for i := range 60 {
			e := c.happening(rng, crowd, i)
			before := crowd.picture()
			if err := c.play(crowd, &e); err != nil {
				t.Fatal(err)
			}
			crowd.settle()
			if err := checkChurn(busy(before), busy(crowd.picture())); err != nil {
				t.Fatalf("seed %d: event %d, %+v: %v", seed, i, e, err)
			}
		}
	}
}

// happening returns something that may happen next.
func (c *schedCase) happening(rng *rand.Rand, crowd *crowd, number int) schedEvent {
	switch kind := rng.IntN(8); {
	case kind == 0 && len(crowd.peers) > 0:
		return schedEvent{Leave: crowd.peers[rng.IntN(len(crowd.peers))].name}
	case kind == 1 && len(crowd.jobs) > 0:
		return schedEvent{Kill: crowd.jobs[rng.IntN(len(crowd.jobs))].name}
	case kind == 2 && len(crowd.jobs) > 0:
		j := crowd.jobs[rng.IntN(len(crowd.jobs))]
		return schedEvent{Complete: j.name, Task: j.tasks[rng.IntN(len(j.tasks))]}
	case kind == 3:
		job := schedJob{ID: fmt.Sprintf("j%d", number), Percentage: float64(10 * rng.IntN(5)),
			Scheduler: []string{"greedy", "balanced", "percentage"}[rng.IntN(3)],
			Coverage:  []string{"required", "optional"}[rng.IntN(2)]}
		for i := range 1 + rng.IntN(3) {
			task := schedTask{Name: fmt.Sprintf("t%d", i), Min: share.Peers(rng.IntN(3)), Pct: float64(rng.IntN(50))}
			if rng.IntN(2) == 0 {
				task.Max = 2 + share.Peers(rng.IntN(4))
			}
			job.Tasks = append(job.Tasks, task)
		}
		c.Jobs = append(c.Jobs, job)
		return schedEvent{Submit: job.ID}
	}
	return schedEvent{Join: fmt.Sprintf("p%d", number)}
}
