package kill

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/exit"
	"starling/e2e/agents"
	"starling/terms"
)

// diverging is a cluster with a service, of which one agent has a program with a planted bug.
func diverging(t *testing.T) (u *upgrade, odd *agents.Agent) {
	t.Helper()
	planted, err := agents.Build(t.Context(), t.TempDir(), "plantedbug")
	if err != nil {
		t.Fatal(err)
	}
	u = &upgrade{trial: begin(t, 30*time.Second)}
	u.submit(u.job("web", terms.Stateless, serverRole, 3))
	u.slots = u.awaitRunning(u.Agents[0], "web")
	u.tasks = u.wantTasks(u.slots)
	odd = u.Agents[2]
	u.install(odd, planted)
	u.must(odd.Ready(u.soon()))
	return u, odd
}

// wantSameTasks wants the service to run in the processes in which it ran before.
func (u *upgrade) wantSameTasks() {
	u.Helper()
	for id, now := range u.wantTasks(u.slots) {
		if now != u.tasks[id] {
			u.Errorf("%s is process %+v, was %+v", id, now, u.tasks[id])
		}
	}
}

// bisect runs "starling journal bisect" and wants it to find a difference, with words.
func (tr *trial) bisect(words []string, pasts ...string) {
	tr.Helper()
	arguments := append([]string{"journal", "bisect"}, pasts...)
	command := exec.CommandContext(tr.soon(), os.Getenv(binaryVariable), arguments...)
	said, _ := command.CombinedOutput() // the status is asked for
	for _, want := range words {
		if command.ProcessState.ExitCode() != exit.Failed || !strings.Contains(string(said), want) {
			tr.Fatalf("journal bisect %v ends with %d, want %q:\n%s", pasts, command.ProcessState.ExitCode(), want, said)
		}
	}
}

// TestWrongValue has the value of one peer of three change by itself. It takes that of the journal: its tasks go on,
// the work that is submitted meanwhile is done, on all three, and what it has put aside tells which entry it was.
func TestWrongValue(t *testing.T) {
	t.Parallel()
	u, odd := diverging(t)
	u.submit(u.job("wrong-value", terms.Batch, witnessRole, 3), u.others(odd)...)
	u.submit(u.job("meanwhile", terms.Batch, witnessRole, 3), u.others(odd)...)
	for _, a := range u.Agents {
		u.awaitDone(a, "wrong-value")
		u.awaitDone(a, "meanwhile")
	}
	u.wantWhole()
	u.wantSameTasks()
	for _, a := range u.Agents {
		if rebuilt := strings.Contains(a.Log(), "the value of this peer was wrong"); rebuilt != (a == odd) {
			t.Errorf("agent %s has rebuilt its value: %t", a.Node, rebuilt)
		}
	}
	aside := filepath.Join(odd.Folder(), "archive", "aside")
	u.bisect([]string{"submit job wrong-value", aside + " is wrong", "Undone.Holds: 10"}, aside)
	u.bisect([]string{"submit job wrong-value", aside + " is wrong", "Undone.Holds: 10"}, aside,
		filepath.Join(u.Agents[0].Folder(), "archive"))
}

// TestOtherProgram has one agent of three fold otherwise than the others, for good: its tasks go on, and the work that
// is submitted from then on is done by the others, until it has their program again.
func TestOtherProgram(t *testing.T) {
	t.Parallel()
	u, odd := diverging(t)
	u.submit(u.job("other-fold", terms.Batch, witnessRole, 2), u.others(odd)...)
	before := 0
	u.eventually("the odd one sees that its program is another", func() string {
		u.submit(u.job(fmt.Sprint("before-", before), terms.Batch, witnessRole, 1), u.others(odd)...)
		before++
		if strings.Contains(odd.Log(), "install the same program everywhere") {
			return ""
		}
		time.Sleep(500 * time.Millisecond) // so long a value may stay as it is
		return tail(odd.Log(), 3)
	})
	u.awaitPeer(u.Agents[0], odd, "is away", func(p *starlingv1.Peer) bool { return p.GetAwayUntil() != nil })
	u.submit(u.job("after", terms.Batch, witnessRole, 3), u.others(odd)...)
	u.awaitDone(u.Agents[0], "after")
	u.wantSameTasks()
	u.install(odd, os.Getenv(binaryVariable))
	u.must(odd.Ready(u.soon()))
	u.awaitDone(odd, "other-fold")
	for i := range before {
		u.awaitDone(odd, fmt.Sprint("before-", i))
	}
	u.wantWhole()
	u.wantSameTasks()
}
