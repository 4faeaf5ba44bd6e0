package share

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// large is a pool of machines with 16 peers each, one in four with a tag that one job in four asks for.
func large(peers Peers, jobs int) *Input {
	in := &Input{Scheduler: JobRoundRobin}
	for m := range int(peers / 16) {
		g := Group{Machine: m, Peers: 16}
		if m%4 == 0 {
			g.Tags = []string{"special"}
		}
		in.Groups = append(in.Groups, g)
	}
	for i := range jobs {
		job := Job{Tasks: tasks(3)}
		if i%4 == 0 {
			job.Tasks[1].Tags = []string{"special"}
		}
		in.Jobs = append(in.Jobs, job)
	}
	return in
}

// settled returns what runs when the counts of the input are met.
func settled(b *testing.B, in *Input) []Running {
	plan := Counts(in)
	var running []Running
	for _, m := range Moves(in, &plan, nil) {
		running = append(running, Running{m.Group, m.To, m.Peers})
	}
	if len(running) == 0 {
		b.Fatal("nothing runs")
	}
	return running
}

// BenchmarkJobComes counts and moves for one job more or less among many.
func BenchmarkJobComes(b *testing.B) {
	for _, jobs := range []int{100, 1000} {
		for _, scheduler := range []TaskScheduler{TaskRoundRobin, TaskPercentage, TaskColocated} {
			in := large(10_000, jobs)
			for i := range in.Jobs {
				in.Jobs[i].Scheduler = scheduler
			}
			all := in.Jobs
			in.Jobs = all[:jobs-1]
			running := settled(b, in)
			in.Jobs = all
			b.Run(fmt.Sprintf("comes/%d/%d", jobs, scheduler), func(b *testing.B) {
				for b.Loop() {
					plan := Counts(in)
					Moves(in, &plan, running)
				}
			})
		}
	}
}

// BenchmarkManyTags counts and moves where nearly every machine has other tags, which is the worst case.
func BenchmarkManyTags(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	some := func(most int) (tags []string) {
		for range rng.IntN(most + 1) {
			tags = append(tags, fmt.Sprint(rng.IntN(20)))
		}
		return tags
	}
	in := &Input{Scheduler: JobRoundRobin}
	for m := range 2500 {
		in.Groups = append(in.Groups, Group{Machine: m, Peers: 4, Tags: some(3)})
	}
	for range 1000 {
		job := Job{Tasks: tasks(3)}
		for i := range job.Tasks {
			job.Tasks[i].Tags = some(1)
		}
		in.Jobs = append(in.Jobs, job)
	}
	running := settled(b, in)
	for i := range 300 {
		in.Jobs[3*i].Tasks[0].Max = 1
	}
	for b.Loop() {
		plan := Counts(in)
		Moves(in, &plan, running)
	}
}
