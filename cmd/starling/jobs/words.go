package jobs

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	starlingv1 "starling/api/v1"
)

// span is a duration as people say it: its two largest units.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// age is the time since a moment, "-" if that is not known.
func age(since *timestamppb.Timestamp) string {
	if since == nil {
		return "-"
	}
	return span(time.Since(since.AsTime()))
}

// noInstances is the tally of a task without any.
const noInstances = "no instances"

// tally tells how many slots are in which phase, for example "2 running, 1 waiting".
func tally(c *starlingv1.Counts) string {
	parts := []string{}
	for _, p := range []struct {
		count uint32
		phase string
	}{
		{c.GetRunning(), "running"}, {c.GetAssigned(), "starting"}, {c.GetWaiting(), "waiting"},
		{c.GetDelayed(), "waiting to restart"}, {c.GetPostponed(), "postponed"}, {c.GetAway(), "out of reach"},
		{c.GetStopping(), "stopping"}, {c.GetSucceeded(), "succeeded"},
		{c.GetFailed(), "failed"}, {c.GetStopped(), "stopped"},
	} {
		if p.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.count, p.phase))
		}
	}
	if len(parts) == 0 {
		return noInstances
	}
	return strings.Join(parts, ", ")
}

// tallyOf tells how many slots of a job are in which phase. Those of tasks that wait for others count by themselves.
func tallyOf(status *starlingv1.JobStatusResponse) string {
	waiting := waitingOf(status)
	held := status.GetJob().GetCounts().GetWaiting() - waiting
	if held == 0 {
		return tally(status.GetJob().GetCounts())
	}
	c := proto.CloneOf(status.GetJob().GetCounts())
	c.Waiting = waiting
	later := fmt.Sprintf("%d to come after others", held)
	if text := tally(c); text != noInstances {
		return text + ", " + later
	}
	return later
}

// waitingOf counts the instances that wait for room, and not for other tasks.
func waitingOf(status *starlingv1.JobStatusResponse) uint32 {
	waiting := status.GetJob().GetCounts().GetWaiting()
	for _, task := range status.GetTasks() {
		if task.GetState() == "held" {
			waiting -= min(waiting, task.GetCounts().GetWaiting())
		}
	}
	return waiting
}
