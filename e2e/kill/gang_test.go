package kill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/terms"
)

// TestAGangIsWhole has a gang wait for room, start at once, and lose members: one process, and those of one machine.
// Others wait for the same room all the time, at last one that is more urgent. Nobody is preemptible.
func TestAGangIsWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a pulse to end")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	tr.makePools(poolFor("firm", 12))
	var all []string
	open := map[string]func(){}
	submit := func(name string, instances, gang, priority uint32) {
		spec, o := tr.workers(name, instances)
		spec.Preemption, spec.MinAvailable, spec.Priority = terms.NonPreemptible, gang, priority
		spec.Tasks[0].Restart.AttemptsMax = 1
		tr.submit(spec)
		all, open[name] = append(all, name), o
	}
	submit("firm/older", 8, 0, 0)
	tr.awaitRunning(tr.Agents[0], "firm/older")
	submit("firm/gang", 6, 6, 0)
	for i := range 6 { // they have room beside the gang
		submit(fmt.Sprintf("firm/newer-%d", i), 1, 0, 0)
	}
	tr.awaitShare("firm/gang", 0)
	tr.wantProofs("firm/newer-*", begunSuffix, 0)

	open["firm/older"]()
	started := tr.awaitRunning(tr.Agents[0], "firm/gang")
	tr.wantTogether(started)
	tr.awaitBegun("firm/gang", 6)
	tr.awaitBegun("firm/newer-*", 6)
	submit("firm/urgent", 2, 0, terms.PriorityMax)

	lost, runs := tr.processes()[started[0].GetAllocation()]
	if !runs {
		t.Fatalf("there is no process of %s", started[0].GetAllocation())
	}
	tr.must(syscall.Kill(lost.PID, syscall.SIGKILL))
	tr.awaitBegun("firm/gang", 7)
	before := tr.awaitRunning(tr.Agents[0], "firm/gang")

	victim := tr.memberThat(false)
	other := tr.others(victim)[0]
	left := tr.newerOn(tr.others(victim))
	tr.must(victim.Crash(tr.soon()))
	tr.awaitPeer(other, victim, "has left", hasLeft)
	for _, s := range before {
		if s.GetNode() == victim.Node { // one more member is missing, and as much room is made
			open[left[0]]()
			left = left[1:]
		}
	}
	tr.awaitRunning(other, "firm/gang")
	tr.wantProofs("firm/newer-*", begunSuffix, 6)
	tr.wantProofs("firm/urgent", begunSuffix, 0)
	tr.must(victim.Start())
	tr.must(victim.Ready(tr.soon()))
	tr.finish(slices.Collect(maps.Values(open)), all...)
}

// wantTogether wants one entry to have ordered all these allocations.
func (tr *trial) wantTogether(slots []*starlingv1.Slot) {
	tr.Helper()
	for _, s := range slots {
		if s.GetOrder() != slots[0].GetOrder() {
			tr.Errorf("%s was not ordered together with %s", s.GetAllocation(), slots[0].GetAllocation())
		}
	}
}

// newerOn returns the newer jobs of TestAGangIsWhole that run on some machines.
func (tr *trial) newerOn(machines []*agents.Agent) (jobs []string) {
	tr.Helper()
	for _, a := range machines {
		tasks, err := a.Tasks()
		tr.must(err)
		for _, p := range tasks {
			if job, _, _ := strings.Cut(p.Allocation, "."); job != "firm/gang" {
				jobs = append(jobs, job)
			}
		}
	}
	return jobs
}
