package api

import (
	"cmp"
	"context"
	"fmt"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/jobspec"
	"starling/terms"
)

// JobHistory lists the versions of a job that are kept.
func (s *server) JobHistory(ctx context.Context,
	request *starlingv1.JobHistoryRequest) (*starlingv1.JobHistoryResponse, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	j, err := jobOf(state, request.GetJob())
	if err != nil {
		return nil, err
	}
	return &starlingv1.JobHistoryResponse{
		Index: uint64(state.Index), Time: timestamp(state.Time), Job: jobMessage(j), Versions: versions(j),
	}, nil
}

// JobDiff tells what differs between two versions of a job.
func (s *server) JobDiff(ctx context.Context, request *starlingv1.JobDiffRequest) (*starlingv1.JobDiffResponse, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	j, err := jobOf(state, request.GetJob())
	if err != nil {
		return nil, err
	}
	from, to := request.GetFrom(), cmp.Or(request.GetTo(), j.Version)
	for _, v := range j.Versions {
		if request.GetFrom() == 0 && v.Number < to {
			from = v.Number
		}
	}
	if from == 0 {
		return nil, &wire.Failure{Code: wire.NotFound,
			Reason: fmt.Sprintf("no version of job %s before %d is kept", j.Name(), to)}
	}
	for _, version := range []uint32{from, to} {
		if j.SpecOf(version) == nil {
			return nil, &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf(
				"version %d of job %s is not kept: `starling job history %s` lists those that are", version, j.Name(), j.Name())}
		}
	}
	return &starlingv1.JobDiffResponse{
		Index: uint64(state.Index), Job: string(j.Name()), From: from, To: to, Changes: changes(j.SpecOf(from), j.SpecOf(to)),
	}, nil
}

func changes(from, to *terms.Job) []*starlingv1.Change {
	var messages []*starlingv1.Change
	for _, c := range jobspec.Diff(from, to) {
		messages = append(messages, &starlingv1.Change{
			Path: c.Path, Old: c.Old, New: c.New, Replaces: c.Effect == jobspec.Replaces, Effect: string(c.Effect),
		})
	}
	return messages
}

// versions returns the messages of a job's versions, the oldest first.
func versions(j *cluster.Job) []*starlingv1.JobVersion {
	var messages []*starlingv1.JobVersion
	for _, v := range j.Versions {
		messages = append(messages, &starlingv1.JobVersion{
			Number: v.Number, Kind: v.Kind.String(), Of: v.Of, BroughtIndex: uint64(v.Index), BroughtAt: timestamp(v.At),
			Outcome: v.Outcome.String(), Spec: wire.Spec(v.Spec),
		})
	}
	return messages
}
