package screen

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"starling/driver"
	"starling/driver/program"
)

// typedBytes is the size of a piece of input.
const typedBytes = 32 << 10

// Attach lets somebody see a session and type in it, until it or ctx has ended, and returns its exit code.
func Attach(ctx context.Context, dir string, s driver.Session) (exitCode int, err error) {
	conn, err := dial(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = errors.New("there is no such session: it has ended, or nobody attached to it for long")
		}
		return driver.NoExitCode, err
	}
	defer hangUp(conn)
	defer context.AfterFunc(ctx, func() { hangUp(conn) })()
	p := &pen{to: gob.NewEncoder(conn)}
	if err := p.send(message{Size: s.Terminal.Size}); err != nil {
		return driver.NoExitCode, err
	}
	if s.Input != nil {
		go p.copy(s.Input)
	}
	if s.Terminal.Resized != nil {
		go func() {
			for size := range s.Terminal.Resized {
				_ = p.send(message{Size: size}) // the session may have ended
			}
		}()
	}
	return look(ctx, conn, s.Output)
}

// hangUp ends a connection at once. To close it is not enough: a process that this one is starting has the socket, too,
// until it has become another program, and what is sent meanwhile would count as told.
func hangUp(conn *net.UnixConn) {
	_ = conn.CloseRead()
	_ = conn.CloseWrite()
	conn.Close()
}

// look shows what comes of a session.
func look(ctx context.Context, conn net.Conn, output io.Writer) (exitCode int, err error) {
	for shown := gob.NewDecoder(conn); ; {
		var m message
		err := shown.Decode(&m)
		switch {
		case ctx.Err() != nil:
			return driver.NoExitCode, fmt.Errorf("%w: %w", driver.ErrDetached, context.Cause(ctx))
		case err != nil:
			return driver.NoExitCode, fmt.Errorf("what keeps the session has ended: %w", err)
		case m.Taken:
			return driver.NoExitCode, fmt.Errorf("%w: somebody else has attached to it", driver.ErrDetached)
		case m.Ended && m.NotThere:
			return driver.NoExitCode, program.Missing(m.Error)
		case m.Ended && m.Error != "":
			return driver.NoExitCode, errors.New(m.Error)
		case m.Ended:
			return m.Code, nil
		case len(m.Data) == 0:
			continue
		}
		if _, err := output.Write(m.Data); err != nil {
			return driver.NoExitCode, fmt.Errorf("%w: %w", driver.ErrDetached, err)
		}
	}
}

// pen sends what is typed, one message at a time.
type pen struct {
	mu sync.Mutex
	to *gob.Encoder
}

func (p *pen) send(m message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.to.Encode(m)
}

// endOfInput is what a terminal takes for the end of its input.
const endOfInput = 4

func (p *pen) copy(input io.Reader) {
	data := make([]byte, typedBytes)
	for {
		n, err := input.Read(data)
		if errors.Is(err, io.EOF) {
			data = append(data[:n], endOfInput)
			n++
		}
		if n > 0 && p.send(message{Data: data[:n]}) != nil || err != nil {
			return
		}
	}
}
