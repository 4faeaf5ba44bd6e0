// Package session lets a caller talk with a program beside an instance, through any peer: the peer of the instance's
// node runs the program, another passes on what either side says.
package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/driver"
	"starling/driver/program"
	"starling/rights"
	"starling/terms"
	"starling/terms/access"
)

// drain is how long the last output of a program may take to be taken, and what it left behind may go on to write.
const drain = 5 * time.Second

// notThere is the status of a program that is not there, as shells have it.
const notThere = 127

// Backend is what sessions need of a peer.
type Backend interface {
	// Self names the peer's present life.
	Self() terms.PeerID
	// Exec runs a program beside an instance of this node, as driver.Driver does.
	Exec(ctx context.Context, id terms.AllocationID, command []string, s driver.Session) (exitCode int, err error)
	// Attach goes on with a session beside an instance of this node, as driver.Driver does.
	Attach(ctx context.Context, id terms.AllocationID, s driver.Session) (exitCode int, err error)
	// Sessions lists the sessions beside an instance of this node to which one can attach.
	Sessions(id terms.AllocationID) []driver.SessionStatus
}

// Server answers for one peer.
type Server struct {
	Backend Backend
	// State returns the value at the index or later.
	State func(ctx context.Context, least uint64) (*cluster.State, error)
	// Slot finds the slot that a request names.
	Slot func(state *cluster.State, request *starlingv1.ExecRequest) (facts.SlotRef, error)
	// Peers is how other peers are reached.
	Peers *http.Client
	// Log is told of each session; nil for no log.
	Log *slog.Logger
}

type stream = connect.BidiStream[starlingv1.ExecRequest, starlingv1.ExecResponse]

// Exec runs a program beside an instance, and lets the caller talk with it.
func (s *Server) Exec(ctx context.Context, caller *stream) error {
	first, err := caller.Receive()
	if err != nil {
		return err
	}
	if problem := problemOf(first); problem != "" {
		return &wire.Failure{Code: wire.Invalid, Reason: "the request: " + problem}
	}
	state, err := s.State(ctx, first.GetMinIndex())
	if err != nil {
		return err
	}
	id, node, err := s.find(state, first)
	if err != nil {
		return err
	}
	who := door.CallerOf(ctx)
	by := who.String()
	if refusal := rights.OfSession(state, id.Slot); refusal != "" && who.Kind == access.OfUser && who.Role < access.Admin {
		return &wire.Failure{Code: wire.Denied, Reason: refusal}
	}
	if first.GetDirect() && !who.IsUser() {
		by = fmt.Sprintf("%s, by way of %s", first.GetBy(), by)
	}
	if node.Name == s.Backend.Self().Node() {
		head := &starlingv1.ExecResponse{Index: uint64(state.Index), Allocation: id.String(), Node: string(node.Name)}
		return s.run(ctx, caller, &talk{first: first, id: id, head: head, by: by})
	}
	if first.GetDirect() || node.Offer == nil || node.Peer == "" {
		return &wire.Failure{Code: wire.Unavailable, Index: state.Index, Reason: fmt.Sprintf(
			"%s is on node %s, which %s", id, node.Name, view.Absent(state, node.Name))}
	}
	first.Allocation, first.Direct, first.By, first.MinIndex = id.String(), true, by, uint64(state.Index)
	return s.passOn(ctx, caller, first, node)
}

func problemOf(first *starlingv1.ExecRequest) string {
	switch {
	case first.GetSession() == "" && len(first.GetCommand()) == 0:
		return "command must name a program, or session a session"
	case first.GetSession() != "" && (len(first.GetCommand()) > 0 || !first.GetTerminal()):
		return "who attaches to a session has a terminal, and names no command"
	}
	sum := 0
	for _, one := range slices.Concat(first.GetCommand(), first.GetEnv()) {
		if len(one) >= argumentBytesMax {
			return fmt.Sprintf("an argument or variable must have less than %d bytes, has %d: send it as input",
				argumentBytesMax, len(one))
		}
		sum += len(one)
	}
	if sum > argumentsBytesMax {
		return fmt.Sprintf("arguments and variables must have at most %d bytes, have %d: send them as input",
			argumentsBytesMax, sum)
	}
	return ""
}

