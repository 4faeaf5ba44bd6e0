package promises

import (
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/terms"
	"starling/terms/rules"
)

// Disk is what a machine keeps of volumes.
type Disk struct {
	// Machine is what the simulator calls it, Node its name, which another may have by mistake.
	Machine string
	Node    terms.NodeName
	// Sets are what it keeps, in order.
	Sets []terms.VolumeSet
}

// Disks watches what instances leave in their volumes. The promise: an allocation of a slot finds what the one before
// left, also in a later job of the name, until somebody gives that up or removes it.
type Disks struct {
	fail func(format string, args ...any)
	// left is what each slot has, and where; endedBy the entry that ended it last.
	left    map[terms.SlotName]filled
	endedBy map[terms.SlotName]terms.Index
}

type filled struct {
	set terms.VolumeSet
	on  *Disk
}

// NewDisks returns a watch over disks that are all empty.
func NewDisks(fail func(format string, args ...any)) *Disks {
	return &Disks{fail: fail, left: map[terms.SlotName]filled{}, endedBy: map[terms.SlotName]terms.Index{}}
}

// Opened checks what an allocation finds that begins on a machine, and notes that it writes there.
func (d *Disks) Opened(s *cluster.State, on *Disk, order *reaction.Order) {
	slot := order.ID.Slot
	if s.Rules < rules.Volumes || order.ID.Order <= d.endedBy[slot] {
		return
	}
	if len(order.Spec.Volumes) == 0 {
		delete(d.left, slot)
		return
	}
	last, known := d.left[slot]
	twin := known && last.on != on && last.on.Node == on.Node
	if known && !twin && (last.on != on || last.set != order.Volumes || !slices.Contains(on.Sets, last.set)) {
		d.fail("%s begins on %s with the volumes %s, and the one before left %s on %s", order.ID, on.Machine, order.Volumes,
			last.set, last.on.Machine)
	}
	d.left[slot] = filled{order.Volumes, on}
	if !slices.Contains(on.Sets, order.Volumes) {
		on.Sets = append(on.Sets, order.Volumes)
		slices.SortFunc(on.Sets, terms.VolumeSet.Compare)
	}
}

// Entry notes what an entry has ended.
func (d *Disks) Entry(folded *report.Folded) {
	if folded.Outcome.Dropped != "" {
		return
	}
	for i, c := range folded.Entry.Commands {
		if folded.Outcome.Results[i].Refused() {
			continue
		}
		switch c := command.Plain(c).(type) {
		case *command.RemoveVolumes:
			d.end(c.Volumes.Slot, folded.Index)
		case *command.EndAllocation:
			if c.WithoutVolumes {
				d.end(c.Slot, folded.Index)
			}
		}
	}
}

func (d *Disks) end(slot terms.SlotName, by terms.Index) {
	delete(d.left, slot)
	d.endedBy[slot] = by
}

// Emptied notes that a machine begins with an empty disk.
func (d *Disks) Emptied(on *Disk) {
	on.Sets = nil
	for slot, last := range d.left {
		if last.on == on {
			delete(d.left, slot)
		}
	}
}

// Rest checks that no member keeps what the value does not know.
func (d *Disks) Rest(s *cluster.State, on *Disk) {
	known := storage.List(s)
	for _, set := range on.Sets {
		if !slices.ContainsFunc(known, func(v storage.Volumes) bool { return v.Set == set && v.Node == on.Node }) {
			d.fail("%s keeps the volumes %s, of which nobody knows", on.Machine, set)
		}
	}
}
