package peer

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster/workload"
	"starling/command"
	"starling/driver/fake"
	"starling/peer/inbox"
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
