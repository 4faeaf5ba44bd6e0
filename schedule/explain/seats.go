package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/schedule/explain/wording"
	"starling/schedule/place"
	"starling/terms"
	"starling/terms/rules"
)

// plain returns the slots that wait for any node.
func plain(slots []held) []held {
	return slices.DeleteFunc(slices.Clone(slots),
		func(h held) bool { return h.slot.Preference != facts.AnyNode || h.slot.Version != 0 })
}

// special explains seats that wait for a particular node, or for a particular version.
func (e *explainer) special() []Finding {
	var found []Finding
	e.task.EachSpecial(e.job.ID, e.number, func(r facts.SlotRef, slot facts.Slot) bool {
		f := e.anyNode(r, slot)
		if slot.Preference == facts.OnlyNode {
			f = e.onlyNode(r, slot)
		}
		f.Task, f.Instances, f.Slot, f.Since = e.task.Name, 1, r.Index, slot.Since
		if slot.ByPolicy() {
			f.Details = append(f.Details, e.unless(r.Index, slot))
		}
		found = append(found, f)
		return len(found) < wording.Most
	})
	if rest := e.task.SpecialWaits() - len(found); rest > 0 {
		found[len(found)-1].Details = append(found[len(found)-1].Details,
			fmt.Sprintf("and %s more", wording.Plural(rest, "instance waits", "instances wait")))
	}
	return found
}

// anyNode explains a seat that waits for a particular version, or would rather have or not have a node.
func (e *explainer) anyNode(r facts.SlotRef, slot facts.Slot) Finding {
	other := *e
	other.spec = e.job.TaskSpecOf(e.number, slot.Version)
	f := other.waiting(e.key().Special(), nil)
	if slot.Version != 0 {
		f.Details = append(f.Details, fmt.Sprintf("%s is to run version %d", e.seat(r), slot.Version))
	}
	return f
}

// onlyNode explains a seat that can be on one node only.
func (e *explainer) onlyNode(r facts.SlotRef, slot facts.Slot) Finding {
	node := e.s.Node(slot.Node)
	why := "its volumes are there"
	if e.job.Spec.Type == terms.Daemon {
		why = "it is that node's instance"
	}
	f := Finding{Reason: fmt.Sprintf("waits for node %s: %s", node.Name, why)}
	refused, help := node.Drain.On, "the return of "+string(node.Name)
	gone := e.s.Registry().IsGone(node.Name)
	switch {
	case gone:
		f.Reason = fmt.Sprintf("waits for node %s, which was removed from the cluster: %s", node.Name, why)
	case node.Peer == "":
		f.Details = append(f.Details, "the node has left the cluster")
	case node.Offer == nil:
		f.Details = append(f.Details, "the node has not volunteered to take work")
	case !node.Offer.Open():
		f.Details = append(f.Details, fmt.Sprintf("its agent is away until %s", wording.Clock(node.Offer.AwayUntil)))
	case node.Drain.On:
		f.Details = append(f.Details, "the node is drained")
	case !place.Fits(e.s, facts.KeyOf(e.job.ID, e.number), slot.Node):
		refused, help = true, "room there"
		c := newDiagnosis(e)
		c.visit(node)
		for _, m := range c.misses {
			f.Details = append(f.Details, fmt.Sprintf("%s: %s", node.Name, strings.Join(m.words, ", ")))
		}
	}
	if e.job.Spec.Type != terms.Daemon {
		giveUp := fmt.Sprintf("without what its volumes hold: starling alloc stop --give-up-volumes %s", e.s.NameOf(r))
		if gone {
			f.Details = append(f.Details, "would help, "+giveUp)
			return f
		}
		f.Details = append(f.Details, "would help: "+help)
		switch {
		case node.Peer == "":
			f.Details = append(f.Details, "or, "+giveUp)
		case refused && e.s.Rules >= rules.MovedVolumes:
			f.Details = append(f.Details, fmt.Sprintf(
				"or, with what its volumes hold: starling volume relocate %s --to NODE", e.s.NameOf(r)))
		}
	}
	return f
}

