package peer

import (
	"context"

	"starling/terms"
)

// volumeSets returns the sets of volumes that the driver keeps for slots.
func (p *Peer) volumeSets() []terms.VolumeSet {
	var sets []terms.VolumeSet
	for _, name := range p.config.Driver.VolumeSets() {
		set, ok := terms.ParseVolumeSet(name)
		if !ok {
			p.log.Warn("the driver keeps volumes that are no slot's", "set", name)
			continue
		}
		sets = append(sets, set)
	}
	return sets
}

// deleteVolumes has the driver delete them beside the loop, all of them before it begins with others.
func (p *Peer) deleteVolumes(ctx context.Context, sets []terms.VolumeSet) {
	if len(sets) == 0 || p.deleting {
		return
	}
	p.deleting = true
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		for _, set := range sets {
			if err := p.config.Driver.DeleteVolumes(set.String()); err != nil {
				p.log.Error("volumes could not be deleted; trying again", "set", set.String(), "error", err)
				pause(ctx, publishEvery)
				continue
			}
			p.log.Info("volumes deleted", "set", set.String())
		}
		p.post(ctx, func() {
			p.deleting = false
			p.driverChanged()
		})
	}()
}
