package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"starling/api/caution"
	"starling/api/difference"
	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/forecast"
	"starling/rights"
	"starling/schedule/explain"
	"starling/terms"
	"starling/validate"
)

// PlanJob tells what would come of a job, or a new version of one.
func (s *server) PlanJob(ctx context.Context, request *starlingv1.PlanJobRequest) (*starlingv1.PlanJobResponse, error) {
	spec, err := specOf(request, nil)
	if err != nil {
		return nil, err
	}
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	warnings, err := s.warnings(ctx, state, spec)
	if err != nil {
		return nil, err
	}
	if err := unseenBefore(ctx, state, spec); err != nil {
		return nil, err
	}
	answer := &starlingv1.PlanJobResponse{Index: uint64(state.Index), Job: string(spec.Name), Warnings: warnings}
	before := state.JobOf(spec.Name)
	if before != nil && before.Finished != 0 {
		before = nil
	}
	if before != nil {
		answer.Version = before.Version
		answer.Changes = changes(before.Spec, spec)
	}
	place, err := s.imagining.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer place.Done()
	f := forecast.Of(state, &command.SubmitJob{Against: answer.Version, Spec: *spec}, spec.Name, enough(ctx))
	if f.Refusal.Code != facts.OK {
		return nil, wire.Refused(state.Index, f.Refusal)
	}
	answer.Cut, answer.Complete = f.Cut, f.Complete
	addWaves(answer, f.Waves, s.seer(ctx))
	if after := f.End.JobOf(spec.Name); after != nil {
		answer.Findings = findings(explain.Job(f.End, after,
			&explain.Reader{Try: forecast.Tries(f.End, spec.Name), Sees: s.seer(ctx)}))
		if before != nil && len(answer.GetChanges()) == 0 {
			after = before
		}
		answer.Update, answer.Tasks = view.Update(&after.Update), taskPlans(before, after)
	}
	return answer, nil
}

// addWaves tells the steps of a plan; of the jobs that the caller may not see only how many there are.
func addWaves(answer *starlingv1.PlanJobResponse, waves []forecast.Wave, sees func(terms.PoolPath) bool) {
	for _, w := range waves {
		wave := &starlingv1.Wave{AfterMillis: uint64(w.After), Needs: w.Needs.String()}
		for _, step := range w.Steps {
			own := string(step.Slot.Job) == answer.Job
			if !own {
				answer.Others++
			}
			if own || sees(step.Slot.Job.Pool()) {
				wave.Steps = append(wave.Steps, &starlingv1.Step{
					Job: string(step.Slot.Job), Task: string(step.Slot.Task), Number: step.Slot.Index, Stops: string(step.Stops),
					Starts: string(step.Starts), Reason: step.Reason, Canary: step.Seat == facts.CanarySeat,
				})
			}
		}
		answer.Waves = append(answer.Waves, wave)
	}
}

// warnings pins the images of a job as SubmitJob does, and tells what a user should know of the job before it runs, and
// why it would be refused. Registries are asked only for those who may submit the job.
func (s *server) warnings(ctx context.Context, state *cluster.State, spec *terms.Job) ([]string, error) {
	if by, ok := s.signed(ctx, &command.SubmitJob{Spec: *spec}).(*command.As); ok {
		if refusal := rights.OfCommand(state, by.Subject, by.Command); refusal != "" {
			return append(caution.Of(state, spec, s.backend.Self().Node()), "it would be refused: "+refusal), nil
		}
	}
	if err := s.pin(ctx, spec); err != nil {
		return nil, err
	}
	return caution.Of(state, spec, s.backend.Self().Node()), nil
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

// imaginedWithin bounds how long a peer imagines what would come of a request: less than its caller waits.
const imaginedWithin = 20 * time.Second

// enough returns what tells that a request has been imagined for long enough, or that nobody waits for it any more.
func enough(ctx context.Context) func() bool {
	began := time.Now()
	return func() bool { return ctx.Err() != nil || time.Since(began) >= imaginedWithin }
}

// WhatIf tells what would come of imagined changes of the cluster.
func (s *server) WhatIf(ctx context.Context,
	request *starlingv1.WhatIfRequest) (*starlingv1.WhatIfResponse, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	change, err := imagined(state, request)
	if err != nil {
		return nil, err
	}
	place, err := s.imagining.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer place.Done()
	found := forecast.Compare(state, change, enough(ctx))
	if found.Refusal.Code != facts.OK {
		return nil, &wire.Failure{Code: wire.Refused(state.Index, found.Refusal).Code, Index: state.Index,
			Reason: refusedBecause(found.Refused) + found.Refusal.Reason}
	}
	answer := difference.WhatIf(request, &found, func(name terms.JobName) []*starlingv1.Finding {
		return findings(explain.Job(found.With, found.With.JobOf(name),
			&explain.Reader{Try: forecast.Tries(found.With, name)}))
	})
	for i := range change.Add {
		answer.Added = append(answer.Added, string(change.Add[i].Name))
	}
	return answer, nil
}

// imagined returns what a request asks for.
func imagined(state *cluster.State, request *starlingv1.WhatIfRequest) (*forecast.Change, error) {
	change := &forecast.Change{}
	for _, add := range request.GetAdd() {
		if err := addMachines(state, change, add); err != nil {
			return nil, err
		}
	}
	if put, problems := wire.PoolsOf(request.GetPools()); len(put)+len(request.GetGone())+len(problems) > 0 {
		if len(problems) > 0 {
			return nil, invalid("the pools", problems...)
		}
		pools := &command.ChangePools{Pools: put}
		for _, path := range request.GetGone() {
			pools.Gone = append(pools.Gone, terms.PoolPath(path))
		}
		if _, err := changedTree(state, pools); err != nil {
			return nil, err
		}
		change.Commands = append(change.Commands, pools)
	}
	for _, name := range request.GetDrain() {
		if err := aliveNode(state, name, "drained"); err != nil {
			return nil, err
		}
		change.Commands = append(change.Commands, &command.DrainNode{Node: terms.NodeName(name), Drain: true,
			DeadlineMillis: request.GetDrainDeadlineMillis()})
	}
	for _, name := range request.GetKill() {
		if err := aliveNode(state, name, "killed"); err != nil {
			return nil, err
		}
		change.Commands = append(change.Commands, &command.Leave{Peer: state.NodeOf(terms.NodeName(name)).Peer})
	}
	if err := addJobs(state, change, request.GetRun()); err != nil {
		return nil, err
	}
	if len(change.Commands)+len(change.Add) == 0 {
		return nil, invalid("the request", terms.Problem{Path: "kill", Reason: "nothing is to be imagined: " +
			"name machines to kill, drain or add, jobs to run, or pools"})
	}
	return change, nil
}

// addJobs adds jobs that are submitted to a change, or new versions of them.
func addJobs(state *cluster.State, change *forecast.Change, specs []*starlingv1.JobSpec) error {
	for _, m := range specs {
		spec, problems := wire.SpecOf(m)
		if problems = append(problems, validate.Submission(spec)...); len(problems) > 0 {
			return invalid(fmt.Sprintf("job %q", spec.Name), problems...)
		}
		against := uint32(0)
		if present := state.JobOf(spec.Name); present != nil && present.Finished == 0 {
			against = present.Version
		}
		change.Commands = append(change.Commands, &command.SubmitJob{Against: against, Spec: *spec})
	}
	return nil
}

// aliveNode is an error for a node that cannot be killed or drained.
func aliveNode(state *cluster.State, name, becomes string) error {
	node := state.NodeOf(terms.NodeName(name))
	switch {
	case node == nil:
		return &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: fmt.Sprintf(
			"there is no machine %q to be %s: `starling peers` lists them", name, becomes)}
	case node.Peer == "":
		return &wire.Failure{Code: wire.Conflict, Index: state.Index, Reason: fmt.Sprintf(
			"machine %s cannot be %s: it has left the cluster already", name, becomes)}
	}
	return nil
}