// closed returns the slots of a daemon whose nodes are in the cluster and take no instance of it.
func (e *explainer) closed() (slots []held) {
	if e.job.Spec.Type != terms.Daemon || e.job.Stop || e.spec == nil {
		return nil
	}
	for index := range e.task.Slots.Len() {
		if slot := e.task.Slots.At(index); slot.Phase == facts.Stopped && e.s.Node(facts.NodeIndex(index)).Peer != "" {
			slots = append(slots, held{uint32(index), slot})
		}
	}
	return slots
}

// takeNone explains why a daemon has no instance on nodes.
func (e *explainer) takeNone(slots []held) Finding {
	f := Finding{Reason: "is not wanted: its node takes none"}
	if len(slots) > 1 {
		f.Reason = "are not wanted: their nodes take none"
	}
	c := newDiagnosis(e)
	f.Details = wording.Lines(slots, "nodes", func(h held) string {
		m := miss{node: e.s.Node(facts.NodeIndex(h.index))}
		if m.node.Offer == nil {
			return fmt.Sprintf("%s has not volunteered to take work", m.node.Name)
		}
		c.checkState(&m)
		c.checkConstraints(&m)
		return fmt.Sprintf("%s: %s", m.node.Name, strings.Join(m.words, ", "))
	})
	for i := range e.spec.Constraints {
		if c.constraints[i] > 0 {
			f.Details = append(f.Details, "constraint: "+wording.Constraint(&e.spec.Constraints[i]))
		}
	}
	return f
}

func (e *explainer) seat(r facts.SlotRef) string {
	if r.Seat == facts.MainSeat {
		return e.name(r.Index)
	}
	return fmt.Sprintf("the %s of %s", r.Seat, e.name(r.Index))
}

// rescheduling explains instances that failed and are tried on another node later.
func (e *explainer) rescheduling(slots []held) Finding {
	slices.SortStableFunc(slots, func(a, b held) int { return cmp.Compare(a.slot.Deadline, b.slot.Deadline) })
	f := Finding{Reason: "out of restarts on their nodes: tried on other nodes later", Until: slots[0].slot.Deadline,
		Since: earliest(slots)}
	f.Details = wording.Lines(slots, "instances", func(h held) string {
		return fmt.Sprintf("%s was on %s: %s; is tried elsewhere at %s (%s)", e.name(h.index), e.s.Node(h.slot.Node).Name,
			e.ending(h), wording.Clock(h.slot.Deadline), e.tried(h))
	})
	return f
}

// unknown explains instances whose node left and may return.
func (e *explainer) unknown(slots []held) Finding {
	f := Finding{Reason: "out of reach: the node left the cluster and may return", Until: slots[0].slot.Deadline,
		Since: earliest(slots)}
	here := func(h held) bool { return !e.s.Registry().IsGone(e.s.Node(h.slot.Node).Name) }
	if !slices.ContainsFunc(slots, here) {
		f.Reason = "out of reach: the node was removed from the cluster, and may still run it"
	}
	f.Details = wording.Lines(slots, "instances", func(h held) string {
		line := fmt.Sprintf("%s on %s: waits for it until %s", e.name(h.index), e.s.Node(h.slot.Node).Name,
			wording.Clock(h.slot.Deadline))
		if e.job.MayLive(facts.SlotRef{Task: uint16(e.number)}, &h.slot) {
			name := e.s.Node(h.slot.Node).Name
			line = fmt.Sprintf("%s on %s: has certainly stopped itself by %s", e.name(h.index), name, wording.Clock(h.slot.Deadline))
			if e.s.Rules >= rules.EndNow {
				line += fmt.Sprintf("; \"starling node remove %s --is-off\" says that it has", name)
			}
		}
		return line
	})
	return f
}

// outdated returns the slots that run and are not of the newest version.
func (e *explainer) outdated() []held {
	var slots []held
	e.task.EachOutdated(false, 0, func(index uint32) bool {
		if slot := e.task.Slots.At(int(index)); slot.Phase == facts.Running || slot.Phase == facts.Assigned {
			slots = append(slots, held{index, slot})
		}
		return true
	})
	return slots
}

