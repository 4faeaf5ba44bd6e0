package disk

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// guardEvery is the pause between two looks at the room of a disk that is written to.
const guardEvery = 10 * time.Millisecond

// Guard does work that writes to the disk of a folder, and ends its context before the disk is full. The error is an
// ErrNoRoom then. It returns when the work does.
func Guard(ctx context.Context, folder string, work func(context.Context) error) error {
	before, err := RoomOf(folder)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for ; ctx.Err() == nil; pause(ctx, guardEvery) {
			if now, err := RoomOf(folder); err == nil && before.spentAt(now) {
				cancel(fmt.Errorf("%w: it had taken %s when it was stopped, and %s", ErrNoRoom,
					amount(before.Bytes.Free-now.Bytes.Free), now))
			}
		}
	}()
	err = work(ctx)
	cancel(nil)
	<-looked
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrNoRoom) {
		return cause
	}
	return err
}

// spentAt tells whether one piece of work has taken all that it may of what was free before.
func (r Room) spentAt(now Room) bool {
	return now.Bytes.Free < r.Bytes.leave() || now.Inodes.Free < r.Inodes.leave()
}

// leave is how much one piece of work leaves free of a stock: the reserve and as much again, since what writes fast has
// written more until it has stopped; but it may have half of what is free beyond the reserve.
func (s Stock) leave() int64 { return s.reserve + min(s.reserve, max(0, s.Free-s.reserve)/2) }

// Grown tells whether notably more is free than was before.
func (r Room) Grown(before Room) bool {
	return r.Bytes.Free-before.Bytes.Free > r.Bytes.reserve || r.Inodes.Free-before.Inodes.Free > r.Inodes.reserve
}
