package api

import (
	"context"
	"fmt"
	"slices"

	starlingv1 "starling/api/v1"
	"starling/command"
	"starling/terms"
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
	if len(problems) > 0 {
		return nil, invalid("the request", problems...)
	}
	receipt, err := s.submit(ctx, &command.SteerUpdate{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Version: request.GetVersion(),
		Steering: command.Steering(steering),
	})
	if err != nil {
		return nil, err
	}
	return &starlingv1.SteerUpdateResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, nil
}

// RevertJob makes a copy of an earlier version the newest.
func (s *server) RevertJob(ctx context.Context,
	request *starlingv1.RevertJobRequest) (*starlingv1.RevertJobResponse, error) {
	problems := jobProblems(request)
	if request.GetTo() == 0 {
		problems = append(problems, terms.Problem{Path: "to", Reason: "must be a version, from 1"})
	}
	if len(problems) > 0 {
		return nil, invalid("the request", problems...)
	}
	receipt, err := s.submit(ctx, &command.RevertJob{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Against: request.GetAgainst(),
		To: request.GetTo(),
	})
	if err != nil {
		return nil, err
	}
	return &starlingv1.RevertJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, nil
}

// RestartJob replaces the instances of a job by new ones of the same version.
func (s *server) RestartJob(ctx context.Context,
	request *starlingv1.RestartJobRequest) (*starlingv1.RestartJobResponse, error) {
	problems := jobProblems(request)
	if reason := terms.NameProblem(request.GetTask(), false); request.GetTask() != "" && reason != "" {
		problems = append(problems, terms.Problem{Path: "task", Reason: reason})
	}
	if len(problems) > 0 {
		return nil, invalid("the request", problems...)
	}
	receipt, err := s.submit(ctx, &command.RestartJob{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Against: request.GetAgainst(),
		Task: terms.TaskName(request.GetTask()),
	})
	if err != nil {
		return nil, err
	}
	return &starlingv1.RestartJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, nil
}

// SuspendJob lets nothing of a job run for now, or lets it run again.
func (s *server) SuspendJob(ctx context.Context,
	request *starlingv1.SuspendJobRequest) (*starlingv1.SuspendJobResponse, error) {
	if problems := jobProblems(request); len(problems) > 0 {
		return nil, invalid("the request", problems...)
	}
	receipt, err := s.submit(ctx, &command.SuspendJob{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Against: request.GetAgainst(),
		Resume: request.GetResume(),
	})
	if err != nil {
		return nil, err
	}
	return &starlingv1.SuspendJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, nil
}

// SealTask lets no more instances of an allocation's task begin.
func (s *server) SealTask(ctx context.Context,
	request *starlingv1.SealTaskRequest) (*starlingv1.SealTaskResponse, error) {
	id, err := allocationOf(request)
	if err != nil {
		return nil, err
	}
	receipt, err := s.submit(ctx, &command.SealTask{RequestID: request.GetRequestId(), Slot: id.Slot, Order: id.Order})
	if err != nil {
		return nil, err
	}
	return &starlingv1.SealTaskResponse{Index: uint64(receipt.Index), Job: string(id.Slot.Job)}, nil
}

// allocationOf reads which allocation a request is about.
func allocationOf(request interface {
	GetRequestId() string
	GetAllocation() string
}) (id terms.AllocationID, err error) {
	problems := requestIDProblems(request.GetRequestId())
	id, ok := terms.ParseAllocationID(request.GetAllocation())
	if !ok {
		problems = append(problems, terms.Problem{Path: "allocation", Reason: fmt.Sprintf(
			"must be an allocation such as web.server[2]#4711, is %q", request.GetAllocation())})
	}
	if len(problems) > 0 {
		return id, invalid("the request", problems...)
	}
	return id, nil
}

// EndAllocation ends one allocation.
func (s *server) EndAllocation(ctx context.Context,
	request *starlingv1.EndAllocationRequest) (*starlingv1.EndAllocationResponse, error) {
	id, err := allocationOf(request)
	if err != nil {
		return nil, err
	}
	receipt, err := s.submit(ctx, &command.EndAllocation{
		RequestID: request.GetRequestId(), Slot: id.Slot, Order: id.Order, Elsewhere: request.GetElsewhere(),
		WithoutVolumes: request.GetWithoutVolumes(),
	})
	if err != nil {
		return nil, err
	}
	return &starlingv1.EndAllocationResponse{Index: uint64(receipt.Index), Job: string(id.Slot.Job)}, nil
}

// DrainNode moves what runs on a node to others, or takes that back.
func (s *server) DrainNode(ctx context.Context,
	request *starlingv1.DrainNodeRequest) (*starlingv1.DrainNodeResponse, error) {
	problems := requestIDProblems(request.GetRequestId())
	if reason := terms.NameProblem(request.GetNode(), true); reason != "" {
		problems = append(problems, terms.Problem{Path: "node", Reason: reason})
	}
	if len(problems) > 0 {
		return nil, invalid("the request", problems...)
	}
	receipt, err := s.submit(ctx, &command.DrainNode{
		RequestID: request.GetRequestId(), Node: terms.NodeName(request.GetNode()), Drain: request.GetDrain(),
		DeadlineMillis: request.GetDeadlineMillis(),
	})
	if err != nil {
		return nil, err
	}
	return &starlingv1.DrainNodeResponse{Index: uint64(receipt.Index)}, nil
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
