package volume_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"starling/driver"
	"starling/driver/drivertest"
	"starling/driver/volume"
)

// TestQuotaOfSet has the file system count what each set has, from its first file: of one that was made here and of one
// that was brought here. A set that is deleted or set aside has no limit.
func TestQuotaOfSet(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		here := &volume.Keeper{Dir: filepath.Join(folder, "here"), Warn: func(string) {}}
		there := &volume.Keeper{Dir: filepath.Join(folder, "there"), Arrived: func() {}, Warn: func(string) {}}
		path, err := volume.Make(here.Dir, driver.Volume{Set: "db", Name: "data"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		err = errors.Join(os.WriteFile(filepath.Join(path, "file"), bytes.Repeat([]byte("x"), 100<<10), 0o600),
			here.SendVolumes(t.Context(), "db", &packed), there.ReceiveVolumes("db", &packed))
		if err != nil {
			t.Fatal(err)
		}
		numbers := [2]uint32{bounded(t, here), bounded(t, there)}
		if numbers[0] == numbers[1] {
			t.Errorf("the projects are %d", numbers)
		}
		aside, err := there.SetVolumesAside("db")
		if a := drivertest.Account(t, folder, numbers[1]); err != nil || a.BytesMax != 0 || a.Files != 4 {
			t.Errorf("in %s: %+v, %v", aside, a, err)
		}
		if err := here.DeleteVolumes("db"); err != nil {
			t.Error(err)
		}
		drivertest.AwaitFree(t, folder, numbers[0])
	})
}

// bounded bounds a set of two volumes with a file, and returns the number of its project.
func bounded(t *testing.T, k *volume.Keeper) uint32 {
	t.Helper()
	data, set := driver.Volume{Set: "db", Name: "data"}, filepath.Join(k.Dir, "db")
	if _, err := volume.Make(k.Dir, driver.Volume{Set: "db", Name: "more"}, nil); err != nil {
		t.Fatal(err)
	}
	number := drivertest.ProjectOf(t, set)
	limit := func(by error) uint64 {
		t.Helper()
		a := drivertest.Account(t, k.Dir, number)
		if by != nil || number == 0 || a.Bytes < 100<<10 || a.Files != 4 { // with three folders
			t.Errorf("%s: project %d, %+v, %v", set, number, a, by)
		}
		return a.BytesMax
	}
	reading := driver.Volume{Set: "db", Name: "data", ReadOnly: true}
	if got := limit(volume.Bound(k.Dir, []driver.Volume{data}, 1<<20)); got < 1<<20 || got > 2<<20 {
		t.Errorf("%s: the limit is %d", set, got)
	}
	if got := limit(volume.Bound(k.Dir, []driver.Volume{reading}, 0)); got < 1<<20 {
		t.Errorf("%s: whoever reads it makes the limit %d", set, got)
	}
	if _, err := k.MakeVolume(data); limit(err) != 0 {
		t.Errorf("%s: what the peer writes is bounded", set)
	}
	_ = limit(volume.Bound(k.Dir, []driver.Volume{data}, 1<<20))
	return number
}
