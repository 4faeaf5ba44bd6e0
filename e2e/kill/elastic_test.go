package kill

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/terms"
)

// TestElasticityRestartsNobody lets the example of an elastic job grow from 2 to 8 and shrink to 3 on three agents, and
// then asks for more than its pool may have: who stays keeps his process all the time, and hears of every change in his
// files.
func TestElasticityRestartsNobody(t *testing.T) {
	t.Parallel()
	tr := begin(t, 3*time.Second)
	team := terms.NewPool("team")
	team.Quotas[terms.CPU].Reservation, team.Quotas[terms.CPU].Limit = 200, 200 // ten instances
	tr.makePools(team)
	const job = "team/elastic"
	spec := exampleOf(t, "elastic.yaml")
	spec.Name, spec.Tasks[0].Placement = job, terms.Spread
	spec.Tasks[0].Instances, spec.Tasks[0].MinAvailable = 2, 2
	tr.submit(spec)
	two := tr.wantWorkers(job, 2)

	tr.scale(job+"=8", 0)
	eight := tr.wantWorkers(job, 8)
	wantSame(t, two, eight)
	tr.awaitLog(job, "we are 8: ")

	tr.scale(job+"=3", 0)
	three := tr.wantWorkers(job, 3)
	wantSame(t, three, eight)
	wantSame(t, two, three)
	tr.awaitLog(job, "we are 3: ")

	said := tr.scale(job+"=20", 124, "--timeout", "3s")
	reasons := []string{"10 instances, [10] first: waits for its pool", "pool team", "may have at most 200m cpu"}
	for _, words := range reasons {
		if !strings.Contains(said, words) {
			t.Errorf("the scale that the pool does not allow says no word of %q:\n%s", words, said)
		}
	}
	tr.wantWhy(job, reasons...)
	wantSame(t, three, tr.workersOf())
	tr.scale(job+"=3", 0)
	wantSame(t, three, tr.wantWorkers(job, 3))
	tr.wantWhole()
}

// scale runs "starling scale", wants its exit status, and returns what it said.
func (tr *trial) scale(size string, status int, more ...string) string {
	tr.Helper()
	arguments := append([]string{"scale", size, "--address", tr.Agents[0].Address}, more...)
	command := exec.CommandContext(tr.soon(), os.Getenv(binaryVariable), arguments...)
	said, _ := command.CombinedOutput() // the status tells
	if got := command.ProcessState.ExitCode(); got != status {
		tr.Fatalf("starling scale %s: got status %d, want %d:\n%s", size, got, status, said)
	}
	return string(said)
}

// wantWorkers waits until so many instances run, and no more, and returns their programs, by allocation.
func (tr *trial) wantWorkers(job string, count int) map[string]agents.Process {
	tr.Helper()
	var want []string
	for _, slot := range tr.awaitRunning(tr.Agents[0], job) {
		want = append(want, slot.GetAllocation())
	}
	slices.Sort(want)
	if len(want) != count {
		tr.Fatalf("got %q, want %d instances", want, count)
	}
	var found map[string]agents.Process
	tr.eventually("exactly these run", func() string {
		if found = tr.workersOf(); !slices.Equal(slices.Sorted(maps.Keys(found)), want) {
			return strings.Join(slices.Sorted(maps.Keys(found)), " ")
		}
		return ""
	})
	return found
}

// workersOf returns the first process of every allocation: the others are its children.
func (tr *trial) workersOf() map[string]agents.Process {
	tr.Helper()
	all, err := tr.Tasks()
	tr.must(err)
	first := map[string]agents.Process{}
	for _, p := range all {
		other, known := first[p.Allocation]
		if !known || cmp.Or(cmp.Compare(ticks(p), ticks(other)), cmp.Compare(p.PID, other.PID)) < 0 {
			first[p.Allocation] = p
		}
	}
	return first
}

func ticks(p agents.Process) uint64 {
	number, _ := strconv.ParseUint(p.Start, 10, 64) // the kernel wrote it
	return number
}

// wantSame wants every process of the first to be among the second.
func wantSame(t *testing.T, some, among map[string]agents.Process) {
	t.Helper()
	for allocation, p := range some {
		if other := among[allocation]; other != p {
			t.Errorf("%s was process %+v, and is %+v", allocation, p, other)
		}
	}
}

// awaitLog waits until the first instance has written some words.
func (tr *trial) awaitLog(job, words string) {
	tr.Helper()
	tr.eventually(job+" writes "+words, func() string {
		var got bytes.Buffer
		err := tr.asked().Logs(tr.soon(), &starlingv1.LogsRequest{Job: job}, func(piece *starlingv1.LogsResponse) error {
			got.Write(piece.GetData())
			return nil
		})
		if err != nil || !strings.Contains(got.String(), words) {
			return got.String()
		}
		return ""
	})
}
