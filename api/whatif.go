package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/forecast"
	"starling/schedule/explain"
	"starling/terms"
	"starling/terms/rules"
	"starling/validate"
)

// explainedMax bounds the jobs of which it is told why they wait.
const explainedMax = 20

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
	done, err := s.imagine(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	found := forecast.Compare(state, change)
	if found.Refusal.Code != facts.OK {
		return nil, &wire.Failure{Code: wire.Refused(state.Index, found.Refusal).Code, Index: state.Index,
			Reason: refusedBecause(found.Refused) + found.Refusal.Reason}
	}
	return whatIf(request, change, &found), nil
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
		if problems = append(problems, validate.Job(spec, rules.Released)...); len(problems) > 0 {
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

// whatIf says what a comparison has found.
func whatIf(request *starlingv1.WhatIfRequest, change *forecast.Change,
	found *forecast.Comparison) *starlingv1.WhatIfResponse {
	answer := &starlingv1.WhatIfResponse{Index: uint64(found.Without.Index), Complete: found.Complete}
	for i := range change.Add {
		answer.Added = append(answer.Added, string(change.Add[i].Name))
	}
	before, after := found.Without.Capacity(), found.With.Capacity()
	for k := range before {
		kind := terms.Kind(k).String()
		answer.CapacityBefore = append(answer.CapacityBefore, &starlingv1.Amount{Kind: kind, Amount: before[k]})
		answer.CapacityAfter = append(answer.CapacityAfter, &starlingv1.Amount{Kind: kind, Amount: after[k]})
	}
	d := &differences{found: found, answer: answer, killed: map[string]bool{}, drained: map[string]bool{}}
	for _, name := range request.GetKill() {
		d.killed[name] = true
	}
	for _, name := range request.GetDrain() {
		d.drained[name] = true
	}
	d.all()
	return answer
}

// differences compares what comes of a value without changes and with them.
type differences struct {
	found           *forecast.Comparison
	answer          *starlingv1.WhatIfResponse
	killed, drained map[string]bool
	counts          [differenceCount]uint32
}

// difference is what becomes of an instance.
type difference int

// The differences, in the order in which they are told.
const (
	itStarts difference = iota
	itMoves
	itRestarts
	itWaits
	itUnknown
	itStops
	differenceCount
)

func (d difference) String() string {
	return [...]string{"starts", "moves", "restarts", "waits", "unknown", "stops"}[d]
}

// all compares all jobs, in the order of their names.
func (d *differences) all() {
	var names []terms.JobName
	for _, s := range []*cluster.State{d.found.Without, d.found.With} {
		s.EachJob(func(j *workload.Job) bool {
			names = append(names, j.Name())
			return true
		})
	}
	slices.Sort(names)
	explained := 0
	for _, name := range slices.Compact(names) {
		waiting := d.counts[itWaits]
		d.job(name)
		if d.counts[itWaits] == waiting || explained == explainedMax {
			continue
		}
		explained++
		j := d.found.With.JobOf(name)
		for _, f := range findings(explain.Job(d.found.With, j, nil, forecast.Tries(d.found.With, name))) {
			d.answer.Findings = append(d.answer.Findings, &starlingv1.JobFinding{Job: string(name), Finding: f})
		}
	}
	for what, n := range d.counts {
		if n > 0 {
			d.answer.Counts = append(d.answer.Counts, &starlingv1.DifferenceCount{What: difference(what).String(), Instances: n})
		}
	}
}

// job compares the main seats of a job's slots.
func (d *differences) job(name terms.JobName) {
	before, after := d.found.Without.JobOf(name), d.found.With.JobOf(name)
	var tasks []terms.TaskName
	for _, j := range []*workload.Job{before, after} {
		for number := 0; j != nil && number < len(j.Tasks); number++ {
			if !slices.Contains(tasks, j.Tasks[number].Name) {
				tasks = append(tasks, j.Tasks[number].Name)
			}
		}
	}
	for _, task := range tasks {
		old, now := taskOf(before, task), taskOf(after, task)
		for index := range max(slots(old), slots(now)) {
			a, b := rowOf(old, index), rowOf(now, index)
			if a.Phase.Stays() && a.Phase != facts.Unknown {
				d.answer.RunningBefore++
			}
			if b.Phase.Stays() && b.Phase != facts.Unknown {
				d.answer.RunningAfter++
			}
			if what, differs := differenceOf(a, b, index < slots(old), index < slots(now)); differs {
				d.add(terms.SlotName{Job: name, Task: task, Index: uint32(index)}, what, a, b)
			}
		}
	}
}

func taskOf(j *workload.Job, name terms.TaskName) *workload.Task {
	if j == nil || j.TaskIndex(name) < 0 {
		return nil
	}
	return j.Tasks[j.TaskIndex(name)]
}

// differenceOf tells what becomes of a slot; was and is tell whether there is one.
func differenceOf(a, b facts.Slot, was, is bool) (what difference, differs bool) {
	open := func(s facts.Slot) bool { return !s.Phase.Holds() && !s.Phase.Final() }
	switch {
	case b.Phase == facts.Unknown && a.Phase != facts.Unknown:
		return itUnknown, true
	case a.Phase.Holds() && b.Phase.Holds() && a.Order == b.Order:
		return 0, false
	case a.Phase.Holds() && b.Phase.Holds() && a.Node == b.Node:
		return itRestarts, true
	case a.Phase.Holds() && b.Phase.Holds():
		return itMoves, true
	case b.Phase.Holds():
		return itStarts, true
	case is && open(b):
		return itWaits, !was || !open(a)
	}
	return itStops, a.Phase.Holds()
}

// add notes a difference.
func (d *differences) add(slot terms.SlotName, what difference, a, b facts.Slot) {
	d.counts[what]++
	if len(d.answer.Differences) == forecast.StepsMax {
		d.answer.Cut = true
		return
	}
	m := &starlingv1.Difference{Job: string(slot.Job), Task: string(slot.Task), Number: slot.Index, What: what.String()}
	if a.Phase.Holds() {
		m.Before = string(d.found.Without.Node(a.Node).Name)
	}
	if b.Phase.Holds() {
		m.After = string(d.found.With.Node(b.Node).Name)
	}
	switch {
	case d.killed[m.Before]:
		m.Reason = m.Before + " is gone"
	case d.drained[m.Before]:
		m.Reason = m.Before + " is drained"
	}
	for _, e := range d.found.Preempted {
		if e.Slot == slot && a.Phase.Holds() && e.Order == a.Order {
			m.Preempted, m.Reason = true, "gives way "+e.Reason
		}
	}
	d.answer.Differences = append(d.answer.Differences, m)
}
