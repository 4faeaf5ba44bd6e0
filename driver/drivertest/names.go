package drivertest

import (
	"strings"
	"testing"

	"starling/driver"
)

// longNames are IDs as a job in a pool makes them: with slashes, and as long as they come, in letters of all cases. The
// last two differ at their ends alone.
func longNames() []string {
	long := strings.Repeat("Pool/", 15) + strings.Repeat("j", 127-75) + "." + strings.Repeat("T", 63) +
		"[4294967295]#1844674407370955161"
	return []string{"analytics/etl/nightly.read[3]#4711", "../../etl.read[0]#1", long + "4", long + "5"}
}

// testNames runs tasks with such names, whose volumes have such names too, over a restart of the driver.
func testNames(t *testing.T, b *bench) {
	for _, id := range longNames() {
		task := b.task(id, "terminate", "5")
		task.Volumes = []driver.Volume{{Set: id, Name: "data", Variable: "DATA"}}
		b.startTask(t, task)
		b.ready(t, id)
	}
	b.reopen(t, func() {})
	if got := b.VolumeSets(); len(got) != len(longNames()) {
		t.Errorf("got the sets of volumes %q, want %q", got, longNames())
	}
	for _, id := range longNames() {
		b.stop(t, id, longGrace)
		wantExit(t, b.exited(t, id), 5, 0)
	}
	b.reopen(t, func() {})
	for _, id := range longNames() {
		wantExit(t, b.status(id), 5, 0)
		b.forget(t, id)
		if got, want := b.output(t, id, driver.Stdout), "ready\nterminated\n"; got != want {
			t.Errorf("%s wrote %q, want %q", id, got, want)
		}
		if err := b.DeleteVolumes(id); err != nil {
			t.Errorf("DeleteVolumes: %v", err)
		}
	}
	if got := b.VolumeSets(); len(got) != 0 {
		t.Errorf("got the sets of volumes %q, want none", got)
	}
}
