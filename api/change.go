package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/api/caution"
	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/rights"
	"starling/terms"
	"starling/terms/access"
	"starling/validate"
)

// SteerUpdate pauses, resumes, promotes, fails or aborts the update of a job.
func (s *server) SteerUpdate(ctx context.Context,
	request *starlingv1.SteerUpdateRequest) (*starlingv1.SteerUpdateResponse, error) {
	problems := jobProblems(request)
	steering := slices.Index(command.Steerings(), request.GetSteering())
	if steering <= 0 {
		problems = append(problems, terms.Problem{Path: "steering",
			Reason: fmt.Sprintf("must be one of %q", command.Steerings()[1:])})
	}
	receipt, err := s.submit(ctx, &command.SteerUpdate{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Version: request.GetVersion(),
		Steering: command.Steering(steering),
	}, problems...)
	return &starlingv1.SteerUpdateResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, err
}

// RevertJob makes a copy of an earlier version the newest.
func (s *server) RevertJob(ctx context.Context,
	request *starlingv1.RevertJobRequest) (*starlingv1.RevertJobResponse, error) {
	problems := jobProblems(request)
	if request.GetTo() == 0 {
		problems = append(problems, terms.Problem{Path: "to", Reason: "must be a version, from 1"})
	}
	receipt, err := s.submit(ctx, &command.RevertJob{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Against: request.GetAgainst(),
		To: request.GetTo(),
	}, problems...)
	return &starlingv1.RevertJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, err
}

// RestartJob replaces the instances of a job by new ones of the same version.
func (s *server) RestartJob(ctx context.Context,
	request *starlingv1.RestartJobRequest) (*starlingv1.RestartJobResponse, error) {
	problems := jobProblems(request)
	if reason := terms.NameProblem(request.GetTask(), false); request.GetTask() != "" && reason != "" {
		problems = append(problems, terms.Problem{Path: "task", Reason: terms.Shown(reason, request.GetTask())})
	}
	receipt, err := s.submit(ctx, &command.RestartJob{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Against: request.GetAgainst(),
		Task: terms.TaskName(request.GetTask()),
	}, problems...)
	return &starlingv1.RestartJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, err
}

// SuspendJob lets nothing of a job run for now, or lets it run again.
func (s *server) SuspendJob(ctx context.Context,
	request *starlingv1.SuspendJobRequest) (*starlingv1.SuspendJobResponse, error) {
	receipt, err := s.submit(ctx, &command.SuspendJob{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Against: request.GetAgainst(),
		Resume: request.GetResume(),
	}, jobProblems(request)...)
	return &starlingv1.SuspendJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, err
}

// SealTask lets no more instances of an allocation's task begin.
func (s *server) SealTask(ctx context.Context,
	request *starlingv1.SealTaskRequest) (*starlingv1.SealTaskResponse, error) {
	id, problems := allocationOf(request)
	receipt, err := s.submit(ctx,
		&command.SealTask{RequestID: request.GetRequestId(), Slot: id.Slot, Order: id.Order}, problems...)
	return &starlingv1.SealTaskResponse{Index: uint64(receipt.Index), Job: string(id.Slot.Job)}, err
}

// allocationOf reads which allocation a request is about, with what is wrong with how it begins.
func allocationOf(request interface {
	GetRequestId() string
	GetAllocation() string
}) (id terms.AllocationID, problems []terms.Problem) {
	problems = requestIDProblems(request.GetRequestId())
	id, ok := terms.ParseAllocationID(request.GetAllocation())
	if !ok {
		problems = append(problems, terms.Problem{Path: "allocation", Reason: fmt.Sprintf(
			"must be an allocation such as web.server[2]#4711, is %q", request.GetAllocation())})
	}
	return id, problems
}

// EndAllocation ends one allocation.
func (s *server) EndAllocation(ctx context.Context,
	request *starlingv1.EndAllocationRequest) (*starlingv1.EndAllocationResponse, error) {
	id, problems := allocationOf(request)
	receipt, err := s.submit(ctx, &command.EndAllocation{
		RequestID: request.GetRequestId(), Slot: id.Slot, Order: id.Order, Elsewhere: request.GetElsewhere(),
		WithoutVolumes: request.GetWithoutVolumes(), Now: request.GetNow(),
	}, problems...)
	return &starlingv1.EndAllocationResponse{Index: uint64(receipt.Index), Job: string(id.Slot.Job)}, err
}