// What the system takes of arguments and variables: of each, its end included, and of all, for which it has a quarter
// of the 8 MiB that stacks usually have, and which need some more there.
const (
	argumentBytesMax  = 128 << 10
	argumentsBytesMax = 1 << 20
)

// loggedBytesMax bounds what the log keeps of a command: it would fill up with those of one caller.
const loggedBytesMax = 300

// logged is a command as the log has it.
func logged(command []string) string {
	var text strings.Builder
	for i, one := range command {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(strconv.Quote(one[:min(len(one), loggedBytesMax)]))
		if text.Len() > loggedBytesMax || len(one) > loggedBytesMax {
			const rest = "…"
			return strings.ToValidUTF8(text.String()[:min(text.Len(), loggedBytesMax-len(rest))], "") + rest
		}
	}
	return text.String()
}

// find returns the allocation that is meant, which must run, and its node.
func (s *Server) find(state *cluster.State,
	request *starlingv1.ExecRequest) (id terms.AllocationID, node *cluster.Node, err error) {
	var r facts.SlotRef
	asked, named := terms.ParseAllocationID(request.GetAllocation())
	switch {
	case request.GetAllocation() != "" && !named:
		return id, nil, &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf(
			"the request: allocation must be as in web.server[2]#4711, is %q", request.GetAllocation())}
	case named:
		if r, named = state.RefOf(asked.Slot); !named {
			return id, nil, &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: fmt.Sprintf(
				"there is no %s: `starling ps` lists the jobs", asked)}
		}
	default:
		if r, err = s.Slot(state, request); err != nil {
			return id, nil, err
		}
	}
	slot, _ := state.SlotAt(r)
	id = terms.AllocationID{Slot: state.NameOf(r), Order: slot.Order}
	switch {
	case named && asked != id:
		return id, nil, &wire.Failure{Code: wire.Conflict, Index: state.Index, Reason: fmt.Sprintf(
			"%s has ended: the instance is %s now", asked, id)}
	case slot.Phase != facts.Running && slot.Phase != facts.Stopping:
		return id, nil, &wire.Failure{Code: wire.Conflict, Index: state.Index, Reason: fmt.Sprintf(
			"%s does not run: it is %s; `starling why %s` tells more", id.Slot, slot.Phase, id.Slot.Job)}
	}
	return id, state.Node(slot.Node), nil
}

// talk is a session on this node.
type talk struct {
	first *starlingv1.ExecRequest
	id    terms.AllocationID
	head  *starlingv1.ExecResponse
	by    string
}

// run runs the program of a session here.
func (s *Server) run(ctx context.Context, caller *stream, t *talk) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if t.first.GetTerminal() && !t.first.GetEndsWithCall() {
		t.head.Session = cmp.Or(t.first.GetSession(), newName())
	}
	if err := caller.Send(t.head); err != nil {
		return err
	}
	answers := &answers{to: caller}
	d := driver.Session{Output: piece{answers, false}, Errors: piece{answers, true}, Env: t.first.GetEnv(), Drain: drain}
	input, told := io.Pipe()
	defer input.Close()
	if t.first.GetInteractive() {
		d.Input = input
	}
	resized := make(chan driver.Size, 1)
	if t.first.GetTerminal() {
		d.Terminal = &driver.Terminal{Size: sizeOf(t.first), Resized: resized}
	}
	go hear(&ear{caller: caller, input: told, resized: resized, gone: cancel, staysOpen: t.head.GetSession() != ""})
	log := s.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("allocation", t.id.String(), "by", t.by)
	if d.Name, d.By = t.head.GetSession(), t.by; d.Name != "" {
		log = log.With("session", d.Name)
	}
	code, err := 0, error(nil)
	if t.first.GetSession() != "" {
		log.Info("somebody attaches to a session")
		code, err = s.Backend.Attach(ctx, t.id, d)
	} else {
		log.Info("a session begins", "command", logged(t.first.GetCommand()), "terminal", t.first.GetTerminal())
		code, err = s.Backend.Exec(ctx, t.id, t.first.GetCommand(), d)
	}
	if missing := program.Missing(""); errors.As(err, &missing) {
		line := "\n"
		if d.Terminal != nil {
			line = "\r\n" // it is raw
		}
		code = notThere
		_, err = io.WriteString(d.Errors, missing.Error()+line)
	}
	switch {
	case errors.Is(err, driver.ErrDetached):
		log.Info("a session goes on without who was attached", "reason", err)
		return &wire.Failure{Code: wire.Conflict, Reason: err.Error()}
	case err != nil && ctx.Err() != nil: // not the program, but who asked or this peer has ended it
		log.Info("a session was ended", "reason", err)
		return &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
	case err != nil:
		log.Info("a session has ended", "error", err)
		return &wire.Failure{Code: wire.NotFound, Reason: err.Error()}
	}
	log.Info("a session has ended", "exit_code", code)
	status := int32(code)
	return answers.send(&starlingv1.ExecResponse{ExitCode: &status})
}

