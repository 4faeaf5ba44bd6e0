package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"starling/api/client"
	"starling/peer/move"
	"starling/terms"
)

// begunWithin is how long peers may take to see that their journal is sealed: after that none answers with it.
const begunWithin = 5 * time.Second

// begun returns move.ErrBegun if a peer that this machine knows of, or its own, goes on with a journal behind the entry
// after which the old one was sealed. A peer whose journal was sealed answers no more until it has another.
func (c *copying) begun(ctx context.Context, sealed terms.Index) error {
	asked := append([]string{c.from.Address, c.to.Address}, c.keys.Known()...)
	asked = append(append(asked, c.from.Join...), c.to.Join...)
	for end := time.Now().Add(begunWithin); ; {
		goesOn := c.behind(ctx, sealed, asked)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case len(goesOn) == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%w: the peer at %s has it, behind entry %d", move.ErrBegun, goesOn[0], sealed)
		}
		asked = goesOn
		select {
		case <-time.After(sealPause):
		case <-ctx.Done():
		}
	}
}

// behind returns those of the addresses at which peers answer whose journal answers them, and has the entry.
func (c *copying) behind(ctx context.Context, entry terms.Index, addresses []string) (all []string) {
	ctx, cancel := context.WithTimeout(ctx, findMax)
	defer cancel()
	answers := make([]bool, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() {
			peer := client.NewOfNode([]string{address}, c.keys)
			defer peer.Close()
			answer, err := peer.Rules(ctx)
			answers[i] = err == nil && peer.SilentSince().IsZero() && terms.Index(answer.GetIndex()) >= entry
		})
	}
	asking.Wait()
	for i, address := range addresses {
		if answers[i] {
			all = append(all, address)
		}
	}
	return all
}
