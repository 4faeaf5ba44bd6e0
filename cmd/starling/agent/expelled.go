package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"starling/api/client"
	"starling/api/door"
	"starling/api/wire"
	"starling/cmd/starling/host"
)

const (
	// expelledEvery is how often a machine that the journal does not answer asks others whether it belongs to them yet.
	expelledEvery = 3 * time.Second
	// expelledGrace is how long tasks get to end on a machine that was removed.
	expelledGrace = 10 * time.Second
)

// expulsion tells when others of the cluster say that this machine belongs to it no more. It reads that in the journal
// as well, but not if it was away: the engine does not answer it then. They are asked only while the journal is silent.
func (a *agent) expulsion(ctx context.Context, silent func() bool) <-chan error {
	told := make(chan error, 1)
	go func() {
		tick := time.NewTicker(expelledEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !silent() {
				continue
			}
			if reason := a.whyExpelled(ctx); reason != nil {
				a.log.Error("this machine ends its tasks, and its agent", "error", reason)
				told <- reason
				return
			}
		}
	}()
	return told
}

// silent returns what tells whether the journal does not answer a peer, also when that has ended.
func silent(peer *host.Host) func() bool {
	return func() bool {
		_, err := peer.Silence()
		return err != nil
	}
}

// removed tells whether this machine belongs to the cluster no more, as its peer has read or others have said.
func (a *agent) removed() bool { return a.expelled || a.host.Removed() }

// whyExpelled returns why this machine belongs to the cluster no more, as others say; nil while nobody says that. If
// they have another authority than it knows, it follows that first.
func (a *agent) whyExpelled(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, expelledEvery)
	defer cancel()
	if err := client.CatchUp(short, a.keys, a.machines()); err != nil {
		a.log.Warn("the cluster's authority was replaced, and this machine could not follow; trying again", "error", err)
	}
	others := client.NewOfNode(a.machines(), a.keys)
	defer others.Close()
	_, err := others.Quorum(short)
	var failure *wire.Failure
	if errors.As(err, &failure) && failure.Code == wire.Denied && strings.HasPrefix(failure.Reason, door.Expelled) {
		return errors.New(failure.Reason)
	}
	return nil
}

// unlessExpelled starts something that waits for the journal, and gives up when this machine belongs to the cluster no
// more: what its tasks were is ended then.
func (a *agent) unlessExpelled(ctx context.Context, start func(context.Context) error) error {
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	reason := make(chan error, 1)
	go func() {
		select {
		case told := <-a.expulsion(starting, func() bool { return true }):
			reason <- told
			cancel()
		case <-starting.Done():
		}
	}()
	err := start(starting)
	select {
	case told := <-reason:
		if a.host != nil {
			a.expelled = true
			return told
		}
		if err := host.EndTasks(a.folder.Path); err != nil {
			return fmt.Errorf("%w; its tasks could not be ended: %w", told, err)
		}
		return told
	default:
		return err
	}
}
