package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
)

const (
	// shellProtocol is what both sides speak; the page names it, and beside it its secret behind pageProtocol: a script
	// cannot send headers with a WebSocket.
	shellProtocol, pageProtocol = "starling-shell", "starling-page."
	// shellsMax bounds the sessions at a time, shellReadMax a message of the page in bytes.
	shellsMax, shellReadMax = 16, 1 << 16
	// shellTimeout bounds how long the page may take to say what it wants, and to take a piece of output.
	shellTimeout = 30 * time.Second
)

// shells lets the page talk with programs beside instances, as "starling exec -it" does. The first message of the page
// says what is to run; later ones are input, in binary, or in text another size of the terminal. It is told the output
// in binary, and in text how the session ended. A page that goes away ends its program.
type shells struct {
	exec func(context.Context, *starlingv1.ExecRequest, client.Session) (exitCode int, err error)
	// closing ends with the page's server.
	closing context.Context
	places  chan struct{}
}

func newShells(closing context.Context,
	exec func(context.Context, *starlingv1.ExecRequest, client.Session) (int, error)) *shells {
	return &shells{exec: exec, closing: closing, places: make(chan struct{}, shellsMax)}
}

// pageOf returns the secret of the page in a request for a WebSocket.
func pageOf(r *http.Request) string {
	for name := range strings.SplitSeq(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if secret, ok := strings.CutPrefix(strings.TrimSpace(name), pageProtocol); ok {
			return secret
		}
	}
	return ""
}

// ServeHTTP implements http.Handler.
func (s *shells) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		refuse(w, "too many shells are open in this page's server: close one")
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{shellProtocol},
		CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has answered
	}
	defer func() { _ = conn.CloseNow() }() // it may be closed
	conn.SetReadLimit(shellReadMax)
	ctx, cancel := context.WithCancel(s.closing)
	defer cancel()
	end := s.session(ctx, cancel, conn)
	if text, err := json.Marshal(end); err == nil && write(ctx, conn, websocket.MessageText, text) == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "") // the page may be gone
	}
}

// shellStart is what a page asks for first, shellSize what it says of the terminal.
type (
	shellStart struct {
		shellSize
		Allocation string
		Command    []string
	}
	shellSize struct{ Columns, Rows uint32 }
)

// shellEnd is how a session ended.
type shellEnd struct {
	ExitCode *int   `json:"exit_code,omitempty"`
	Failure  string `json:"failure,omitempty"`
}

// session runs what a page asks for.
func (s *shells) session(ctx context.Context, gone func(), conn *websocket.Conn) shellEnd {
	asked := shellStart{}
	first, cancel := context.WithTimeout(ctx, shellTimeout)
	defer cancel()
	_, text, err := conn.Read(first)
	if err == nil {
		err = json.Unmarshal(text, &asked)
	}
	if err != nil {
		return shellEnd{Failure: "the page did not say what it wants: " + err.Error()}
	}
	input, told := io.Pipe()
	defer input.Close()
	resized := make(chan *starlingv1.ExecRequest)
	go hear(ctx, gone, conn, told, resized) // it ends with the connection
	out := output{ctx, conn}
	code, err := s.exec(ctx, &starlingv1.ExecRequest{Allocation: asked.Allocation, Command: asked.Command, Terminal: true,
		EndsWithCall: true, Columns: asked.Columns, Rows: asked.Rows, Env: []string{"TERM=xterm-256color"}},
		client.Session{Input: input, Stdout: out, Stderr: out, Resized: resized})
	if err != nil {
		failure := (*wire.Failure)(nil)
		if errors.As(err, &failure) {
			return shellEnd{Failure: failure.Reason}
		}
		return shellEnd{Failure: err.Error()}
	}
	return shellEnd{ExitCode: &code}
}

// hear passes on what the page says, until it has gone.
func hear(ctx context.Context, gone func(), conn *websocket.Conn, input *io.PipeWriter,
	resized chan *starlingv1.ExecRequest) {
	defer gone()
	defer close(resized)
	defer input.Close()
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		size := shellSize{}
		switch {
		case kind == websocket.MessageBinary:
			_, _ = input.Write(data) // a program that has ended reads no more
		case json.Unmarshal(data, &size) == nil && size.Columns > 0:
			select {
			case resized <- &starlingv1.ExecRequest{Columns: size.Columns, Rows: size.Rows}:
			case <-ctx.Done():
			}
		}
	}
}

// output is what a program writes.
type output struct {
	ctx  context.Context
	conn *websocket.Conn
}

// Write implements io.Writer.
func (o output) Write(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	return len(data), write(o.ctx, o.conn, websocket.MessageBinary, data)
}

// write sends a message to a page, which must take it.
func write(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, shellTimeout)
	defer cancel()
	return conn.Write(ctx, kind, data)
}
