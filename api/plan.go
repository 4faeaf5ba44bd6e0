package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/command"
	"starling/plugin"
	"starling/replica/forecast"
	"starling/schedule/explain"
	"starling/terms"
	"starling/terms/rules"
)

// PlanJob tells what would come of a job, or a new version of one.
func (s *server) PlanJob(ctx context.Context, request *starlingv1.PlanJobRequest) (*starlingv1.PlanJobResponse, error) {
	if request.GetSpec() == nil {
		return nil, invalid("the request holds no job", terms.Problem{Path: "spec", Reason: "must not be absent"})
	}
	spec, problems := wire.SpecOf(request.GetSpec())
	if problems = append(problems, plugin.Problems(spec, rules.Released)...); len(problems) > 0 {
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
	if f.Refusal.Code != cluster.OK {
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
		answer.Update = updateMessage(&after.Update)
		answer.Tasks, answer.Findings = taskPlans(before, after, answer.GetChanges()), findings(explain.Job(f.End, after, nil, forecast.Tries(f.End, spec.Name)))
	}
	return answer, nil
}

// taskPlans compares the slots of a job before and after; before is nil for a new job.
func taskPlans(before, after *cluster.Job, changes []*starlingv1.Change) []*starlingv1.TaskPlan {
	var plans []*starlingv1.TaskPlan
	for _, t := range after.Tasks {
		plan := &starlingv1.TaskPlan{Task: string(t.Name), Waiting: t.Counts[cluster.Waiting]}
		old, edited := (*cluster.Task)(nil), isEdited(changes, t.Name)
		if before != nil && before.TaskIndex(t.Name) >= 0 {
			old = before.Tasks[before.TaskIndex(t.Name)]
		}
		for index := range max(t.Slots.Len(), slots(old)) {
			a, b := rowOf(old, index), rowOf(t, index)
			switch {
			case a.Phase.Holds() && b.Phase.Holds() && a.Order == b.Order && edited:
				plan.UpdatedInPlace++
			case a.Phase.Holds() && b.Phase.Holds() && a.Order == b.Order:
				plan.Unchanged++
			case a.Phase.Holds() && b.Phase.Holds():
				plan.Replaced++
			case a.Phase.Holds():
				plan.Stopped++
			case b.Phase.Holds():
				plan.Placed++
			}
		}
		plans = append(plans, plan)
	}
	return plans
}

// isEdited tells whether something of a task changes for instances that go on running.
func isEdited(changes []*starlingv1.Change, task terms.TaskName) bool {
	return slices.ContainsFunc(changes, func(c *starlingv1.Change) bool {
		rest, ok := strings.CutPrefix(c.GetPath(), "tasks."+string(task)+".")
		return ok && !c.GetReplaces() && rest != "instances"
	})
}

func slots(t *cluster.Task) int {
	if t == nil {
		return 0
	}
	return t.Slots.Len()
}

// rowOf returns a slot, the zero one if there is none.
func rowOf(t *cluster.Task, index int) cluster.Slot {
	if index >= slots(t) {
		return cluster.Slot{}
	}
	return t.Slots.At(index)
}
