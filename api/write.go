package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica"
	"starling/terms"
	"starling/terms/rules"
	"starling/validate"
)

// SubmitJob brings a job, or a new version of one.
func (s *server) SubmitJob(ctx context.Context,
	request *starlingv1.SubmitJobRequest) (*starlingv1.SubmitJobResponse, error) {
	if request.GetSpec() == nil {
		return nil, invalid("the request holds no job", terms.Problem{Path: "spec", Reason: "must not be absent"})
	}
	spec, problems := wire.SpecOf(request.GetSpec())
	problems = append(problems, validate.Job(spec, rules.Released)...)
	problems = append(problems, requestIDProblems(request.GetRequestId())...)
	submit := &command.SubmitJob{RequestID: request.GetRequestId(), Against: request.GetAgainst(), Spec: *spec}
	if len(problems) == 0 && command.Size(submit) > command.EntryBytesMax/2 {
		problems = append(problems, terms.Problem{Path: "tasks", Reason: fmt.Sprintf(
			"take %d bytes, at most %d fit into an entry: put large input into files", command.Size(submit),
			command.EntryBytesMax/2)})
	}
	if len(problems) > 0 {
		return nil, invalid(fmt.Sprintf("job %q", spec.Name), problems...)
	}
	receipt, err := s.submit(ctx, submit)
	if err != nil {
		return nil, err
	}
	return &starlingv1.SubmitJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, nil
}

// KillJob ends a job for good.
func (s *server) KillJob(ctx context.Context, request *starlingv1.KillJobRequest) (*starlingv1.KillJobResponse, error) {
	if problems := jobProblems(request); len(problems) > 0 {
		return nil, invalid("the request", problems...)
	}
	kill := &command.KillJob{
		RequestID: request.GetRequestId(), Job: terms.JobName(request.GetJob()), Against: request.GetAgainst(),
	}
	receipt, err := s.submit(ctx, kill)
	if err != nil {
		return nil, err
	}
	return &starlingv1.KillJobResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, nil
}

// submit appends the command and returns what became of it.
func (s *server) submit(ctx context.Context, c command.Command) (replica.Receipt, error) {
	wait, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	receipt, err := s.backend.Submit(wait, c)
	switch {
	case err != nil && wait.Err() != nil && ctx.Err() == nil:
		return receipt, &wire.Failure{Code: wire.Unavailable, Reason: fmt.Sprintf(
			"the outcome is not known after %s: send it again with the same request_id, it will count once", s.wait)}
	case err != nil:
		return receipt, fmt.Errorf("%s: %w", c.Kind(), err)
	case receipt.Refusal.Code != facts.OK:
		return receipt, wire.Refused(receipt.Index, receipt.Refusal)
	}
	return receipt, nil
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
