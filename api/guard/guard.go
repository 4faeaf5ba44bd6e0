// Package guard refuses procedures to those who may not call them.
package guard

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/rights"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// States gives the value as it is now.
type States func(ctx context.Context) (*cluster.State, error)

// guard lets through what the caller may call.
type guard struct{ now States }

// New returns what refuses requests that are not for who sends them: by the table of rights of package door, and where
// that leaves it to the pool of a job, by what the pools give to users.
func New(now States) connect.Interceptor { return guard{now} }

// WrapUnary does so for procedures with one answer.
func (g guard) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if err := g.check(ctx, request.Spec().Procedure, request.Any()); err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

// WrapStreamingHandler does so for procedures with a stream of answers, when the first request has been read: what
// comes after belongs to it.
func (g guard) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, &guardedConn{conn, func(request any) error {
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
	// check is nil once a request has passed it.
	check func(request any) error
}

// Receive reads the request and refuses what its sender may not ask.
func (c *guardedConn) Receive(request any) error {
	err := c.StreamingHandlerConn.Receive(request)
	if err != nil || c.check == nil {
		return err
	}
	if err = c.check(request); err == nil {
		c.check = nil
	}
	return err
}

// check is an error if the request is not for who sends it.
func (g guard) check(ctx context.Context, procedure string, request any) error {
	if err := door.Check(ctx, procedure); err != nil {
		return err
	}
	who, right := door.CallerOf(ctx), door.RightTo(procedure)
	isPools := who.Kind == access.OfUser && who.Role < right.Role && right.Pool
	if who.Kind != access.OfInstance && !isPools {
		return nil
	}
	state, err := g.now(ctx)
	if err != nil {
		return err
	}
	if isPools {
		return ofPool(state, who, right, request)
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

// ofPool is an error if a user has no role in the pool that a request is about. Where it is about none, or about
// several, the answer has only what the user may see, and the fold refuses what is more than that.
func ofPool(state *cluster.State, who trust.Identity, right door.Right, request any) error {
	path, one := poolOf(request)
	_, watches := request.(*starlingv1.WatchRequest)
	switch {
	case !one && watches && len(rights.InPools(state, who.Subject())) == 0:
		return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf(
			"%s has no role in any pool, and may watch nothing: ask an admin for the role viewer in a pool", who)}
	case !one:
		return nil
	}
	// The role in the whole cluster is that of the credential that was shown, whatever others the user has.
	role := max(who.Role, rights.ByPools(state, who.Subject(), path))
	refusal := rights.RefusalWith(state, who.Subject(), rights.Need{Role: right.Role, Pool: path}, role)
	if refusal == "" {
		return nil
	}
	return &wire.Failure{Code: wire.Denied, Reason: refusal}
}

// poolOf returns the pool that a request is about, or that of its job; one is false if there is none.
func poolOf(request any) (path terms.PoolPath, one bool) {
	if asked, ok := request.(*starlingv1.PoolStatusRequest); ok {
		return terms.PoolPath(asked.GetPath()), true
	}
	job, one := jobOf(request)
	return job.Pool(), one
}

// jobOf returns the job that a request is about; one is false if there is none.
func jobOf(request any) (job terms.JobName, one bool) {
	if named, ok := request.(interface{ GetAllocation() string }); ok && named.GetAllocation() != "" {
		id, _ := terms.ParseAllocationID(named.GetAllocation())
		return id.Slot.Job, true
	}
	switch named := request.(type) {
	case *starlingv1.OutputRequest:
		if named.GetOutput() != "" {
			return "", true // as only nodes ask
		}
		return terms.JobName(named.GetJob()), true
	case *starlingv1.WatchRequest:
		return terms.JobName(named.GetJob()), named.GetJob() != ""
	case interface{ GetSpec() *starlingv1.JobSpec }:
		return terms.JobName(named.GetSpec().GetName()), true
	case interface{ GetVolumes() string }:
		set, _ := terms.ParseVolumeSet(named.GetVolumes())
		return set.Slot.Job, true
	case interface{ GetJob() string }:
		return terms.JobName(named.GetJob()), true
	}
	return "", false
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
