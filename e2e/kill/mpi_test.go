package kill

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
)

// TestMPISurvivesKills runs the example with a real mpirun over real servers of ssh. An agent is killed while the parts
// run, and they go on; the machine of a worker dies, and the launcher starts all parts anew on the workers that there
// are then.
func TestMPISurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a pulse to end")
	}
	for program, is := range map[string]string{"mpirun": "openmpi-bin", "/usr/sbin/sshd": "openssh-server"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here: apt-get install %s", program, is)
		}
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	const job = "mpi"
	spec := exampleOf(t, "mpi.yaml")
	spec.Tasks[0].Command = []string{"/bin/sh", "-c", fmt.Sprintf(`TMPDIR=$PWD exec mpirun sh -c '
		echo $STARLING_INDEX > %[1]s/part-$OMPI_COMM_WORLD_RANK
		until [ -e %[1]s/gate ]; do sleep 0.1; done
		echo "part $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"'`, tr.watched)}
	tr.submit(spec)
	tr.awaitParts()

	at := tr.placesOf(tr.status(tr.Agents[0], job).GetSlots())
	launcher := at["launcher[0]"]
	victim := at["worker[0]"]
	if victim == launcher {
		victim = at["worker[1]"]
	}
	if victim == launcher {
		t.Fatalf("both workers are on the machine of the launcher: %v", at)
	}
	t.Logf("agent %s is killed, which has the launcher, and comes back", launcher.Node)
	tr.must(launcher.Kill())
	tr.must(launcher.Start())
	tr.must(launcher.Ready(tr.soon()))

	t.Logf("agent %s dies with its machine, and a worker", victim.Node)
	tr.forgetParts()
	tr.must(victim.Crash(tr.soon()))
	other := tr.others(victim)[0]
	tr.awaitPeer(other, victim, "has left", hasLeft)
	tr.awaitParts()

	tr.must(os.WriteFile(filepath.Join(tr.watched, "gate"), nil, 0o666))
	tr.awaitDone(other, job)
	var said bytes.Buffer
	tr.must(tr.asked(other).Logs(tr.soon(), &starlingv1.LogsRequest{Job: job, Task: "launcher"},
		func(piece *starlingv1.LogsResponse) error {
			said.Write(piece.GetData())
			return nil
		}))
	got := slices.Sorted(strings.Lines(said.String()))
	if want := []string{"part 0 of 4\n", "part 1 of 4\n", "part 2 of 4\n", "part 3 of 4\n"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	tr.must(victim.Start())
	tr.wantWhole()
}

// placesOf returns the agents by the slots that are there.
func (tr *trial) placesOf(slots []*starlingv1.Slot) map[string]*agents.Agent {
	at := map[string]*agents.Agent{}
	for _, s := range slots {
		found := slices.IndexFunc(tr.Agents, func(a *agents.Agent) bool { return a.Node == s.GetNode() })
		at[fmt.Sprintf("%s[%d]", s.GetTask(), s.GetNumber())] = tr.Agents[found]
	}
	return at
}

// awaitParts waits until all four parts have told on which worker they are: two on each.
func (tr *trial) awaitParts() {
	tr.Helper()
	tr.eventually("four parts run on two workers", func() string {
		var workers []string
		for part := range 4 {
			text, _ := os.ReadFile(tr.part(part)) // it is empty until it is written
			workers = append(workers, string(text))
		}
		if want := []string{"0\n", "0\n", "1\n", "1\n"}; !slices.Equal(workers, want) {
			return fmt.Sprintf("got %q, want %q", workers, want)
		}
		return ""
	})
}

// forgetParts removes what the parts have told.
func (tr *trial) forgetParts() {
	for part := range 4 {
		tr.must(os.Remove(tr.part(part)))
	}
}

func (tr *trial) part(number int) string {
	return filepath.Join(tr.watched, fmt.Sprintf("part-%d", number))
}
