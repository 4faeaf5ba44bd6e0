package share

import (
	"fmt"
	"testing"
)

// tasks returns so many plain tasks.
func tasks(number int) []Task { return make([]Task, number) }

// peers returns one group of plain peers.
func peers(number Peers) []Group { return []Group{{Peers: number}} }

var special = []string{"special"}

var countCases = []struct {
	name string
	in   Input
	want string
}{
	{"nothing", Input{}, "[]"},
	{"the remainder to the oldest and the first", Input{Scheduler: JobRoundRobin, Groups: peers(8),
		Jobs: []Job{{Tasks: tasks(2)}, {Tasks: tasks(2)}, {Tasks: tasks(2)}}}, "[[2 1] [2 1] [1 1]]"},
	{"minima before shares", Input{Scheduler: JobRoundRobin, Groups: peers(11),
		Jobs: []Job{{Tasks: tasks(3)}, {Tasks: []Task{{Min: 8}}}}}, "[[1 1 1] [8]]"},
	{"not covered", Input{Scheduler: JobRoundRobin, Groups: peers(5),
		Jobs: []Job{{Tasks: tasks(6)}, {Tasks: tasks(2)}}}, "[[0 0 0 0 0 0] [3 2]]"},
	{"greedy", Input{Scheduler: JobGreedy, Groups: peers(6), Jobs: []Job{{Tasks: tasks(2)}, {Tasks: tasks(2)}}},
		"[[3 3] [0 0]]"},
	{"what the first cannot use goes on", Input{Scheduler: JobGreedy, Groups: peers(6),
		Jobs: []Job{{Tasks: []Task{{Max: 1}, {Max: 2}}}, {Tasks: tasks(2)}}}, "[[1 2] [2 1]]"},
	{"the highest priority", Input{Scheduler: JobPriority, Groups: peers(6),
		Jobs: []Job{{Tasks: tasks(1)}, {Tasks: tasks(1), Priority: 1, Saturation: 4}, {Tasks: tasks(1)}}}, "[[2] [4] [0]]"},
	{"one peer goes through a workflow", Input{Scheduler: JobRoundRobin, Groups: peers(1),
		Jobs: []Job{{Scheduler: TaskGreedy, CoverageOptional: true, Tasks: []Task{{State: Closed}, {}, {}}}}}, "[[0 1 0]]"},
	{"optional coverage runs a job with one peer", Input{Scheduler: JobGreedy, Groups: peers(1),
		Jobs: []Job{{CoverageOptional: true, Tasks: tasks(3)}}}, "[[1 0 0]]"},
	{"required coverage gives a job nothing rather than a part", Input{Scheduler: JobGreedy, Groups: peers(2),
		Jobs: []Job{{Tasks: tasks(3)}}}, "[[0 0 0]]"},
	{"required coverage comes before greed", Input{Scheduler: JobGreedy, Groups: peers(5),
		Jobs: []Job{{Scheduler: TaskGreedy, Tasks: tasks(3)}}}, "[[3 1 1]]"},
	{"optional coverage keeps what a task says it needs", Input{Scheduler: JobGreedy, Groups: peers(1),
		Jobs: []Job{{CoverageOptional: true, Tasks: []Task{{}, {Min: 2}}}}}, "[[0 0]]"},
	{"a sealed task keeps its sealer", Input{Scheduler: JobGreedy, Groups: peers(4),
		Jobs: []Job{{Scheduler: TaskGreedy, CoverageOptional: true, Tasks: []Task{{State: Frozen, Has: 1}, {}, {}}}}},
		"[[1 3 0]]"},
	{"frozen", Input{Scheduler: JobGreedy, Groups: peers(14),
		Jobs: []Job{{Tasks: []Task{{}, {State: Frozen, Has: 4}, {}}}}}, "[[5 4 5]]"},
	{"fixed", Input{Scheduler: JobGreedy, Groups: peers(9),
		Jobs: []Job{{Scheduler: TaskFixed, Tasks: []Task{{Min: 2}, {Min: 3}}}, {Tasks: tasks(1)}}}, "[[2 3] [4]]"},
	{"largest fraction", Input{Scheduler: JobPercentage, Groups: peers(10),
		Jobs: []Job{{Tasks: tasks(1), Part: 2_500}, {Tasks: tasks(1), Part: 3_100}, {Tasks: tasks(1), Part: 4_400}}},
		"[[3] [3] [4]]"},
	{"nobody's part is idle", Input{Scheduler: JobPercentage, Groups: peers(20),
		Jobs: []Job{{Tasks: tasks(3), Part: 3_000}, {Tasks: tasks(3), Part: 3_000}}}, "[[2 2 2] [2 2 2]]"},
	{"beyond the whole", Input{Scheduler: JobPercentage, Groups: peers(10),
		Jobs: []Job{{Tasks: tasks(1), Part: 2_000}, {Tasks: tasks(1), Part: 3_000}, {Tasks: tasks(1), Part: 7_000}}},
		"[[0] [3] [7]]"},
	{"what a part cannot use is given away", Input{Scheduler: JobPercentage, Groups: peers(10),
		Jobs: []Job{{Tasks: tasks(1), Part: 7_000, Saturation: 2}, {Tasks: tasks(1), Part: 3_000, Saturation: 4},
			{Tasks: tasks(1)}}}, "[[2] [4] [4]]"},
	{"the part of a job that never runs is given away", Input{Scheduler: JobPercentage, Groups: peers(10), Jobs: []Job{
		{Tasks: []Task{{Min: 5, Max: 4}}, Part: 5_000}, {Tasks: tasks(1)}}}, "[[0] [5]]"},
	{"the part of a job whose copies need more than all of a task is given away",
		Input{Scheduler: JobPercentage, Groups: peers(10), Jobs: []Job{
			{Scheduler: TaskColocated, Tasks: []Task{{Min: 5, Max: 5}, {Max: 4}}, Part: 5_000}, {Tasks: tasks(1)}}},
		"[[0 0] [5]]"},
	{"percentage of tasks", Input{Scheduler: JobGreedy, Groups: peers(10), Jobs: []Job{{Scheduler: TaskPercentage,
		Tasks: []Task{{Part: 2_000}, {Part: 3_000, Min: 4, Max: 4}, {Part: 5_000}}}}}, "[[2 4 4]]"},
	{"tags", Input{Scheduler: JobRoundRobin, Groups: []Group{{Peers: 2}, {Peers: 2, Tags: special}},
		Jobs: []Job{{Tasks: tasks(2)}, {Tasks: []Task{{Tags: special}}}}}, "[[1 1] [2]]"},
	{"tags missing", Input{Scheduler: JobRoundRobin, Groups: []Group{{Peers: 3}, {Peers: 1, Tags: special}},
		Jobs: []Job{{Tasks: []Task{{Tags: special}, {Tags: special}}}, {Tasks: tasks(1)}}}, "[[0 0] [4]]"},
	{"whole machines", Input{Scheduler: JobGreedy, Groups: []Group{{Peers: 5}, {Machine: 1, Peers: 5}},
		Jobs: []Job{{Scheduler: TaskColocated, Tasks: tasks(3)}, {Tasks: tasks(2)}}}, "[[2 2 2] [2 2]]"},
	{"one machine for each copy", Input{Scheduler: JobRoundRobin,
		Groups: []Group{{Peers: 3}, {Machine: 1, Peers: 2}, {Machine: 2, Peers: 1}},
		Jobs:   []Job{{Scheduler: TaskColocated, Tasks: tasks(3)}, {Tasks: tasks(2)}}}, "[[1 1 1] [2 1]]"},
	{"copies with tags", Input{Scheduler: JobGreedy,
		Groups: []Group{{Peers: 1, Tags: special}, {Peers: 3}, {Machine: 1, Peers: 4}},
		Jobs:   []Job{{Scheduler: TaskColocated, Tasks: []Task{{}, {Tags: special}}}}}, "[[1 1]]"},
}

func TestCounts(t *testing.T) {
	for _, c := range countCases {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(Counts(&c.in).Peers); got != c.want {
				t.Errorf("Counts = %s, want %s", got, c.want)
			}
		})
	}
}
