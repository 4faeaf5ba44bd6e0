package kill

import (
	"testing"
	"time"

	"starling/cluster"
)

func TestRestartWithinTheTimeToLiveMovesNothing(t *testing.T) {
	tr := begin(t, 5*time.Second)
	tr.submit(tr.job("web", cluster.Stateless, serverRole, 3))
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
		tr.submit(tr.job(name, cluster.Batch, witnessRole, 3), a)
		tr.awaitDone(a, name)
		for slot, now := range tr.status(tr.Agents[(i+1)%3], "web").GetSlots() {
			if was := before[slot]; now.GetAllocation() != was.GetAllocation() || now.GetNode() != was.GetNode() || now.GetPhase() != "running" {
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
