package api

import (
	"context"
	"fmt"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/command"
	"starling/replica/storage"
	"starling/terms"
)

// ListVolumes lists one page of volumes in the order of their names. The token of a page is its first id.
func (s *server) ListVolumes(ctx context.Context,
	request *starlingv1.ListVolumesRequest) (*starlingv1.ListVolumesResponse, error) {
	size, err := pageSize(request.GetPageSize(), pageSizeDefault)
	if err != nil {
		return nil, err
	}
	from, ok := terms.ParseVolumeSet(request.GetPageToken())
	if request.GetPageToken() != "" && !ok {
		return nil, invalid("the request", volumesProblem("page_token", request.GetPageToken()))
	}
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.ListVolumesResponse{Index: uint64(state.Index), Time: timestamp(state.Time)}
	sees := s.seer(ctx)
	for _, one := range storage.List(state) {
		job := one.Set.Slot.Job
		if one.Set.Compare(from) < 0 || !strings.HasPrefix(string(job), request.GetPrefix()) || !sees(job.Pool()) {
			continue
		}
		if len(answer.Volumes) == size {
			answer.NextPageToken = one.Set.String()
			break
		}
		answer.Volumes = append(answer.Volumes, view.Volumes(state, &one))
	}
	return answer, nil
}

// RemoveVolumes deletes what volumes hold.
func (s *server) RemoveVolumes(ctx context.Context,
	request *starlingv1.RemoveVolumesRequest) (*starlingv1.RemoveVolumesResponse, error) {
	problems := requestIDProblems(request.GetRequestId())
	set, ok := terms.ParseVolumeSet(request.GetVolumes())
	if !ok {
		problems = append(problems, volumesProblem("volumes", request.GetVolumes()))
	}
	receipt, err := s.submit(ctx, &command.RemoveVolumes{RequestID: request.GetRequestId(), Volumes: set}, problems...)
	return &starlingv1.RemoveVolumesResponse{Index: uint64(receipt.Index), Job: string(receipt.Job)}, err
}

func volumesProblem(field, got string) terms.Problem {
	return terms.Problem{Path: field, Reason: fmt.Sprintf("must be volumes such as db.main[2]@17, is %q", got)}
}
