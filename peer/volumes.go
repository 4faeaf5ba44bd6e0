package peer

import (
	"context"
	"fmt"
	"io"
	"os"

	"starling/command"
	"starling/driver"
	"starling/peer/outbox"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/terms"
)

// VolumeBytes returns how much each volume of a set on this machine takes, as driver.Driver does.
func (p *Peer) VolumeBytes(ctx context.Context, set terms.VolumeSet) (map[string]int64, error) {
	return p.config.Driver.VolumeBytes(ctx, set.String())
}

// SendVolumes writes what a set of volumes on this machine holds, as driver.Driver does, until ctx ends. The error is
// os.ErrNotExist if there is none, storage.ErrInUse if something runs here that may write to it, whatever the journal
// says of that.
func (p *Peer) SendVolumes(ctx context.Context, set terms.VolumeSet, to io.Writer) error {
	for _, task := range p.config.Driver.Tasks() {
		if id, ok := terms.ParseAllocationID(task.ID); ok && id.Slot == set.Slot && task.State != driver.Exited {
			return fmt.Errorf("%w: %s still runs here", storage.ErrInUse, id)
		}
	}
	return p.config.Driver.SendVolumes(ctx, set.String(), to)
}

// TakeVolumes makes a set of volumes on this machine of what SendVolumes wrote on another, and asks that this node has
// it from then on. Whoever wants to call it off ends from by an error. The error is os.ErrExist if the set is here, or
// on its way.
func (p *Peer) TakeVolumes(move *command.MoveVolumes, from io.Reader) (report.Receipt, error) {
	set, expected, ctx := move.Volumes, make(chan bool, 1), context.Background()
	p.post(ctx, func() { expected <- p.core.ExpectVolumes(set) })
	select {
	case ok := <-expected:
		if !ok {
			return report.Receipt{}, fmt.Errorf("they are on their way already: %w", os.ErrExist)
		}
	case <-p.stopped:
		return report.Receipt{}, outbox.ErrStopped
	}
	if err := p.config.Driver.ReceiveVolumes(set.String(), from); err != nil {
		p.post(ctx, func() { p.core.DropVolumes(set) })
		return report.Receipt{}, err
	}
	return p.ask(ctx, func(answer func(report.Receipt, error)) { p.core.TakeVolumes(set, move, answer) })
}