// addMachines adds machines to a change, with names that the cluster does not have.
func addMachines(state *cluster.State, change *forecast.Change, add *starlingv1.ImaginedNodes) error {
	offer := terms.Offer{PortFirst: 20000, PortLast: 29999, Rules: state.Rules}
	if like := add.GetLike(); like != "" {
		node := state.NodeOf(terms.NodeName(like))
		if node == nil || node.Offer == nil {
			return &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: fmt.Sprintf(
				"no machine can be like %q: there is none of that name that gives anything; `starling peers` lists them", like)}
		}
		offer = *node.Offer
	}
	given := add.GetCapacity()
	for k, amount := range []int64{given.GetCpuMillicores(), given.GetMemoryBytes(), given.GetDiskBytes()} {
		if amount != 0 {
			offer.Capacity[k] = amount
		}
	}
	if len(add.GetDevices()) > 0 {
		offer.Devices = nil
		for _, d := range add.GetDevices() {
			offer.Devices = append(offer.Devices, terms.DeviceOffer{Kind: d.GetKind(), Count: d.GetCount(), Model: d.GetModel()})
		}
	}
	attributes := slices.Clone(offer.Attributes)
	for _, v := range add.GetAttributes() {
		attributes = withAttribute(attributes, v.GetName(), v.GetValue())
	}
	if add.GetCount() == 0 || int(add.GetCount())+len(change.Add) > forecast.AddedMax {
		return invalid("the request", terms.Problem{Path: "add", Reason: fmt.Sprintf("must be 1 to %d machines, in all",
			forecast.AddedMax)})
	}
	number := len(change.Add)
	for left := add.GetCount(); left > 0; {
		number++
		name := terms.NodeName(fmt.Sprintf("new-%d", number))
		if state.NodeOf(name) != nil {
			continue
		}
		one := offer
		one.Attributes = withAttribute(slices.Clone(attributes), terms.NodeAttribute, string(name))
		change.Add = append(change.Add, forecast.Machine{Name: name, Offer: one})
		left--
	}
	return nil
}

// withAttribute puts an attribute into its place among others, or replaces what is there.
func withAttribute(all []terms.EnvVar, name, value string) []terms.EnvVar {
	at, found := slices.BinarySearchFunc(all, name, func(v terms.EnvVar, name string) int {
		return cmp.Compare(v.Name, name)
	})
	if found {
		all[at].Value = value
		return all
	}
	return slices.Insert(all, at, terms.EnvVar{Name: name, Value: value})
}

// refusedBecause says what would be refused.
func refusedBecause(c command.Command) string {
	switch c := c.(type) {
	case *command.SubmitJob:
		return fmt.Sprintf("job %s would be refused: ", c.Spec.Name)
	case *command.DrainNode:
		return fmt.Sprintf("the drain of %s would be refused: ", c.Node)
	case *command.ChangePools:
		return "the change of the pools would be refused: "
	case *command.Leave:
		return fmt.Sprintf("%s cannot be killed: ", c.Peer)
	}
	return ""
}
