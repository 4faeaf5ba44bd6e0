// Package textlogs answers what instances have written as plain text, for curl:
//
//	curl -N 'https://HOST:PORT/v1/logs?of=web.server[2]&stream=both&tail=1000&follow=true'
//
// It asks the procedure Logs of the same peer in the name of who asks it, so that the same rights hold.
package textlogs

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"starling/api/door"
	"starling/api/inside"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/terms"
)

// lineBytesMax is how much of a line without end is held back when two streams share the answer.
const lineBytesMax = 64 << 10

// New returns the handler; procedures is that of the peer.
func New(procedures http.Handler) http.Handler {
	asks := inside.New(procedures)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := door.Check(r.Context(), door.PathLogs); err != nil {
			door.WriteFailure(w, http.StatusForbidden, &wire.Failure{Code: wire.Denied, Reason: err.Error()})
			return
		}
		questions, err := read(r.URL.Query())
		if err != nil {
			door.WriteFailure(w, http.StatusBadRequest, &wire.Failure{Code: wire.Invalid, Reason: err.Error()})
			return
		}
		answer(r.Context(), asks, w, questions)
	})
}

// read returns a question for each stream that is wanted.
func read(query url.Values) (all []*starlingv1.LogsRequest, err error) {
	for name := range query {
		if !slices.Contains([]string{"of", "stream", "tail", "follow"}, name) {
			return nil, fmt.Errorf("unknown parameter %q: there are of, stream, tail and follow", name)
		}
	}
	question := &starlingv1.LogsRequest{}
	of := query.Get("of")
	if id, ok := terms.ParseAllocationID(of); ok {
		question.Allocation = id.String()
	} else if id, ok := terms.ParseAllocationID(of + "#1"); ok {
		question.Job, question.Task, question.Slot = string(id.Slot.Job), string(id.Slot.Task), id.Slot.Index
	} else {
		return nil, fmt.Errorf("of must be an instance such as web.server[2], or an attempt such as web.server[2]#4711, is %q",
			of)
	}
	if text := query.Get("tail"); text != "" {
		tail, err := strconv.ParseUint(text, 10, 62)
		if err != nil {
			return nil, fmt.Errorf("tail must be a number of bytes, is %q", text)
		}
		question.TailBytes = &tail
	}
	switch text := query.Get("follow"); text {
	case "", "false":
	case "true":
		question.Follow = true
	default:
		return nil, fmt.Errorf("follow must be true or false, is %q", text)
	}
	switch stream := query.Get("stream"); stream {
	case "", "stdout", "stderr":
		question.Stream = stream
		return []*starlingv1.LogsRequest{question}, nil
	case "both":
		other := &starlingv1.LogsRequest{Allocation: question.Allocation, Job: question.Job, Task: question.Task,
			Slot: question.Slot, TailBytes: question.TailBytes, Follow: question.Follow}
		question.Stream, other.Stream = "stdout", "stderr"
		return []*starlingv1.LogsRequest{question, other}, nil
	default:
		return nil, fmt.Errorf("stream must be stdout, stderr or both, is %q", stream)
	}
}

// answer writes the output of one stream as it is, or of both by lines, each behind the name of its stream.
func answer(ctx context.Context, asks starlingv1connect.StarlingClient, w http.ResponseWriter,
	questions []*starlingv1.LogsRequest) {
	shared := &output{to: w, control: http.NewResponseController(w)}
	var all sync.WaitGroup
	for _, question := range questions {
		own := &lines{output: shared}
		if len(questions) > 1 {
			own.prefix = question.GetStream() + " | "
		}
		all.Go(func() {
			defer own.end()
			stream, err := asks.Logs(ctx, question)
			for err == nil && stream.Receive() {
				err = own.write(stream.Msg().GetData())
			}
			if err == nil {
				err = stream.Err()
			}
			if err != nil && ctx.Err() == nil {
				shared.fail(wire.FailureOf(err))
			}
		})
	}
	all.Wait()
}

// output is what the streams share.
type output struct {
	mutex   sync.Mutex
	to      http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// fail says what is wrong: with a status if nothing was written yet, and otherwise in a last line.
func (o *output) fail(failure *wire.Failure) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.begun {
		o.begun = true
		door.WriteFailure(o.to, door.StatusOf(failure.Code), failure)
		return
	}
	fmt.Fprintf(o.to, "\nstarling: the output broke off: %s\n", failure.Reason)
}

func (o *output) send(pieces ...[]byte) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.begun {
		o.begun = true
		o.to.Header().Set("Content-Type", "text/plain; charset=utf-8")
		o.to.Header().Set("X-Content-Type-Options", "nosniff")
	}
	for _, piece := range pieces {
		if _, err := o.to.Write(piece); err != nil {
			return err
		}
	}
	return o.control.Flush()
}

// lines passes on whole lines behind a prefix, or everything as it comes if there is none.
type lines struct {
	*output
	prefix string
	rest   []byte
}

func (l *lines) write(data []byte) error {
	if l.prefix == "" {
		return l.send(data)
	}
	l.rest = append(l.rest, data...)
	for {
		at := bytes.IndexByte(l.rest, '\n')
		if at < 0 && len(l.rest) < lineBytesMax {
			return nil
		}
		line := l.rest
		if at >= 0 {
			line = l.rest[:at]
		}
		if err := l.send([]byte(l.prefix), line, []byte("\n")); err != nil {
			return err
		}
		l.rest = l.rest[min(len(line)+1, len(l.rest)):]
	}
}

// end writes what is left of a line without end.
func (l *lines) end() {
	if len(l.rest) > 0 {
		_ = l.send([]byte(l.prefix), l.rest, []byte("\n")) // who asked may have gone
	}
}
