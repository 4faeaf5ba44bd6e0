package screen

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/program"
)

// keptBytes bounds what is kept of what was shown, so that who attaches sees where the session is.
const keptBytes = 64 << 10

// rowsDefault is how many lines a screen has that does not tell.
const rowsDefault = 24

// lookEvery is how often is looked whether a session is still of use.
const lookEvery = time.Second

// Keeper is the process of a session.
type Keeper struct {
	// Dir is the session's folder, Task that of the task that it is beside: when that is gone nobody will come.
	Dir, Task string
	// Ended tells whether the task has ended: the session ends with it at the latest.
	Ended func() bool
	// Unattended is how long the session goes on when nobody sees it.
	Unattended time.Duration

	// typed is what is to be written to input, where a program may read none of it.
	typed   chan []byte
	input   *io.PipeWriter
	resized chan driver.Size
	first   chan driver.Size
	over    chan struct{}

	mu     sync.Mutex
	began  bool
	viewer *viewer
	left   time.Time // when the last one went, or since when one is awaited
	kept   []byte
	result *message
	closed bool // over is
}

// viewer is somebody who sees the session.
type viewer struct {
	conn net.Conn
	// mu is held while something is sent.
	mu sync.Mutex
	to *gob.Encoder
}

// Serve runs the program of a session as soon as somebody sees it, and returns when it has ended and that was told, or
// nobody is to be told. It must be called once.
func (k *Keeper) Serve(run func(context.Context, driver.Session) (int, error)) error {
	defer os.RemoveAll(k.Dir)
	listener, err := net.FileListener(os.NewFile(socketFile, k.Dir))
	if err != nil {
		return err
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	typed, input := io.Pipe()
	defer typed.Close()
	k.input, k.typed = input, make(chan []byte)
	k.resized, k.first = make(chan driver.Size), make(chan driver.Size, 1)
	k.over, k.left = make(chan struct{}), time.Now()
	go k.accept(listener)
	go k.watch(cancel)
	go k.writeInput()
	select {
	case size := <-k.first:
		terminal := &driver.Terminal{Size: size, Resized: k.resized}
		code, err := run(ctx, driver.Session{Input: typed, Output: k, Errors: k, Terminal: terminal})
		typed.Close()
		k.end(code, err)
	case <-k.over:
	}
	<-k.over
	return nil
}

// accept lets those who come see the session.
func (k *Keeper) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go k.serve(conn)
		}
	}
}

// serve is for one who comes.
func (k *Keeper) serve(conn net.Conn) {
	defer conn.Close()
	typed := gob.NewDecoder(conn)
	var hello message
	_ = conn.SetReadDeadline(time.Now().Add(answerMax))
	if typed.Decode(&hello) != nil || conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	if hello.Ask {
		k.mu.Lock()
		answer := message{Attached: k.viewer != nil, Ended: k.result != nil}
		k.mu.Unlock()
		_ = gob.NewEncoder(conn).Encode(answer)
		return
	}
	v := &viewer{conn: conn, to: gob.NewEncoder(conn)}
	defer k.leave(v)
	if !k.show(v, hello.Size) {
		return
	}
	for {
		var m message
		if typed.Decode(&m) != nil {
			return
		}
		if m.Size != (driver.Size{}) {
			k.resize(m.Size)
		}
		if len(m.Data) > 0 && !k.take(m.Data, conn) {
			return
		}
	}
}

// take has what was typed be written as soon as the program has read what came before, and tells whether whoever typed
// it is there still.
func (k *Keeper) take(data []byte, from net.Conn) bool {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case k.typed <- data:
			return true
		case <-k.over:
			return false
		case <-look.C:
			if hungUp(from) {
				return false
			}
		}
	}
}

// hungUp tells whether the other end of a connection, or this one, is closed, although there may be more to read of it.
func hungUp(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	list := []unix.PollFd{{}}
	err = raw.Control(func(file uintptr) {
		list[0].Fd = int32(file)
		_, _ = unix.Poll(list, 0) // it is looked again after a signal
	})
	return err != nil || list[0].Revents&unix.POLLHUP != 0
}

