package api

import (
	"context"
	"fmt"

	"starling/api/difference"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/forecast"
	"starling/schedule/explain"
	"starling/terms"
	"starling/terms/rules"
	"starling/validate"
)

// PlanJob tells what would come of a job, or a new version of one.
func (s *server) PlanJob(ctx context.Context, request *starlingv1.PlanJobRequest) (*starlingv1.PlanJobResponse, error) {
	if request.GetSpec() == nil {
		return nil, invalid("the request holds no job", terms.Problem{Path: "spec", Reason: "must not be absent"})
	}
	spec, problems := wire.SpecOf(request.GetSpec())
	if problems = append(problems, validate.Job(spec, rules.Released)...); len(problems) > 0 {
		return nil, invalid(fmt.Sprintf("job %q", spec.Name), problems...)
	}
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.PlanJobResponse{Index: uint64(state.Index), Job: string(spec.Name)}
	before := state.JobOf(spec.Name)
	if before != nil && before.Finished != 0 {
		before = nil
	}
	if before != nil {
		answer.Version = before.Version
		answer.Changes = changes(before.Spec, spec)
	}
	done, err := s.imagine(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	f := forecast.Of(state, &command.SubmitJob{Against: answer.Version, Spec: *spec}, spec.Name)
	if f.Refusal.Code != facts.OK {
		return nil, wire.Refused(state.Index, f.Refusal)
	}
	answer.Cut, answer.Complete = f.Cut, f.Complete
	for _, w := range f.Waves {
		wave := &starlingv1.Wave{AfterMillis: uint64(w.After), Needs: w.Needs.String()}
		for _, step := range w.Steps {
			wave.Steps = append(wave.Steps, &starlingv1.Step{
				Job: string(step.Slot.Job), Task: string(step.Slot.Task), Number: step.Slot.Index, Stops: string(step.Stops),
				Starts: string(step.Starts), Reason: step.Reason,
			})
			if step.Slot.Job != spec.Name {
				answer.Others++
			}
		}
		answer.Waves = append(answer.Waves, wave)
	}
	if after := f.End.JobOf(spec.Name); after != nil {
		answer.Findings = findings(explain.Job(f.End, after, nil, forecast.Tries(f.End, spec.Name)))
		if before != nil && len(answer.GetChanges()) == 0 {
			after = before
		}
		answer.Update, answer.Tasks = updateMessage(&after.Update), taskPlans(before, after)
	}
	return answer, nil
}

// taskPlans compares the slots of a job before and after; before is nil for a new job.
func taskPlans(before, after *workload.Job) []*starlingv1.TaskPlan {
	var plans []*starlingv1.TaskPlan
	for number, t := range after.Tasks {
		plan := &starlingv1.TaskPlan{Task: string(t.Name), Waiting: t.Counts[facts.Waiting]}
		old, was := (*workload.Task)(nil), -1
		if before != nil {
			was = before.TaskIndex(t.Name)
		}
		if was >= 0 {
			old = before.Tasks[was]
		}
		for index := range max(t.Slots.Len(), difference.Slots(old)) {
			a, b := difference.RowOf(old, index), difference.RowOf(t, index)
			switch {
			case !a.Phase.Holds() || !b.Phase.Holds() || a.Order != b.Order:
				countMoved(plan, a.Phase.Holds(), b.Phase.Holds())
			case b.Phase == facts.Stopping && a.Phase != facts.Stopping:
				plan.Stopped++ // its machine is out of reach
			case b.Phase != facts.Stopping && b.Version != after.Version:
				plan.Outdated++
			case b.Phase != facts.Stopping:
				countKept(plan, before.TaskSpecOf(was, a.Version), after.TaskSpecOf(number, b.Version))
			}
		}
		plans = append(plans, plan)
	}
	return plans
}

// countMoved counts a slot that has another instance, or none, after it had one or none.
func countMoved(plan *starlingv1.TaskPlan, before, after bool) {
	switch {
	case before && after:
		plan.Replaced++
	case before:
		plan.Stopped++
	case after:
		plan.Placed++
	}
}

// countKept counts an instance that goes on, as it was and as it is.
func countKept(plan *starlingv1.TaskPlan, old, now *terms.Task) {
	if old != nil && now != nil && old.ChangeTo(now) != terms.NoChange {
		plan.UpdatedInPlace++
	} else {
		plan.Unchanged++
	}
}
