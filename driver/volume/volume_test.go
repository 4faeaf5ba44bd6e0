package volume_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/driver"
	"starling/driver/volume"
)

// TestDeleteAgain deletes a set of which an earlier one could not be deleted.
func TestDeleteAgain(t *testing.T) {
	k := &volume.Keeper{Dir: t.TempDir()}
	path, err := k.MakeVolume(driver.Volume{Set: "set", Name: "data"})
	left := filepath.Join(k.Dir, ".deleted-set", "left")
	if err = errors.Join(err, os.MkdirAll(left, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := k.DeleteVolumes("set"); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if sets := k.VolumeSets(); len(sets) > 0 {
		t.Errorf("the sets are %q", sets)
	}
}

// TestLostVolumes makes no volume anew of a set that was here and has gone without being deleted; one more volume of a
// set that is here is made as ever, and a set that was deleted begins anew.
func TestLostVolumes(t *testing.T) {
	k := &volume.Keeper{Dir: filepath.Join(t.TempDir(), "volumes")}
	data, more := driver.Volume{Set: "db@1", Name: "data"}, driver.Volume{Set: "db@1", Name: "more"}
	make := func(v driver.Volume, want string) (path string) {
		t.Helper()
		path, err := volume.Make(k.Dir, v, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("making %s: %v, want %q", v.Name, err, want)
		}
		return path
	}
	path := make(data, "")
	make(data, "")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	make(data, "its volume data (db@1) is not in "+k.Dir)
	make(more, "starling alloc stop --give-up-volumes")
	if err := errors.Join(os.RemoveAll(k.Dir), k.DeleteVolumes("db@1")); err != nil {
		t.Fatal(err)
	}
	make(data, "")
	make(more, "")

	var packed bytes.Buffer
	there := &volume.Keeper{Dir: filepath.Join(t.TempDir(), "volumes"), Arrived: func() {}}
	err := errors.Join(k.SendVolumes(t.Context(), "db@1", &packed), there.ReceiveVolumes("db@1", &packed),
		os.RemoveAll(there.Dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = volume.Make(there.Dir, data, nil); err == nil {
		t.Error("what was brought here and has gone is made anew")
	}
}
