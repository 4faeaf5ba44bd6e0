package disk

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"starling/driver/quota"
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
	r := round{Watcher: w}
	for w.rest(ctx, false); ctx.Err() == nil; w.rest(ctx, r.room.Full()) {
		before := r.room
		r = round{Watcher: w, pace: newPace(ctx, w.Folder)}
		r.room, _ = RoomOf(w.Folder) // a disk that tells nothing is not full
		for _, t := range w.Tasks() {
			if t.Limit > 0 || r.room.Full() {
				r.look(&t)
			}
			if t.VolumesLimit > 0 {
				r.lookAtVolumes(&t)
			}
		}
		if ctx.Err() == nil {
			r.endFiller(&before)
		}
	}
}

// round is one look at all tasks.
type round struct {
	*Watcher
	*pace
	room Room
	// large and many are the tasks that fill the disk most, with bytes and with files.
	large, many filler
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

// filler is a task that fills the disk: over is what it takes beyond what it asked for.
type filler struct {
	id          string
	over        int64
	here, asked int64
}

// fillerPart of the reserve is the least that a task must have taken beyond what it asked for to be ended for a full
// disk: ending smaller ones would not help. As much must become free from one look to the next if what was ended is
// still being deleted.
const fillerPart = 16

// worse keeps the worse of two fillers.
func (s Stock) worse(f *filler, other filler) {
	if other.over > max(f.over, s.reserve/fillerPart) {
		*f = other
	}
}

// grows tells whether room is being made.
func (s Stock) grows(before Stock) bool {
	return before.Full() && s.Free-before.Free > s.reserve/fillerPart
}

// endFiller ends the task that fills the disk most, unless room is being made since the look before. For inodes no task
// asks, so that with the most files goes.
func (r *round) endFiller(before *Room) {
	large, many := r.large, r.many
	switch {
	case r.room.Bytes.Full() && large.over > 0 && !r.room.Bytes.grows(before.Bytes):
		r.End(large.id, fmt.Sprintf("%s; it had taken %s, the most beyond what it asked for (%s)", r.room.ofBytes(),
			amount(large.here), amount(large.asked)))
	case r.room.Inodes.Full() && many.over > 0 && !r.room.Inodes.grows(before.Inodes):
		r.End(many.id, fmt.Sprintf("%s; it had %d files, the most of all", r.room.ofInodes(), many.here))
	}
}

// look measures a task, ends it if it has taken more than it may, and notes it if it fills the disk most.
func (r *round) look(t *Task) {
	most := int64(math.MaxInt64)
	if t.Limit > 0 {
		most = t.Limit
	}
	var all, here Taken
	for _, folder := range []string{t.Folder, t.Layer} {
		if folder == "" {
			continue
		}
		some, err := r.taken(folder, most-all.Bytes)
		switch {
		case r.ctx.Err() != nil:
			return
		case err != nil && t.Limit > 0:
			r.End(t.ID, err.Error())
			return
		}
		all.Add(some)
		if all.Bytes > most {
			r.End(t.ID, fmt.Sprintf("it had taken %s, and its disk_limit is %s", words(all), amount(t.Limit)))
			return
		}
		var info unix.Stat_t
		if unix.Stat(folder, &info) == nil && uint64(info.Dev) == r.room.device {
			here.Add(some)
		}
	}
	r.room.Bytes.worse(&r.large, filler{t.ID, here.Bytes - t.Asked, here.Bytes, t.Asked})
	r.room.Inodes.worse(&r.many, filler{t.ID, here.Files, here.Files, 0})
}

// taken asks the file system how much a folder takes that has a limit there, and measures another.
func (r *round) taken(folder string, most int64) (Taken, error) {
	if counted, ok := quota.Used(folder); ok {
		return counted, nil
	}
	return measure(r.pace, folder, most)
}

// lookAtVolumes ends a task whose volumes take more than they may. The file system counts those of a set together.
func (r *round) lookAtVolumes(t *Task) {
	var all Taken
	counted := map[string]bool{}
	for _, folder := range t.Volumes {
		set := filepath.Dir(folder)
		if _, ok := quota.Used(set); ok {
			folder = set
		}
		if counted[folder] {
			continue
		}
		counted[folder] = true
		some, err := r.taken(folder, t.VolumesLimit-all.Bytes)
		switch {
		case r.ctx.Err() != nil:
			return
		case err != nil:
			r.End(t.ID, err.Error())
			return
		}
		all.Add(some)
		if all.Bytes > t.VolumesLimit {
			r.End(t.ID, fmt.Sprintf("its volumes had taken %s, and their volumes_limit is %s", words(all), amount(t.VolumesLimit)))
			return
		}
	}
}

// words say what was found of a task that has taken more than it may: there may be more.
func words(t Taken) string {
	files := "1 file"
	if t.Files != 1 {
		files = fmt.Sprintf("%d files of 4 KiB or more each", t.Files)
	}
	return fmt.Sprintf("at least %s (%s)", amount(t.Bytes), files)
}
