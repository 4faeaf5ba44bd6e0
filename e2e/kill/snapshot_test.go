package kill

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/e2e/agents"
	"starling/journal"
	"starling/journal/etcd"
	"starling/terms"
	"starling/trust"
)

// cut reads up to where the journal was trimmed.
func (tr *trial) cut(of *agents.Agent) journal.Snapshot {
	tr.Helper()
	keys, err := trust.Load(filepath.Join(of.Folder(), trust.Folder))
	tr.must(err)
	j, err := etcd.Open(tr.soon(), etcd.ClientConfig{Endpoints: []string{of.Endpoint}, TLS: trust.ClientTLS(keys.Shows)})
	tr.must(err)
	defer j.Close()
	s, err := j.Snapshot(tr.soon())
	tr.must(err)
	if s.Index > 0 {
		err = j.Follow(tr.soon(), 1, func([]journal.Record) error { return errors.New("it is there") })
		if !errors.Is(err, journal.ErrTrimmed) {
			tr.Errorf("the first record, trimmed up to %d: %v", s.Index, err)
		}
	}
	return s
}

// TestKilledBetweenSnapshots has a snapshot due every 30 entries, and kills one agent after the other meanwhile.
func TestKilledBetweenSnapshots(t *testing.T) {
	t.Parallel()
	binary, err := agents.Build(t.Context(), t.TempDir(), "smallsnapshots")
	if err != nil {
		t.Fatal(err)
	}
	tr := prepare(t, 10*time.Second, []string{"a", "b", "c"})
	for _, a := range tr.Agents {
		a.Install(binary)
	}
	tr.must(tr.Start(tr.soon()))
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	slots := tr.awaitRunning(tr.Agents[0], "web")
	tasks := tr.wantTasks(slots)
	const rounds, jobs = 6, 8
	for round := range rounds {
		victim := tr.Agents[round%3]
		for i := range jobs {
			if i == jobs/2 {
				tr.must(victim.Kill())
			}
			tr.submit(tr.job(fmt.Sprintf("batch-%d-%d", round, i), terms.Batch, witnessRole, 2), tr.others(victim)...)
		}
		tr.must(victim.Start())
		tr.must(victim.Ready(tr.soon()))
		tr.Logf("round %d: the journal was trimmed up to %d", round, tr.cut(tr.others(victim)[0]).Index)
	}
	for round := range rounds {
		for i := range jobs {
			tr.awaitDone(tr.Agents[i%3], fmt.Sprintf("batch-%d-%d", round, i))
		}
	}
	for id, now := range tr.wantTasks(slots) {
		if now != tasks[id] {
			t.Errorf("%s is process %+v, was %+v", id, now, tasks[id])
		}
	}
	if s := tr.cut(tr.Agents[0]); s.Index < 60 || s.Chunks < 2 {
		t.Errorf("the journal was trimmed up to entry %d, its snapshot has %d chunks", s.Index, s.Chunks)
	}
	for _, a := range tr.Agents {
		if !strings.Contains(a.Log(), "went on from a snapshot") {
			t.Errorf("agent %s was started again and has read no snapshot", a.Node)
		}
	}
	tr.wantWhole()
}
