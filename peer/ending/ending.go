// Package ending says in the words of the value how the tasks of a driver ended.
package ending

import (
	"cmp"
	"strings"

	"starling/cluster/facts"
	"starling/driver"
	"starling/replica/reaction"
	"starling/terms"
)

// Of returns an allocation as the driver has it, with how it ended if it has.
func Of(id terms.AllocationID, status *driver.Status) reaction.LocalTask {
	task := reaction.LocalTask{ID: id, Files: terms.Index(status.FilesVersion)}
	if status.State != driver.Exited {
		return task
	}
	task.ExitCode, task.Detail = int32(status.ExitCode), Clipped(cmp.Or(status.OutOfDisk, status.Error))
	switch {
	case status.Unproved:
		task.Ended, task.Detail = facts.NodeLost,
			cmp.Or(task.Detail, "it was stopped because its node could not prove in time that it is still a member")
	case status.Lost:
		task.Ended = facts.NodeLost
	case status.OutOfMemory:
		task.Ended = facts.OutOfMemory
	case status.OutOfDisk != "":
		task.Ended = facts.OutOfDisk
	case status.Signal != 0:
		task.Ended = facts.BySignal
	case status.NotThere:
		task.Ended = facts.NotThere
	case status.Error != "":
		task.Ended = facts.NotStarted
	default:
		task.Ended = facts.ByItself
	}
	return task
}

// Clipped returns as much of a reason as a report may have: what has failed is at its beginning, why at its end.
func Clipped(reason string) string {
	const most, cut = facts.FailureDetailBytesMax, " … "
	if len(reason) <= most {
		return reason
	}
	const head = most * 2 / 3
	const tail = most - head - len(cut)
	return strings.ToValidUTF8(reason[:head], "") + cut + strings.ToValidUTF8(reason[len(reason)-tail:], "")
}