// DrainNode moves what runs on a node to others, or takes that back.
func (s *server) DrainNode(ctx context.Context,
	request *starlingv1.DrainNodeRequest) (*starlingv1.DrainNodeResponse, error) {
	problems := requestIDProblems(request.GetRequestId())
	if reason := terms.NameProblem(request.GetNode(), true); reason != "" {
		problems = append(problems, terms.Problem{Path: "node", Reason: terms.Shown(reason, request.GetNode())})
	}
	receipt, err := s.submit(ctx, &command.DrainNode{
		RequestID: request.GetRequestId(), Node: terms.NodeName(request.GetNode()), Drain: request.GetDrain(),
		DeadlineMillis: request.GetDeadlineMillis(),
	}, problems...)
	return &starlingv1.DrainNodeResponse{Index: uint64(receipt.Index)}, err
}

// jobProblems returns what is wrong with how a request about a job begins.
func jobProblems(request interface {
	GetRequestId() string
	GetJob() string
}) []terms.Problem {
	problems := requestIDProblems(request.GetRequestId())
	if reason := terms.JobName(request.GetJob()).Problem(); reason != "" {
		problems = append(problems, terms.Problem{Path: "job", Reason: reason})
	}
	return problems
}

// SubmitJob brings a job, or a new version of one. A version that would be as the present one is not made.
func (s *server) SubmitJob(ctx context.Context,
	request *starlingv1.SubmitJobRequest) (*starlingv1.SubmitJobResponse, error) {
	spec, err := specOf(request, requestIDProblems(request.GetRequestId()))
	if err != nil {
		return nil, err
	}
	if err := s.pin(ctx, spec); err != nil {
		return nil, err
	}
	submit := &command.SubmitJob{RequestID: request.GetRequestId(), Against: request.GetAgainst(), Spec: *spec}
	if size := command.Size(submit); size > command.EntryBytesMax/2 {
		return nil, invalid(fmt.Sprintf("job %q", spec.Name), terms.Problem{Path: "tasks", Reason: fmt.Sprintf(
			"take %d bytes, at most %d fit into an entry: put large input into files", size, command.EntryBytesMax/2)})
	}
	var warnings []string
	if before, err := s.backend.State(ctx, 0); err == nil {
		if j := before.JobOf(spec.Name); j != nil && isPresent(j, submit) {
			return &starlingv1.SubmitJobResponse{Index: uint64(before.Index), Job: string(spec.Name), Unchanged: true}, nil
		}
		if err := unseenBefore(ctx, before, spec); err != nil {
			return nil, err
		}
		warnings = caution.Of(before, spec, s.backend.Self().Node())
	}
	receipt, err := s.submit(ctx, submit)
	return &starlingv1.SubmitJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job), Warnings: warnings}, err
}

// unseenBefore is an error if a job begins to come after one that the caller may not see, whether there is one or not.
func unseenBefore(ctx context.Context, state *cluster.State, spec *terms.Job) error {
	if j := state.JobOf(spec.Name); j != nil && j.Finished == 0 && slices.Equal(j.Spec.After, spec.After) {
		return nil
	}
	who := door.CallerOf(ctx)
	for _, name := range spec.After {
		need := rights.Need{Role: access.Viewer, Pool: name.Pool()}
		role := max(who.Role, rights.ByPools(state, who.Subject(), need.Pool))
		if refusal := rights.RefusalWith(state, who.Subject(), need, role); refusal != "" {
			return &wire.Failure{Code: wire.Denied, Index: state.Index,
				Reason: fmt.Sprintf("job %s comes after job %s: %s", spec.Name, name, refusal)}
		}
	}
	return nil
}

// isPresent tells whether a job is already as it would be.
func isPresent(j *workload.Job, submit *command.SubmitJob) bool {
	return j.Finished == 0 && !j.Stop && j.Version == submit.Against && j.Spec.Equal(&submit.Spec)
}

// specOf returns the job that a request brings, if it is one that the cluster takes.
func specOf(request interface{ GetSpec() *starlingv1.JobSpec }, problems []terms.Problem) (*terms.Job, error) {
	if request.GetSpec() == nil {
		return nil, invalid("the request holds no job", terms.Problem{Path: "spec", Reason: "must not be absent"})
	}
	spec, found := wire.SpecOf(request.GetSpec())
	problems = slices.Concat(found, validate.Submission(spec), problems)
	if len(problems) > 0 {
		return nil, invalid(fmt.Sprintf("job %q", spec.Name), problems...)
	}
	return spec, nil
}

