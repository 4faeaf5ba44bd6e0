package replica

import (
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/replica/report"
)

// TestCounts counts what befalls instances, each once, also what has no room among the effects that are kept.
func TestCounts(t *testing.T) {
	ended := func(of ...facts.Ending) (counts [facts.EndingCount]uint32) {
		for _, ending := range of {
			counts[ending]++
		}
		return counts
	}
	for _, c := range []struct {
		name, story string
		want        report.Counts
	}{
		{"starts and ends", `submit sums type=batch instances=2 cpu=500
			act a
			ends sums.main.0 0
			act a
			kill sums
			act a`,
			report.Counts{Placed: 2, Started: 2, Succeeded: 1, Ended: ended(facts.OnRequest)}},
		{"starts again", `submit web type=stateless instances=1 cpu=500 restarts=1
			act a
			ends web.main.0 1
			act a
			after 9000
			tick
			act a`,
			report.Counts{Placed: 1, Started: 2, Restarted: 1, Ended: ended(facts.ByItself)}},
		{"looks for another node", `submit web type=stateless instances=1 cpu=500 batch=0 restarts=0 resched=unlimited
			act a
			ends web.main.0 1
			act a
			after 60000
			tick
			act b`,
			report.Counts{Placed: 2, Started: 2, Rescheduled: 1, Ended: ended(facts.ByItself)}},
		{"is lost, comes back, and ends", `submit web type=stateless instances=1 cpu=500 lost=5000
			act a
			leave a by=b
			peers a~2
			report web.main.0 1 by=a~2`,
			report.Counts{Placed: 1, Started: 1, Ended: ended(facts.NodeLost, facts.ByItself)}},
		{"gives way", `pools a=0/4000/1 b=2000/4000/1
			submit a/low type=batch instances=4 cpu=1000 as=preemptible
			act a
			act b
			submit b/high type=batch instances=1 cpu=1000
			after 70000
			tick
			act a
			act b`,
			report.Counts{Placed: 5, Started: 5, Preempted: 1, Ended: ended(facts.OnRequest)}},
		{"more than effects are kept", `peers c d e f g h cpu=200000
			submit many type=batch instances=1200 cpu=1000`,
			report.Counts{Placed: 1200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, got := newStory(), report.Counts{}
			w.folded = func(_ *cluster.State, outcome report.Outcome) { addCounts(&got, &outcome.Counts) }
			for line := range strings.Lines("peers a b cpu=2000\n" + c.story) {
				if !w.tell(strings.Fields(line)) {
					t.Fatalf("no rule for %q", line)
				}
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v, of\n%s", got, c.want, w.out.String())
			}
		})
	}
}

func addCounts(to, more *report.Counts) {
	to.Placed += more.Placed
	to.Started += more.Started
	to.Restarted += more.Restarted
	to.Rescheduled += more.Rescheduled
	to.Preempted += more.Preempted
	to.Unhealthy += more.Unhealthy
	to.Succeeded += more.Succeeded
	for ending := range more.Ended {
		to.Ended[ending] += more.Ended[ending]
	}
}
