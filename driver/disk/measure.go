// Package disk watches how much tasks write, ends what writes more than it may and what fills the disk, and deletes
// what tasks have left. What has a limit in the file system is asked for, and not measured.
//
// What counts is what files in a task's own folders take on the disk, a file with several names once, and each file,
// folder or link at least 4 KiB: it takes one of the inodes, which a file system may have too few of, too. Files that
// were deleted while a program has them open are not seen.
package disk

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"starling/driver/quota"
)

// blockBytes is the unit in which the system tells what a file takes, and fileBytes the least that one counts as.
const (
	blockBytes = 512
	fileBytes  = quota.FileBytes
)

// Taken is what lies in folders.
type Taken = quota.Taken

// errDeep is what a folder is whose files have names that are too long for the system: it cannot be measured.
var errDeep = errors.New("its folders lie too deep to be measured")

// Bytes returns how much a folder takes, with all that is in it. One that is gone takes nothing, and so does what may
// not be read.
func Bytes(ctx context.Context, folder string) (int64, error) {
	return BytesUpTo(ctx, folder, math.MaxInt64)
}

// BytesUpTo does what Bytes does, and looks no further as soon as it has found more than most.
func BytesUpTo(ctx context.Context, folder string, most int64) (int64, error) {
	taken, err := measure(newPace(ctx, folder), folder, most)
	return taken.Bytes, err
}

// walk adds up what lies below a folder, until that is more than most.
type walk struct {
	*pace
	taken Taken
	most  int64
	// linked are the files with several names that have been seen.
	linked map[[2]uint64]bool
}

// measure walks a folder and those below it, one after the other.
func measure(p *pace, first string, most int64) (Taken, error) {
	w := &walk{pace: p, most: most, linked: map[[2]uint64]bool{}}
	for left := []string{first}; len(left) > 0 && w.taken.Bytes <= most; w.rest() {
		path := left[len(left)-1]
		below, err := w.folder(path)
		switch {
		case errors.Is(err, unix.ENAMETOOLONG):
			return w.taken, errDeep
		case w.ctx.Err() != nil:
			return w.taken, w.ctx.Err()
		}
		left = append(left[:len(left)-1], below...)
	}
	return w.taken, nil
}

// namesAtOnce is how many names of a folder are read at a time.
const namesAtOnce = 1000

// folder adds up the files of a folder, and returns the folders in it.
func (w *walk) folder(path string) (below []string, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	open := os.NewFile(uintptr(fd), path)
	defer open.Close()
	for err == nil && w.taken.Bytes <= w.most {
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
		w.rest()
		err = errors.Join(err, w.ctx.Err())
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return below, err
}

func (w *walk) add(info *unix.Stat_t) {
	if info.Nlink > 1 && info.Mode&unix.S_IFMT != unix.S_IFDIR {
		file := [2]uint64{uint64(info.Dev), uint64(info.Ino)}
		if w.linked[file] {
			return
		}
		w.linked[file] = true
	}
	w.taken.Files++
	w.taken.Bytes += max(int64(info.Blocks)*blockBytes, fileBytes)
}

// pace has those that measure rest after each turn of work, pauseShare times as long as that took: so they take at most
// a tenth of one processor, however many files there are. While the disk is full they take half of one.
type pace struct {
	ctx    context.Context
	folder string // on the disk
	begun  time.Time
}

const (
	turn       = 10 * time.Millisecond
	pauseShare = 9
)

func newPace(ctx context.Context, folder string) *pace { return &pace{ctx, folder, time.Now()} }

// rest is called again and again during the work.
func (p *pace) rest() {
	worked := time.Since(p.begun)
	if worked < turn {
		return
	}
	long := pauseShare * worked
	if room, err := RoomOf(p.folder); err == nil && room.Full() {
		long = worked
	}
	pause(p.ctx, long)
	p.begun = time.Now()
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