// pin gives the images of a job the digests that their tags have now, so that all instances of a version run the same.
func (s *server) pin(ctx context.Context, spec *terms.Job) error {
	if s.options.Pin == nil {
		return nil
	}
	type question struct{ image, secret string }
	pinned := map[question]string{{}: ""}
	for i := range spec.Tasks {
		c := &spec.Tasks[i].Container
		asked := question{c.Image, c.PullSecret}
		if _, known := pinned[asked]; !known {
			found, err := s.options.Pin(ctx, spec.Name.Pool(), c)
			if err != nil {
				return err
			}
			pinned[asked] = found
		}
		c.Image = pinned[asked]
	}
	return nil
}

// KillJob ends a job for good.
func (s *server) KillJob(ctx context.Context, request *starlingv1.KillJobRequest) (*starlingv1.KillJobResponse, error) {
	receipt, err := s.submit(ctx, &command.KillJob{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Against: request.GetAgainst(),
		Now: request.GetNow(),
	}, jobProblems(request)...)
	return &starlingv1.KillJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, err
}

// submit appends the command, unless there are problems with the request or its sender may not ask for it, and returns
// what became of it.
func (s *server) submit(ctx context.Context, c command.Command, problems ...terms.Problem) (report.Receipt, error) {
	if len(problems) > 0 {
		return report.Receipt{}, invalid("the request", problems...)
	}
	c = s.signed(ctx, c)
	if err := s.rightful(ctx, c); err != nil {
		return report.Receipt{}, err
	}
	if err := s.sensible(ctx, command.Plain(c)); err != nil {
		return report.Receipt{}, err
	}
	wait, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	receipt, err := s.backend.Submit(wait, c)
	switch {
	case err != nil && ctx.Err() != nil:
		return receipt, &wire.Failure{Code: wire.Unknown, Reason: "the request was cut off, and may be executed"}
	case err != nil && wait.Err() != nil:
		return receipt, &wire.Failure{Code: wire.Unknown, Reason: fmt.Sprintf(
			"the outcome is not known after %s: send it again with the same request_id, it will count once", s.wait)}
	case errors.Is(err, report.ErrUnknown):
		return receipt, &wire.Failure{Code: wire.Unknown, Reason: err.Error()}
	case err != nil:
		return receipt, fmt.Errorf("%s: %w", command.Plain(c).Kind(), err)
	case receipt.Refusal.Code != facts.OK:
		return receipt, wire.Refused(receipt.Index, receipt.Refusal)
	}
	return receipt, nil
}

// signed adds who asks for a command, if the rules have that.
func (s *server) signed(ctx context.Context, c command.Command) command.Command {
	who := door.CallerOf(ctx).Subject()
	if _, inForce := s.backend.Registry(); !inForce || who.Kind == access.OfAnyone {
		return c
	}
	return &command.As{Subject: who, Command: c}
}

// rightful is an error if who asks for a command may not, as the fold would find by the value as it is now: what is
// refused so costs nobody an entry of the journal.
func (s *server) rightful(ctx context.Context, c command.Command) error {
	by, ok := c.(*command.As)
	if !ok {
		return nil
	}
	state, err := s.stateAt(ctx, 0)
	if err != nil {
		return err
	}
	if refusal := rights.OfCommand(state, by.Subject, by.Command); refusal != "" {
		return &wire.Failure{Code: wire.Denied, Index: state.Index, Decided: true, Reason: refusal}
	}
	return nil
}

// sensible is an error if a command would do the opposite of what is meant. The value is asked only where that can be:
// what is read of it costs the entries that follow.
func (s *server) sensible(ctx context.Context, c command.Command) error {
	switch c.(type) {
	case *command.SteerUpdate, *command.RestartJob:
	default:
		return nil
	}
	state, err := s.backend.State(ctx, 0)
	if err != nil {
		return nil // the fold decides
	}
	if reason := caution.Objection(state, c); reason != "" {
		return &wire.Failure{Code: wire.Conflict, Index: state.Index, Reason: reason}
	}
	return nil
}

func requestIDProblems(id string) []terms.Problem {
	if len(id) <= command.RequestIDBytesMax {
		return nil
	}
	return []terms.Problem{{Path: "request_id",
		Reason: "must have at most " + strconv.Itoa(command.RequestIDBytesMax) + " bytes"}}
}

// invalid says all that is wrong with what was sent, the first also in the reason.
func invalid(what string, problems ...terms.Problem) *wire.Failure {
	reason := what + ": " + strings.TrimSpace(problems[0].Path+" "+problems[0].Reason)
	if more := len(problems) - 1; more > 0 {
		reason += fmt.Sprintf(" (and %d more, see the details)", more)
	}
	return &wire.Failure{Code: wire.Invalid, Reason: reason, Problems: problems}
}
