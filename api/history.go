package api

import (
	"context"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
)

// JobHistory lists the versions of a job that are kept.
func (s *server) JobHistory(ctx context.Context, request *starlingv1.JobHistoryRequest) (*starlingv1.JobHistoryResponse, error) {
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

// versions returns the messages of a job's versions, the oldest first.
func versions(j *cluster.Job) []*starlingv1.JobVersion {
	var messages []*starlingv1.JobVersion
	for number := uint32(1); number <= j.Version; number++ {
		if spec := j.SpecOf(number); spec != nil {
			messages = append(messages, &starlingv1.JobVersion{Number: number, Kind: "submitted", Spec: wire.Spec(spec)})
		}
	}
	return messages
}
