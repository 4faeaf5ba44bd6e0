package kill

import (
	"os"
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
	_, _ = u.asked(u.Agents[0]).KillJob(u.soon(), "planted-bug", 0) // there is no such job, but the entry is written
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
