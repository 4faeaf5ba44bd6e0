package quorum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"starling/journal"
)

// claim is a machine's hold on its name: a pulse that tells what the machine is.
type claim struct {
	journal journal.Journal
	node    string
	ttl     time.Duration

	mu    sync.Mutex
	shown Machine
	pulse journal.Pulse
}

// claimPause is the time between two looks at a name that another machine has.
const claimPause = 200 * time.Millisecond

// take takes the name, as soon as the engine answers. An earlier process of this machine, over the same folder, has
// ended, and leaves its pulse; that of another machine is waited for, as long as one lives that has died. A machine
// that lives keeps its name.
func (c *claim) take(ctx context.Context, limit time.Duration) error {
	end := time.Now().Add(limit)
	for {
		pulse, err := c.journal.Pulse(ctx, c.node, c.ttl, false)
		var other Machine
		if errors.Is(err, journal.ErrPulseTaken) {
			if other, err = c.holder(ctx); err == nil && other.ID == c.shown.ID {
				pulse, err = c.journal.Pulse(ctx, c.node, c.ttl, true)
			} else if err == nil {
				err = journal.ErrPulseTaken
			}
		}
		if err == nil {
			c.mu.Lock()
			c.pulse = pulse
			c.mu.Unlock()
			for err = c.show(ctx, c.shown); err != nil && !c.lost(); err = c.show(ctx, c.shown) {
				if err := pause(ctx, claimPause); err != nil {
					return err
				}
			}
			if err == nil {
				return nil
			}
		}
		if errors.Is(err, journal.ErrPulseTaken) && time.Now().After(end) {
			return fmt.Errorf("node %s runs already, on %s with the data directory %s: each machine needs a name and a data "+
				"directory of its own\nhint: give this one another name with --node, and an empty --data; nothing was touched here",
				c.node, other.Host, other.Folder)
		}
		if err := pause(ctx, claimPause); err != nil {
			return err
		}
	}
}

// holder returns what the machine that has the name tells.
func (c *claim) holder(ctx context.Context) (Machine, error) {
	machines, err := machinesOf(ctx, c.journal)
	if err != nil {
		return Machine{}, err
	}
	at := slices.IndexFunc(machines, func(m Machine) bool { return m.Node == c.node })
	if at < 0 {
		return Machine{}, fmt.Errorf("the name %s: %w", c.node, journal.ErrNoPulse)
	}
	return machines[at], nil
}

// show publishes what the machine is.
func (c *claim) show(ctx context.Context, m Machine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = m
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := c.pulse.Publish(ctx, value); err != nil {
		return fmt.Errorf("tell that node %s runs: %w", c.node, err)
	}
	return nil
}

// lost tells whether the pulse has ended, or is another's.
func (c *claim) lost() bool {
	select {
	case <-c.pulse.Lost():
		return true
	default:
		return false
	}
}

// end lets others see at once that the machine does not run any more.
func (c *claim) end(ctx context.Context) error {
	if c.pulse == nil {
		return nil
	}
	return c.pulse.End(ctx)
}

// machinesOf lists the machines that run.
func machinesOf(ctx context.Context, j journal.Journal) ([]Machine, error) {
	pulses, err := j.Pulses(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the machines: %w", err)
	}
	var machines []Machine
	for _, p := range pulses {
		m := Machine{}
		if err := json.Unmarshal(p.Value, &m); err != nil {
			continue // it has just begun, and tells more in a moment
		}
		m.Node = p.ID
		machines = append(machines, m)
	}
	return machines, nil
}

// pause returns nil after some time, or ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
