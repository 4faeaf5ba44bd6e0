package peer

import (
	"context"

	"starling/terms"
)

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
		sets = append(sets, set.String())
	}
	for _, set := range work.DeleteOutputs {
		sets = append(sets, set.String())
	}
	if len(sets) == 0 || p.deleting {
		return
	}
	p.deleting = true
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		for _, set := range sets {
			if err := p.config.Driver.DeleteVolumes(set); err != nil {
				p.log.Error("volumes could not be deleted; trying again", "set", set, "error", err)
				pause(ctx, publishEvery)
				continue
			}
			p.log.Info("volumes deleted", "set", set)
		}
		p.post(ctx, func() {
			p.deleting = false
			p.driverChanged(ctx)
		})
	}()
}
