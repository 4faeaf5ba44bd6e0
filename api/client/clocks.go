package client

import (
	"context"
	"net/http"
	"sync"
	"time"

	"starling/api/door"
	"starling/api/wire"
)

const (
	// clocksMax is how many clocks are asked for at once, and clocksWait how long that may take.
	clocksMax  = 5
	clocksWait = 2 * time.Second
)

// Clocks asks some of the peers at the addresses, in the order of these, what time it is, and returns by how much their
// clocks are ahead of this machine's, to about a second. Those that do not answer are left out.
func Clocks(ctx context.Context, by *http.Client, addresses []string) (ahead []time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, clocksWait)
	defer cancel()
	answers := make([]*time.Duration, min(len(addresses), clocksMax))
	var asking sync.WaitGroup
	for i, address := range addresses[:len(answers)] {
		asking.Go(func() { answers[i] = clockOf(ctx, by, address) })
	}
	asking.Wait()
	for _, answer := range answers {
		if answer != nil {
			ahead = append(ahead, *answer)
		}
	}
	return ahead
}

// clockOf returns by how much the clock of a peer is ahead, nil if it does not say.
func clockOf(ctx context.Context, by *http.Client, address string) *time.Duration {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, wire.URL(address)+door.PathHealth, nil)
	if err != nil {
		return nil
	}
	asked := time.Now()
	answer, err := by.Do(request)
	if err != nil {
		return nil
	}
	answer.Body.Close()
	told, err := http.ParseTime(answer.Header.Get("Date")) // in whole seconds, of which the rest is cut off
	if err != nil {
		return nil
	}
	ahead := told.Add(time.Second / 2).Sub(asked.Round(0).Add(time.Since(asked) / 2))
	return &ahead
}
