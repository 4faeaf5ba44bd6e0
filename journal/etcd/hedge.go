package etcd

import (
	"context"
	"sync"
	"time"
)

const (
	// readMax bounds one small request, which may be repeated at once.
	readMax = time.Second
	// hedgeEvery is how long a request may be silent before it is sent again, hedgesMax how often that is done.
	hedgeEvery = 150 * time.Millisecond
	hedgesMax  = 2
)

// hedged asks, and asks again while there is no answer, which goes to another member: one of them may be paused. The
// first answer counts.
func hedged[A any](ctx context.Context, ask func(context.Context) (A, error)) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, readMax)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	type answer struct {
		answer A
		err    error
	}
	answers := make(chan answer, 1+hedgesMax)
	again := time.NewTicker(hedgeEvery)
	defer again.Stop()
	for asked := 0; ; asked++ {
		if asked <= hedgesMax {
			asking.Go(func() {
				got, err := ask(ctx)
				answers <- answer{got, err}
			})
		}
		select {
		case first := <-answers:
			return first.answer, first.err
		case <-again.C:
		}
	}
}
