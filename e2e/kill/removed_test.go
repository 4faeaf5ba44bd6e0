package kill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"starling/e2e/agents"
	"starling/terms"
)

// lockedOutMax is how long a machine may reach the engine after it was removed.
const lockedOutMax = 5 * time.Second

// TestRemovedMachines removes the machine whose member leads the quorum, and one whose agent was killed while its tasks
// went on. Both are locked out of the engine, end their tasks, and the others go on without them.
func TestRemovedMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until machines are let go")
	}
	t.Parallel()
	tr := prepare(t, 3*time.Second, []string{"a", "b", "c", "d"})
	tr.must(tr.Start(tr.soon()))
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents[:3]...))
	leader, dead := tr.memberOf(tr.Agents[:3], true), tr.Agents[3]
	left := slices.DeleteFunc(slices.Clone(tr.Agents[:3]), func(a *agents.Agent) bool { return a == leader })
	tr.submit(tr.job("web", terms.Stateless, serverRole, 8))
	tr.wantTasks(tr.awaitRunning(left[0], "web"))
	if len(tr.tasksOf(dead)) == 0 || len(tr.tasksOf(leader)) == 0 {
		t.Fatal("nothing runs on the machines that are to be removed")
	}
	engine, err := leader.EngineOf(left[0])
	tr.must(err)
	t.Cleanup(func() { engine.Close() })
	watch := engine.Watch(tr.soon(), "nothing is written here", clientv3.WithCreatedNotify())
	<-watch
	tr.must(dead.Kill())

	for _, gone := range []*agents.Agent{dead, leader} {
		tr.must(tr.asked(left[0]).RemoveNode(tr.soon(), gone.Node, false))
	}
	began := time.Now()
	tr.eventually("the machine that was removed is refused", func() string {
		short, cancel := context.WithTimeout(tr.Context(), time.Second)
		defer cancel()
		if _, err := engine.Get(short, "any"); err == nil {
			return "it is answered"
		}
		return ""
	})
	took := time.Since(began)
	t.Logf("locked out of the engine after %v", took)
	if took > lockedOutMax {
		t.Errorf("the machine reached the engine for %v after it was removed, want at most %v", took, lockedOutMax)
	}
	tr.must(tr.AwaitQuorum(tr.soon(), left...))
	tr.must(dead.Start())
	status, err := dead.Ended(tr.soon())
	if err != nil || status == 0 || !strings.Contains(dead.Said(), "node d was removed") {
		t.Errorf("the agent of a machine that was removed while it was away ended with %d, %v", status, err)
	}
	tr.eventually("nothing runs on machines that were removed", func() string {
		for _, a := range []*agents.Agent{dead, leader} {
			if tasks := tr.tasksOf(a); len(tasks) > 0 {
				return fmt.Sprint(tasks)
			}
		}
		return ""
	})
	tr.wantTasks(tr.awaitRunning(left[0], "web"))
}