// newName is that of a new session. It is short, for there are few beside one instance.
func newName() string { return strings.ToLower(rand.Text()[:6]) }

func sizeOf(request *starlingv1.ExecRequest) driver.Size {
	const most = 1 << 15
	return driver.Size{Columns: uint16(min(request.GetColumns(), most)), Rows: uint16(min(request.GetRows(), most))}
}

// ear is what passes on what a caller says.
type ear struct {
	caller  *stream
	input   *io.PipeWriter
	resized chan driver.Size
	// gone is called when the caller is lost. What it says ends the input, too, unless that stays open: for a program with
	// a terminal the end of the input is a key.
	gone      func()
	staysOpen bool
}

// hear passes on what the caller says until there is no more. It ends with the call.
func hear(e *ear) {
	defer close(e.resized)
	for {
		request, err := e.caller.Receive()
		switch {
		case errors.Is(err, io.EOF) && e.staysOpen:
			return
		case errors.Is(err, io.EOF):
			e.input.Close()
			return
		case err != nil:
			e.input.CloseWithError(err)
			e.gone()
			return
		}
		if request.GetColumns() > 0 {
			select {
			case <-e.resized: // a later size takes its place
			default:
			}
			e.resized <- sizeOf(request)
		}
		if len(request.GetInput()) > 0 {
			_, _ = e.input.Write(request.GetInput()) // a program that has ended reads no more
		}
	}
}

// answers sends what comes of a session, one message at a time.
type answers struct {
	mu sync.Mutex
	to *stream
}

func (a *answers) send(answer *starlingv1.ExecResponse) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.to.Send(answer)
}

// piece sends what a program writes.
type piece struct {
	answers *answers
	errors  bool
}

// Write sends one piece.
func (p piece) Write(data []byte) (int, error) {
	answer := &starlingv1.ExecResponse{Stdout: data}
	if p.errors {
		answer = &starlingv1.ExecResponse{Stderr: data}
	}
	if err := p.answers.send(answer); err != nil {
		return 0, err
	}
	return len(data), nil
}

// passOn lets the peer of the node run the session.
func (s *Server) passOn(ctx context.Context, caller *stream, first *starlingv1.ExecRequest, node *cluster.Node) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	peer, err := wire.Peer(s.Peers, node.Offer.Address).Exec(ctx)
	if err == nil {
		// The transport does not heed the end of ctx while it waits for more of the request.
		context.AfterFunc(ctx, func() { _ = peer.CloseRequest() })
		err = peer.Send(first)
	}
	if err == nil || errors.Is(err, io.EOF) { // then the answer tells why
		go func() {
			for {
				request, err := caller.Receive()
				if errors.Is(err, io.EOF) {
					_ = peer.CloseRequest()
					return
				}
				if err != nil || peer.Send(request) != nil {
					cancel()
					return
				}
			}
		}()
		err = answerFrom(peer, caller)
	}
	failure := wire.FailureOf(err)
	switch {
	case err == nil:
		return nil
	case failure.Code == wire.Unavailable && !failure.Decided:
		failure.Reason = fmt.Sprintf("the peer of node %s, which runs %s, does not answer at %s: %s", node.Name,
			first.GetAllocation(), node.Offer.Address, failure.Reason)
	}
	return failure
}

// answerFrom passes on what another peer answers.
func answerFrom(peer *connect.BidiStreamForClientSimple[starlingv1.ExecRequest, starlingv1.ExecResponse],
	caller *stream) error {
	defer peer.CloseResponse()
	for {
		answer, err := peer.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = caller.Send(answer)
		}
		if err != nil {
			return err
		}
	}
}
