package kill

import (
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/terms"
)

func TestRestartWithinTheTimeToLiveMovesNothing(t *testing.T) {
	t.Parallel()
	tr := begin(t, 5*time.Second)
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	before := tr.awaitRunning(tr.Agents[0], "web")
	tasks := tr.wantTasks(before)
	for i, a := range tr.Agents {
		peer := tr.awaitPeer(a, a, "is a member", isMember).GetPeer()
		role := "follower"
		if tr.leads(a) {
			role = "leader"
		}
		began := time.Now()
		tr.must(a.Kill())
		tr.must(a.Start())
		tr.must(a.Ready(tr.soon()))
		tr.Logf("agent %s, %s of the quorum, was killed and a member again after %v", a.Node, role, time.Since(began))
		if got := tr.awaitPeer(a, a, "is a member", isMember).GetPeer(); got != peer {
			t.Errorf("agent %s came back as %s, was %s", a.Node, got, peer)
		}
		name := "proof-" + a.Node
		tr.submit(tr.job(name, terms.Batch, witnessRole, 3), a)
		tr.awaitDone(a, name)
		for slot, now := range tr.status(tr.Agents[(i+1)%3], "web").GetSlots() {
			if was := before[slot]; now.GetAllocation() != was.GetAllocation() || now.GetNode() != was.GetNode() ||
				now.GetPhase() != "running" {
				t.Errorf("slot is %v, was %v", now, was)
			}
		}
		for id, now := range tr.wantTasks(before) {
			if now != tasks[id] {
				t.Errorf("%s is process %+v, was %+v", id, now, tasks[id])
			}
		}
	}
	tr.wantWhole()
}

// TestRestartLate brings an agent back whose work was given to others while its tasks went on.
func TestRestartLate(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a pulse to end")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	victim, other := tr.Agents[2], tr.Agents[0]
	tr.startService(victim)
	before := tr.awaitPeer(other, victim, "is a member", isMember).GetPeer()
	old := tr.tasksOf(victim)
	tr.must(victim.Kill())
	tr.awaitPeer(other, victim, "has left", hasLeft)
	now := tr.awaitRunning(other, "web")
	tr.wantElsewhere(now, victim)
	if left := tr.tasksOf(victim); len(left) != len(old) {
		t.Errorf("the agent's death changed its tasks: %v, were %v", left, old)
	}
	tr.must(victim.Start())
	tr.must(victim.Ready(tr.soon()))
	tr.wantNewLife(victim, before)
	tr.wantTasks(now)
	tr.wantWhole()
}

// TestPausedBeyondItsTimeToLive stops an agent until it was given up, without its notice, and lets it go on.
func TestPausedBeyondItsTimeToLive(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a pulse to end")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	for _, leader := range []bool{true, false} {
		victim := tr.memberThat(leader)
		other := tr.others(victim)[0]
		tr.startService(victim)
		before := tr.awaitPeer(other, victim, "is a member", isMember).GetPeer()
		third := tr.awaitPeer(other, tr.others(victim)[1], "is a member", isMember).GetPeer()
		tr.must(victim.Pause())
		tr.awaitPeer(other, victim, "has left", hasLeft)
		now := tr.awaitRunning(other, "web")
		tr.wantElsewhere(now, victim)
		tr.must(victim.Resume())
		tr.wantNewLife(victim, before)
		tr.wantTasks(now)
		if got := tr.awaitPeer(other, tr.others(victim)[1], "is a member", isMember).GetPeer(); got != third {
			t.Errorf("a pause of agent %s, whose member led: %t, made %s of %s", victim.Node, leader, got, third)
		}
	}
	tr.wantWhole()
}

// startService lets a service run that has an instance on the agent.
func (tr *trial) startService(on *agents.Agent) {
	tr.Helper()
	if _, err := tr.asked().KillJob(tr.soon(), "web", 0, false); err == nil {
		tr.must(tr.asked().FollowJob(tr.soon(), &starlingv1.JobStatusRequest{Job: "web"},
			func(status *starlingv1.JobStatusResponse) (bool, error) {
				return status.GetJob().GetFinal(), nil
			}))
	}
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	tr.wantTasks(tr.awaitRunning(tr.Agents[0], "web"))
	if len(tr.tasksOf(on)) == 0 {
		tr.Fatalf("no instance is on agent %s", on.Node)
	}
}

func (tr *trial) tasksOf(a *agents.Agent) []agents.Process {
	tasks, err := a.Tasks()
	tr.must(err)
	return tasks
}

// wantElsewhere wants no slot on the agent.
func (tr *trial) wantElsewhere(slots []*starlingv1.Slot, than *agents.Agent) {
	tr.Helper()
	for _, slot := range slots {
		if slot.GetNode() == than.Node {
			tr.Errorf("%v is still on node %s, which has left", slot, than.Node)
		}
	}
}

// wantNewLife waits until the agent is a member again, and wants it to be under another incarnation.
func (tr *trial) wantNewLife(a *agents.Agent, before string) {
	tr.Helper()
	for _, from := range tr.Agents {
		p := tr.awaitPeer(from, a, "is a member again",
			func(p *starlingv1.Peer) bool { return isMember(p) && p.GetPeer() != before })
		if was, is := incarnation(before), incarnation(p.GetPeer()); is != was+1 {
			tr.Errorf("agent %s came back as %s, was %s", a.Node, p.GetPeer(), before)
		}
	}
}

func incarnation(peer string) uint32 {
	_, number := terms.PeerID(peer).Split()
	return number
}
