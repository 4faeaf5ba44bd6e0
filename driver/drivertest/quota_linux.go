package drivertest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// QuotaDisks is the variable that names folders on disks with project quotas, which a test may fill. ".ci/virtual"
// makes such.
const QuotaDisks = "STARLING_QUOTAS"

// OnQuotas runs a test on each disk with project quotas that there is, in a folder that is deleted afterwards.
func OnQuotas(t *testing.T, test func(t *testing.T, folder string)) {
	t.Helper()
	disks := filepath.SplitList(os.Getenv(QuotaDisks))
	if len(disks) == 0 {
		t.Skipf("%s names no disk with project quotas; .ci/virtual makes some", QuotaDisks)
	}
	for _, disk := range disks {
		t.Run(filepath.Base(disk), func(t *testing.T) {
			folder, err := os.MkdirTemp(disk, "test-")
			if err == nil {
				err = os.Chmod(folder, 0o711)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.RemoveAll(folder); err != nil {
					t.Error(err)
				}
			})
			test(t, folder)
		})
	}
}

// Project is what the file system has of a project.
type Project struct{ Bytes, Files, BytesMax, FilesMax uint64 }

// ProjectOf returns the number of the project that a folder has, 0 for none.
func ProjectOf(t *testing.T, folder string) uint32 {
	t.Helper()
	file, err := unix.Open(folder, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(file)
	var attributes [7]uint32
	const get = 0x801c581f // FS_IOC_FSGETXATTR
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(file), get, uintptr(unsafe.Pointer(&attributes))); errno != 0 {
		t.Fatal(errno)
	}
	return attributes[3]
}

// AwaitFree returns when nothing is left of a project: what is deleted may go in the background.
func AwaitFree(t *testing.T, folder string, project uint32) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for Account(t, folder, project) != (Project{}) {
		select {
		case <-look.C:
		case <-t.Context().Done():
			return
		}
	}
}

// Account returns what the disk of a folder has of a project.
func Account(t *testing.T, folder string, project uint32) Project {
	t.Helper()
	file, err := unix.Open(folder, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(file)
	var a [9]uint64
	const get = 0x80000702 // Q_GETQUOTA of projects
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(file), get, uintptr(project),
		uintptr(unsafe.Pointer(&a)), 0, 0)
	if errno != 0 && errno != unix.ENOENT {
		t.Fatal(errno)
	}
	return Project{Bytes: a[2], Files: a[5], BytesMax: a[0] << 10, FilesMax: a[3]}
}
