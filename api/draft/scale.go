package draft

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/jobspec/sizing"
	"starling/terms"
)

// Scaled returns a job with other numbers of instances, nil if it has them already, or why it cannot have them.
func Scaled(ctx context.Context, peer *client.Client, status *starlingv1.JobStatusResponse,
	sizes []sizing.Size) (*terms.Job, error) {
	earlier, err := earlierVersions(ctx, peer, status)
	if err != nil {
		return nil, err
	}
	return rescaled(status, earlier, sizes)
}

func rescaled(status *starlingv1.JobStatusResponse, earlier []*terms.Job, sizes []sizing.Size) (*terms.Job, error) {
	now := status.GetJob()
	job := now.GetName()
	switch {
	case now.GetStatus() == "stopping", now.GetFinal() && (now.GetType() == "batch" || now.GetStatus() == "stopped"):
		return nil, conflict("job %s is %s, so it is not scaled any more: `starling run FILE` starts it again", job,
			now.GetStatus())
	}
	if err := unfinished(status); err != nil {
		return nil, err
	}
	old, problems := wire.SpecOf(status.GetSpec())
	if len(problems) > 0 {
		return nil, fmt.Errorf("job %s: %s %s", job, problems[0].Path, problems[0].Reason)
	}
	for _, task := range status.GetTasks() {
		isMeant := func(s sizing.Size) bool {
			return string(s.Task) == task.GetName() || s.Task == "" && len(status.GetTasks()) == 1
		}
		if task.GetSealedBy() != "" && slices.ContainsFunc(sizes, isMeant) {
			return nil, conflict("task %s of job %s is not scaled any more: %s has sealed it, so that no instance of it begins",
				task.GetName(), job, task.GetSealedBy())
		}
	}
	spec, err := sizing.Scaled(old, earlier, sizes)
	switch {
	case err != nil:
		return nil, &wire.Failure{Code: wire.Invalid, Reason: err.Error()}
	case spec.Equal(old):
		return nil, nil
	}
	return spec, nil
}

// unfinished is an error if an update to the newest version has ended before all instances were of it: what is scaled
// would be that version, and all would move there.
func unfinished(status *starlingv1.JobStatusResponse) error {
	update, others := status.GetJob().GetUpdate(), uint32(0)
	for _, task := range status.GetTasks() {
		others += task.GetChanges().GetReplace()
	}
	switch update.GetState() {
	case facts.UpdateAborted.String(), facts.UpdateFailed.String():
		if others > 0 {
			return conflict("the update of job %s to version %d is %s, and instances of other versions are left: %d. Scaled, all would "+
				"go to version %[2]d: say first which is meant, as by `starling job revert %[1]s VERSION`",
				status.GetJob().GetName(), update.GetTo(), strings.ToLower(update.GetState()), others)
		}
	}
	return nil
}

func conflict(format string, args ...any) error {
	return &wire.Failure{Code: wire.Conflict, Reason: fmt.Sprintf(format, args...)}
}

// earlierVersions returns the versions of a job before the present one, the newest first, if it has a task without
// instances.
func earlierVersions(ctx context.Context, peer *client.Client,
	status *starlingv1.JobStatusResponse) (earlier []*terms.Job, err error) {
	if !slices.ContainsFunc(status.GetSpec().GetTasks(),
		func(t *starlingv1.TaskSpec) bool { return t.GetInstances() == 0 }) {
		return nil, nil
	}
	history, err := peer.JobHistory(ctx, terms.JobName(status.GetJob().GetName()))
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(history.GetVersions()) {
		if spec, problems := wire.SpecOf(v.GetSpec()); len(problems) == 0 && v.GetNumber() < status.GetJob().GetVersion() {
			earlier = append(earlier, spec)
		}
	}
	return earlier, nil
}
