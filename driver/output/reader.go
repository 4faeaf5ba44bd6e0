package output

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// lookAgain is how long a follower trusts that it would have been told of growth. It covers file systems that tell
// nothing.
const lookAgain = time.Second

// Options choose what a Reader reads.
type Options struct {
	// Stream is the stream's name.
	Stream string
	// TailBytes is where to begin, counted back from the present end; negative means at the oldest byte kept.
	TailBytes int64
	// Ended is closed when no more will be written. Nil means not to follow: the log ends where it ended at Open.
	Ended <-chan struct{}
	// Growth tells a follower when to look again; nil when not following.
	Growth *Growth
}

// Reader reads a stream. Close may be called while another goroutine reads.
type Reader struct {
	options Options
	ctx     context.Context
	cancel  context.CancelCauseFunc
	grown   *Subscription

	mu     sync.Mutex
	folder *os.Root
	file   *os.File
	start  int64 // where the open segment begins
	at     int64 // the next byte to read
	end    int64 // where to stop when not following
}

// Open reads a stream in the folder, which may be moved or deleted meanwhile.
func Open(ctx context.Context, folder string, o Options) (*Reader, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	r := &Reader{options: o, folder: root}
	if err := r.seek(); err != nil {
		root.Close()
		return nil, err
	}
	if o.Ended != nil {
		r.grown = o.Growth.Subscribe(folder)
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r, nil
}

// seek finds where to begin and where the stream ends now.
func (r *Reader) seek() error {
	starts, err := segments(r.folder.FS(), r.options.Stream)
	if err != nil || len(starts) == 0 {
		return err
	}
	last := starts[len(starts)-1]
	info, err := r.folder.Stat(segmentName(r.options.Stream, last))
	if errors.Is(err, os.ErrNotExist) { // deleted just now, because later ones exist
		return r.seek()
	}
	if err != nil {
		return err
	}
	r.at, r.end = starts[0], last+info.Size()
	if tail := r.options.TailBytes; tail >= 0 {
		r.at = max(r.at, r.end-tail)
	}
	return nil
}

// Read returns what is there; a follower waits for more.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		ended := r.ended() // asked before looking, for what is written before the end must be seen
		n, err := r.available(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		if ended {
			return 0, io.EOF
		}
		if err := r.wait(); err != nil {
			return 0, err
		}
	}
}

// ended tells whether what is there now is all that will be read.
func (r *Reader) ended() bool {
	if r.options.Ended == nil {
		return true
	}
	select {
	case <-r.options.Ended:
		return true
	default:
		return false
	}
}

// wait returns when there may be more to read.
func (r *Reader) wait() error {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	case <-r.grown.Closed():
		return os.ErrClosed
	case <-r.options.Ended:
	case <-r.grown.Grown():
	case <-timer.C:
	}
	return nil
}

// available reads what is there, going on to the next segment at the end of a complete one.
func (r *Reader) available(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if r.options.Ended == nil {
		p = p[:min(int64(len(p)), max(0, r.end-r.at))]
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if n, err := r.readOpen(p); n > 0 || err != nil {
			return n, err
		}
		next, err := r.next()
		if err != nil || next < 0 {
			return 0, err
		}
		// The open segment is complete, because a later one exists; but it may have grown before that did.
		if n, err := r.readOpen(p); n > 0 || err != nil {
			return n, err
		}
		if err := r.open(next); err != nil {
			return 0, err
		}
	}
}

// readOpen reads from the open segment; nothing at its end, or if none is open.
func (r *Reader) readOpen(p []byte) (int, error) {
	if r.file == nil {
		return 0, nil
	}
	n, err := r.file.ReadAt(p, r.at-r.start)
	r.at += int64(n)
	if n > 0 || errors.Is(err, io.EOF) {
		return n, nil
	}
	return 0, err
}

// next is the segment to go on with: the first after the open one, or else the one that holds the next byte, or else
// the first after that; -1 if there is none.
func (r *Reader) next() (int64, error) {
	starts, err := segments(r.folder.FS(), r.options.Stream)
	next := int64(-1)
	for _, start := range starts {
		switch {
		case r.file != nil && start <= r.start:
		case next < 0, start <= r.at:
			next = start
		}
	}
	return next, err
}

// open goes on with a segment; one that was deleted meanwhile leaves none open.
func (r *Reader) open(start int64) error {
	r.closeOpen()
	file, err := r.folder.Open(segmentName(r.options.Stream, start))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r.file, r.start, r.at = file, start, max(r.at, start)
	return nil
}

// Close ends the reading, also one that waits.
func (r *Reader) Close() error {
	r.cancel(os.ErrClosed)
	if r.grown != nil {
		r.grown.Cancel()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeOpen()
	return r.folder.Close()
}

func (r *Reader) closeOpen() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}
