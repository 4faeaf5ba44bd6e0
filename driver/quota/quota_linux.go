package quota

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Projects have numbers that people hardly choose, and which no program takes for negative ones.
const (
	numberFirst = 1 << 30
	numbers     = 1 << 28
)

// The kernel's names, of linux/fs.h, linux/quota.h and linux/dqblk_xfs.h. XFS answers the calls of the other file
// systems, too, and those answer its question for the state.
const (
	getAttributes = 0x801c581f // FS_IOC_FSGETXATTR
	setAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
	inherit       = 0x200      // FS_XFLAG_PROJINHERIT

	ofProjects    = 2
	getQuota      = 0x800007<<8 | ofProjects // Q_GETQUOTA
	setQuota      = 0x800008<<8 | ofProjects // Q_SETQUOTA
	getState      = 'X'<<16 | 0x0500 | ofProjects
	validLimits   = 1 | 4   // QIF_BLIMITS, QIF_ILIMITS
	limitBytes    = 1 << 10 // in which limits are counted
	stateEnforced = 1 << 5  // FS_QUOTA_PDQ_ENFD
)

// attributes are the kernel's struct fsxattr.
type attributes struct {
	flags, extent, extents, project, copied uint32
	_                                       [8]byte
}

// account is the kernel's struct if_dqblk.
type account struct {
	hardLimit, softLimit, bytes uint64
	filesHard, filesSoft, files uint64
	bytesTime, filesTime        uint64
	valid                       uint32
	_                           uint32
}

// state begins as the kernel's struct fs_quota_stat.
type state struct {
	_     int8
	flags uint16
	_     [124]byte
}

// folder is an open one.
type folder struct {
	file int
	attributes
}

func open(path string) (*folder, error) {
	file, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := &folder{file: file}
	_ = f.control(getAttributes) // where there are none it has no project
	return f, nil
}

// isBegun tells whether it has a project by Begin.
func (f *folder) isBegun() bool {
	return numberFirst <= f.project && f.project < numberFirst+numbers && f.flags&inherit != 0
}

func (f *folder) close() { unix.Close(f.file) }

// control reads or sets its attributes.
func (f *folder) control(what uintptr) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(f.file), what, uintptr(unsafe.Pointer(&f.attributes)))
	return failed(errno)
}

// quota asks the file system of the folder for what it has of a project, or sets it.
func (f *folder) quota(what uintptr, number uint32, with unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(f.file), what, uintptr(number), uintptr(with), 0, 0)
	return failed(errno)
}

func failed(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// account is what a project has. XFS has none of one that was never used.
func (f *folder) account(number uint32) (a account, err error) {
	if err = f.quota(getQuota, number, unsafe.Pointer(&a)); err == unix.ENOENT {
		err = nil
	}
	return a, err
}

func (a *account) isFree() bool { return *a == account{valid: a.valid} }

// Missing tells why the disk of a folder, which may be still to be made, cannot bound what folders take; nil if it can.
func Missing(path string) error {
	f, err := open(path)
	if errors.Is(err, os.ErrNotExist) {
		return Missing(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	defer f.close()
	var now state
	if err := f.quota(getState, 0, unsafe.Pointer(&now)); err != nil || now.flags&stateEnforced == 0 {
		return errors.New("the disk is not mounted with project quotas (prjquota)")
	}
	if _, err := f.account(numberFirst); err != nil {
		return fmt.Errorf("the quotas of the disk cannot be read: %w", err)
	}
	return nil
}

// tries is how often a number is drawn.
const tries = 100

// Begin gives a folder that was just made, and is empty, a project of its own, without a limit. A folder that has one
// already, such as that of the folder in which it was made, keeps it.
func Begin(path string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.close()
	before := f.attributes
	if before.project != 0 {
		return fmt.Errorf("%s has the project %d", path, before.project)
	}
	for range tries {
		number := numberFirst + rand.Uint32N(numbers)
		if a, err := f.account(number); err != nil || !a.isFree() {
			if err != nil {
				return fmt.Errorf("read the quota of project %d: %w", number, err)
			}
			continue
		}
		f.flags, f.project = before.flags|inherit, number
		if err := f.control(setAttributes); err != nil {
			return fmt.Errorf("give %s a project: %w", path, err)
		}
		if a, err := f.account(number); err == nil && a.files == 1 {
			return nil // nobody else has drawn it at the same time
		}
		f.attributes = before
		if err := f.control(setAttributes); err != nil {
			return fmt.Errorf("take %s out of a project: %w", path, err)
		}
	}
	return fmt.Errorf("no number of a project is free for %s", path)
}

// Limit bounds what may lie in a folder that has a project by Begin, and does nothing to another; 0 lifts the limit.
func Limit(path string, bytes int64) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.close()
	if !f.isBegun() {
		return nil
	}
	to := account{valid: validLimits}
	if bytes > 0 {
		to.filesHard = uint64(bytes/FileBytes + spareFiles)
		to.hardLimit = (uint64(bytes) + spareFiles*FileBytes) / limitBytes
	}
	if err := f.quota(setQuota, f.project, unsafe.Pointer(&to)); err != nil {
		return fmt.Errorf("set the limit of project %d, %s: %w", f.project, path, err)
	}
	return nil
}

// Used returns what a folder takes that has a limit by Limit, and what was in it before and lies elsewhere now.
func Used(path string) (Taken, bool) {
	f, err := open(path)
	if err != nil {
		return Taken{}, false
	}
	defer f.close()
	if !f.isBegun() {
		return Taken{}, false
	}
	a, err := f.account(f.project)
	if err != nil || a.hardLimit == 0 {
		return Taken{}, false
	}
	bytes := max(int64(a.bytes), int64(a.files)*FileBytes) - spareFiles*FileBytes
	return Taken{Bytes: max(0, bytes), Files: int64(a.files)}, true
}
