package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"starling/driver"
	"starling/driver/manifest"
	"starling/peer/ending"
	"starling/peer/handover"
	"starling/peer/inbox"
	"starling/replica/reaction"
	"starling/terms"
)

// outputs are those of this machine, and what only the loop touches of them.
type outputs struct {
	*handover.Outputs
	// growing are the outputs of instances that run; sealed has true for what has its manifest, or cannot have one, and
	// false while it is made; cancel ends the preparation of an instance; waits says why one is not started.
	growing []terms.OutputSet
	sealed  map[terms.AllocationID]bool
	cancel  map[terms.AllocationID]context.CancelFunc
	waits   map[terms.AllocationID]string
}

func newOutputs(config *Config, lost func(terms.AllocationID)) *outputs {
	return &outputs{
		Outputs: handover.New(handover.Config{Driver: config.Driver, Node: config.Node, Fetch: config.Fetch, Lost: lost}),
		sealed:  map[terms.AllocationID]bool{}, cancel: map[terms.AllocationID]context.CancelFunc{},
		waits: map[terms.AllocationID]string{},
	}
}

// sealing tells whether the success of an allocation is not to be told yet, because its output has no manifest. That is
// made beside the loop; if it cannot be, the allocation has failed.
func (p *Peer) sealing(ctx context.Context, set terms.OutputSet) bool {
	id := set.Allocation
	done, begun := p.outputs.sealed[id]
	if begun {
		return !done
	}
	p.outputs.sealed[id] = false
	p.group.Go(func() {
		err := p.outputs.Seal(ctx, set)
		p.post(ctx, func() {
			if p.outputs.sealed[id] = true; err != nil {
				p.log.Error("an output cannot be passed on", "allocation", id.String(), "error", err)
				p.core.CheckFailed(id, fmt.Sprintf("its output folder: %v", err))
			}
			p.driverChanged(ctx)
		})
	})
	return true
}

// measureEvery is the pause between two looks at how large outputs have become.
const measureEvery = 10 * time.Second

// measureRoom tells the core how full the journal is, until ctx ends.
func (p *Peer) measureRoom(ctx context.Context) {
	for ; ctx.Err() == nil; inbox.Pause(ctx, measureEvery) {
		room, err := p.config.Journal.Room(ctx)
		if err != nil {
			continue // the engine is away: whatever else is written says so
		}
		p.post(ctx, func() {
			before := p.core.Full()
			p.core.SetRoom(room)
			switch now := p.core.Full(); {
			case before == "" && now != "":
				p.log.Error("new work is refused", "reason", now)
			case before != "" && now == "":
				p.log.Info("the journal has room again, and new work is taken")
			}
		})
	}
}

// measure ends instances whose output has outgrown the limits before it fills the disk, until ctx ends.
func (p *Peer) measure(ctx context.Context) {
	for inbox.Pause(ctx, measureEvery); ctx.Err() == nil; inbox.Pause(ctx, measureEvery) {
		growing := make(chan []terms.OutputSet, 1)
		p.post(ctx, func() { growing <- slices.Clone(p.outputs.growing) })
		select {
		case all := <-growing:
			for _, set := range all {
				p.measureOne(ctx, set)
			}
		case <-ctx.Done():
		}
	}
}

func (p *Peer) measureOne(ctx context.Context, set terms.OutputSet) {
	switch err := p.outputs.Grown(ctx, set); {
	case errors.Is(err, manifest.ErrUnfit):
		p.log.Error("an output has become too large", "allocation", set.Allocation.String(), "error", err)
		p.post(ctx, func() { p.core.CheckFailed(set.Allocation, fmt.Sprintf("its output folder: %v", err)) })
	case err != nil && ctx.Err() == nil:
		p.log.Warn("an output cannot be measured", "allocation", set.Allocation.String(), "error", err)
	}
}

// SendOutput writes an output that is whole here; the error is os.ErrNotExist if there is none.
func (p *Peer) SendOutput(_ context.Context, set terms.OutputSet, to io.Writer) error {
	return p.outputs.Send(set, to)
}

