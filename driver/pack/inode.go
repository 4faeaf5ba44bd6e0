package pack

import (
	"io/fs"
	"syscall"
)

// inodeOf returns which file of which device it is, and how many names it has.
func inodeOf(info fs.FileInfo) (device, inode, names uint64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 1
	}
	return uint64(stat.Dev), stat.Ino, uint64(stat.Nlink)
}
