package clock

import (
	"slices"
	"sync"
	"time"
)

// apartMax is how far the clock of a machine may be ahead of the others', and how far it may be set ahead at once.
const apartMax = 10 * time.Second

// Wall is the clock of a machine as far as the clocks of others agree. What it is ahead of them does not count: what
// ends too early is lost, what ends late is not. A clock that is set ahead counts again when others agree, or when
// there are none. It is safe for concurrent use.
type Wall struct {
	mutex sync.Mutex
	// read returns the machine's time, and for how long something has run by a clock that nobody sets.
	read func() (wall time.Time, runs time.Duration)
	// wall and runs are what was read last, ahead is what does not count of it.
	wall        time.Time
	runs, ahead time.Duration
}

// NewWall returns the clock of this machine.
func NewWall() *Wall {
	began := time.Now()
	return newWall(func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(began)
	})
}

func newWall(read func() (time.Time, time.Duration)) *Wall {
	w := &Wall{read: read}
	w.wall, w.runs = read()
	return w
}

// Now returns the time that counts.
func (w *Wall) Now() time.Time {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.look()
	return w.wall.Add(-w.ahead)
}

// look reads the clock. What it was set ahead by does not count yet; when it is set back, that is taken off first.
func (w *Wall) look() {
	wall, runs := w.read()
	if set := wall.Sub(w.wall) - (runs - w.runs); set > apartMax || set < -apartMax {
		w.ahead = max(w.ahead+set, 0)
	}
	w.wall, w.runs = wall, runs
}

// Compare takes note of by how much the clocks of other machines are ahead of this one, none if there are no others: by
// as much as this one is ahead of what most have, it does not count from now on. Of two that differ the one behind is
// believed.
func (w *Wall) Compare(others []time.Duration) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.look()
	all := append(slices.Clone(others), 0)
	slices.Sort(all)
	if w.ahead = -all[(len(all)-1)/2]; w.ahead <= apartMax {
		w.ahead = 0
	}
}

// Ahead returns by how much the clock is ahead of what counts.
func (w *Wall) Ahead() time.Duration {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.look()
	return w.ahead
}
