package kill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/e2e/agents"
)

// TestAGangIsWhole has a gang wait for room, start at once, and lose members: one process, and those of one machine. Newer
// work waits all the time.
func TestAGangIsWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a pulse to end")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	older, openOlder := tr.workers("older", 8)
	gang, openGang := tr.workers("gang", 6)
	gang.MinAvailable = 6
	gang.Tasks[0].Restart.AttemptsMax = 1
	tr.submit(older)
	tr.awaitRunning(tr.Agents[0], "older")
	tr.submit(gang)
	all, open := []string{"older", "gang"}, map[string]func(){"gang": openGang}
	for i := range 8 { // six of them have room beside the gang
		newer, o := tr.workers(fmt.Sprintf("newer-%d", i), 1)
		tr.submit(newer)
		all, open[string(newer.Name)] = append(all, string(newer.Name)), o
	}
	tr.awaitShare("gang", 0)
	tr.wantProofs("newer-*", begunSuffix, 0)

	openOlder()
	started := tr.awaitRunning(tr.Agents[0], "gang")
	for _, s := range started {
		if s.GetOrder() != started[0].GetOrder() {
			t.Errorf("%s was not ordered together with %s", s.GetAllocation(), started[0].GetAllocation())
		}
	}
	tr.awaitBegun("gang", 6)
	tr.awaitBegun("newer-*", 6)

	lost, runs := tr.processes()[started[0].GetAllocation()]
	if !runs {
		t.Fatalf("there is no process of %s", started[0].GetAllocation())
	}
	tr.must(syscall.Kill(lost.PID, syscall.SIGKILL))
	tr.awaitBegun("gang", 7)
	before := tr.awaitRunning(tr.Agents[0], "gang")

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
	tr.awaitRunning(other, "gang")
	tr.wantProofs("newer-*", begunSuffix, 6)
	tr.must(victim.Start())
	tr.must(victim.Ready(tr.soon()))
	tr.finish(slices.Collect(maps.Values(open)), all...)
}

// newerOn returns the newer jobs of TestAGangIsWhole that run on some machines.
func (tr *trial) newerOn(machines []*agents.Agent) (jobs []string) {
	tr.Helper()
	for _, a := range machines {
		tasks, err := a.Tasks()
		tr.must(err)
		for _, p := range tasks {
			if job, _, _ := strings.Cut(p.Allocation, "."); job != "gang" {
				jobs = append(jobs, job)
			}
		}
	}
	return jobs
}
