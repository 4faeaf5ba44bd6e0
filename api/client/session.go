package client

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"

	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
)

// inputBytes is the size of a piece of input.
const inputBytes = 32 << 10

// Session is this side of a session with a program beside an instance.
type Session struct {
	// Input is what the program reads, nil for nothing; Stdout and Stderr take what it writes.
	Input          io.Reader
	Stdout, Stderr io.Writer
	// Resized are later sizes of the terminal, as requests with columns and rows; nil for none.
	Resized <-chan *starlingv1.ExecRequest
	// Began is told where the session is; nil tells nobody.
	Began func(*starlingv1.ExecResponse)
}

type talk = connect.BidiStreamForClientSimple[starlingv1.ExecRequest, starlingv1.ExecResponse]

// Exec runs a program beside an instance and returns its exit code. It ends with ctx. A peer that may have begun is not
// asked again.
func (c *Client) Exec(ctx context.Context, request *starlingv1.ExecRequest, s Session) (exitCode int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request.MinIndex, request.Interactive = c.least(request.MinIndex), s.Input != nil
	var t *talk
	var head *starlingv1.ExecResponse
	var begun error
	err = c.retry(ctx, func(peer starlingv1connect.StarlingClient) (err error) {
		connected := atomic.Bool{}
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
		if t, head, err = begin(traced, peer, request); err != nil && mayCount(err, connected.Load()) {
			begun, err = err, nil
		}
		return err
	})
	if err = errors.Join(err, c.failure(begun)); err != nil {
		return 0, err
	}
	defer t.CloseResponse()
	if s.Began != nil {
		s.Began(head)
	}
	say(t, s)
	for {
		answer, err := t.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return 0, &wire.Failure{Code: wire.Unavailable, Reason: "the session broke: its program may have been ended"}
		case err != nil:
			return 0, c.failure(err)
		case answer.ExitCode != nil:
			return int(answer.GetExitCode()), nil
		}
		_, err = s.Stdout.Write(answer.GetStdout())
		if err == nil {
			_, err = s.Stderr.Write(answer.GetStderr())
		}
		if err != nil {
			return 0, err
		}
	}
}

// begin asks one peer for a session, and returns when that has begun.
func begin(ctx context.Context, peer starlingv1connect.StarlingClient,
	request *starlingv1.ExecRequest) (t *talk, head *starlingv1.ExecResponse, err error) {
	if t, err = peer.Exec(ctx); err != nil {
		return nil, nil, err
	}
	// The transport does not heed the end of ctx while it waits for more of the request.
	context.AfterFunc(ctx, func() { _ = t.CloseRequest() })
	if err = t.Send(request); err == nil || errors.Is(err, io.EOF) { // then the answer tells why
		head, err = t.Receive()
	}
	return t, head, err
}

// say sends what the program is to be told, until the call ends.
func say(t *talk, s Session) {
	var mu sync.Mutex
	send := func(request *starlingv1.ExecRequest) error {
		mu.Lock()
		defer mu.Unlock()
		return t.Send(request)
	}
	if s.Resized != nil {
		go func() {
			for request := range s.Resized {
				if send(request) != nil {
					return
				}
			}
		}()
	}
	if s.Input == nil {
		return
	}
	go func() {
		for {
			data := make([]byte, inputBytes)
			n, err := s.Input.Read(data)
			if n > 0 && send(&starlingv1.ExecRequest{Input: data[:n]}) != nil {
				return
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				_ = t.CloseRequest()
				return
			}
		}
	}()
}
