package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSweepLeavesOthersAlone checks that what another user may have put among the folders of killed processes, or has
// led elsewhere, leads to no loss.
func TestSweepLeavesOthersAlone(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	for _, c := range []struct {
		name string
		// make changes a folder that was left behind; home is somewhere else.
		make func(folder, home string) error
		gone bool
	}{
		{"one's own", func(string, string) error { return nil }, true},
		{"others may write in it", func(folder, _ string) error { return os.Chmod(folder, 0o777) }, false},
		{"its group may write in it", func(folder, _ string) error { return os.Chmod(folder, 0o770) }, false},
		{"another user's", func(folder, _ string) error { return os.Chown(folder, nobody, nobody) }, false},
		{"a link", func(folder, _ string) error {
			return errors.Join(os.Rename(folder, folder+"-real"), os.Symlink(folder+"-real", folder))
		}, false},
		{"the machine is a link", func(folder, home string) error {
			machine := filepath.Join(folder, "dev-1")
			return errors.Join(os.RemoveAll(machine), os.Symlink(home, machine))
		}, false},
		{"the driver is a link", func(folder, home string) error {
			driver := filepath.Join(folder, "dev-1", driverFolder)
			return errors.Join(os.RemoveAll(driver), os.Symlink(filepath.Join(home, driverFolder), driver))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			left, home := t.TempDir(), t.TempDir()
			folder := filepath.Join(left, "left-1")
			kept := filepath.Join(home, driverFolder, "forgotten", "kept")
			if err := errors.Join(os.MkdirAll(filepath.Join(folder, "dev-1", driverFolder), 0o755),
				os.WriteFile(filepath.Join(folder, lockName), fmt.Appendln(nil, ended.Process.Pid), 0o666),
				os.MkdirAll(kept, 0o755)); err != nil {
				t.Fatal(err)
			}
			err := c.make(folder, home)
			if errors.Is(err, fs.ErrPermission) {
				t.Skip("only root gives folders away")
			}
			if err != nil {
				t.Fatal(err)
			}
			swept := Sweep(filepath.Join(left, "left-*"))
			if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) != c.gone {
				t.Errorf("gone: got %v, want %v (%v)", err, c.gone, swept)
			}
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("%v: it was elsewhere", err)
			}
		})
	}
}
