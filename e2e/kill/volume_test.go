package kill

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
)

// ballastName is a file in a volume that takes a while to be copied.
const (
	ballastName  = "ballast"
	ballastBytes = 64 << 20
)

// TestVolumesMoveUnderKills kills the agent that sends or the one that receives at any moment of a copy. There is a
// whole copy at each moment, and one in the end, which its instance finds.
func TestVolumesMoveUnderKills(t *testing.T) {
	if testing.Short() {
		t.Skip("copies volumes again and again")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	random := rand.New(rand.NewPCG(seedOf(t), 0))
	first, other := tr.Agents[0], tr.Agents[2]
	tr.submit(tr.stateful("db", "data"))
	slot := tr.slotOn(first, tr.awaitRunning(other, "db"))
	tr.awaitBeat(slot)
	_, err := tr.asked(other).SuspendJob(tr.soon(), "db", 0, false)
	tr.must(err)
	ballast := bytes.Repeat([]byte("ballast\n"), ballastBytes/8)
	starts, err := filepath.Glob(first.Volume("*", startsName))
	tr.must(err)
	tr.must(os.WriteFile(filepath.Join(filepath.Dir(starts[0]), ballastName), ballast, 0o644))
	var set *starlingv1.Volumes
	tr.eventually("no instance has the volumes", func() string {
		set = tr.volumesOf(other, slot)
		return map[bool]string{true: "they are in use"}[set.GetState() == "in use"]
	})
	moved := 0
	for range 6 {
		before := set.GetNode()
		tr.killInCopy(random, other, set)
		if set = tr.volumesOf(other, slot); set.GetNode() != before {
			moved++
		}
		tr.wantBallast(ballast, set)
	}
	t.Logf("%d of 6 copies counted", moved)
	goal := tr.Agents[2]
	tr.eventually("the volumes have moved", func() string {
		if err := tr.relocate(tr.soon(), goal, set, goal); err != nil {
			return err.Error()
		}
		return ""
	})
	tr.eventually("one copy is left", func() string {
		var all []string
		for _, a := range tr.Agents {
			some, _ := filepath.Glob(a.Volume("*", ballastName)) // what is hidden, too
			all = append(all, some...)
		}
		if len(all) != 1 {
			return fmt.Sprintf("there are %q", all)
		}
		return ""
	})
	_, err = tr.asked(other).SuspendJob(tr.soon(), "db", 0, true)
	tr.must(err)
	for _, one := range tr.awaitRunning(other, "db") {
		if one.GetNumber() == slot.GetNumber() && one.GetNode() != goal.Node {
			t.Errorf("the instance runs on %s, and its volumes are on %s", one.GetNode(), goal.Node)
		}
	}
	tr.wantBallast(ballast, tr.volumesOf(other, slot))
	tr.wantNeverTwo()
	tr.wantWhole()
}

// killInCopy has the first or the second agent take volumes of the other, and kills one of them at any moment of that.
func (tr *trial) killInCopy(random *rand.Rand, by *agents.Agent, set *starlingv1.Volumes) {
	tr.Helper()
	from, to := tr.Agents[0], tr.Agents[1]
	if set.GetNode() == to.Node {
		from, to = to, from
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(tr.soon(), 5*time.Second)
	defer cancel()
	go func() { done <- tr.relocate(ctx, by, set, to) }()
	victim := [...]*agents.Agent{from, to}[random.IntN(2)]
	select {
	case <-time.After(time.Duration(random.IntN(600)) * time.Millisecond):
	case err := <-done:
		done <- err
	}
	tr.must(victim.Kill())
	tr.must(victim.Start())
	tr.must(victim.Ready(tr.soon()))
	tr.Logf("agent %s was killed while %s were copied from %s to %s: %v", victim.Node, set.GetId(), from.Node, to.Node,
		<-done)
}

// relocate asks an agent to have another take volumes.
func (tr *trial) relocate(ctx context.Context, from *agents.Agent, set *starlingv1.Volumes, to *agents.Agent) error {
	return tr.asked(from).RelocateVolumes(ctx, &starlingv1.RelocateVolumesRequest{Volumes: set.GetId(), Node: to.Node},
		func(*starlingv1.RelocateVolumesResponse) error { return nil })
}

// volumesOf returns the volumes of a slot.
func (tr *trial) volumesOf(from *agents.Agent, slot *starlingv1.Slot) *starlingv1.Volumes {
	tr.Helper()
	all, err := tr.asked(from).AllVolumes(tr.soon(), "db")
	tr.must(err)
	for _, one := range all.GetVolumes() {
		if one.GetNumber() == slot.GetNumber() {
			return one
		}
	}
	tr.Fatalf("%s has no volumes: %v", slot, all)
	return nil
}

// wantBallast wants the agent that has volumes by the journal to have all that they hold.
func (tr *trial) wantBallast(want []byte, set *starlingv1.Volumes) {
	tr.Helper()
	for _, a := range tr.Agents {
		if a.Node != set.GetNode() {
			continue
		}
		files, err := filepath.Glob(a.Volume("[^.]*", ballastName))
		tr.must(err)
		if len(files) != 1 {
			tr.Fatalf("agent %s has the ballast %q, want one", a.Node, files)
		}
		if got, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(got, want) {
			tr.Fatalf("the copy of agent %s has %d bytes of %d: %v", a.Node, len(got), len(want), err)
		}
	}
}
