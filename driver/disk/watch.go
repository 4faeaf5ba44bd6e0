package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Use says what a task may take of the disk.
type Use struct {
	// Limit is the most that it may take, 0 for no limit; Asked is what was counted for it when its machine was chosen.
	Limit, Asked int64
	// Layer is a folder with what its container has changed of its image, empty for none.
	Layer string
	// Volumes are folders that outlive it, VolumesLimit is the most that they may take together, 0 for no limit.
	Volumes      []string
	VolumesLimit int64
}

// Task is one that runs.
type Task struct {
	ID string
	Use
	// Folder is what it works in.
	Folder string
}

// Watcher looks after the tasks of one driver.
type Watcher struct {
	// Folder lies on the disk that must not fill.
	Folder string
	// Tasks returns those that run.
	Tasks func() []Task
	// End ends one and says why.
	End func(id, why string)
}

// lookEvery is the pause between two looks at the tasks.
const lookEvery = time.Second

// Watch looks after the tasks until ctx ends. It measures one at a time.
func (w *Watcher) Watch(ctx context.Context) {
	full := false
	for w.rest(ctx, full); ctx.Err() == nil; w.rest(ctx, full) {
		begun := time.Now()
		room, err := RoomOf(w.Folder)
		full = err == nil && room.Full()
		var worst filler
		for _, t := range w.Tasks() {
			if t.Limit > 0 || full {
				w.look(ctx, &t, &room, &worst)
			}
			if t.VolumesLimit > 0 {
				w.lookAtVolumes(ctx, &t)
			}
		}
		if full && worst.over > 0 && ctx.Err() == nil {
			w.End(worst.id, fmt.Sprintf("%s; it had taken %s, the most beyond what it asked for (%s)", room,
				amount(worst.bytes), amount(worst.asked)))
		}
		pause(ctx, pauseShare*time.Since(begun))
	}
}

// roomEvery is the pause between two looks at the room of the disk alone, which cost little.
const roomEvery = 100 * time.Millisecond

// rest lasts until the next look; if the disk was not full at the last, it comes at once when the disk becomes so.
func (w *Watcher) rest(ctx context.Context, full bool) {
	if full {
		pause(ctx, lookEvery)
		return
	}
	for end := time.Now().Add(lookEvery); ctx.Err() == nil && time.Now().Before(end); pause(ctx, roomEvery) {
		if room, err := RoomOf(w.Folder); err == nil && room.Full() {
			return
		}
	}
}

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
	if err == nil && room.free-bytes < room.reserve {
		err = fmt.Errorf("%w for %s: %s", ErrNoRoom, amount(bytes), room)
	}
	return err
}

// filler is the task that takes the most beyond what it asked for.
type filler struct {
	id                 string
	over, bytes, asked int64
}

// fillerPart of the reserve is the least that a task must have taken beyond what it asked for to be ended for a full
// disk: ending smaller ones would not help.
const fillerPart = 16

// look measures a task, ends it if it has taken more than it may, and notes it if it fills the disk most.
func (w *Watcher) look(ctx context.Context, t *Task, room *Room, worst *filler) {
	bytes, here := int64(0), int64(0)
	for _, folder := range []string{t.Folder, t.Layer} {
		if folder == "" {
			continue
		}
		some, err := Bytes(ctx, folder)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && t.Limit > 0:
			w.End(t.ID, err.Error())
			return
		}
		bytes += some
		var info unix.Stat_t
		if unix.Stat(folder, &info) == nil && uint64(info.Dev) == room.device {
			here += some
		}
	}
	if t.Limit > 0 && bytes > t.Limit {
		w.End(t.ID, fmt.Sprintf("it had taken %s, and its disk_limit is %s", amount(bytes), amount(t.Limit)))
		return
	}
	if over := here - t.Asked; over > max(worst.over, room.reserve/fillerPart) {
		*worst = filler{t.ID, over, here, t.Asked}
	}
}

// lookAtVolumes ends a task whose volumes take more than they may.
func (w *Watcher) lookAtVolumes(ctx context.Context, t *Task) {
	bytes := int64(0)
	for _, folder := range t.Volumes {
		some, err := Bytes(ctx, folder)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.End(t.ID, err.Error())
			return
		}
		bytes += some
	}
	if bytes > t.VolumesLimit {
		w.End(t.ID, fmt.Sprintf("its volumes had taken %s, and their volumes_limit is %s", amount(bytes), amount(t.VolumesLimit)))
	}
}
