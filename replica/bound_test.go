package replica

import (
	"testing"

	"starling/command"
	"starling/replica/bound"
	"starling/terms"
)

// TestRowsVisitedStayWithinTheBound folds entries that are much work: the simulator and FuzzApply have small values
// only.
func TestRowsVisitedStayWithinTheBound(t *testing.T) {
	s, seq := clusterOf(300), uint64(1)
	check := func(what string, commands ...command.Command) {
		t.Helper()
		seq++
		before := bound.SizeOf(s)
		outcome := apply(s, seq, commands...)
		for _, result := range outcome.Results {
			if result.Refused() {
				t.Fatalf("%s: %s", what, result.Refusal.Reason)
			}
		}
		most := bound.RowsMax(before, bound.SizeOf(s), len(commands))
		if t.Logf("%s visits %d rows, at most %d", what, outcome.Visited, most); outcome.Visited == 0 ||
			outcome.Visited > most {
			t.Errorf("%s visits %d rows, at most %d", what, outcome.Visited, most)
		}
	}
	mine, yours := terms.NewPool("mine"), terms.NewPool("yours")
	mine.Quotas[terms.CPU].Reservation, mine.PreemptionDelayMillis = 300*32_000, 0
	check("pools", &command.ChangePools{Pools: []terms.Pool{mine, yours}})
	check("a job of equal instances", benchJob("yours/equal", 3000, terms.Pack, 500))
	check("a job that spreads", benchJob("yours/spread", 3000, terms.Spread, 500))
	rules := benchJob("yours/rules", 200, terms.Spread, 500)
	rules.Spec.Tasks[0].SpreadOver, rules.Spec.Tasks[0].PerNodeMax = "rack", 1
	check("a job with rules", rules)
	for _, name := range []terms.JobName{"yours/gang", "yours/other"} {
		gang := benchJob(string(name), 1, terms.Pack, 500)
		gang.Spec.Tasks = different(&gang.Spec.Tasks[0], 0, 64)
		for i := range gang.Spec.Tasks {
			gang.Spec.Tasks[i].MinAvailable = 1
		}
		check("a gang of 64 tasks", gang)
		check("its suspension", &command.SuspendJob{Job: name})
	}
	check("the rest of the room", benchJob("yours/full", 4000, terms.Pack, 6400))
	for _, instances := range []uint32{1, 300} {
		check("preemption", benchJob("mine/"+string(rune('a'+instances%26)), instances, terms.Pack, 6000))
	}
	check("the end of a job", &command.KillJob{Job: "yours/full"})
	var many []command.Command
	for i := range 26 {
		many = append(many, benchJob("yours/m"+string(rune('a'+i)), 20, terms.Pack, 700))
	}
	check("many jobs", many...)
	check("the time", &command.TellTime{})
}
