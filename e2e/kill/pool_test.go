package kill

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/cluster/facts"
	"starling/schedule/preempt"
	"starling/terms"
)

// wantGaveWay wants exactly those allocations that were told to end, so many, to have given way to a job by a rule, as
// the journal tells.
func (tr *trial) wantGaveWay(from, to string, rule preempt.Rule, want int) {
	tr.Helper()
	told := tr.proofs(from, toldSuffix)
	if len(told) != want {
		tr.Errorf("%s: these were told to end: %q, want %d", from, told, want)
	}
	reasons := map[string]string{}
	err := tr.asked().TailJournal(tr.soon(), &starlingv1.TailJournalRequest{From: 1},
		func(answer *starlingv1.TailJournalResponse) error {
			for _, e := range answer.GetEntry().GetEffects() {
				if e.GetKind() == "gave way" && strings.HasPrefix(e.GetAllocation(), from+".") {
					reasons[e.GetAllocation()] = e.GetText()
				}
			}
			return nil
		})
	tr.must(err)
	for _, allocation := range told {
		if reason := reasons[allocation]; !strings.HasSuffix(reason, fmt.Sprintf(" gives way to %s: %s", to, rule)) {
			tr.Errorf("of %s the journal tells %q, want that it gave way to %s: %s", allocation, reason, to, rule)
		}
	}
	if len(reasons) != len(told) {
		tr.Errorf("these gave way: %q, and these were told to end: %q", reasons, told)
	}
}

// wantWhy wants "starling why" to say some words about a job.
func (tr *trial) wantWhy(job string, words ...string) {
	tr.Helper()
	command := exec.CommandContext(tr.soon(), os.Getenv(binaryVariable), "why", job, "--address", tr.Agents[0].Address)
	said, err := command.CombinedOutput()
	for _, w := range words {
		if err != nil || !strings.Contains(string(said), w) {
			tr.Errorf("why %s does not say %q: %v\n%s", job, w, err, said)
		}
	}
}

// TestPoolsLendAndTakeBack has one pool use what another left idle until that needs it, and again after that.
func TestPoolsLendAndTakeBack(t *testing.T) {
	t.Parallel()
	tr := begin(t, 3*time.Second)
	tr.makePools(poolFor("research", 6), poolFor("serving", 6))
	train, openTrain := tr.workers("research/train", 12)
	answer, openAnswer := tr.workers("serving/answer", 6)
	answer.MinAvailable = 6
	tr.submit(train)
	tr.awaitRunning(tr.Agents[0], "research/train")
	tr.awaitBegun("research/train", 12)

	tr.submit(answer)
	tr.wantTogether(tr.awaitRunning(tr.Agents[0], "serving/answer"))
	tr.awaitShare("research/train", 6)
	tr.wantGaveWay("research/train", "serving/answer", preempt.ByEntitlement, 6)
	tr.wantWhy("research/train", "gave way", "serving/answer", preempt.ByEntitlement.String())

	openAnswer()
	tr.awaitDone(tr.Agents[0], "serving/answer")
	tr.awaitRunning(tr.Agents[0], "research/train")
	tr.awaitBegun("research/train", 18)
	tr.wantProofs("research/train", toldSuffix, 6)
	tr.finish([]func(){openTrain}, "research/train")
}

