package kill

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/exit"
	"starling/e2e/agents"
	"starling/terms"
	"starling/terms/rules"
)

// upgrade is a cluster with a service and a load of batch jobs, whose programs are replaced.
type upgrade struct {
	*trial
	slots []*starlingv1.Slot
	tasks map[string]agents.Process
}

// step does something to the cluster under load, and then wants equal digests and the processes of before.
func (u *upgrade) step(name string, act func()) {
	u.Helper()
	u.submit(u.job("before-"+name, terms.Batch, witnessRole, 3))
	act()
	u.submit(u.job("after-"+name, terms.Batch, witnessRole, 3))
	for _, a := range u.Agents {
		u.awaitDone(a, "before-"+name)
		u.awaitDone(a, "after-"+name)
	}
	u.wantWhole()
	for id, now := range u.wantTasks(u.slots) {
		if now != u.tasks[id] {
			u.Errorf("%s: %s is process %+v, was %+v", name, id, now, u.tasks[id])
		}
	}
}

// install replaces the program of an agent that is killed for it.
func (u *upgrade) install(a *agents.Agent, binary string) {
	u.Helper()
	u.must(a.Kill())
	a.Install(binary)
	u.must(a.Start())
}

// wantRaise asks for the next rules and wants the refusal to hold all of the words, or none if there are no words.
func (u *upgrade) wantRaise(words ...string) {
	u.Helper()
	api := u.asked()
	_, err := api.RaiseRules(u.soon(), rules.Next)
	if (err != nil) != (len(words) > 0) {
		u.Fatalf("raise the rules: %v, want words %q", err, words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			u.Errorf("the refusal is %v, want in it %q", err, word)
		}
	}
	u.written = api.Seen()
}

// wantRules wants every agent to tell these rules, and that its own program knows them up to newest.
func (u *upgrade) wantRules(inForce, newest rules.Number) {
	u.Helper()
	for _, a := range u.Agents {
		answer, err := u.asked(a).Rules(u.soon())
		u.must(err)
		if answer.GetRules() != uint32(inForce) || answer.GetNewest() != uint32(newest) ||
			len(answer.GetMembers()) != len(u.Agents) {
			u.Errorf("agent %s tells %v, want rules %d of %d", a.Node, answer, inForce, newest)
		}
	}
}

// TestUpgradeOneByOne replaces the programs of three peers by one that knows the next rules, raises them, and starts
// the old program once more.
func TestUpgradeOneByOne(t *testing.T) {
	t.Parallel()
	next, err := agents.Build(t.Context(), t.TempDir(), "nextrules")
	if err != nil {
		t.Fatal(err)
	}
	// No pulse ends while a program is replaced, so nothing has a reason to move.
	u := &upgrade{trial: begin(t, 30*time.Second)}
	u.submit(u.job("web", terms.Stateless, serverRole, 3))
	u.slots = u.awaitRunning(u.Agents[0], "web")
	u.tasks = u.wantTasks(u.slots)
	u.wantRules(rules.Released, rules.Released)
	for i, a := range u.Agents {
		u.step("upgrade-"+a.Node, func() {
			var behind []string
			for _, b := range u.Agents[i:] {
				behind = append(behind, b.Node+"~1")
			}
			u.wantRaise(fmt.Sprintf("do not know version %d of the rules", rules.Next), strings.Join(behind, ", "))
			u.install(a, next)
			u.must(a.Ready(u.soon()))
		})
	}
	u.wantRules(rules.Released, rules.Next)
	u.step("raise", func() { u.wantRaise() })
	u.wantRules(rules.Next, rules.Next)

	last := u.Agents[2]
	u.step("relapse", func() {
		u.install(last, os.Getenv(binaryVariable))
		status, err := last.Ended(u.soon())
		u.must(err)
		want := fmt.Sprintf("this program does not fit the cluster: that has version %d of the rules", rules.Next)
		if status != exit.Outdated || !strings.Contains(last.Said(), want) || !strings.Contains(last.Log(), want) {
			t.Errorf("the old program ended with status %d and said:\n%s", status, last.Said())
		}
		if now := u.wantTasks(u.slots); len(now) != len(u.tasks) {
			t.Errorf("the old program left tasks %v, there were %v", now, u.tasks)
		}
		u.install(last, next)
		u.must(last.Ready(u.soon()))
	})
}
