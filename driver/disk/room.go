package disk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Room is how full a file system is.
type Room struct {
	device        uint64
	Bytes, Inodes Stock
}

// Stock is what a file system has of bytes, or of inodes, of which each file takes one.
type Stock struct {
	// Total is 0 if there is no bound, as of inodes in many a file system.
	Free, Total int64
	// reserve is what must be free.
	reserve int64
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
	count := func(inodes uint64) int64 { return int64(min(inodes, math.MaxInt64)) }
	return Room{device: uint64(info.Dev),
		Bytes:  newStock(int64(all.Bavail)*block, int64(all.Blocks)*block, reserveMost),
		Inodes: newStock(count(all.Ffree), count(all.Files), reserveMost/fileBytes)}, nil
}

func newStock(free, total, most int64) Stock { return Stock{free, total, min(most, total/reservePart)} }

// left is what is free in reserves.
func (s Stock) left() float64 {
	if s.reserve == 0 {
		return math.Inf(1)
	}
	return float64(s.Free) / float64(s.reserve)
}

// Full tells whether too little is left for tasks.
func (s Stock) Full() bool { return s.left() < 1 }

// Tight tells whether so little is left that what can be had again should go.
func (s Stock) Tight() bool { return s.left() < tightReserves }

// Full tells whether the file system has too little room for tasks.
func (r Room) Full() bool { return r.Bytes.Full() || r.Inodes.Full() }

// Tight tells whether it has so little room that what can be had again should go.
func (r Room) Tight() bool { return r.Bytes.Tight() || r.Inodes.Tight() }

// String says how full it is, of bytes or of inodes, whichever is closer to its end.
func (r Room) String() string {
	if r.Inodes.left() < r.Bytes.left() {
		return r.ofInodes()
	}
	return r.ofBytes()
}

func (r Room) ofBytes() string {
	return fmt.Sprintf("of %s of the disk %s are free, and %s must be", amount(r.Bytes.Total), amount(r.Bytes.Free),
		amount(r.Bytes.reserve))
}

func (r Room) ofInodes() string {
	return fmt.Sprintf("of %d inodes of the disk, one for each file, %d are free, and %d must be", r.Inodes.Total,
		r.Inodes.Free, r.Inodes.reserve)
}

// amount writes bytes as people read them, in MiB.
func amount(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// roomWait is how long a start waits for room on a full disk: so long it can take until what fills it has ended and its
// folder is deleted.
const roomWait = 10 * time.Second

// AwaitRoom waits until the disk of a folder is not full. The error says how full it is.
func AwaitRoom(ctx context.Context, folder string) error {
	for deadline := time.Now().Add(roomWait); ; pause(ctx, lookEvery/4) {
		room, err := RoomOf(folder)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil || !room.Full():
			return nil // a disk that tells nothing is tried
		case time.Now().After(deadline):
			return fmt.Errorf("the disk is full: %s: delete what is not needed there, or give the machine a larger one", room)
		}
	}
}

// Spare is an error if the disk of a folder has no room to spare for what is copied there.
func Spare(folder string) error {
	room, err := RoomOf(folder)
	if err == nil && room.Tight() {
		err = fmt.Errorf("there is not enough room: %s", room)
	}
	return err
}

// ErrNoRoom is why something is not brought to a disk that would be full with it.
var ErrNoRoom = errors.New("there is not enough room")

// SpareFor is an ErrNoRoom if the disk of a folder would be full with so many bytes more.
func SpareFor(folder string, bytes int64) error {
	room, err := RoomOf(folder)
	with := room
	with.Bytes.Free -= bytes
	switch {
	case err != nil:
		return err
	case with.Bytes.Full():
		return fmt.Errorf("%w for %s: %s", ErrNoRoom, amount(bytes), room.ofBytes())
	case room.Inodes.Full():
		return fmt.Errorf("%w: %s", ErrNoRoom, room.ofInodes())
	}
	return nil
}
