package volume_test

import (
	"errors"
	"os"
	"path/filepath"
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