// TestNonPreemptibleWorkWaitsForItsReservation has a pool with work that never gives way, which gets no more than what
// is promised to its pool although machines are idle, and keeps that when others take back what they lent beyond it.
func TestNonPreemptibleWorkWaitsForItsReservation(t *testing.T) {
	t.Parallel()
	tr := begin(t, 3*time.Second)
	tr.makePools(poolFor("research", 4), poolFor("serving", 8))
	first, openFirst := tr.workers("research/first", 4)
	second, openSecond := tr.workers("research/second", 2)
	lent, openLent := tr.workers("research/lent", 6)
	answer, openAnswer := tr.workers("serving/answer", 8)
	first.Preemption, second.Preemption = terms.NonPreemptible, terms.NonPreemptible
	tr.submit(first)
	tr.submit(second)
	tr.awaitRunning(tr.Agents[0], "research/first")
	tr.submit(lent)
	tr.awaitBegun("research/lent", 6) // although it is newer, and there is room for the second
	tr.awaitShare("research/second", 0)
	tr.wantWhy("research/second", "pool research reserves 4 cpu")

	tr.submit(answer)
	tr.awaitRunning(tr.Agents[0], "serving/answer")
	tr.awaitShare("research/lent", 0)
	tr.wantGaveWay("research/lent", "serving/answer", preempt.ByEntitlement, 6)
	tr.wantProofs("research/second", begunSuffix, 0)

	openFirst()
	tr.awaitRunning(tr.Agents[0], "research/second")
	tr.finish([]func(){openSecond, openLent, openAnswer}, "research/first", "research/second", "research/lent",
		"serving/answer")
	for _, job := range []string{"research/first", "research/second", "serving/answer"} {
		tr.wantProofs(job, toldSuffix, 0)
	}
}

// TestGivingWayOutlastsTheAgents kills all agents while instances that do not heed SIGTERM give way.
func TestGivingWayOutlastsTheAgents(t *testing.T) {
	t.Parallel()
	tr := begin(t, 5*time.Second)
	tr.makePools(poolFor("research", 6), poolFor("serving", 6))
	train, openTrain := tr.workers("research/train", 12)
	train.Tasks[0].Command[1], train.Tasks[0].StopGraceMillis = stubbornRole, 3000
	answer, openAnswer := tr.workers("serving/answer", 6)
	answer.MinAvailable = 6
	tr.submit(train)
	tr.awaitRunning(tr.Agents[0], "research/train")
	tr.awaitBegun("research/train", 12)
	tr.submit(answer)
	tr.awaitProofs("research/train", toldSuffix, 6)
	for _, a := range tr.Agents {
		tr.must(a.Kill())
	}
	for _, a := range tr.Agents {
		tr.must(a.Start())
	}
	for _, a := range tr.Agents {
		tr.must(a.Ready(tr.soon()))
	}
	tr.wantTogether(tr.awaitRunning(tr.Agents[0], "serving/answer"))
	tr.awaitShare("research/train", 6)
	tr.wantGaveWay("research/train", "serving/answer", preempt.ByEntitlement, 6)
	tr.finish([]func(){openAnswer, openTrain}, "serving/answer", "research/train")
}

// TestUrgentWorkTakesTheRoomOfLesser has work of three priorities in one pool, the lowest of which gives way for good.
func TestUrgentWorkTakesTheRoomOfLesser(t *testing.T) {
	t.Parallel()
	tr := begin(t, 3*time.Second)
	lesser, openLesser := tr.workers("lesser", 9)
	guess, openGuess := tr.workers("guess", 3)
	urgent, openUrgent := tr.workers("urgent", 2)
	lesser.Priority, guess.Priority, guess.KillOnPreempt, urgent.Priority = 20, 10, true, 50
	tr.submit(guess)
	tr.submit(lesser)
	tr.awaitBegun("guess", 3)
	tr.awaitBegun("lesser", 9)
	tr.submit(urgent)
	tr.awaitRunning(tr.Agents[0], "urgent")
	tr.wantGaveWay("guess", "urgent", preempt.ByPriority, 2)
	tr.finish([]func(){openGuess, openUrgent, openLesser}, "urgent", "lesser")
	want := map[string]int{facts.Preempted.String(): 2, facts.ByItself.String(): 1}
	tr.eventually("what gave way has ended for good", func() string {
		ends := map[string]int{}
		for _, slot := range tr.status(tr.Agents[0], "guess").GetSlots() {
			ends[slot.GetEnded()]++
		}
		if !maps.Equal(ends, want) {
			return fmt.Sprintf("the guesses ended as %v, want %v", ends, want)
		}
		return ""
	})
	tr.wantProofs("guess", begunSuffix, 3)
	tr.wantProofs("lesser", toldSuffix, 0)
}
