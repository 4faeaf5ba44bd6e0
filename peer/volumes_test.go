package peer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/driver"
	"starling/driver/fake"
	"starling/peer/identity"
	"starling/peer/inbox"
	"starling/replica/storage"
	"starling/terms"
)

// TestVolumesOutliveTheirJobs keeps the volumes of a stopped job for the next of its name, until somebody removes them.
func TestVolumesOutliveTheirJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		wantSets := func(want ...string) {
			t.Helper()
			inbox.Pause(context.Background(), 5*time.Second)
			if got := fake.Open(f.machines["a"]).VolumeSets(); !slices.Equal(got, want) {
				t.Errorf("got the sets of volumes %q, want %q", got, want)
			}
		}
		f.runsOn("a", database())
		wantSets("db.main[0]@1")
		stop := func() {
			t.Helper()
			if _, err := f.peers["a"].Submit(context.Background(), &command.KillJob{Job: "db"}); err != nil {
				t.Fatal(err)
			}
			f.await("a", "it stopped", statusIs("db", workload.StatusStopped))
		}
		stop()
		wantSets("db.main[0]@1")
		f.submit("a", database())
		f.await("a", "another of that name runs", running("db", 1)) // so the first is forgotten
		wantSets("db.main[0]@1")
		stop()
		set, _ := terms.ParseVolumeSet("db.main[0]@1")
		if _, err := f.peers["a"].Submit(context.Background(), &command.RemoveVolumes{Volumes: set}); err != nil {
			t.Fatal(err)
		}
		wantSets()
	})
}

// TestVolumesMove has another peer take volumes that were copied, when all of them came and nobody has used them since.
func TestVolumesMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		node, task := f.runsOn("a", database())
		from, to := f.peers[node], f.peers[map[string]string{"a": "b", "b": "a"}[node]]
		_, id, _ := strings.Cut(task, " ")
		last, _ := terms.ParseAllocationID(id)
		set, _ := terms.ParseVolumeSet("db.main[0]@1")
		early := &command.MoveVolumes{RequestID: "one", Volumes: set, Order: last.Order}
		send := func() (string, error) {
			var archive strings.Builder
			err := from.SendVolumes(context.Background(), set, &archive)
			return archive.String(), err
		}
		wantSets := func(of *Peer, want ...string) {
			t.Helper()
			inbox.Pause(context.Background(), 5*time.Second) // so that what is not wanted has been deleted
			if got := of.config.Driver.VolumeSets(); !slices.Equal(got, want) {
				t.Errorf("%s has the sets of volumes %q, want %q", of.config.Node, got, want)
			}
		}
		if _, err := send(); !errors.Is(err, storage.ErrInUse) {
			t.Errorf("sending what an instance writes to: %v", err)
		}
		if got, err := to.TakeVolumes(early, strings.NewReader("")); err != nil || got.Refusal.Code != facts.Conflict {
			t.Errorf("taking what an instance has: %v, %v", got, err)
		}
		wantSets(to)
		if _, err := f.peers["a"].Submit(context.Background(), &command.KillJob{Job: "db"}); err != nil {
			t.Fatal(err)
		}
		f.await("a", "it stopped", statusIs("db", workload.StatusStopped))
		archive, err := send()
		if err != nil {
			t.Fatal(err)
		}
		cut, move := errors.New("cut off"), &command.MoveVolumes{RequestID: "two", Volumes: set, Order: last.Order}
		if _, err := to.TakeVolumes(move, iotest.ErrReader(cut)); !errors.Is(err, cut) {
			t.Errorf("taking what does not come: %v", err)
		}
		wantSets(from, set.String())
		wantSets(to)
		got, err := to.TakeVolumes(move, strings.NewReader(archive))
		if err != nil || got.Refusal.Reason != "" {
			t.Fatalf("taking what came: %v, %v", got, err)
		}
		wantSets(from)
		wantSets(to, set.String())
		if _, err := to.TakeVolumes(move, strings.NewReader(archive)); !errors.Is(err, os.ErrExist) {
			t.Errorf("taking what is here: %v", err)
		}
	})
}

// TestVolumesOfALostPast: what the journal knows nothing of is deleted, but not where it has lost what this machine has
// folded: then it is set aside.
func TestVolumesOfALostPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		machine := fake.NewMachine(script)
		machine.Volumes = t.TempDir()
		f.machines["b"], f.ids["b"], f.archive = machine, &identity.Memory{}, &shelf{other: true}
		has := func(set string) string {
			t.Helper()
			path, err := fake.Open(machine).MakeVolume(driver.Volume{Set: set, Name: "data"})
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
		lost := has("db.main[0]@7")
		f.start("b")
		f.ready("b")
		inbox.Pause(context.Background(), 5*time.Second)
		if got := fake.Open(machine).VolumeSets(); len(got) != 0 {
			t.Errorf("the sets %q are still in their places", got)
		}
		aside := filepath.Join(machine.Volumes, "aside of db.main[0]@7", "data")
		if _, err := os.Stat(aside); err != nil {
			t.Errorf("what was %s is not set aside: %v", lost, err)
		}
	})
}
