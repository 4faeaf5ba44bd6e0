package kill

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"starling/api/wire"
	"starling/e2e/agents"
	"starling/terms"
)

// answerMax is how long it may take to be told that there is no quorum.
const answerMax = 15 * time.Second

// TestQuorumLost kills two of three agents: nothing can be written, and what runs goes on.
func TestQuorumLost(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the journal is given up")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	left := tr.Agents[0]
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	tasks := tr.wantTasks(tr.awaitRunning(left, "web"))
	const jobs = 5
	for i := range jobs {
		tr.submit(tr.job(fmt.Sprintf("before-%d", i), terms.Batch, witnessRole, 2), tr.Agents[i%3])
	}
	for _, a := range tr.others(left) {
		tr.must(a.Kill())
	}

	began := time.Now()
	_, err := tr.asked(left).SubmitJob(tr.soon(), tr.job("during", terms.Batch, witnessRole, 1), 0)
	t.Logf("without a quorum a submission was answered after %v: %v", time.Since(began), err)
	if took := time.Since(began); codeOf(err) != wire.Unknown && codeOf(err) != wire.Unavailable || took > answerMax ||
		!strings.Contains(err.Error(), "bring back most of what keeps it") {
		t.Errorf("got %v after %v, want within %v that it was not taken, or may have been, and what to do", err, took, answerMax)
	}
	tr.wantExit(5, "run", "--address", left.Address, "--", "echo", "hi")
	tr.wantExit(0, "ps", "--address", left.Address)
	during := tr.processes()
	for id, was := range tasks {
		if during[id] != was {
			t.Errorf("without a quorum %s is process %+v, was %+v", id, during[id], was)
		}
	}

	tr.wantToldMeanwhile(left)
	for _, a := range tr.others(left) {
		tr.must(a.Start())
	}
	for _, a := range tr.Agents {
		tr.must(a.Ready(tr.soon()))
	}
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), left)
	tr.awaitDone(left, "after")
	for i := range jobs {
		name := fmt.Sprintf("before-%d", i)
		tr.awaitDone(tr.Agents[i%3], name)
		tr.judgeJob(left, tr.status(left, name).GetJob())
	}
	now := tr.wantTasks(tr.awaitRunning(left, "web"))
	moved := 0
	for id := range now {
		if now[id] != tasks[id] {
			moved++
		}
	}
	t.Logf("%d of %d instances moved because of the outage", moved, len(now))
	tr.wantWhole()
}

// wantToldMeanwhile starts an agent again without a quorum: it tells what it knew, and how old that is, and does
// nothing else.
func (tr *trial) wantToldMeanwhile(a *agents.Agent) {
	tr.Helper()
	tr.must(a.Kill())
	tr.must(a.Start())
	tr.eventually("an agent that is started again answers", func() string {
		ps := exec.CommandContext(tr.soon(), os.Getenv(binaryVariable), "ps", "--address", a.Address)
		said, err := ps.CombinedOutput()
		text := string(said)
		if err != nil || !strings.Contains(text, "web ") || !strings.Contains(text, "has not answered since") {
			return fmt.Sprintf("%v: %s", err, said)
		}
		return ""
	})
	tr.wantExit(5, "run", "--address", a.Address, "--", "echo", "hi")
	tr.wantExit(0, "why", "web", "--address", a.Address)
}

// wantExit runs the binary and wants an exit status before an answer takes too long.
func (tr *trial) wantExit(want int, arguments ...string) {
	tr.Helper()
	ctx, cancel := context.WithTimeout(tr.Context(), answerMax)
	defer cancel()
	command := exec.CommandContext(ctx, os.Getenv(binaryVariable), arguments...)
	said, _ := command.CombinedOutput() // the status is asked for
	if got := command.ProcessState.ExitCode(); got != want {
		tr.Errorf("%v: got exit status %d, want %d: %s", arguments, got, want, said)
	}
}
