package kill

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"starling/cmd/starling/exit"
	"starling/e2e/agents"
	"starling/terms"
)

// TestBugOfTheFold gives one peer of three a program that cannot fold an entry. It ends with a report, its task goes
// on, and the program without the bug takes it back into the cluster.
func TestBugOfTheFold(t *testing.T) {
	t.Parallel()
	planted, err := agents.Build(t.Context(), t.TempDir(), "plantedbug")
	if err != nil {
		t.Fatal(err)
	}
	u := &upgrade{trial: begin(t, 30*time.Second)}
	u.submit(u.job("web", terms.Stateless, serverRole, 3))
	u.slots = u.awaitRunning(u.Agents[0], "web")
	u.tasks = u.wantTasks(u.slots)
	odd := u.Agents[2]
	u.install(odd, planted)
	u.must(odd.Ready(u.soon()))
	// There is no such job, but the entry is written.
	_, _ = u.asked(u.Agents[0]).KillJob(u.soon(), "planted-bug", 0, false)
	status, err := odd.Ended(u.soon())
	u.must(err)
	if status != exit.Failed || !strings.Contains(odd.Said(),
		"cannot be folded (a planted bug): this is a bug of Starling") {
		t.Errorf("the program with the bug ended with status %d and said:\n%s", status, odd.Said())
	}
	_, said, _ := strings.Cut(odd.Said(), "send ")
	report, _, _ := strings.Cut(said, " to its developers")
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), `"planted-bug"`) {
		t.Errorf("%v, the report is:\n%s", err, text)
	}
	u.install(odd, os.Getenv(binaryVariable))
	u.must(odd.Ready(u.soon()))
	u.wantWhole()
	for id, now := range u.wantTasks(u.slots) {
		if now != u.tasks[id] {
			t.Errorf("%s is process %+v, was %+v", id, now, u.tasks[id])
		}
	}
}

// TestUpgradePlanFindsAnotherFold asks a program that folds an entry otherwise whether it may replace that of the
// peers: it says at which entry it parts, and that nothing is to be replaced. The peers' own program finds nothing.
func TestUpgradePlanFindsAnotherFold(t *testing.T) {
	t.Parallel()
	other, err := agents.Build(t.Context(), t.TempDir(), "otherfold")
	if err != nil {
		t.Fatal(err)
	}
	tr := prepare(t, 4*time.Second, []string{"a"})
	tr.must(tr.Start(tr.soon()))
	tr.submit(tr.job("before", terms.Batch, witnessRole, 1))
	plan := func(program string) (string, int) {
		command := exec.CommandContext(tr.soon(), program, "upgrade", "--plan", "--address", tr.Agents[0].Address)
		said, _ := command.CombinedOutput() // the status is asked for
		return string(said), command.ProcessState.ExitCode()
	}
	if said, status := plan(other); status != exit.OK || !strings.Contains(said, "lead to the same value here and at a~1") {
		t.Errorf("before it meets the entry it ends with %d and says %q", status, said)
	}
	tr.submit(tr.job("folded-otherwise", terms.Batch, witnessRole, 1))
	tr.awaitDone(tr.Agents[0], "folded-otherwise")
	said, status := plan(other)
	for _, want := range []string{"or this program folds it differently", "submit job folded-otherwise",
		"replace no peer by this program"} {
		if status != exit.Failed || !strings.Contains(said, want) {
			t.Errorf("it ends with %d and says %q, want %q", status, said, want)
		}
	}
	if said, status := plan(os.Getenv(binaryVariable)); status != exit.OK {
		t.Errorf("the program of the peers ends with %d and says %q", status, said)
	}
}
