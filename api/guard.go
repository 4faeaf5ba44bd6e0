package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/terms"
	"starling/trust"
)

// guard lets through what the caller may call.
type guard struct{ *server }

// WrapUnary does so for procedures with one answer.
func (g guard) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if err := g.check(ctx, request.Spec().Procedure, request.Any()); err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

// WrapStreamingHandler does so for procedures with a stream of answers, when the request has been read.
func (g guard) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, guardedConn{conn, func(request any) error {
			return g.check(ctx, conn.Spec().Procedure, request)
		}})
	}
}

// WrapStreamingClient does nothing: this is a server.
func (g guard) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

type guardedConn struct {
	connect.StreamingHandlerConn
	check func(request any) error
}

// Receive reads the request and refuses what its sender may not ask.
func (c guardedConn) Receive(request any) error {
	if err := c.StreamingHandlerConn.Receive(request); err != nil {
		return err
	}
	return c.check(request)
}

// check is an error if the request is not for who sends it.
func (g guard) check(ctx context.Context, procedure string, request any) error {
	if err := door.Check(ctx, procedure); err != nil {
		return err
	}
	who := door.CallerOf(ctx)
	if who.Kind != trust.OfInstance {
		return nil
	}
	state, err := g.stateAt(ctx, 0)
	if err != nil {
		return err
	}
	id, known := terms.ParseAllocationID(who.Allocation)
	switch {
	case !known || !runs(state, id):
		return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf("%s has ended, and its credentials with it", who)}
	case !isOwn(request, id):
		return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf(
			"%s may ask only for what belongs to its own job %s", who, id.Slot.Job)}
	}
	return nil
}

// runs tells whether the allocation is one that its slot has now, and has not ended.
func runs(state *cluster.State, id terms.AllocationID) bool {
	r, ok := state.RefOf(id.Slot)
	if !ok {
		return false
	}
	_, slot, ok := state.SeatOf(r, id.Order)
	return ok && slot.Phase.Holds()
}

// isOwn tells whether a request is about the allocation, or about the job that it belongs to.
func isOwn(request any, id terms.AllocationID) bool {
	switch asked := request.(type) {
	case *starlingv1.SealTaskRequest:
		return asked.GetAllocation() == id.String()
	case *starlingv1.JobStatusRequest:
		return asked.GetJob() == string(id.Slot.Job)
	case *starlingv1.OutputRequest:
		return asked.GetOutput() == "" && asked.GetJob() == string(id.Slot.Job)
	}
	return false
}
