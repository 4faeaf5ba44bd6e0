package conformance

import (
	"fmt"
	"slices"
)

// occupant is an allocation as it is after a result was applied.
type occupant struct {
	id              string
	index           uint32
	canary, unknown bool
}

// breaches lists where a result leaves something that slots forbid: the rules by which a choice against the peer is
// judged, and our own results as well.
func (f *reconcileFile) breaches(e *nomadExpected) []string {
	var found []string
	if f.Input.Job == nil || f.Input.Job.Stop {
		return nil
	}
	for _, g := range f.Input.Job.Groups {
		live := f.after(g.Name, e)
		for i, o := range live {
			if o.index >= g.Count {
				found = append(found, fmt.Sprintf("leaves %s alive at index %d of %d", o.id, o.index, g.Count))
			}
			if slices.ContainsFunc(live[:i], func(p occupant) bool {
				return p.index == o.index && p.canary == o.canary && !p.unknown && !o.unknown
			}) {
				found = append(found, fmt.Sprintf("leaves two instances alive at index %d", o.index))
			}
		}
		if e.Created != nil && e.Created.Groups[g.Name].DesiredCanaries > g.Count {
			found = append(found, fmt.Sprintf("wants %d canaries for %d slots", e.Created.Groups[g.Name].DesiredCanaries,
				g.Count))
		}
	}
	return append(found, twice(e)...)
}

// after returns the instances of a group that are meant to run after the result was applied.
func (f *reconcileFile) after(group string, e *nomadExpected) []occupant {
	var live []occupant
	canaries := f.Input.Deployment
	for _, a := range f.Input.AllocsParsed {
		stopped := slices.ContainsFunc(e.Stop, func(s nomadStop) bool { return s.Alloc == a.ID }) ||
			slices.ContainsFunc(e.Destructive, func(r nomadReplacement) bool { return r.Stop == a.ID })
		ended := a.Desired != "run" || slices.Contains([]string{"complete", "failed", "lost"}, a.Client)
		if a.Group != group || stopped || ended {
			continue
		}
		unknown := a.Client == "unknown" ||
			slices.ContainsFunc(e.Disconnects, func(m nomadMark) bool { return m.Alloc == a.ID })
		canary := canaries != nil && !canaries.Groups[group].Promoted &&
			slices.Contains(canaries.Groups[group].PlacedCanaries, a.ID)
		live = append(live, occupant{a.ID, a.Index, canary, unknown})
	}
	for _, p := range e.Place {
		if p.Group == group {
			live = append(live, occupant{"a new instance", p.Index, p.Canary, false})
		}
	}
	for _, r := range e.Destructive {
		if r.Group == group {
			live = append(live, occupant{"a new instance", r.Index, false, false})
		}
	}
	return live
}

// twice lists allocations that two things are done about.
func twice(e *nomadExpected) []string {
	var found []string
	for _, r := range e.Destructive {
		waits := slices.ContainsFunc(e.Attributes, func(m nomadMark) bool { return m.Alloc == r.Stop })
		stops := slices.ContainsFunc(e.Stop, func(s nomadStop) bool { return s.Alloc == r.Stop })
		if waits || stops {
			found = append(found, "does two things about "+r.Stop)
		}
	}
	return found
}