// notYetUpdated explains why instances still run an older version.
func (e *explainer) notYetUpdated(slots []held) Finding {
	u := &e.job.Update
	f := Finding{Since: u.BeganAt}
	switch {
	case u.State == facts.Paused:
		f.Reason = fmt.Sprintf("run version %d: the update to version %d is paused: %s", slots[0].slot.Version, u.To,
			u.Reason)
		f.Details = []string{fmt.Sprintf("would help: starling job update resume %s", e.job.Name())}
	case u.State.Final():
		f.Reason = fmt.Sprintf("run version %d: the update to version %d %s", slots[0].slot.Version, u.To,
			wording.Ended(u.State))
		if u.Reason != "" {
			f.Reason += ": " + u.Reason
		}
		f.Details = e.afterUpdate(slots)
	case !u.Promoted:
		f.Reason = fmt.Sprintf("run version %d: wait until the canaries of version %d are promoted", slots[0].slot.Version,
			u.To)
		f.Details = []string{fmt.Sprintf("would help: starling job update promote %s, once the canaries are healthy",
			e.job.Name())}
	case u.LookedAt != 0 && e.spec != nil:
		c := e.without(slots[0]).diagnosis()
		f.Reason = fmt.Sprintf("run version %d until version %d has room in their place: %s", slots[0].slot.Version, u.To,
			c.shortage())
		f.Details = c.details()
	default:
		f.Reason = fmt.Sprintf("run version %d: wait for their turn in the update to version %d", slots[0].slot.Version, u.To)
		ill := e.task.New[facts.Starting] + e.task.New[facts.Ready] + e.task.New[facts.Unhealthy]
		f.Details = []string{fmt.Sprintf("%s not healthy yet, %d may be at a time",
			wording.Plural(int(ill), "instance is", "instances are"), e.job.Spec.Update.BatchSize)}
	}
	return f
}

// afterUpdate says what would help where an older version runs after an update has ended. A version that was not good
// is not gone back to.
func (e *explainer) afterUpdate(slots []held) []string {
	version := slots[0].slot.Version
	good := slices.ContainsFunc(e.job.Versions, func(v facts.JobVersion) bool {
		return v.Number == version && (v.Outcome == facts.UpdateSucceeded || v.Outcome == facts.RolledBack)
	})
	if good && e.job.Update.State != facts.UpdateSucceeded {
		return []string{fmt.Sprintf("would help: starling job revert %s %d, or a new version", e.job.Name(), version)}
	}
	return []string{fmt.Sprintf("would help: starling job restart %s, which replaces all instances by ones of version %d, or a new version",
		e.job.Name(), e.job.Version)}
}

// without returns who explains the task as if an instance of it had ended.
func (e *explainer) without(h held) *explainer {
	other := *e
	other.s = e.s.Copy()
	h.slot.Phase = facts.Stopped
	other.s.SetSlot(facts.SlotRef{Job: e.job.ID, Task: uint16(e.number), Index: h.index}, h.slot)
	other.job = other.s.Job(e.job.ID)
	other.task = other.job.Tasks[e.number]
	return &other
}

// unwell returns the slots that run and have not passed their checks, or not in time.
func (e *explainer) unwell(slots []held) []held {
	return slices.DeleteFunc(slots, func(h held) bool {
		spec := e.job.TaskSpecOf(e.number, h.slot.Version)
		return h.slot.Health == facts.Ready || h.slot.Health == facts.Healthy ||
			h.slot.Health == facts.Starting && (spec == nil || len(spec.Checks) == 0)
	})
}

// ill explains instances that run and have not passed their checks.
func (e *explainer) ill(slots []held) Finding {
	f := Finding{Reason: "runs, but has not passed all its checks yet", Since: earliest(slots)}
	if len(slots) > 1 {
		f.Reason = "run, but have not passed all their checks yet"
	}
	f.Details = wording.Lines(slots, "instances", func(h held) string {
		line := fmt.Sprintf("%s on %s, %s", e.name(h.index), e.s.Node(h.slot.Node).Name, h.slot.Health)
		if h.slot.Deadline != 0 {
			line += ": is to be healthy by " + wording.Clock(h.slot.Deadline)
		}
		if reason := e.saidOf(h); reason != "" {
			line += ": " + reason
		}
		return line
	})
	return f
}