// handOver prepares a task of a workflow, beside the loop. It returns why it cannot be started, if so, and false if
// that is to be tried again.
func (p *Peer) handOver(ctx context.Context, task *driver.Task, h *reaction.Handover) (refusal string, ok bool) {
	id := h.Output.Allocation
	err := p.outputs.Prepare(ctx, task, h, func(bringing string) {
		p.post(ctx, func() {
			if p.outputs.waits[id] == "" { // what went wrong the last time says more
				p.outputs.waits[id] = bringing
			}
		})
	})
	if err == nil {
		p.wait(ctx, id, "")
		return "", true
	}
	p.post(ctx, func() {
		if reason := err.Error(); p.outputs.waits[id] != reason && ctx.Err() == nil {
			p.outputs.waits[id] = reason
			p.log.Warn("an instance is not started yet: its input is not there", "allocation", id.String(), "reason", reason)
		}
	})
	if errors.Is(err, handover.ErrLater) || ctx.Err() != nil {
		return "", false
	}
	return ending.Clipped("its input: " + err.Error()), true
}

// abandon ends the preparation of what is not wanted any more, and forgets what is over.
func (p *Peer) abandon() {
	for id, cancel := range p.outputs.cancel {
		if !reaction.IsDue(p.core.state, id) {
			cancel()
		}
	}
	for id := range p.outputs.waits {
		if !reaction.IsDue(p.core.state, id) {
			delete(p.outputs.waits, id)
		}
	}
}

// sets returns what the driver keeps in volumes: those of slots, and the outputs.
func (p *Peer) sets() (volumes []terms.VolumeSet, outputs []terms.OutputSet) {
	for _, name := range p.config.Driver.VolumeSets() {
		if set, ok := terms.ParseVolumeSet(name); ok {
			volumes = append(volumes, set)
		} else if set, ok := terms.ParseOutputSet(name); ok {
			outputs = append(outputs, set)
		} else {
			p.log.Warn("the driver keeps volumes that are no slot's", "set", name)
		}
	}
	return volumes, outputs
}

// deleteSets has the driver delete them beside the loop, all of them before it begins with others.
func (p *Peer) deleteSets(ctx context.Context, work *Work) {
	var sets []string
	for _, set := range work.DeleteVolumes {
		if slices.Contains(p.undone, set) {
			p.setAside(ctx, set)
			continue
		}
		sets = append(sets, set.String())
	}
	for _, set := range work.DeleteOutputs {
		sets = append(sets, set.String())
	}
	if len(sets) == 0 || p.deleting {
		return
	}
	p.deleting = true
	p.group.Go(func() {
		for _, set := range sets {
			if err := p.config.Driver.DeleteVolumes(set); err != nil {
				p.log.Error("volumes could not be deleted; trying again", "set", set, "error", err)
				inbox.Pause(ctx, publishEvery)
				continue
			}
			p.log.Info("volumes deleted", "set", set)
		}
		p.post(ctx, func() {
			p.deleting = false
			p.driverChanged(ctx)
		})
	})
}

// findUndone finds the volumes of a past that the journal has lost. They are not deleted: they may be all that is left.
func (p *Peer) findUndone() {
	if !p.config.Archive.OtherPast(p.core.state.Index) {
		return
	}
	for _, set := range p.core.volumes {
		if !reaction.Keeps(p.core.Self(), p.core.state, set) {
			p.undone = append(p.undone, set)
		}
	}
}

func (p *Peer) setAside(ctx context.Context, set terms.VolumeSet) {
	folder, err := p.config.Driver.SetVolumesAside(set.String())
	if err != nil {
		p.log.Error("volumes of a past that the journal has lost cannot be set aside", "set", set.String(), "error", err)
		return
	}
	p.log.Warn("volumes of a past that the journal has lost are set aside", "set", set.String(), "folder", folder)
	p.driverChanged(ctx)
}
