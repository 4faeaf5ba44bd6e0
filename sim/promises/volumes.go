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
	// Sets are what it keeps, in order; of has which allocation wrote last in what it keeps of each.
	Sets []terms.VolumeSet
	of   map[terms.VolumeSet]terms.AllocationID
}

// Disks watches what instances leave in their volumes. The promise: an allocation of a slot finds what the one before
// left, also in a later job of the name, until somebody gives that up or removes it, or it was kept for as long as the
// task said.
type Disks struct {
	fail func(format string, args ...any)
	// left is what each slot has, and where; endedBy the entry that ended it last.
	left    map[terms.SlotName]filled
	endedBy map[terms.SlotName]terms.Index
	// copied are the disks of nodes to which sets were copied.
	copied map[copied]*Disk
}

type copied struct {
	set terms.VolumeSet
	to  terms.NodeName
}

type filled struct {
	set terms.VolumeSet
	on  *Disk
	by  terms.AllocationID
	// kept tells that some version of its task said how long it is kept for nobody.
	kept bool
}

// NewDisks returns a watch over disks that are all empty.
func NewDisks(fail func(format string, args ...any)) *Disks {
	return &Disks{fail: fail, left: map[terms.SlotName]filled{}, endedBy: map[terms.SlotName]terms.Index{},
		copied: map[copied]*Disk{}}
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
	if known && !twin && (last.on != on || last.set != order.Volumes || !slices.Contains(on.Sets, last.set) ||
		on.of[last.set] != last.by) {
		d.fail("%s begins on %s with the volumes %s, and the one before left %s on %s", order.ID, on.Machine, order.Volumes,
			last.set, last.on.Machine)
	}
	d.left[slot] = filled{order.Volumes, on, order.ID, last.kept || order.Spec.KeepVolumesMillis > 0}
	on.put(order.Volumes, order.ID)
}

// Deleted notes that a machine has deleted a set because the value says so.
func (d *Disks) Deleted(set terms.VolumeSet, on *Disk) {
	on.Sets = slices.DeleteFunc(on.Sets, func(one terms.VolumeSet) bool { return one == set })
	if last, known := d.left[set.Slot]; known && last.kept && last.set == set && last.on == on {
		delete(d.left, set.Slot)
	}
}

func (d *Disk) put(set terms.VolumeSet, by terms.AllocationID) {
	if d.of == nil {
		d.of = map[terms.VolumeSet]terms.AllocationID{}
	}
	if d.of[set] = by; !slices.Contains(d.Sets, set) {
		d.Sets = append(d.Sets, set)
		slices.SortFunc(d.Sets, terms.VolumeSet.Compare)
	}
}

// Written tells which allocation wrote last in what the machine keeps of a set.
func (d *Disk) Written(set terms.VolumeSet) terms.AllocationID { return d.of[set] }

// Copied notes that a machine has what an allocation left in a set on another.
func (d *Disks) Copied(set terms.VolumeSet, by terms.AllocationID, to *Disk) {
	to.put(set, by)
	d.copied[copied{set, to.Node}] = to
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
		case *command.MoveVolumes:
			last, known := d.left[c.Volumes.Slot]
			if known && last.set == c.Volumes {
				last.on = d.copied[copied{c.Volumes, folded.Entry.Writer.Node()}]
				d.left[c.Volumes.Slot] = last
			}
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
