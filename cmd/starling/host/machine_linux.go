package host

import "golang.org/x/sys/unix"

// memoryBytes is how much memory the machine has.
func memoryBytes() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, err
	}
	return int64(info.Totalram) * int64(info.Unit), nil
}

// ownProgram is how this program starts itself again. The link leads to what runs now, also when another version has
// taken its place on the disk.
func ownProgram() (string, error) { return "/proc/self/exe", nil }
