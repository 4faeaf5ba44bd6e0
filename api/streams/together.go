package streams

import (
	"net/http"
	"sync"
	"time"
)

const (
	// pause is the least time between two messages of a stream that are sent on their own. What comes sooner waits for
	// more, at most so long.
	pause = 5 * time.Millisecond
	// togetherBytes is how much is sent at once at most.
	togetherBytes = 32 << 10
)

// Together sends what a handler flushes in quick succession in few pieces: a list of ten thousand things as a stream of
// messages is otherwise as many writes to the network. A message that comes alone is sent at once.
func Together(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &together{ResponseWriter: w}
		defer t.end()
		next.ServeHTTP(t, r)
	})
}

// together is the way to who asked. The timer writes beside the handler, so all of it is locked.
type together struct {
	http.ResponseWriter

	mutex sync.Mutex
	held  []byte
	sent  time.Time
	timer *time.Timer
	// waits tells that the timer will send what is held.
	waits, ended bool
	failure      error
}

// Unwrap lets an http.ResponseController set deadlines.
func (t *together) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (t *together) WriteHeader(status int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. The error may be of an earlier piece.
func (t *together) Write(piece []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.held = append(t.held, piece...); len(t.held) >= togetherBytes {
		t.write()
	}
	return len(piece), t.failure
}

// Flush implements http.Flusher.
func (t *together) Flush() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	rest := pause - time.Since(t.sent)
	switch {
	case rest <= 0:
		t.flush()
	case t.waits:
	case t.timer == nil:
		t.waits, t.timer = true, time.AfterFunc(rest, t.late)
	default:
		t.waits = true
		t.timer.Reset(rest)
	}
}

// late sends what is held when its time has come.
func (t *together) late() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.waits && !t.ended {
		t.flush()
	}
}

func (t *together) flush() {
	t.write()
	t.waits, t.sent = false, time.Now()
	if err := http.NewResponseController(t.ResponseWriter).Flush(); err != nil && t.failure == nil {
		t.failure = err
	}
}

func (t *together) write() {
	if len(t.held) > 0 && t.failure == nil {
		_, t.failure = t.ResponseWriter.Write(t.held)
	}
	t.held = t.held[:0]
}

// end writes the rest; nothing is written any more when the handler has returned.
func (t *together) end() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.write()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
