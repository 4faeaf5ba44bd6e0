package quota_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"starling/driver/disk"
	"starling/driver/drivertest"
	"starling/driver/quota"
)

// begun makes a folder with a project and a limit.
func begun(t *testing.T, path string, limit int64) {
	t.Helper()
	if err := errors.Join(os.Mkdir(path, 0o700), quota.Begin(path), quota.Limit(path, limit)); err != nil {
		t.Fatal(err)
	}
}

// TestNumberIsGivenBack has a number free again when the last file has gone that was its folder's, wherever it lies
// then, and not before.
func TestNumberIsGivenBack(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		if err := quota.Missing(filepath.Join(folder, "not", "there", "yet")); err != nil {
			t.Fatal(err)
		}
		first, kept := filepath.Join(folder, "first"), filepath.Join(folder, "kept")
		begun(t, first, 1<<20)
		number := drivertest.ProjectOf(t, first)
		must(t, os.WriteFile(filepath.Join(first, "file"), make([]byte, 100<<10), 0o600))
		if used, ok := quota.Used(first); !ok || used.Bytes < 32<<10 || used.Bytes > 100<<10 || used.Files != 2 {
			t.Errorf("it takes %+v, %v", used, ok)
		}
		if err := quota.Begin(first); err == nil {
			t.Error("it got another project")
		}
		must(t, quota.Limit(first, 0), os.Rename(first, kept))
		if used, ok := quota.Used(kept); ok {
			t.Errorf("without a limit it takes %+v", used)
		}
		if a := drivertest.Account(t, folder, number); a.Files != 2 || a.BytesMax != 0 || a.FilesMax != 0 {
			t.Errorf("of what is kept elsewhere there is %+v", a)
		}
		must(t, disk.RemoveAll(kept))
		drivertest.AwaitFree(t, folder, number)
	})
}

// TestNumbersDiffer gives many folders projects at the same time.
func TestNumbersDiffer(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		const many = 200
		var all sync.WaitGroup
		for n := range many {
			path := filepath.Join(folder, strconv.Itoa(n))
			all.Go(func() {
				if err := errors.Join(os.Mkdir(path, 0o700), quota.Begin(path), quota.Limit(path, 1<<20)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		seen := map[uint32]bool{0: true}
		for n := range many {
			number := drivertest.ProjectOf(t, filepath.Join(folder, strconv.Itoa(n)))
			if seen[number] {
				t.Errorf("the project %d is there twice, or none", number)
			}
			seen[number] = true
		}
	})
}

// TestLimitOfFiles bounds how many files there are, though nothing is in them.
func TestLimitOfFiles(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		path := filepath.Join(folder, "many")
		begun(t, path, 100*quota.FileBytes)
		ordinary(t)
		var err error
		made := 0
		for ; err == nil; made++ {
			err = os.WriteFile(filepath.Join(path, strconv.Itoa(made)), nil, 0o600)
		}
		if isFull := errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC); made < 100 || made > 130 || !isFull {
			t.Errorf("%d files, then %v", made, err)
		}
	})
}

// TestWithoutQuotas has nothing change on a disk that has no quotas, or those of others.
func TestWithoutQuotas(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err == nil {
		t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	} else if !errors.Is(err, unix.EPERM) {
		t.Fatal(err)
	}
	if err := quota.Missing(folder); err == nil {
		t.Skip("this disk has quotas")
	}
	if err := quota.Begin(folder); err == nil {
		t.Error("it has a project")
	}
	if err := quota.Limit(folder, 1<<10); err != nil {
		t.Error(err)
	}
	if used, ok := quota.Used(folder); ok {
		t.Errorf("it takes %+v", used)
	}
	must(t, os.WriteFile(filepath.Join(folder, "file"), make([]byte, 100<<10), 0o600))
}

// ordinary has the test go on without the capability by which root need not heed quotas of ext4, as a task has it. The
// thread ends with the test.
func ordinary(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	must(t, unix.Capget(&header, &sets[0]))
	sets[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
	must(t, unix.Capset(&header, &sets[0]))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
