// Package disk watches how much tasks write, ends what writes more than it may and what fills the disk, and deletes
// what tasks have left.
//
// What counts is what files in a task's own folders take on the disk, a file with several names once. Files that were
// deleted while a program has them open are not seen.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A walk reads so many names of a folder at a time, and pauses after them for pauseShare times as long as they took: so
// it takes at most a tenth of one processor, however many files there are.
const (
	namesAtOnce = 1000
	pauseShare  = 9
)

// errDeep is what a folder is whose files have names that are too long for the system: it cannot be measured.
var errDeep = errors.New("its folders lie too deep to be measured")

// walk adds up what lies below a folder.
type walk struct {
	ctx   context.Context
	bytes int64
	// linked are the files with several names that have been seen.
	linked map[[2]uint64]bool
}

// Bytes returns how much a folder takes, with all that is in it. One that is gone takes nothing, and so does what may
// not be read.
func Bytes(ctx context.Context, folder string) (int64, error) {
	w := &walk{ctx: ctx, linked: map[[2]uint64]bool{}}
	err := w.folders(folder)
	return w.bytes, err
}

// folders walks a folder and those below it, one after the other.
func (w *walk) folders(first string) error {
	for left := []string{first}; len(left) > 0; {
		path := left[len(left)-1]
		below, err := w.folder(path)
		switch {
		case errors.Is(err, unix.ENAMETOOLONG):
			return errDeep
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		}
		left = append(left[:len(left)-1], below...)
	}
	return nil
}

// folder adds up the files of a folder, and returns the folders in it.
func (w *walk) folder(path string) (below []string, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	open := os.NewFile(uintptr(fd), path)
	defer open.Close()
	for err == nil {
		begun := time.Now()
		var names []string
		names, err = open.Readdirnames(namesAtOnce)
		for _, name := range names {
			var info unix.Stat_t
			if unix.Fstatat(fd, name, &info, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // deleted meanwhile
			}
			w.add(&info)
			if info.Mode&unix.S_IFMT == unix.S_IFDIR {
				below = append(below, filepath.Join(path, name))
			}
		}
		if len(names) == namesAtOnce {
			pause(w.ctx, pauseShare*time.Since(begun))
		}
		err = errors.Join(err, w.ctx.Err())
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return below, err
}

// blockBytes is the unit in which the system tells what a file takes.
const blockBytes = 512

func (w *walk) add(info *unix.Stat_t) {
	if info.Nlink > 1 && info.Mode&unix.S_IFMT != unix.S_IFDIR {
		file := [2]uint64{uint64(info.Dev), uint64(info.Ino)}
		if w.linked[file] {
			return
		}
		w.linked[file] = true
	}
	w.bytes += int64(info.Blocks) * blockBytes
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Room is how full a file system is.
type Room struct {
	device uint64
	// free is what is free of total bytes, reserve what must be.
	free, total, reserve int64
}

// A disk is full when less is free than reserveMost, or on a small one a reservePart of all. The journal, the records
// of tasks and the system need some room.
const (
	reserveMost = 1 << 30
	reservePart = 20
	// tightReserves is how often the reserve must be free, so that there is time to make room.
	tightReserves = 4
)

// RoomOf returns how full the file system of a folder is.
func RoomOf(folder string) (Room, error) {
	var info unix.Stat_t
	var all unix.Statfs_t
	if err := errors.Join(unix.Stat(folder, &info), unix.Statfs(folder, &all)); err != nil {
		return Room{}, fmt.Errorf("find out how full the disk of %s is: %w", folder, err)
	}
	block := int64(all.Bsize)
	total := int64(all.Blocks) * block
	return Room{device: uint64(info.Dev), free: int64(all.Bavail) * block, total: total,
		reserve: min(reserveMost, total/reservePart)}, nil
}

// Full tells whether the file system has too little room for tasks.
func (r Room) Full() bool { return r.free < r.reserve }

// Tight tells whether it has so little room that what can be had again should go.
func (r Room) Tight() bool { return r.free < tightReserves*r.reserve }

// String says how full it is.
func (r Room) String() string {
	return fmt.Sprintf("of %s of the disk %s are free, and %s must be", amount(r.total), amount(r.free), amount(r.reserve))
}

// amount writes bytes as people read them, in MiB.
func amount(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
