package target

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

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

// Status reads a job with its slots, up to what is shown to people if it is for them.
func Status(ctx context.Context, r *remote.Remote, name string, forPeople bool) (*starlingv1.JobStatusResponse, error) {
	peer, err := r.Dial()
	if err != nil {
		return nil, err
	}
	question := &starlingv1.JobStatusRequest{Job: name, PageSize: PageSize}
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

// Resolve finds out what a user means: of the readings that will do, the first whose job there is.
func Resolve(ctx context.Context, r *remote.Remote, readings []Target) (Target, error) {
	if len(readings) == 1 {
		return readings[0], nil
	}
	peer, err := r.Dial()
	if err != nil {
		return Target{}, err
	}
	var missing []string
	for _, t := range readings {
		if status, err := Known(ctx, peer, t.Job); err != nil || status != nil {
			return t, err
		}
		missing = append(missing, strconv.Quote(t.Job))
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
