package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/remote"
	"starling/terms"
)

// SlotsShownMax bounds the instances that are shown to people; programs get all, PageSize at a time.
const (
	SlotsShownMax = 200
	PageSize      = 1000
)

// Status reads a job with its slots, or those of the task that is meant, up to what is shown to people if it is for
// them.
func Status(ctx context.Context, r *remote.Remote, t Target, forPeople bool) (*starlingv1.JobStatusResponse, error) {
	peer, err := r.Dial()
	if err != nil {
		return nil, err
	}
	question := &starlingv1.JobStatusRequest{Job: t.Job, Task: t.Task, PageSize: PageSize}
	if forPeople {
		question.PageSize = SlotsShownMax
	}
	var all []*starlingv1.Slot
	for {
		page, err := peer.JobStatus(ctx, question)
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetSlots()...)
		page.Slots = all
		if page.GetNextPageToken() == "" || forPeople {
			return page, nil
		}
		question.PageToken = page.GetNextPageToken()
	}
}

// Known returns how a job stands, nil if there is none.
func Known(ctx context.Context, peer *client.Client, job string) (*starlingv1.JobStatusResponse, error) {
	status, err := peer.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: job, PageSize: 1})
	var refused *wire.Failure
	if errors.As(err, &refused) && refused.Code == wire.NotFound {
		return nil, nil
	}
	return status, err
}

// Resolve finds out what a user means: of the readings that will do, the first whose job there is. A job that the user
// may not see is none, unless the user may see none of them.
func Resolve(ctx context.Context, r *remote.Remote, readings []Target) (Target, error) {
	if len(readings) == 1 {
		return readings[0], nil
	}
	peer, err := r.Dial()
	if err != nil {
		return Target{}, err
	}
	var missing []string
	var denied error
	for _, t := range readings {
		var refused *wire.Failure
		switch status, err := Known(ctx, peer, t.Job); {
		case errors.As(err, &refused) && refused.Code == wire.Denied:
			denied = cmp.Or(denied, err)
		case err != nil || status != nil:
			return t, err
		default:
			missing = append(missing, strconv.Quote(t.Job))
		}
	}
	if len(missing) == 0 {
		return Target{}, denied
	}
	return Target{}, fmt.Errorf("there is no job %s: `starling ps` lists them; those that have ended are forgotten after a while, with keep: 0 at once",
		strings.Join(missing, ", and no job "))
}

// SlotName names a slot within its job: "server[2]".
func SlotName(slot *starlingv1.Slot) string {
	return fmt.Sprintf("%s[%d]", slot.GetTask(), slot.GetNumber())
}

// Used writes how much is used of a kind, "-" if that is not known.
func Used(u *starlingv1.Use, k terms.Kind) string {
	switch {
	case u == nil:
		return "-"
	case k == terms.CPU:
		return k.Round(u.GetCpuMillicores())
	}
	return k.Round(u.GetMemoryBytes())
}

// Uses of what a status shows are asked for no longer than usesMax, and read for usesMillis.
const (
	usesMillis = 200
	usesMax    = 3 * time.Second
)

// Uses asks what the instances of a job use, by their allocations; nil if none runs, or if nobody tells that in time.
func Uses(ctx context.Context, r *remote.Remote,
	status *starlingv1.JobStatusResponse) map[string]*starlingv1.InstanceUse {
	runs := slices.ContainsFunc(status.GetSlots(), func(s *starlingv1.Slot) bool { return s.GetPhase() == "running" })
	peer, err := r.Dial()
	if err != nil || !runs {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, usesMax)
	defer cancel()
	answer, err := peer.InstanceStats(ctx, &starlingv1.InstanceStatsRequest{Job: status.GetJob().GetName(),
		WindowMillis: usesMillis})
	if err != nil {
		return nil
	}
	uses := map[string]*starlingv1.InstanceUse{}
	for _, one := range answer.GetInstances() {
		uses[one.GetAllocation()] = one
	}
	return uses
}

// Beside writes what an instance uses of a kind beside its limit: "0.5/2", "-" if that is not known.
func Beside(one *starlingv1.InstanceUse, k terms.Kind) string {
	if one.GetUse() == nil {
		return "-"
	}
	return Used(one.GetUse(), k) + "/" + k.Round(wire.ResourcesOf(one.GetLimits())[k])
}
