package difference

import (
	starlingv1 "starling/api/v1"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/replica/forecast"
	"starling/terms"
)

// explainedMax bounds the jobs of which it is told why they wait.
const explainedMax = 20

// WhatIf says what a comparison has found; explain tells why a job waits.
func WhatIf(request *starlingv1.WhatIfRequest, found *forecast.Comparison,
	explain func(terms.JobName) []*starlingv1.Finding) *starlingv1.WhatIfResponse {
	answer := &starlingv1.WhatIfResponse{Index: uint64(found.Without.Index), Complete: found.Complete}
	before, after := found.Without.Capacity(), found.With.Capacity()
	for k := range before {
		kind := terms.Kind(k).String()
		answer.CapacityBefore = append(answer.CapacityBefore, &starlingv1.Amount{Kind: kind, Amount: before[k]})
		answer.CapacityAfter = append(answer.CapacityAfter, &starlingv1.Amount{Kind: kind, Amount: after[k]})
	}
	d := &imagined{found: found, answer: answer, explain: explain, killed: map[string]bool{}, drained: map[string]bool{}}
	for _, name := range request.GetKill() {
		d.killed[name] = true
	}
	for _, name := range request.GetDrain() {
		d.drained[name] = true
	}
	d.all()
	return answer
}

// imagined compares what comes of a value without changes and with them.
type imagined struct {
	found           *forecast.Comparison
	answer          *starlingv1.WhatIfResponse
	explain         func(terms.JobName) []*starlingv1.Finding
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
func (d *imagined) all() {
	explained := 0
	for _, name := range jobNames(d.found.Without, d.found.With) {
		waiting := d.counts[itWaits]
		d.job(name)
		if d.counts[itWaits] == waiting || explained == explainedMax {
			continue
		}
		explained++
		for _, f := range d.explain(name) {
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
func (d *imagined) job(name terms.JobName) {
	before, after := d.found.Without.JobOf(name), d.found.With.JobOf(name)
	for _, task := range taskNames(before, after) {
		old, now := taskOf(before, task), taskOf(after, task)
		for index := range max(Slots(old), Slots(now)) {
			a, b := RowOf(old, index), RowOf(now, index)
			if runs(a) {
				d.answer.RunningBefore++
			}
			if runs(b) {
				d.answer.RunningAfter++
			}
			if what, differs := differenceOf(a, b, index < Slots(old), index < Slots(now)); differs {
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
func (d *imagined) add(slot terms.SlotName, what difference, a, b facts.Slot) {
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