// writeInput writes what is typed for as long as the session goes on.
func (k *Keeper) writeInput() {
	for {
		select {
		case data := <-k.typed:
			_, _ = k.input.Write(data) // a program that has ended reads no more
		case <-k.over:
			return
		}
	}
}

// show makes somebody the one who sees the session, and tells whether it goes on.
func (k *Keeper) show(v *viewer, size driver.Size) (goesOn bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k.mu.Lock()
	before, last, result, isFirst := k.viewer, screenful(k.kept, size), k.result, !k.began
	k.viewer, k.began = v, true
	k.mu.Unlock()
	if before != nil {
		go before.dismiss()
	}
	err := v.to.Encode(message{Data: last})
	switch {
	case isFirst:
		k.first <- size
	case result == nil: // a program that draws its whole screen does so again when the size changes
		k.resize(driver.Size{Columns: size.Columns, Rows: size.Rows + 1})
		k.resize(size)
	}
	if result == nil {
		return err == nil
	}
	if err == nil && v.to.Encode(*result) == nil {
		k.close()
	}
	return false
}

// dismiss tells that another takes this one's place, behind what is being sent, if that comes to an end in time.
func (v *viewer) dismiss() {
	_ = v.conn.SetWriteDeadline(time.Now().Add(answerMax))
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.to.Encode(message{Taken: true})
	v.conn.Close()
}

func (k *Keeper) leave(v *viewer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.viewer == v {
		k.viewer, k.left = nil, time.Now()
	}
}

func (k *Keeper) resize(size driver.Size) {
	select {
	case k.resized <- size:
	case <-k.over:
	}
}

// Write shows what the program writes, and keeps the end of it.
func (k *Keeper) Write(data []byte) (int, error) {
	k.mu.Lock()
	k.kept = append(k.kept, data...)
	if more := len(k.kept) - keptBytes; more > keptBytes { // now and then, not for every byte
		k.kept = append([]byte(nil), k.kept[more:]...)
	}
	v := k.viewer
	k.mu.Unlock()
	if v != nil {
		v.mu.Lock()
		err := v.to.Encode(message{Data: data})
		v.mu.Unlock()
		if err != nil {
			k.leave(v)
		}
	}
	return len(data), nil
}

// screenful is the end of what was shown: as many lines as the screen has, or as are kept.
func screenful(kept []byte, size driver.Size) []byte {
	kept = kept[max(0, len(kept)-keptBytes):]
	lines, rows := 0, cmp.Or(int(size.Rows), rowsDefault)
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i] == '\n' {
			if lines++; lines >= rows {
				return append([]byte(nil), kept[i+1:]...)
			}
		}
	}
	return append([]byte(nil), kept...)
}

// end tells how the program ended, now or to the next who comes.
func (k *Keeper) end(code int, err error) {
	result := &message{Ended: true, Code: code}
	if err != nil {
		var missing program.Missing
		result.Error, result.NotThere = err.Error(), errors.As(err, &missing)
	}
	k.mu.Lock()
	k.result = result
	v := k.viewer
	k.mu.Unlock()
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.to.Encode(*result) == nil {
		k.close()
	}
}

func (k *Keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.closed = true
		close(k.over)
	}
}

// watch ends the session when nobody has seen it for long, or its task is gone, and then gives it up unless somebody is
// there who can be told how it ended.
func (k *Keeper) watch(cancel func()) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-k.over:
			return
		}
		k.mu.Lock()
		runs, isSeen, since := k.began && k.result == nil, k.viewer != nil, k.left
		k.mu.Unlock()
		_, noFolder := os.Stat(k.Dir)
		_, noTask := os.Stat(k.Task)
		isOver := noFolder != nil || noTask != nil || !isSeen && time.Since(since) >= k.Unattended
		if isOver || k.Ended() {
			cancel()
		}
		if isOver && !runs && !isSeen {
			k.close()
		}
	}
}
